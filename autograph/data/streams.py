"""Transformations whose elements only a run through the source tells: they are made in Python, one after another."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from autograph.data import blocks
from autograph.data.batching import Batching
from autograph.data.blocks import Blocks, Leaves, Order
from autograph.data.elements import as_element, batched_spec, call, joined_spec, row_spec, rows_of, stacker
from autograph.data.plans import INFINITE, UNKNOWN, Calling, Follower, Plan, Uncounted
from autograph.data.rows import rows_between, stacked_arrays
from autograph.data.seeds import seeds_for, words
from runtime import composites, dtypes, nest
from runtime.errors import DataLossError
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor

_AT_ONCE = 256


class Filtered(Calling):
    """The elements for which a function holds; with ``stop`` those before the first for which it doesn't."""

    def __init__(self, source: Plan, predicate: Callable[..., Any], stop: bool = False) -> None:
        super().__init__(source)
        self.indexed = False
        self.predicate = predicate
        self.stop = stop
        self._batching: Batching | None = None

    def cardinality(self) -> Any:
        return UNKNOWN

    @property
    def batching(self) -> Batching:
        """The predicate for many elements at once. It is made at the first use."""
        if self._batching is None:
            self._batching = Batching(self.predicate, self.spec, TensorSpec((), dtypes.bool_))
        return self._batching

    @property
    def in_blocks(self) -> bool:
        # The predicate is asked of elements further on, too, so it mustn't fail there.
        return not self.stop and self.source.in_blocks and self.batching.never_fails

    def blocks(self) -> Blocks:
        return blocks.Held(self.source.blocks(), self.batching)

    def elements(self) -> Iterator[Any]:
        holding = itertools.takewhile if self.stop else filter
        return holding(lambda element: bool(call(self.predicate, element)), self.source.elements())


class Concatenated(Plan):
    """The elements of one source, then those of another."""

    def __init__(self, first: Plan, second: Plan) -> None:
        self.first, self.second = first, second
        self.spec = joined_spec(first.spec, second.spec)

    def cardinality(self) -> Any:
        counts = [self.first.cardinality(), self.second.cardinality()]
        for special in (INFINITE, UNKNOWN):
            if any(isinstance(count, int) and count == special for count in counts):
                return special
        return counts[0] + counts[1]

    @property
    def sources(self) -> list[Plan]:
        return [self.first, self.second]

    @property
    def in_blocks(self) -> bool:
        return self.first.in_blocks and self.second.in_blocks and self.first.spec == self.second.spec

    def blocks(self) -> Blocks:
        rest = iter([self.second])
        following = lambda given: next((plan.blocks() for plan in rest), None)  # noqa: E731
        return blocks.Chained(self.first.blocks(), following)

    def elements(self) -> Iterator[Any]:
        return itertools.chain(self.first.elements(), (element for element in self.second.elements()))


class Shuffled(Follower):
    """Elements drawn at random from a buffer that the source keeps full.

    With a seed, here or by `ag.random.set_seed`, the order is TensorFlow's, iteration for iteration.
    """

    held = ("seeds",)

    def __init__(self, source: Plan, size: int, seed: int | None, reshuffle: bool) -> None:
        super().__init__(source)
        if size < 1:
            raise ValueError(f"buffer_size must be at least 1, got {size}")
        self.indexed = False
        self.size = size
        self.seeds = seeds_for(seed, reshuffle)

    @property
    def in_blocks(self) -> bool:
        return self.source.in_blocks

    @property
    def repeats_itself(self) -> bool:
        return True

    def pass_over(self) -> None:
        super().pass_over()
        next(self.seeds)

    def _order(self) -> Order:
        """The order of a new iteration."""
        return Order(words(*next(self.seeds)), self.size)

    def blocks(self) -> Blocks:
        order = self._order()
        if not self.source.by_index:
            return blocks.Reordered(self.source.blocks(), self.size, order)
        total = self.source.cardinality()
        return blocks.Chosen(self.source.select, lambda count: order.take(count, total))

    def elements(self) -> Iterator[Any]:
        if self.is_stored and not self.is_watched:
            return blocks.one_by_one(self.blocks(), self.spec)
        return self._shuffled(self.source.elements(), self._order())

    def _shuffled(self, source: Iterator[Any], order: Order) -> Iterator[Any]:
        waiting: dict[int, Any] = dict(enumerate(itertools.islice(source, self.size)))
        come = len(waiting)
        for element in source:
            waiting[come] = element
            come += 1
            yield waiting.pop(int(order.take(1, come)[0]))
        while waiting:
            yield from map(waiting.pop, order.take(_AT_ONCE, come).tolist())


class Unbatched(Uncounted):
    """The rows of each element."""

    def __init__(self, source: Plan) -> None:
        super().__init__(source)
        self.spec = row_spec(source.spec)

    def elements(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(map(rows_of, self.source.elements()))


class BatchedInTurns(Uncounted):
    """Elements in batches whose sizes take turns; a size of 0 gives batches without rows."""

    def __init__(self, source: Plan, sizes: list[int], drop_remainder: bool) -> None:
        super().__init__(source)
        if not sizes or min(sizes) < 0 or max(sizes) == 0:
            raise ValueError(f"batch_size must hold sizes of at least 0, one of them above 0, got {sizes}")
        self.sizes, self.drop_remainder = sizes, drop_remainder
        self.spec = batched_spec(source.spec, sizes[0] if drop_remainder and len(set(sizes)) == 1 else None)

    def elements(self) -> Iterator[Any]:
        return self._batches(self.source.elements())

    def _batches(self, source: Iterator[Any]) -> Iterator[Any]:
        stack = stacker(self.source.spec)
        empty: Any = None
        for size in itertools.cycle(self.sizes):
            # The first row shows what a batch without rows is.
            rows = list(itertools.islice(source, max(size, 1) if empty is None else size))
            if empty is None and rows:
                empty = composites.map_structure(lambda leaf: rows_between(leaf, 0, 0), stack(rows[:1]))
            if size == 0 and empty is not None:
                source = itertools.chain(rows, source)
                yield empty
            elif len(rows) == size or (rows and not self.drop_remainder):
                yield stack(rows)
            if len(rows) < size or empty is None:
                return


class Sharded(Follower):
    """Every ``count``-th element, beginning with number ``index``."""

    def __init__(self, source: Plan, count: int, index: int) -> None:
        super().__init__(source)
        self.indexed = False
        self.spec = source.spec
        self.count, self.index = count, index

    def cardinality(self) -> Any:
        known = self.source.cardinality()
        if not isinstance(known, int) or known < 0:
            return known if isinstance(known, int) else UNKNOWN
        return max(0, -(-(known - self.index) // self.count))

    def elements(self) -> Iterator[Any]:
        return itertools.islice(self.source.elements(), self.index, None, self.count)


class PaddedBatched(Follower):
    """``size`` elements at a time, each filled up to the shape of the largest, or to a given one.

    shapes, values: for each leaf the shape to fill up to, in which None is the largest of the batch, and a scalar
    tensor of its dtype to fill up with.
    """

    held = ("values",)

    def __init__(self, source: Plan, size: int, shapes: list[Any], values: list[Any], drop_remainder: bool) -> None:
        super().__init__(source)
        self.indexed = False
        self.size, self.shapes, self.values, self.drop_remainder = size, shapes, values, drop_remainder
        leaves = nest.flatten(source.spec)
        outer = size if drop_remainder else None
        self.spec = nest.pack_sequence_as(
            source.spec, [TensorSpec((outer, *shape), leaf.dtype) for shape, leaf in zip(shapes, leaves)]
        )

    def cardinality(self) -> Any:
        known = self.source.cardinality()
        if not isinstance(known, int) or known < 0:
            return known if isinstance(known, int) else UNKNOWN
        return known // self.size if self.drop_remainder else -(-known // self.size)

    def elements(self) -> Iterator[Any]:
        source = self.source.elements()
        while kept := list(itertools.islice(source, self.size)):
            if len(kept) < self.size and self.drop_remainder:
                return
            rows = zip(*[nest.flatten(element) for element in kept])
            leaves = [self._filled(list(each), number) for number, each in enumerate(rows)]
            yield nest.pack_sequence_as(self.spec, leaves)

    def _filled(self, leaves: list[Any], number: int) -> EagerTensor:
        arrays = [np.asarray(leaf._array) for leaf in leaves]
        dtype, wanted = leaves[0].dtype, self.shapes[number]
        largest = [max(sizes) for sizes in zip(*[array.shape for array in arrays])]
        shape = [have if want is None else want for have, want in zip(largest, wanted)]
        if any(array.ndim != len(wanted) for array in arrays) or any(a > b for a, b in zip(largest, shape)):
            raise DataLossError(
                f"Attempted to pad to a smaller size than the input element: the elements have sizes up to {largest}, "
                f"but padded_shapes asks for {list(wanted)}"
            )
        whole = np.full((len(arrays), *shape), self.values[number]._array, dtype._np)
        for row, array in enumerate(arrays):
            place: tuple[Any, ...] = (row, *[slice(size) for size in array.shape])
            whole[place] = array if array.ndim else array[()]  # not an array of objects as an object
        return EagerTensor(whole, dtype)


class Interleaved(Uncounted):
    """The elements of the datasets that a function makes of the source's: ``block`` of one, then ``block`` of the next.

    cycle: how many datasets are read in turns. Of one, each is read to its end before the next is made.
    """

    def __init__(self, source: Plan, make: Callable[[Any], Plan], spec: Any, cycle: int, block: int) -> None:
        super().__init__(source)
        self.make, self.spec = make, spec
        self.cycle, self.block = cycle, block

    @property
    def is_copied(self) -> bool:
        return False

    def elements(self) -> Iterator[Any]:
        return self._interleaved(map(self.opened, self.source.elements()))

    def opened(self, element: Any) -> Iterator[Any]:
        """Yields the elements of the dataset that the function makes from an element."""
        return self.make(element).elements()

    def _interleaved(self, iterators: Iterator[Iterator[Any]]) -> Iterator[Any]:
        return _InTurns(iterators, self.cycle, self.block)


class _InTurns:
    """Elements of iterators in turns. An error of one leaves it where it is, and the turns go on."""

    def __init__(self, iterators: Iterator[Iterator[Any]], cycle: int, block: int) -> None:
        self._iterators, self._block = iterators, block
        self._running: list[Iterator[Any] | None] = [None] * cycle
        self._place = self._given = 0
        self._more = True

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        running = self._running
        while self._more or any(each is not None for each in running):
            current = running[self._place]
            if current is None and self._more:
                current = running[self._place] = next(self._iterators, None)
                self._more = current is not None
            if current is not None and self._given < self._block:
                try:
                    element = next(current)
                except StopIteration:
                    running[self._place] = None
                else:
                    self._given += 1
                    return element
            if current is not None or not self._more:
                self._place, self._given = (self._place + 1) % len(running), 0
        raise StopIteration


class Scanned(Follower):
    """``state, output = function(state, element)``: the outputs."""

    held = ("state",)

    def __init__(self, source: Plan, state: Any, function: Callable[..., Any], spec: Any) -> None:
        super().__init__(source)
        self.indexed = False
        self.state = as_element(state)
        self.function = function
        self.spec = spec

    @property
    def is_copied(self) -> bool:
        return False

    @property
    def waits(self) -> bool:
        return True  # the function may do anything

    def elements(self) -> Iterator[Any]:
        return self._scanned(self.source.elements())

    def _scanned(self, source: Iterator[Any]) -> Iterator[Any]:
        state = self.state
        for element in source:
            state, output = self.function(state, element)
            yield as_element(output)


class Cached(Follower):
    """The elements of the first complete run, kept in memory."""

    def __init__(self, source: Plan) -> None:
        super().__init__(source)
        self.kept: list[Any] | None = None
        self.arrays: Leaves | None = None  # in place of that, where the source comes in blocks

    def at(self, index: Any) -> Any:
        return self.source.at(index)

    def span(self, start: Any, stop: Any) -> Any:
        return self.source.span(start, stop)

    @property
    def by_index(self) -> bool:
        return self.arrays is not None

    @property
    def is_stored(self) -> bool:
        return self.arrays is not None

    @property
    def in_blocks(self) -> bool:
        return self.source.in_blocks

    def select(self, which: Any) -> Leaves:
        assert self.arrays is not None
        if isinstance(which, slice):
            return [array[which] for array in self.arrays]
        return [array.take(which, 0) for array in self.arrays]

    def blocks(self) -> Blocks:
        return blocks.Kept(self.source.blocks(), self._keep) if self.arrays is None else self._span()

    def _span(self) -> Blocks:
        return blocks.Span(self.select, len((self.arrays or [()])[0]))

    def _keep(self, leaves: Leaves) -> None:
        self.arrays = leaves

    def elements(self) -> Iterator[Any]:
        if self.arrays is not None:
            return map(blocks.maker(self.spec), zip(*self.arrays))
        return self._kept(self.source.elements()) if self.kept is None else iter(self.kept)

    def _kept(self, source: Iterator[Any]) -> Iterator[Any]:
        kept = []
        for element in source:
            kept.append(element)
            yield element
        if not self.source.in_blocks:
            self.kept = kept
        elif kept:
            rows = zip(*[nest.flatten(element) for element in kept])
            self._keep([stacked_arrays(list(leaves)) for leaves in rows])
