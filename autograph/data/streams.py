"""Transformations whose elements only a run through the source tells: they are made in Python, one after another."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from autograph.data.elements import as_element, call, joined_spec, row_spec, rows_of
from autograph.data.plans import INFINITE, UNKNOWN, Follower, Plan
from runtime.ops import philox
from runtime.ops.random import STREAMS


class Filtered(Follower):
    """The elements for which a function holds; with ``stop`` those before the first for which it doesn't."""

    def __init__(self, source: Plan, predicate: Callable[..., Any], stop: bool = False) -> None:
        super().__init__(source)
        self.indexed = False
        self.predicate = predicate
        self.stop = stop

    def cardinality(self) -> Any:
        return UNKNOWN

    def elements(self) -> Iterator[Any]:
        for element in self.source.elements():
            if bool(call(self.predicate, element)):
                yield element
            elif self.stop:
                return


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

    def elements(self) -> Iterator[Any]:
        return itertools.chain(self.first.elements(), self.second.elements())


class Shuffled(Follower):
    """Elements drawn at random from a buffer that the source keeps full.

    With a seed, here or by `ag.random.set_seed`, the order is TensorFlow's, iteration for iteration.
    """

    def __init__(self, source: Plan, size: int, seed: int | None, reshuffle: bool) -> None:
        super().__init__(source)
        if size < 1:
            raise ValueError(f"buffer_size must be at least 1, got {size}")
        self.indexed = False
        self.size = size
        self.seeds = STREAMS.seeds(seed)
        self.seeds_of_iterations = _stream(*self.seeds) if reshuffle else None

    def elements(self) -> Iterator[Any]:
        seeds = self.seeds_of_iterations
        draw = _stream(*(self.seeds if seeds is None else (next(seeds), next(seeds))))
        # A ring: what is at hand lies from `start` to `end`, modulo its size.
        ring: list[Any] = []
        start = end = 0
        for element in self.source.elements():
            if len(ring) < self.size:
                ring.append(element)
            else:
                place = self._place(draw, start, end)
                chosen, ring[place] = ring[place], ring[start % self.size]
                ring[start % self.size] = element
                start += 1
                yield chosen
            end += 1
        while start < end:
            place = self._place(draw, start, end)
            chosen, ring[place] = ring[place], ring[start % self.size]
            start += 1
            yield chosen

    def _place(self, draw: philox.Words, start: int, end: int) -> int:
        return (start + next(draw) % (end - start)) % self.size


def _stream(first: int, second: int) -> philox.Words:
    return philox.Words(first, second << 64)


class Unbatched(Follower):
    """The rows of each element."""

    def __init__(self, source: Plan) -> None:
        super().__init__(source)
        self.indexed = False
        self.spec = row_spec(source.spec)

    def cardinality(self) -> Any:
        return UNKNOWN

    def elements(self) -> Iterator[Any]:
        for element in self.source.elements():
            yield from rows_of(element)


class Scanned(Follower):
    """``state, output = function(state, element)``: the outputs."""

    def __init__(self, source: Plan, state: Any, function: Callable[..., Any], spec: Any) -> None:
        super().__init__(source)
        self.indexed = False
        self.state = as_element(state)
        self.function = function
        self.spec = spec

    def elements(self) -> Iterator[Any]:
        state = self.state
        for element in self.source.elements():
            state, output = self.function(state, element)
            yield as_element(output)


class Cached(Follower):
    """The elements of the first complete run, kept in memory."""

    def __init__(self, source: Plan) -> None:
        super().__init__(source)
        self.kept: list[Any] | None = None

    def at(self, index: Any) -> Any:
        return self.source.at(index)

    def span(self, start: Any, stop: Any) -> Any:
        return self.source.span(start, stop)

    def elements(self) -> Iterator[Any]:
        if self.kept is not None:
            yield from self.kept
            return
        kept = []
        for element in self.source.elements():
            kept.append(element)
            yield element
        self.kept = kept
