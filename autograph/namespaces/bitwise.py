"""`ag.bitwise`: operations on the bits of integers."""

from __future__ import annotations

from runtime.ops.api import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    invert,
    left_shift,
    right_shift,
)  # fmt: skip

__all__ = [
    "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift",
]  # fmt: skip
