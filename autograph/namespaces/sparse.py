"""`ag.sparse`: tensors of which only some elements are kept."""

from __future__ import annotations

from runtime.ops.arrays.segments import sparse_segment_mean as segment_mean
from runtime.ops.arrays.segments import sparse_segment_sqrt_n as segment_sqrt_n
from runtime.ops.arrays.segments import sparse_segment_sum as segment_sum
from runtime.sparse import (
    SparseTensor,
    from_dense,
    map_values,
    reorder,
    retain,
    sparse_dense_matmul,
    to_dense,
)
from runtime.sparse import sparse_add as add
from runtime.sparse import sparse_bincount as bincount
from runtime.sparse import sparse_concat as concat
from runtime.sparse import sparse_expand_dims as expand_dims
from runtime.sparse import sparse_eye as eye
from runtime.sparse import sparse_fill_empty_rows as fill_empty_rows
from runtime.sparse import sparse_maximum as maximum
from runtime.sparse import sparse_minimum as minimum
from runtime.sparse import sparse_reduce_max as reduce_max
from runtime.sparse import sparse_reduce_sum as reduce_sum
from runtime.sparse import sparse_reshape as reshape
from runtime.sparse import sparse_slice as slice
from runtime.sparse import sparse_transpose as transpose

__all__ = [
    "SparseTensor", "add", "bincount", "concat", "expand_dims", "eye", "fill_empty_rows", "from_dense", "map_values",
    "maximum", "minimum", "reduce_max", "reduce_sum", "reorder", "reshape", "retain", "segment_mean",
    "segment_sqrt_n", "segment_sum", "slice", "sparse_dense_matmul", "to_dense", "transpose",
]  # fmt: skip
