"""Indexing ragged tensors: `rt[1]`, `rt[1:3]`, `rt[:, -2:]`, `rt[3, 0]`; and rows picked by number.

A ragged dimension can be sliced but not indexed behind a slice: the place may exist in some rows only.
"""

from __future__ import annotations

from typing import Any

from runtime import errors
from runtime.ops.api import convert_to_tensor, floordiv, gather, maximum, minimum
from runtime.ops.api import range as range_
from runtime.ragged import partition
from runtime.ragged.partition import INT, as_index
from runtime.ragged.tensor import RaggedTensor
from runtime.tensor import Tensor


def gather_rows(x: Any, indices: Any) -> Any:
    """The rows of a ragged (or ordinary) tensor at a vector of indices."""
    if not isinstance(x, RaggedTensor):
        return gather(x, indices)
    lengths = gather(x.row_lengths(), indices)
    values = gather_rows(x.values, partition.spans(gather(x.row_starts(), indices), lengths))
    # Of rows that all have the same length, too, the shape says no longer so, as in TensorFlow.
    return RaggedTensor(values, partition.splits_of(lengths))


def getitem(self: RaggedTensor, key: Any) -> Any:
    """See the module. Raises ValueError for an index into a ragged dimension behind a slice, InvalidArgumentError for a
    row that isn't there."""
    keys = list(key) if isinstance(key, tuple) else [key]
    return _apply(self, _without_ellipsis(self, keys))


def _without_ellipsis(x: RaggedTensor, keys: list[Any]) -> list[Any]:
    places = [i for i, k in enumerate(keys) if k is Ellipsis]
    if not places:
        return keys
    rank = x.shape.rank
    if len(places) > 1 or rank is None:
        raise ValueError("an index may have one ellipsis, and the rank must be known")
    missing = rank - sum(k is not None for k in keys) + 1
    return keys[: places[0]] + [slice(None)] * missing + keys[places[0] + 1 :]


def _apply(x: Any, keys: list[Any]) -> Any:
    if not keys:
        return x
    if not isinstance(x, RaggedTensor):
        return x[tuple(keys)]
    first, *rest = keys
    if first is None:
        inner = _apply(x, rest)
        count = partition.rows_in(inner.row_splits) if isinstance(inner, RaggedTensor) else partition.count(inner)
        length = convert_to_tensor(count, INT)
        return RaggedTensor(inner, range_(convert_to_tensor(2, INT)) * length)
    if not isinstance(first, slice):
        return _apply(_row(x, first), rest)
    rows = x if first == slice(None) else gather_rows(x, _indices(first, partition.rows_in(x.row_splits)))
    return _columns(rows, rest) if rest else rows


def _row(x: RaggedTensor, index: Any) -> Any:
    count = partition.rows_in(x.row_splits)
    if isinstance(count, int) and hasattr(index, "__index__") and not (isinstance(index, Tensor) and index.shape.rank):
        try:
            number = index.__index__()
        except TypeError:  # a symbolic tensor
            number = None
        if number is not None:
            if not -count <= number < count:
                raise errors.IndexOutOfBoundsError(f"slice index {number} of dimension 0 out of bounds.")
            index = number % count
    start = gather(x.row_splits, index)
    end = gather(x.row_splits, as_index(index) + 1)
    rows = range_(start, end)
    return gather_rows(x.values, rows)


def _indices(part: slice, count: Any) -> Tensor:
    """The row numbers that a slice of `count` rows picks."""
    if isinstance(count, int) and all(v is None or isinstance(v, int) for v in (part.start, part.stop, part.step)):
        return convert_to_tensor(list(range(*part.indices(count))), INT)
    return range_(convert_to_tensor(count, INT))[part]


def _columns(x: RaggedTensor, keys: list[Any]) -> RaggedTensor:
    """The parts of a key for the dimensions after the first."""
    first, *rest = keys
    if first is None:
        inner = x if not rest else _columns(x, rest)
        count = partition.rows_in(inner.row_splits)
        return RaggedTensor(inner, range_(convert_to_tensor(count, INT) + 1), 1)
    if not isinstance(first, slice):
        raise ValueError(
            "Cannot index into an inner ragged dimension: the index may exist in some rows only. Take a slice, or "
            "use to_tensor()."
        )
    cut = x if first == slice(None) else _sliced(x, first)
    return cut.with_values(_apply(cut.values, [slice(None), *rest])) if rest else cut


def _sliced(x: RaggedTensor, part: slice) -> RaggedTensor:
    """Each row sliced, by Python's rules."""
    step = 1 if part.step is None else int(part.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    sizes = x.row_lengths()
    low, high = (0, sizes) if step > 0 else (-1, sizes - 1)

    def bound(value: Any, default: Any) -> Any:
        if value is None:
            return default
        place = as_index(value)
        from_end = sizes + place if isinstance(value, int) and value < 0 else place
        return maximum(minimum(from_end, high), low)

    start = bound(part.start, low if step > 0 else high)
    stop = bound(part.stop, high if step > 0 else low)
    lengths = maximum(floordiv(stop - start + (step - (1 if step > 0 else -1)), convert_to_tensor(step, INT)), 0)
    lengths = lengths + sizes * 0  # bounds that are numbers: one for each row
    flat = partition.spans(x.row_starts() + start, lengths, step)
    return RaggedTensor(gather_rows(x.values, flat), partition.splits_of(lengths))


setattr(RaggedTensor, "__getitem__", getitem)  # noqa: B010 - the class knows no indexing
