"""`ag.config.optimizer`: when native code is made."""

from __future__ import annotations

from runtime.engine.options import get_jit, set_jit

__all__ = ["get_jit", "set_jit"]
