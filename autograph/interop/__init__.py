"""`ag.interop`: functions of ours called from other libraries' programs.

`torch`, `jax`, `scipy` and `numba` are modules here, each imported when it is asked for, since it imports the library
that it is for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autograph.interop import jax, numba, scipy, torch

__all__ = ["jax", "numba", "scipy", "torch"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"ag.interop has no attribute '{name}'; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
