"""`ag.nest`: nested structures."""

from __future__ import annotations

from runtime.composites import (
    assert_same_structure,
    flatten,
    is_nested,
    map_structure,
    pack_sequence_as,
)  # fmt: skip

__all__ = [
    "assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as",
]  # fmt: skip
