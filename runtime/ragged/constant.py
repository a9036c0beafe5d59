"""Ragged tensors from nested Python lists, and from ranges and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime import dtypes
from runtime.ops.api import cast, convert_to_tensor, floordiv, maximum, reshape, sign
from runtime.ops.arrays.miscellaneous import repeat
from runtime.ragged import partition
from runtime.ragged.arrays import stack_rows
from runtime.ragged.partition import INT, as_index
from runtime.ragged.tensor import RaggedTensor


def constant(
    pylist: Any, dtype: Any = None, ragged_rank: int | None = None, inner_shape: Any = None, name: str | None = None,
    row_splits_dtype: Any = INT,
) -> Any:  # fmt: skip
    """A ragged tensor from nested lists; every dimension after the first is ragged.

    ragged_rank   how many dimensions are ragged; those after them are uniform
    inner_shape   the shape of the uniform ones, if it can't be inferred from the list

    Raises ValueError for scalars at different depths and for uniform dimensions of different sizes.
    """
    if not isinstance(pylist, (list, tuple, np.ndarray)):
        return convert_to_tensor(pylist, dtype)
    items = _plain(pylist)
    depth, deepest_empty = _depths(items)
    depth = depth if depth is not None else deepest_empty
    if deepest_empty > depth:
        raise ValueError(f"Invalid pylist={pylist}: empty list nesting is greater than scalar value nesting")
    inner = None if inner_shape is None else tuple(np.atleast_1d(inner_shape).tolist())
    if ragged_rank is None:
        ragged_rank = max(depth - 1 - len(inner or ()), 0)
    elif ragged_rank >= depth and ragged_rank > 0 and not _is_empty(items):
        raise ValueError(f"Invalid pylist={pylist}: ragged_rank {ragged_rank} is too large for nesting depth {depth}")
    nested: list[list[int]] = []
    for _ in range(ragged_rank):
        nested.append([len(row) for row in items])
        items = [part for row in items for part in row]
    try:
        values = convert_to_tensor(items, dtype) if items else convert_to_tensor([], dtype or "float32")
    except ValueError as error:
        raise ValueError(str(error)) from None
    if inner is not None:
        values = reshape(values, [-1, *inner])
    return RaggedTensor.from_nested_row_lengths(values, nested) if nested else values


def _plain(value: Any) -> Any:
    """Tuples and arrays as lists."""
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.dtype != object else list(value)
    return [_plain(v) for v in value] if isinstance(value, (list, tuple, np.ndarray)) else value


def _depths(items: list) -> tuple[int | None, int]:
    """(depth of the scalars, depth of the deepest empty list). Raises ValueError for scalars at several depths."""
    scalars: set[int] = set()
    empty = 0

    def visit(value: Any, depth: int) -> None:
        nonlocal empty
        if not isinstance(value, list):
            scalars.add(depth)
        elif not value:
            empty = max(empty, depth + 1)
        else:
            for part in value:
                visit(part, depth + 1)

    visit(items, 0)
    if len(scalars) > 1:
        raise ValueError("all scalar values must have the same nesting depth")
    return (scalars.pop() if scalars else None), empty


def _is_empty(items: Any) -> bool:
    return isinstance(items, list) and all(map(_is_empty, items))


_WIDTHS = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)


def ragged_range(
    starts: Any,
    limits: Any = None,
    deltas: Any = 1,
    dtype: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = INT,
) -> RaggedTensor:
    """Rows of numbers: row i goes from starts[i] to limits[i] by deltas[i]. With `starts` alone, from 0 to that.

    dtype: by default the widest of the three, in the order int32, int64, float32, float64.
    """
    if limits is None:
        starts, limits = 0, starts
    first, last, by = (convert_to_tensor(bound, dtype) for bound in (starts, limits, deltas))
    if dtype is None:
        widest = max((first.dtype, last.dtype, by.dtype), key=_WIDTHS.index)
        first, last, by = (cast(bound, widest) for bound in (first, last, by))
    span = last - first
    if first.dtype.kind == "f":
        lengths = cast(-floordiv(-span, by), INT)
    else:
        lengths = cast(floordiv(span + by - sign(by), by), INT)
    lengths = maximum(lengths, 0)
    if lengths.shape.rank == 0:
        lengths = lengths[None]
    splits = partition.splits_of(as_index(lengths))
    places = cast(partition.positions_of(splits), first.dtype)
    values = _each(first, lengths) + places * _each(by, lengths)
    return RaggedTensor(values, splits)


def _each(bounds: Any, lengths: Any) -> Any:
    return bounds if bounds.shape.rank == 0 or bounds.shape[0] == 1 else repeat(bounds, lengths)


def ragged_stack(values: Any, axis: int = 0, name: str | None = None) -> Any:
    """Tensors and ragged tensors of one rank as the rows of one ragged tensor."""
    return stack_rows(list(values), axis)
