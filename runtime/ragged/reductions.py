"""Reductions of ragged tensors: over all values, over rows, or over a dimension behind them.

reduce_sum([[3 1] [] [5 9 2]])           20
reduce_sum(..., axis=1)             [4 0 16]     of each row
reduce_sum(..., axis=0)             [8 10 2]     of each place in the rows
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime import dtypes
from runtime.ops.api import cast, concat, convert_to_tensor, expand_dims, maximum, reduce_max, sqrt, square, where
from runtime.ops.arrays import reduce
from runtime.ops.arrays.segments import (
    unsorted_segment_max,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sum,
)
from runtime.ragged import partition
from runtime.ragged.arrays import normal_axis, ragged_expand_dims
from runtime.ragged.partition import INT
from runtime.ragged.tensor import RaggedTensor

Segment = Callable[[Any, Any, Any], Any]


def _flags(segment: Segment) -> Segment:
    """A reduction of bools through one of integers."""
    return lambda data, ids, count: cast(segment(cast(data, dtypes.int32), ids, count), dtypes.bool_)


def _all(data: Any, ids: Any, count: Any) -> Any:
    return unsorted_segment_sum(1 - cast(data, dtypes.int32), ids, count) < 1


_SEGMENTS: dict[Any, Segment] = {
    reduce.reduce_sum: unsorted_segment_sum,
    reduce.reduce_prod: unsorted_segment_prod,
    reduce.reduce_max: unsorted_segment_max,
    reduce.reduce_min: unsorted_segment_min,
    reduce.reduce_any: _flags(unsorted_segment_max),
    reduce.reduce_all: _all,
}


def _along(x: RaggedTensor, dense: Callable[..., Any], axis: int, keepdims: bool) -> Any:
    """One axis of a reduction that has a segment form."""
    segment = _SEGMENTS[dense]
    if axis > 1:
        values = x.values
        if isinstance(values, RaggedTensor):
            inner = _along(values, dense, axis - 1, keepdims)
        else:
            inner = dense(values, axis=axis - 1, keepdims=keepdims)
        return x.with_values(inner)
    if isinstance(x.values, RaggedTensor):
        return _outer_of_nested(x, dense, axis, keepdims)
    if axis == 1:
        result = segment(x.values, x.value_rowids(), partition.rows_in(x.row_splits))
        if dense is reduce.reduce_any:
            # The segment form gives the lowest number for rows without values.
            lengths = x.row_lengths() > 0
            result = where(_like(lengths, result), result, False)
    else:
        width = reduce_max(concat([x.row_lengths(), convert_to_tensor([0], INT)], 0))
        result = segment(x.values, partition.positions_of(x.row_splits), width)
    return expand_dims(result, axis) if keepdims else result


def _like(flags: Any, result: Any) -> Any:
    for _ in range((result.shape.rank or 1) - 1):
        flags = expand_dims(flags, -1)
    return flags


def _outer_of_nested(x: RaggedTensor, dense: Callable[..., Any], axis: int, keepdims: bool) -> Any:
    """The first or second of several ragged dimensions: values at the same place of the inner rows come together."""
    inner = x.values
    rows = inner.value_rowids()  # for each value of the inner rows: which inner row
    outer = partition.positions_of(x.row_splits) if axis == 0 else x.value_rowids()
    if isinstance(inner.values, RaggedTensor):
        raise ValueError(f"reductions over axis {axis} go over at most two ragged dimensions, got {x.ragged_rank}")
    groups = partition.gather(outer, rows)
    places = partition.positions_of(inner.row_splits)
    if axis == 0:
        count = maximum(reduce_max(concat([x.row_lengths(), convert_to_tensor([0], INT)], 0)), 0)
    else:
        count = convert_to_tensor(partition.rows_in(x.row_splits), INT)
    # How long each group's longest inner row is, then one segment for each place of each group.
    longest = maximum(unsorted_segment_max(inner.row_lengths(), outer, count), 0)
    splits = partition.splits_of(longest)
    values = _SEGMENTS[dense](inner.values, partition.gather(splits, groups) + places, splits[-1])
    result = RaggedTensor(values, splits)
    return ragged_expand_dims(result, axis) if keepdims else result


def reduction(dense: Callable[..., Any]) -> Callable[..., Any]:
    """The ragged form of `reduce_sum` and its like."""

    def function(input_tensor: RaggedTensor, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
        return _over_axes(input_tensor, axis, keepdims, lambda x, at: _along(x, dense, at, keepdims), dense)

    return function


def _over_axes(x: RaggedTensor, axis: Any, keepdims: bool, along: Callable[[Any, int], Any], dense: Any) -> Any:
    rank = x.shape.rank
    result: Any = x
    if axis is None:
        result = dense(x.flat_values)
        for _ in range(rank or 0 if keepdims else 0):
            result = expand_dims(result, 0)
        return result
    axes = sorted({normal_axis(a, rank, "reduce") for a in (axis if isinstance(axis, (list, tuple)) else [axis])})
    for at in reversed(axes):
        result = along(result, at) if isinstance(result, RaggedTensor) else dense(result, axis=at, keepdims=keepdims)
    return result


def ragged_mean(input_tensor: RaggedTensor, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """The mean; NaN of no values. Integers give float64, as TensorFlow's division does."""
    x = input_tensor
    if axis is None:
        return _over_axes(x, None, keepdims, lambda r, at: r, reduce.reduce_mean)
    total = reduction(reduce.reduce_sum)(x, axis, keepdims)
    ones = x.with_flat_values(x.flat_values * 0 + 1)
    count = reduction(reduce.reduce_sum)(ones, axis, keepdims)
    return total / count


def ragged_variance(
    input_tensor: RaggedTensor, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """The mean of the squares less the square of the mean."""
    if axis is None:
        return _over_axes(input_tensor, None, keepdims, lambda r, at: r, reduce.reduce_variance)
    of_squares = ragged_mean(input_tensor.with_flat_values(square(input_tensor.flat_values)), axis, keepdims)
    mean = ragged_mean(input_tensor, axis, keepdims)
    return of_squares - mean * mean


def ragged_std(input_tensor: RaggedTensor, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """The root of the variance."""
    return sqrt(ragged_variance(input_tensor, axis, keepdims))
