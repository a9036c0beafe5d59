"""Rewrites that run once, each at its own time: the lines of `REWRITES` in `pipeline.py`, and what they share."""
