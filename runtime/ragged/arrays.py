"""Ragged tensors joined, repeated, reversed, reduced to a mask, filled up to tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime import dtypes
from runtime.ops.api import (
    boolean_mask,
    broadcast_to,
    cast,
    concat,
    convert_to_tensor,
    expand_dims,
    fill,
    gather,
    less,
    reduce_max,
    reshape,
    reverse,
    stack,
    tensor_scatter_nd_update,
    tile,
)
from runtime.ops.api import range as range_
from runtime.ops.api import shape as shape_of
from runtime.ops.arrays.segments import unsorted_segment_sum
from runtime.ops.arrays.sorting import argsort
from runtime.ragged import partition
from runtime.ragged.elementwise import check_same_rows
from runtime.ragged.indexing import gather_rows
from runtime.ragged.partition import INT
from runtime.ragged.tensor import RaggedTensor
from runtime.tensor import Tensor


def normal_axis(axis: Any, rank: int | None, what: str) -> int:
    """An axis counted from the front. Raises ValueError when there is none."""
    if rank is None:
        raise ValueError(f"{what} needs a ragged tensor of known rank")
    number = int(axis)
    if not -rank <= number < rank:
        raise ValueError(f"{what}: axis must be in [-{rank}, {rank}), got {axis}")
    return number % rank


def as_ragged(value: Any, dtype: Any, ragged_rank: int = 1) -> RaggedTensor:
    """A ragged tensor, made of a tensor or list if need be."""
    if isinstance(value, RaggedTensor):
        return value
    return RaggedTensor.from_tensor(convert_to_tensor(value, dtype_hint=dtype), ragged_rank=ragged_rank)


def ragged_concat(values: Any, axis: Any, name: str | None = None) -> Any:
    """Joined along an axis: along the first, all rows; along the second, row by row; and so on."""
    parts = list(values) if isinstance(values, (list, tuple)) else [values]
    ragged = [v for v in parts if isinstance(v, RaggedTensor)]
    rank = max(r.ragged_rank for r in ragged)
    parts = [as_ragged(v, ragged[0].dtype, rank) for v in parts]
    at = normal_axis(axis, parts[0].shape.rank, "concat")
    return _concat(parts, at)


def _concat(parts: Sequence[Any], axis: int) -> Any:
    if len(parts) == 1:
        return parts[0]
    if not isinstance(parts[0], RaggedTensor):
        return concat(parts, axis)
    if axis == 0:
        lengths = concat([p.row_lengths() for p in parts], 0)
        return RaggedTensor(_concat([p.values for p in parts], 0), partition.splits_of(lengths))
    if axis == 1:
        # All values one part after the other, then ordered by row; the order is stable.
        rows = concat([p.value_rowids() for p in parts], 0)
        values = gather_rows(_concat([p.values for p in parts], 0), argsort(rows, stable=True))
        lengths = parts[0].row_lengths()
        for part in parts[1:]:
            lengths = lengths + part.row_lengths()
        return RaggedTensor(values, partition.splits_of(lengths))
    for part in parts[1:]:
        check_outer_rows(parts[0], part)
    return parts[0].with_values(_concat([p.values for p in parts], axis - 1))


def check_outer_rows(x: RaggedTensor, y: RaggedTensor) -> None:
    """Raises InvalidArgumentError unless the outermost rows are the same."""
    ones = [RaggedTensor(partition.range_(partition.count(r.values), dtype=INT), r.row_splits) for r in (x, y)]
    check_same_rows(*ones)


def stack_rows(parts: Sequence[Any], axis: int = 0) -> Any:
    """Tensors and ragged tensors of one rank stacked along a new axis."""
    first = next((p for p in parts if isinstance(p, RaggedTensor)), None)
    dtype = first.dtype if first is not None else convert_to_tensor(parts[0]).dtype
    items = [p if isinstance(p, RaggedTensor) else convert_to_tensor(p, dtype_hint=dtype) for p in parts]
    rank = items[0].shape.rank
    at = normal_axis(axis, (rank or 0) + 1, "stack")
    if rank == 0:
        return stack(items)
    if first is None and rank is not None and rank > 1:
        items = [as_ragged(p, dtype, rank - 1) for p in items]
    elif first is not None:
        items = [as_ragged(p, dtype, first.ragged_rank) for p in items]
    if at == 0:
        counts = [
            convert_to_tensor(
                partition.rows_in(p.row_splits) if isinstance(p, RaggedTensor) else partition.count(p), INT
            )
            for p in items
        ]
        return RaggedTensor(_concat(items, 0), partition.splits_of(stack(counts)))
    return _concat([ragged_expand_dims(as_ragged(p, dtype), at) for p in items], at)


def ragged_expand_dims(x: RaggedTensor, axis: Any, name: str | None = None) -> RaggedTensor:
    """A dimension of size 1 more."""
    at = normal_axis(axis, (x.shape.rank or 0) + 1, "expand_dims")
    if at == 0:
        return x[None]  # type: ignore[index]
    if at == 1:
        return x[:, None]  # type: ignore[index]
    values = x.values
    inner = ragged_expand_dims(values, at - 1) if isinstance(values, RaggedTensor) else expand_dims(values, at - 1)
    return x.with_values(inner)


def ragged_tile(x: RaggedTensor, multiples: Any, name: str | None = None) -> Any:
    """Repeated as often as `multiples` says for each dimension."""
    result: Any = x
    times = [int(m) for m in multiples]
    if len(times) != x.shape.rank:
        raise ValueError(f"tile needs a number for each of the {x.shape.rank} dimensions, got {times}")
    for axis, count in enumerate(times):
        if axis > x.ragged_rank:
            break
        if count != 1:
            result = _concat([result] * count, axis) if count else _emptied(result, axis)
    inner = times[1 + x.ragged_rank :]
    return result.with_flat_values(tile(result.flat_values, [1, *inner])) if any(m != 1 for m in inner) else result


def _emptied(x: RaggedTensor, axis: int) -> RaggedTensor:
    return x[:0] if axis == 0 else x[(slice(None),) * axis + (slice(0, 0),)]  # type: ignore[index]


def ragged_reverse(x: RaggedTensor, axis: Any, name: str | None = None) -> RaggedTensor:
    """The order along axes turned round."""
    axes = [axis] if isinstance(axis, int) else list(axis)
    for one in axes:
        at = normal_axis(one, x.shape.rank, "reverse")
        if at > x.ragged_rank:
            x = x.with_flat_values(reverse(x.flat_values, [at - x.ragged_rank]))
        else:
            x = x[(slice(None),) * at + (slice(None, None, -1),)]  # type: ignore[index]
    return x


def ragged_gather(
    params: Any, indices: Any, validate_indices: Any = None, axis: Any = 0, batch_dims: int = 0, name: str | None = None
) -> Any:
    """Rows of `params` at `indices`; either may be ragged. Along another axis only the indices may be."""
    is_of_tensor = isinstance(indices, RaggedTensor) and not isinstance(params, RaggedTensor)
    if is_of_tensor and axis not in (0, None) and not batch_dims:
        return _gather_along(convert_to_tensor(params), indices, axis)
    if axis not in (0, None) or batch_dims:
        raise ValueError("gather from ragged tensors goes along the first dimension, without batch_dims")
    if isinstance(indices, RaggedTensor):
        return _nested(gather_rows(params, indices.flat_values), indices)
    numbers = convert_to_tensor(indices)
    if numbers.shape.rank == 0:
        return params[numbers]
    if numbers.shape.rank == 1:
        return gather_rows(params, numbers)
    rows = RaggedTensor.from_tensor(numbers, ragged_rank=len(numbers.shape) - 1)
    return _nested(gather_rows(params, rows.flat_values), rows)


def _gather_along(params: Tensor, indices: RaggedTensor, axis: int) -> RaggedTensor:
    """Gathers from a dense tensor along an axis other than the first, with ragged indices: a ragged dimension replaces
    the axis."""
    rank = params.shape.rank
    at = normal_axis(axis, rank, "gather")
    values = gather(params, indices.flat_values, axis=at)
    outer = [values.shape[i] if values.shape[i] is not None else shape_of(values)[i] for i in range(at)]
    counts = [convert_to_tensor(1, INT)]
    for size in outer:
        counts.append(counts[-1] * cast(size, INT))
    rest = shape_of(values)[at + 1 :]
    found: Any = reshape(values, concat([[-1], rest], 0))
    # The rows of the indices follow one another once for each of the outer elements.
    for splits in reversed(indices.nested_row_splits):
        found = RaggedTensor.from_row_lengths(found, tile(splits[1:] - splits[:-1], [counts[-1]]), validate=False)
    for count, size in zip(reversed(counts[1:]), reversed([*outer[1:], indices.nrows()])):
        found = RaggedTensor.from_row_splits(found, range_(count + 1) * cast(size, INT), validate=False)
    return found


def _nested(values: Any, rows: RaggedTensor) -> RaggedTensor:
    for splits, uniform in zip(reversed(rows.nested_row_splits), reversed(rows._uniform_lengths())):
        values = RaggedTensor(values, splits, uniform)
    return values


def ragged_boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """The parts of `data` where `mask` is true. The mask is a vector, or has the rows of the data."""
    if not isinstance(mask, RaggedTensor):
        flags = convert_to_tensor(mask, dtypes.bool_)
        if flags.shape.rank == 1:
            kept = boolean_mask(range_(convert_to_tensor(partition.count(flags), INT)), flags)
            return gather_rows(data, kept)
        mask = RaggedTensor.from_tensor(flags)
    rows = as_ragged(data, None)
    check_outer_rows(rows, mask)
    values = ragged_boolean_mask(rows.values, mask.values)
    if isinstance(mask.values, RaggedTensor):
        return rows.with_values(values)
    lengths = unsorted_segment_sum(cast(mask.values, INT), mask.value_rowids(), partition.rows_in(mask.row_splits))
    return RaggedTensor(values, partition.splits_of(lengths))


def to_tensor(self: RaggedTensor, default_value: Any = None, name: str | None = None, shape: Any = None) -> Any:
    """A tensor with the rows filled up with `default_value` (0, or an empty string).

    shape: the result's, None where it follows the longest row; longer rows are cut.
    """
    wanted = list(shape) if shape is not None else [None] * (1 + self.ragged_rank)
    values = self.values
    if isinstance(values, RaggedTensor):
        values = to_tensor(values, default_value, shape=[None, *wanted[2:]])
    lengths = self.row_lengths()
    width = wanted[1]
    if width is None:
        width = self.uniform_row_length
    if width is None:
        width = reduce_max(concat([lengths, convert_to_tensor([0], INT)], 0))
    blank = default_value if default_value is not None else ("" if self.dtype is dtypes.string else 0)
    blank = convert_to_tensor(blank, self.dtype)
    places = partition.positions_of(self.row_splits)
    index = stack([self.value_rowids(), places], 1)
    kept = less(places, convert_to_tensor(width, INT))
    sizes = [convert_to_tensor(partition.rows_in(self.row_splits), INT), convert_to_tensor(width, INT)]
    result = _filled([*sizes, *_inner(values)], blank)
    result = tensor_scatter_nd_update(result, boolean_mask(index, kept), boolean_mask(values, kept))
    return _with_rows(result, wanted[0], blank)


def _inner(tensor: Any) -> list[Any]:
    """The dimensions after the first."""
    sizes = list(tensor.shape)[1:]
    return [d if d is not None else shape_of(tensor, INT)[i] for i, d in enumerate(sizes, 1)]


def _filled(sizes: list[Any], blank: Any) -> Any:
    if blank.shape.rank == 0:
        return fill(sizes, blank)
    return broadcast_to(blank, sizes)


def _with_rows(tensor: Any, rows: Any, blank: Any) -> Any:
    if rows is None or tensor.shape[0] == rows:
        return tensor
    have = tensor.shape[0]
    if have is None:
        raise ValueError(
            "to_tensor can't set the number of rows of a ragged tensor whose own number isn't known while tracing"
        )
    if have > rows:
        return tensor[:rows]
    missing = _filled([rows - have, *_inner(tensor)], blank)
    return concat([tensor, missing], 0)


setattr(RaggedTensor, "to_tensor", to_tensor)  # noqa: B010 - the class knows no conversions
