"""`ag.sparse`: tensors of which only some elements are kept."""

from __future__ import annotations

from runtime.ops.arrays.segments import sparse_segment_mean as segment_mean
from runtime.ops.arrays.segments import sparse_segment_sqrt_n as segment_sqrt_n
from runtime.ops.arrays.segments import sparse_segment_sum as segment_sum
from runtime.ragged.api import sparse_bincount as bincount
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
from runtime.sparse import sparse_concat as concat
from runtime.sparse import sparse_expand_dims as expand_dims
from runtime.sparse import sparse_eye as eye
from runtime.sparse import sparse_reduce_max as reduce_max
from runtime.sparse import sparse_reduce_sum as reduce_sum
from runtime.sparse import sparse_slice as slice
from runtime.sparse import sparse_transpose as transpose
from runtime.sparse_functions import (
    cross,
    cross_hashed,
    fill_empty_rows,
    maximum,
    minimum,
    reset_shape,
    softmax,
    split,
    to_indicator,
)
from runtime.sparse_functions import sparse_reshape as reshape

__all__ = [
    "SparseTensor", "add", "bincount", "concat", "cross", "cross_hashed", "expand_dims", "eye", "fill_empty_rows",
    "from_dense", "map_values", "maximum", "minimum", "reduce_max", "reduce_sum", "reorder", "reset_shape", "reshape",
    "retain", "segment_mean", "segment_sqrt_n", "segment_sum", "slice", "softmax", "sparse_dense_matmul", "split",
    "to_dense", "to_indicator", "transpose",
]  # fmt: skip
