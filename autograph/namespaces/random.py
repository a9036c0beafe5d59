"""`ag.random`: random tensors."""

from __future__ import annotations

from runtime.ops.random import (
    normal,
    set_seed,
    shuffle,
    truncated_normal,
    uniform,
)  # fmt: skip

__all__ = [
    "normal", "set_seed", "shuffle", "truncated_normal", "uniform",
]  # fmt: skip
