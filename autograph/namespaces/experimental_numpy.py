"""`ag.experimental.numpy`: NumPy's functions under NumPy's names, whose results are tensors."""

from __future__ import annotations

from runtime.ops.numpy.namespace import functions

globals().update(functions)
__all__ = sorted(functions)
