"""`ag.experimental.numpy`: NumPy's functions under NumPy's names, whose results are tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from autograph.namespaces import experimental_numpy_random
from runtime.ops.numpy.namespace import functions

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


globals().update(functions, random=experimental_numpy_random)
__all__ = sorted([*functions, "random"])
