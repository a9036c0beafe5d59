"""Sums and means of rows of a table, by ids in sparse tensors."""

from __future__ import annotations

from typing import Any

from runtime import dtypes
from runtime.ops.api import (
    boolean_mask,
    cast,
    concat,
    convert_to_tensor,
    cumprod,
    divide_no_nan,
    expand_dims,
    reduce_max,
    reshape,
    sqrt,
    where,
    zeros_like,
)
from runtime.ops.api import shape as shape_of
from runtime.ops.arrays.segments import unsorted_segment_sum
from runtime.ops.nn.nn_ops import embedding_lookup
from runtime.ops.rules import dims
from runtime.sparse import SparseTensor
from runtime.sparse_functions import fill_empty_rows, sparse_reshape
from runtime.tensor import Tensor

_COMBINERS = ("mean", "sqrtn", "sum")


def _table(params: Any) -> Tensor:
    """One table. Raises ValueError for several: they would be parts of one that is spread over machines."""
    if isinstance(params, (list, tuple)):
        if len(params) != 1:
            raise ValueError(f"params must be one table, got {len(params)}; join its parts by ag.concat")
        params = params[0]
    return convert_to_tensor(params)


def _check(combiner: str | None, sp_ids: Any, sp_weights: Any) -> str:
    how = "mean" if combiner is None else combiner
    if how not in _COMBINERS:
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {how}")
    if not isinstance(sp_ids, SparseTensor):
        raise TypeError(f"sp_ids must be SparseTensor, got {type(sp_ids)}")
    if sp_weights is not None and not isinstance(sp_weights, SparseTensor):
        raise TypeError(f"sp_weights must be either None or SparseTensor, got {type(sp_weights)}")
    if sp_weights is not None and not sp_ids.values.shape.is_compatible_with(sp_weights.values.shape):
        raise ValueError(f"sp_ids has {sp_ids.values.shape} values, sp_weights {sp_weights.values.shape}")
    return how


def embedding_lookup_sparse(
    params: Any, sp_ids: SparseTensor, sp_weights: SparseTensor | None, combiner: str | None = None,
    max_norm: float | None = None, name: str | None = None, allow_fast_lookup: bool = False,
) -> Tensor:  # fmt: skip
    """For each row of `sp_ids` its rows of a table, combined. Shape (last row with ids + 1, *row of the table).

    params: the table. sp_ids: int ids, a row for each result. sp_weights: one for each id, 1 by default.
    combiner: "sum", "mean" (the default; divided by the sum of the weights) or "sqrtn" (by the root of the sum of their
    squares). max_norm: rows of the table are scaled down to this norm if they are longer. A row without ids gives 0.
    Raises ValueError for another combiner, TypeError for ids that aren't sparse, InvalidArgumentError for ids out of
    range.
    """
    how = _check(combiner, sp_ids, sp_weights)
    rows = sp_ids.indices[:, 0]
    count = reduce_max(concat([rows, convert_to_tensor([-1], dtypes.int64)], 0)) + 1
    return _combined(_table(params), sp_ids.values, rows, count, sp_weights, how, max_norm)


def _combined(
    table: Tensor, ids: Tensor, rows: Tensor, count: Tensor, sp_weights: SparseTensor | None, how: str, max_norm: Any
) -> Tensor:
    found = embedding_lookup(table, ids, max_norm)
    rank = len(found._shape or ())
    narrow = found.dtype
    if narrow in (dtypes.float16, dtypes.bfloat16):
        found = cast(found, dtypes.float32)
    ones = cast(zeros_like(rows) + 1, found.dtype)
    weights = ones if sp_weights is None else cast(sp_weights.values, found.dtype)
    for _ in range(rank - 1):
        weights = expand_dims(weights, -1)
    total = unsorted_segment_sum(found if sp_weights is None else found * weights, rows, count)
    if how == "mean":
        total = divide_no_nan(total, unsorted_segment_sum(weights, rows, count))
    elif how == "sqrtn":
        total = divide_no_nan(total, sqrt(unsorted_segment_sum(weights * weights, rows, count)))
    return cast(total, narrow)


def safe_embedding_lookup_sparse(
    embedding_weights: Any, sparse_ids: SparseTensor, sparse_weights: SparseTensor | None = None,
    combiner: str | None = "mean", default_id: int | None = None, max_norm: float | None = None,
    name: str | None = None, allow_fast_lookup: bool = False,
) -> Tensor:  # fmt: skip
    """`embedding_lookup_sparse` along the last dimension of `sparse_ids`, without ids below 0.

    Unless the combiner is "sum", ids with weights of 0 or less are left out too. A row without ids gives the row
    `default_id` of the table, by default 0. Shape: that of `sparse_ids` without its last dimension, then that of a row
    of the table. Raises the errors of `embedding_lookup_sparse`.
    """
    if embedding_weights is None:
        raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    how = _check(combiner, sparse_ids, sparse_weights)
    table = _table(embedding_weights)
    whole = sparse_ids.dense_shape
    lines = cumprod(concat([convert_to_tensor([1], dtypes.int64), whole[:-1]], 0))[-1:]
    flat = sparse_reshape(sparse_ids, concat([lines, whole[-1:]], 0))
    kept = flat.values >= 0
    weights = None if sparse_weights is None else sparse_weights.values
    if weights is not None and how != "sum":
        kept = kept & (weights > 0)
    indices = boolean_mask(flat.indices, kept)
    ids = SparseTensor(indices, boolean_mask(flat.values, kept), flat.dense_shape)
    ids, empty = fill_empty_rows(ids, default_id or 0)
    shares = None
    if weights is not None:
        one = convert_to_tensor(1, weights.dtype)
        shares, _ = fill_empty_rows(SparseTensor(indices, boolean_mask(weights, kept), flat.dense_shape), one)
    result = _combined(table, ids.values, ids.indices[:, 0], flat.dense_shape[0], shares, how, max_norm)
    if default_id is None:
        for _ in range(len(result._shape or (None,)) - 1):
            empty = expand_dims(empty, -1)
        result = where(empty, zeros_like(result), result)
    known = sparse_ids.shape.rank
    row = dims(table)[1:]
    if known is not None and None not in sparse_ids.shape.as_list()[:-1]:
        return reshape(result, [*sparse_ids.shape.as_list()[:-1], *row])
    return reshape(result, concat([cast(whole[:-1], dtypes.int32), shape_of(result)[1:]], 0))
