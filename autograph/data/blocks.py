"""Elements many at a time: a stretch of a dataset as arrays with the elements along a new first axis.

A batch is then a slice of the source's arrays, a shuffled batch one gather of rows, and a mapped batch one call. What
comes out is what would come one by one, in the same order. Only plans whose making nobody can watch are read this way
(`Plan.in_blocks`): they have no effects and run no Python code of the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from runtime import dtypes, nest
from runtime.dtypes import DType
from runtime.ops.random import philox
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor

# One array for each leaf of the element, in the order of `nest.flatten`.
Leaves = Sequence[Any]
# Some elements of a plan by their indices (a slice with bounds, or an int64 vector): these elements.
Select = Callable[[Any], Leaves]

_AT_ONCE = 256


def is_dense(spec: Any) -> bool:
    """Whether elements of a spec are tensors, at least one, of static shapes."""
    leaves = nest.flatten(spec)
    return bool(leaves) and all(
        isinstance(leaf, TensorSpec) and leaf._shape is not None and None not in leaf._shape for leaf in leaves
    )


def empty(spec: Any) -> Leaves:
    """No elements of a spec."""
    return [np.empty((0, *leaf._shape), leaf.dtype._np) for leaf in nest.flatten(spec)]


def maker(spec: Any) -> Callable[[Leaves], Any]:
    """A function that makes an element of this spec, or a batch of elements, from its arrays."""
    makers = [_text if leaf.dtype is dtypes.string else _typed(leaf.dtype) for leaf in nest.flatten(spec)]
    if isinstance(spec, TensorSpec):
        only = makers[0]
        return lambda leaves: only(leaves[0])
    pack = nest.packer(spec)
    return lambda leaves: pack([make(array) for make, array in zip(makers, leaves)])


def _typed(dtype: DType) -> Callable[[Any], EagerTensor]:
    return lambda array: EagerTensor(array, dtype)


def _text(array: Any) -> EagerTensor:
    """A tensor of an array of strings, or of one string, which a scalar row is."""
    return EagerTensor(array if isinstance(array, np.ndarray) else np.array(array, object), dtypes.string)


def joined(parts: list[Leaves]) -> Leaves:
    """Stretches one after the other."""
    return parts[0] if len(parts) == 1 else [np.concatenate(arrays) for arrays in zip(*parts)]


class Blocks:
    """The elements of one iteration that are still to come."""

    def take(self, count: int) -> Leaves:
        """The next ``count`` elements, or as many as remain: fewer rows, perhaps none."""
        raise NotImplementedError


class Span(Blocks):
    """The first elements of a plan that has them by index."""

    def __init__(self, select: Select, count: int) -> None:
        self._select = select
        self._at, self._stop = 0, count

    def take(self, count: int) -> Leaves:
        start = self._at
        self._at = min(start + count, self._stop)
        return self._select(slice(start, self._at))


def one_by_one(blocks: Blocks, spec: Any) -> Iterator[Any]:
    """The elements of blocks, each for itself."""
    make = maker(spec)
    while True:
        leaves = blocks.take(_AT_ONCE)
        yield from map(make, zip(*leaves))
        if len(leaves[0]) < _AT_ONCE:
            return


class Chosen(Blocks):
    """Elements of a plan that has them by index, in an order that comes bit by bit."""

    def __init__(self, select: Select, order: Callable[[int], np.ndarray]) -> None:
        self._select, self._order = select, order

    def take(self, count: int) -> Leaves:
        return self._select(self._order(count))


class Changed(Blocks):
    """Blocks of elements that are computed from blocks of as many elements of another source."""

    def __init__(self, source: Blocks, change: Callable[[Leaves], Leaves]) -> None:
        self._source, self._change = source, change

    def take(self, count: int) -> Leaves:
        return self._change(self._source.take(count))


class Limited(Blocks):
    """The elements from an index on, at most so many (None: all)."""

    def __init__(self, source: Blocks, skip: int, most: int | None) -> None:
        self._source, self._skip, self._left = source, skip, most

    def take(self, count: int) -> Leaves:
        if self._left is not None:
            count = min(count, self._left)
        while self._skip and count:
            step = min(self._skip, _AT_ONCE)
            self._skip = self._skip - step if len(self._source.take(step)[0]) == step else 0
        leaves = self._source.take(count)
        if self._left is not None:
            self._left -= len(leaves[0])
        return leaves


class Chained(Blocks):
    """The elements of several iterations one after the other.

    following: what comes after an iteration that gave so many elements; None if that was the last.
    """

    def __init__(self, first: Blocks, following: Callable[[int], Blocks | None]) -> None:
        self._current: Blocks = first
        self._following = following
        self._given = 0  # by the current one

    def take(self, count: int) -> Leaves:
        parts: list[Leaves] = []
        while True:
            leaves = self._current.take(count)
            found = len(leaves[0])
            count -= found
            self._given += found
            if found or not parts:
                parts.append(leaves)
            following = self._following(self._given) if count else None
            if following is None:
                return joined([part for part in parts if len(part[0])] or parts)
            self._current, self._given = following, 0


class Beside(Blocks):
    """Elements of several sources side by side, as long as all have one."""

    def __init__(self, sources: list[Blocks]) -> None:
        self._sources = sources

    def take(self, count: int) -> Leaves:
        parts = [source.take(count) for source in self._sources]
        found = min(len(leaves[0]) for leaves in parts)
        return [array[:found] for leaves in parts for array in leaves]


class Held(Blocks):
    """The elements for which a function of many, which gives booleans, holds."""

    def __init__(self, source: Blocks, holds: Callable[[Leaves], Leaves]) -> None:
        self._source, self._holds = source, holds
        self._ready: Leaves | None = None
        self._ended = False

    def take(self, count: int) -> Leaves:
        parts = [] if self._ready is None else [self._ready]
        found = len(parts[0][0]) if parts else 0
        while (found < count and not self._ended) or not parts:
            leaves = self._source.take(_AT_ONCE)
            self._ended = len(leaves[0]) < _AT_ONCE
            (holding,) = self._holds(leaves)
            parts.append([array[holding] for array in leaves])
            found += len(parts[-1][0])
        leaves = joined(parts)
        self._ready = [array[count:] for array in leaves]
        return [array[:count] for array in leaves]


class Kept(Blocks):
    """The elements of a source, which are handed over once all have been there."""

    def __init__(self, source: Blocks, keep: Callable[[Leaves], None]) -> None:
        self._source, self._keep = source, keep
        self._parts: list[Leaves] = []

    def take(self, count: int) -> Leaves:
        leaves = self._source.take(count)
        self._parts.append(leaves)
        if len(leaves[0]) < count:
            self._keep(joined(self._parts))
        return leaves


class Order:
    """TensorFlow's order of shuffled elements, which are numbers here: their places in the source.

    A ring holds those at hand, from `start` to `end` modulo its size. Each one that leaves is drawn from all of them;
    the first takes its place, and the next of the source that one's.
    """

    def __init__(self, draw: philox.Words, size: int) -> None:
        self._draw, self._size = draw, size
        self._ring: list[int] = []
        self._start = self._end = 0

    def take(self, count: int, come: int) -> np.ndarray:
        """The next ``count`` elements, where ``come`` of the source are there; fewer where these are all.

        If they aren't, there must be enough of them to fill the ring again after each element.
        """
        ring, size = self._ring, self._size
        if len(ring) < size:
            ring += range(self._end, min(come, size))
            self._end = len(ring)
        start, end = self._start, self._end
        found = []
        for word in self._draw.take(min(count, come - start)).tolist():
            head, place = start % size, (start + word % (end - start)) % size
            found.append(ring[place])
            ring[place] = ring[head]
            start += 1
            if end < come:
                ring[head] = end
                end += 1
        self._start, self._end = start, end
        return np.array(found, np.int64)


class Reordered(Blocks):
    """The elements of a source in another order, for which a buffer's worth of them is kept at hand."""

    def __init__(self, source: Blocks, size: int, order: Order) -> None:
        self._source, self._size, self._order = source, size, order
        self._stored: Leaves | None = None
        self._slots: dict[int, int] = {}  # where elements are stored, by their numbers
        self._free: list[int] = []
        self._come = 0
        self._ended = False

    def take(self, count: int) -> Leaves:
        if not self._ended:
            wanted = self._size + count - len(self._slots)
            leaves = self._source.take(wanted)
            self._store(leaves)
            self._ended = len(leaves[0]) < wanted
        places = [self._slots.pop(number) for number in self._order.take(count, self._come).tolist()]
        self._free += places
        assert self._stored is not None
        return [array[places] for array in self._stored]

    def _store(self, leaves: Leaves) -> None:
        rows = len(leaves[0])
        if self._stored is None:
            self._stored = [array[:0] for array in leaves]
        missing = rows - len(self._free)
        if missing > 0:
            had = len(self._stored[0])
            self._stored = [
                np.concatenate([array, np.empty((missing, *array.shape[1:]), array.dtype)]) for array in self._stored
            ]
            self._free += range(had, had + missing)
        places = [self._free.pop() for _ in range(rows)]
        for array, new in zip(self._stored, leaves):
            array[places] = new
        self._slots.update(zip(range(self._come, self._come + rows), places))
        self._come += rows
