"""`ag.config.optimizer`: when native code is made, and which graph passes run."""

from __future__ import annotations

from runtime.engine.options import get_experimental_options, get_jit, set_experimental_options, set_jit

__all__ = ["get_experimental_options", "get_jit", "set_experimental_options", "set_jit"]
