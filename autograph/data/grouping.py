"""Elements put together: windows, groups by a key, sparse batches, and the datasets that come of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from autograph.data.elements import call
from autograph.data.nested import DatasetSpec, Listed
from autograph.data.plans import UNKNOWN, Follower, Plan, Uncounted
from autograph.data.rows import rows_between
from runtime import composites, dtypes
from runtime.errors import DataLossError, InvalidArgumentError
from runtime.ops.arrays.creation import zeros_like
from runtime.sparse import SparseTensor, SparseTensorSpec
from runtime.tensor import EagerTensor


class Windowed(Follower):
    """Datasets of ``size`` elements each, ``stride`` apart, each beginning ``shift`` after the one before.

    A window of structures is a structure of windows.
    """

    def __init__(self, source: Plan, size: int, shift: int, stride: int, drop_remainder: bool) -> None:
        super().__init__(source)
        for what, number in (("size", size), ("shift", shift), ("stride", stride)):
            if number < 1:
                raise InvalidArgumentError(f"Window {what} must be greater than zero, got {number}.")
        self.indexed = False
        self.size, self.shift, self.stride, self.drop_remainder = size, shift, stride, drop_remainder
        self.spec = composites.map_structure(DatasetSpec, source.spec)
        self.row_specs = composites.flatten(source.spec)

    def cardinality(self) -> Any:
        known = self.source.cardinality()
        if not isinstance(known, int) or known < 0:
            return known if isinstance(known, int) else UNKNOWN
        if self.drop_remainder:
            return max(0, (known - self._reach) // self.shift + 1)
        return -(-known // self.shift)

    @property
    def _reach(self) -> int:
        """How many elements there are from a window's first to its last."""
        return (self.size - 1) * self.stride + 1

    def elements(self) -> Iterator[Any]:
        return self._windows(self.source.elements())

    def _windows(self, source: Iterator[Any]) -> Iterator[Any]:
        held: list[Any] = []
        while True:
            held += itertools.islice(source, self._reach - len(held))
            if not held or (self.drop_remainder and len(held) < self._reach):
                return
            yield self._window(held[:: self.stride])
            if self.shift > len(held):
                skipped = self.shift - len(held)
                if sum(1 for _ in itertools.islice(source, skipped)) < skipped:
                    return
            held = held[self.shift :]

    def _window(self, found: list[Any]) -> Any:
        leaves = zip(*map(composites.flatten, found))
        made = [DatasetSpec.make(Listed(list(rows), spec)) for rows, spec in zip(leaves, self.row_specs)]
        return composites.pack_sequence_as(self.spec, made)


class Dealt(Follower):
    """``count`` elements at a time as one, of which ``join`` makes a structure, as it does of their specs.

    Where fewer are left at the end, there are elements without rows in place of the others; elements whose number of
    rows is fixed are left out there.
    """

    def __init__(self, source: Plan, count: int, join: Callable[[list[Any]], Any]) -> None:
        super().__init__(source)
        self.indexed = False
        self.count, self.join = count, join
        self.spec = join([source.spec] * count)
        shapes = [spec.shape for spec in composites.flatten(source.spec)]
        self.is_filled_up = any(s.rank for s in shapes) and not any(s.rank and s[0] is not None for s in shapes)

    def cardinality(self) -> Any:
        known = self.source.cardinality()
        if not isinstance(known, int) or known < 0:
            return known if isinstance(known, int) else UNKNOWN
        return -(-known // self.count) if self.is_filled_up else known // self.count

    def elements(self) -> Iterator[Any]:
        return self._dealt(self.source.elements())

    def _dealt(self, source: Iterator[Any]) -> Iterator[Any]:
        while found := list(itertools.islice(source, self.count)):
            missing = self.count - len(found)
            if missing and not self.is_filled_up:
                return
            empty = composites.map_structure(_without_rows, found[0]) if missing else None
            yield self.join(found + [empty] * missing)


def _without_rows(leaf: Any) -> Any:
    return rows_between(leaf, 0, 0) if leaf.shape.rank else zeros_like(leaf)


class Grouped(Uncounted):
    """The elements of what ``reduce`` makes of groups: of each key's elements, as soon as there are enough of them, and
    at the end of those that are left, in the order of the keys."""

    def __init__(
        self, source: Plan, key: Callable[..., Any], reduce: Callable[[Any, Plan], Plan], size: Callable[..., Any],
        spec: Any,
    ) -> None:  # fmt: skip
        super().__init__(source)
        self.key, self.reduce, self.size, self.spec = key, reduce, size, spec

    @property
    def is_copied(self) -> bool:
        return False

    def elements(self) -> Iterator[Any]:
        return self._grouped(self.source.elements())

    def _grouped(self, source: Iterator[Any]) -> Iterator[Any]:
        groups: dict[int, list[Any]] = {}
        sizes: dict[int, int] = {}
        for element in source:
            key = int(call(self.key, element))
            if key not in groups:
                groups[key] = []
                sizes[key] = int(self.size(EagerTensor(np.int64(key), dtypes.int64)))
                if sizes[key] < 1:
                    raise InvalidArgumentError(f"Window size must be greater than zero, but got {sizes[key]}.")
            groups[key].append(element)
            if len(groups[key]) == sizes[key]:
                yield from self._reduced(key, groups.pop(key))
        for key in sorted(groups):
            yield from self._reduced(key, groups[key])

    def _reduced(self, key: int, found: list[Any]) -> Iterator[Any]:
        return self.reduce(EagerTensor(np.int64(key), dtypes.int64), Listed(found, self.source.spec)).elements()


class SparseBatched(Follower):
    """``size`` tensors at a time as a sparse tensor, whose rows have room for the shape ``row_shape`` (None: as much as
    the largest needs)."""

    def __init__(self, source: Plan, size: int, row_shape: list[int | None]) -> None:
        super().__init__(source)
        if size < 1:
            raise InvalidArgumentError(f"Batch size must be greater than zero, got {size}.")
        self.indexed = False
        self.size, self.row_shape = size, row_shape
        self.spec = composites.map_structure(lambda leaf: SparseTensorSpec((None, *row_shape), leaf.dtype), source.spec)

    def cardinality(self) -> Any:
        known = self.source.cardinality()
        if not isinstance(known, int) or known < 0:
            return known if isinstance(known, int) else UNKNOWN
        return -(-known // self.size)

    @property
    def is_copied(self) -> bool:
        return False

    def elements(self) -> Iterator[Any]:
        source = self.source.elements()
        while found := list(itertools.islice(source, self.size)):
            leaves = zip(*map(composites.flatten, found))
            yield composites.pack_sequence_as(self.spec, [self._batch(list(rows)) for rows in leaves])

    def _batch(self, rows: list[Any]) -> SparseTensor:
        arrays = [np.asarray(row._array) for row in rows]
        if any(array.ndim != len(self.row_shape) for array in arrays):
            raise InvalidArgumentError(f"Elements must have the rank of row_shape, {self.row_shape}")
        largest = [max(sizes) for sizes in zip(*[array.shape for array in arrays])]
        shape = [have if want is None else want for have, want in zip(largest, self.row_shape)]
        if any(have > room for have, room in zip(largest, shape)):
            raise DataLossError(f"A row of shape {largest} is larger than row_shape, {self.row_shape}")
        places = [np.indices(array.shape).reshape(array.ndim, -1).T for array in arrays]
        numbers = np.repeat(np.arange(len(arrays)), [array.size for array in arrays])
        indices = np.concatenate([numbers[:, None], np.concatenate(places)], 1).astype(np.int64)
        values = np.concatenate([array.reshape(-1) for array in arrays])
        dense = np.array([len(arrays), *shape], np.int64)
        return SparseTensor(
            EagerTensor(indices, dtypes.int64), EagerTensor(values, rows[0].dtype), EagerTensor(dense, dtypes.int64)
        )
