"""`ag.strings`: string tensors."""

from __future__ import annotations

from runtime.ops.api import (
    strings_join as join,
)  # fmt: skip

__all__ = [
    "join",
]  # fmt: skip
