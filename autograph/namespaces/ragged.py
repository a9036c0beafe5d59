"""`ag.ragged`: tensors whose rows differ in length."""

from __future__ import annotations

from runtime.ragged.api import (
    RaggedTensor,
    boolean_mask,
    constant,
    map_flat_values,
)
from runtime.ragged.api import (
    ragged_range as range,
)
from runtime.ragged.api import (
    ragged_stack as stack,
)
from runtime.ragged.partition import (
    ids_of as row_splits_to_segment_ids,
)
from runtime.ragged.partition import (
    segment_ids_to_row_splits,
)

__all__ = [
    "RaggedTensor", "boolean_mask", "constant", "map_flat_values", "range", "row_splits_to_segment_ids",
    "segment_ids_to_row_splits", "stack",
]  # fmt: skip
