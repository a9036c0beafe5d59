"""Lowerings of ops that aren't elementwise: one file per family, which adds rows to `lower.state.EMITTERS`."""
