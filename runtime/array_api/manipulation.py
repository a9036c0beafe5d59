"""Shapes, indexing, searching, sorting and sets: functions of the array API standard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime import dtypes
from runtime.array_api.creation import asarray
from runtime.ops.arrays import gather as gathering
from runtime.ops.arrays import joining, rearrange, reduce, scan, shape_ops, sorting
from runtime.ops.arrays.miscellaneous import repeat as repeat_rows
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import call
from runtime.ops.elementwise import compare, complex_numbers, elementary
from runtime.ops.numpy.array_functions import FUNCTIONS, flat
from runtime.ops.numpy.array_functions import argsort as np_argsort
from runtime.ops.numpy.array_functions import moveaxis as np_moveaxis
from runtime.ops.numpy.array_functions import take as np_take
from runtime.ops.numpy.shape_functions import flip as np_flip
from runtime.ops.numpy.shape_functions import nonzero as np_nonzero
from runtime.ops.numpy.shape_functions import roll as np_roll
from runtime.ops.numpy.ufuncs import common, truth
from runtime.tensor import Tensor

_INDEX = dtypes.int64


def _axes(axis: Any, rank: int, what: str) -> tuple[int, ...]:
    """Axes as nonnegative numbers. Raises IndexError for one out of bounds, ValueError for a repeated one."""
    given = (axis,) if isinstance(axis, (int, np.integer)) else tuple(axis)
    for one in given:
        if not -rank <= one < rank:
            raise IndexError(f"{what}: axis {one} is out of bounds for an array of {rank} dimensions.")
    made = tuple(int(one) % rank for one in given)
    if len(set(made)) != len(made):
        raise ValueError(f"{what}: an axis is repeated in {axis!r}.")
    return made


# --- shapes --------------------------------------------------------------------------------------------------------


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Concatenates arrays along `axis`; flattens them first if `axis` is None."""
    parts = common(*[convert_to_tensor(a) for a in arrays])
    if axis is None:
        return joining.concat([flat(p) for p in parts], 0)
    (at,) = _axes(axis, known_rank(parts[0], "concat"), "concat")
    return joining.concat(parts, at)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Stacks arrays along a new axis."""
    parts = common(*[convert_to_tensor(a) for a in arrays])
    (at,) = _axes(axis, known_rank(parts[0], "stack") + 1, "stack")
    return joining.stack(parts, at)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of `x` along `axis`."""
    tensor = convert_to_tensor(x)
    (at,) = _axes(axis, known_rank(tensor, "unstack"), "unstack")
    return tuple(joining.unstack(tensor, axis=at))


def expand_dims(x: Any, /, axis: Any) -> Tensor:
    """`x` with new axes of length 1 at the positions `axis` of the result."""
    tensor = convert_to_tensor(x)
    count = 1 if isinstance(axis, (int, np.integer)) else len(axis)
    places = _axes(axis, known_rank(tensor, "expand_dims") + count, "expand_dims")
    return call("expand_dims", tensor, axis=tuple(sorted(places)))


def squeeze(x: Any, /, axis: Any) -> Tensor:
    """`x` without the axes `axis`, whose lengths must be 1 (ValueError)."""
    tensor = convert_to_tensor(x)
    places = _axes(axis, known_rank(tensor, "squeeze"), "squeeze")
    for place in places:
        if tensor.shape[place] not in (1, None):
            raise ValueError(f"squeeze: axis {place} has length {tensor.shape[place]}, not 1.")
    return call("squeeze", tensor, axis=tuple(sorted(places))) if places else tensor


def flip(x: Any, /, *, axis: Any = None) -> Tensor:
    """`x` with its elements in reverse order along `axis`, by default along all axes."""
    tensor = convert_to_tensor(x)
    rank = known_rank(tensor, "flip")
    places = tuple(range(rank)) if axis is None else _axes(axis, rank, "flip")
    return np_flip(tensor, places) if places else tensor


def moveaxis(x: Any, source: Any, destination: Any, /) -> Tensor:
    """`x` with the axes `source` at the positions `destination`."""
    tensor = convert_to_tensor(x)
    rank = known_rank(tensor, "moveaxis")
    return np_moveaxis(tensor, _axes(source, rank, "moveaxis"), _axes(destination, rank, "moveaxis"))


def permute_dims(x: Any, /, axes: Sequence[int]) -> Tensor:
    """`x` with its axes in the order `axes`."""
    tensor = convert_to_tensor(x)
    rank = known_rank(tensor, "permute_dims")
    order = _axes(tuple(axes), rank, "permute_dims")
    if len(order) != rank:
        raise ValueError(f"permute_dims: {axes!r} doesn't name each of the {rank} axes.")
    return call("transpose", tensor, perm=order) if rank else tensor


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    """The elements of `x` in another shape; one length may be -1. `copy` has no effect: tensors are immutable."""
    wanted = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    return shape_ops.reshape(convert_to_tensor(x), wanted)


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Repeats each element `repeats` times along `axis`; flattens `x` first if `axis` is None."""
    tensor = convert_to_tensor(x)
    if axis is None:
        tensor, at = flat(tensor), 0
    else:
        (at,) = _axes(axis, known_rank(tensor, "repeat"), "repeat")
    return repeat_rows(tensor, repeats, axis=at)


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Tensor:
    """`x` with its elements moved by `shift` places along `axis`, from the end to the front."""
    tensor = convert_to_tensor(x)
    if axis is None:
        total = sum(shift) if isinstance(shift, (tuple, list)) else shift
        return np_roll(tensor, int(total))
    places = [axis] if isinstance(axis, (int, np.integer)) else list(axis)
    rank = known_rank(tensor, "roll")
    for place in places:
        _axes(place, rank, "roll")
    shifts = [shift] * len(places) if isinstance(shift, (int, np.integer)) else list(shift)
    # An axis may stand several times.
    by_axis: dict[int, int] = {}
    for place, count in zip(places, shifts):
        at = int(place) % rank
        by_axis[at] = by_axis.get(at, 0) + int(count)
    if not by_axis:
        return tensor
    return rearrange.roll(tensor, [_small(n, tensor, a) for a, n in by_axis.items()], list(by_axis))


def _small(count: int, tensor: Tensor, axis: int) -> int:
    length = tensor.shape[axis]
    return count % length if length else 0


def tile(x: Any, repetitions: Sequence[int], /) -> Tensor:
    """`x` repeated `repetitions` times along its axes; the shorter of shape and repetitions gets ones in front."""
    tensor = convert_to_tensor(x)
    counts, rank = list(repetitions), known_rank(tensor, "tile")
    if rank < len(counts):
        tensor = call("expand_dims", tensor, axis=tuple(range(len(counts) - rank)))
    counts = [1] * (rank - len(counts)) + counts
    return rearrange.tile(tensor, counts) if counts else tensor


# --- indexing ------------------------------------------------------------------------------------------------------


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """The elements of `x` along `axis` at `indices`; negative ones count from the end."""
    tensor = convert_to_tensor(x)
    rank = known_rank(tensor, "take")
    if axis is None and rank != 1:
        raise ValueError(f"take needs an axis for an array of {rank} dimensions.")
    (at,) = _axes(0 if axis is None else axis, rank, "take")
    return np_take(tensor, indices, at)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Tensor:
    """The element of `x` at each index of `indices` along `axis`; other dimensions broadcast."""
    tensor, places = convert_to_tensor(x), convert_to_tensor(indices)
    (at,) = _axes(axis, known_rank(tensor, "take_along_axis"), "take_along_axis")
    length = tensor.shape[at]
    places = elementary.cast(places, _INDEX)
    places = compare.where(places < 0, places + convert_to_tensor(length, _INDEX), places)
    shapes: list[Any] = [
        tuple(1 if axis_of == at else n for axis_of, n in enumerate(t.shape)) for t in (tensor, places)
    ]
    shared = np.broadcast_shapes(*shapes)

    def widened(value: Tensor) -> Tensor:
        shape = [n if axis_of != at else value.shape[at] for axis_of, n in enumerate(shared)]
        return value if tuple(value.shape) == tuple(shape) else call("broadcast_to", value, shape=tuple(shape))

    return sorting.take_along(widened(tensor), widened(places), at)


# --- searching -----------------------------------------------------------------------------------------------------


def _extreme(function: Any, x: Any, axis: int | None, keepdims: bool, what: str) -> Tensor:
    tensor = convert_to_tensor(x)
    rank = known_rank(tensor, what)
    if axis is None:
        place = function(flat(tensor))
        return shape_ops.reshape(place, [1] * rank) if keepdims else place
    (at,) = _axes(axis, rank, what)
    place = function(tensor, at)
    return shape_ops.expand_dims(place, at) if keepdims else place


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The int64 index of the first largest element along `axis`, or of the flattened array."""
    return _extreme(FUNCTIONS[np.argmax], x, axis, keepdims, "argmax")


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The int64 index of the first smallest element along `axis`, or of the flattened array."""
    return _extreme(FUNCTIONS[np.argmin], x, axis, keepdims, "argmin")


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The number of nonzero elements, as int64, over `axis` or over all axes."""
    tensor = convert_to_tensor(x)
    places = None if axis is None else _axes(axis, known_rank(tensor, "count_nonzero"), "count_nonzero")
    return reduce.reduce_sum(elementary.cast(truth(tensor), _INDEX), places, keepdims)


def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """The int64 indices of the nonzero elements: one array for each dimension."""
    tensor = convert_to_tensor(x)
    if known_rank(tensor, "nonzero") == 0:
        raise ValueError("nonzero takes an array of at least one dimension.")
    return np_nonzero(tensor)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """The int64 positions at which inserting the elements of `x2` keeps the sorted vector `x1` in order.

    sorter: indices that sort `x1`, where it isn't sorted.
    """
    sequence, values = common(convert_to_tensor(x1), x2)
    if sorter is not None:
        sequence = gathering.gather(sequence, sorter)
    rank = known_rank(values, "searchsorted")
    found = sorting.searchsorted(sequence, flat(values), side, _INDEX)
    return found if rank == 1 else shape_ops.reshape(found, values.shape)


# --- sorting -------------------------------------------------------------------------------------------------------


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The int64 indices that sort `x` along `axis`; equal elements keep their order."""
    tensor = convert_to_tensor(x)
    (at,) = _axes(axis, known_rank(tensor, "argsort"), "argsort")
    if not descending:
        return np_argsort(tensor, at)
    # The order of the reversed array, reversed: equal elements keep theirs.
    order = np_flip(np_argsort(np_flip(tensor, at), at), at)
    return convert_to_tensor(tensor.shape[at] - 1, _INDEX) - order


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """`x` sorted along `axis`."""
    tensor = convert_to_tensor(x)
    (at,) = _axes(axis, known_rank(tensor, "sort"), "sort")
    if tensor.dtype is dtypes.bool_:
        return elementary.cast(sort(elementary.cast(tensor, dtypes.int8), axis=at, descending=descending), dtypes.bool_)
    ordered = sorting.sort(tensor, at)
    return np_flip(ordered, at) if descending else ordered


# --- sets ----------------------------------------------------------------------------------------------------------


class unique_all_result(NamedTuple):
    """`values`, the first `indices` of each, the `inverse_indices` that rebuild `x`, and `counts`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class unique_counts_result(NamedTuple):
    """`values`, and how often each of them occurs."""

    values: Tensor
    counts: Tensor


class unique_inverse_result(NamedTuple):
    """`values`, and for each element of `x` the index of its value."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Any, /) -> unique_all_result:
    """The distinct elements in ascending order; each NaN is distinct from the others."""
    tensor = convert_to_tensor(x)
    line = flat(tensor)
    # The positions at which a sorted run of equal elements begins. NaN is unlike itself, so each begins a run.
    plain = elementary.cast(line, dtypes.int8) if line.dtype is dtypes.bool_ else line
    order = _order(plain)
    ordered = gathering.gather(plain, order)
    one = convert_to_tensor([True])
    size = line.shape[0]
    begins = joining.concat([one[: min(1, size)] if size is not None else one, ordered[1:] != ordered[:-1]], 0)
    starts = flat(np_nonzero(begins)[0])
    values = gathering.gather(gathering.gather(line, order), starts)
    run = scan.cumsum(elementary.cast(begins, _INDEX), 0) - 1
    inverse = gathering.gather(run, np_argsort(order))
    total = convert_to_tensor(size if size is not None else shape_ops.size(line), _INDEX)
    ends = joining.concat([starts[1:], shape_ops.reshape(total, [1])[: min(1, size)]], 0)
    return unique_all_result(
        values, gathering.gather(order, starts), shape_ops.reshape(inverse, tensor.shape), ends - starts
    )


def _order(line: Tensor) -> Tensor:
    """The indices that sort a vector; complex numbers by their real parts, equal ones by their imaginary parts."""
    if not line.dtype.is_complex:
        return np_argsort(line)
    order = np_argsort(complex_numbers.imag(line))
    return gathering.gather(order, np_argsort(gathering.gather(complex_numbers.real(line), order)))


def unique_counts(x: Any, /) -> unique_counts_result:
    """The distinct elements, and how often each occurs."""
    found = unique_all(x)
    return unique_counts_result(found.values, found.counts)


def unique_inverse(x: Any, /) -> unique_inverse_result:
    """The distinct elements, and for each element of `x` the index of its value."""
    found = unique_all(x)
    return unique_inverse_result(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Tensor:
    """The distinct elements of `x`."""
    return unique_all(x).values


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of `x1` is among those of `x2`, or isn't if `invert`."""
    first, second = common(asarray(x1), asarray(x2))
    line = shape_ops.reshape(second, [-1])
    there = reduce.reduce_any(compare.equal(shape_ops.expand_dims(first, -1), line), -1)
    return compare.logical_not(there) if invert else there


__all__ = [
    "argmax", "argmin", "argsort", "concat", "count_nonzero", "expand_dims", "flip", "isin", "moveaxis", "nonzero",
    "permute_dims", "repeat", "reshape", "roll", "searchsorted", "sort", "squeeze", "stack", "take", "take_along_axis",
    "tile", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unstack",
]  # fmt: skip
