"""Loops that ran in Python while a function was traced, and so left a copy of their body in the graph for each trip.

    for w in weights:            %1 = matmul(%x, %w0)
        x = x @ w          →     %2 = matmul(%1, %w1)

`f.explain` shows them, and a warning names one that made compiling slow. They are kept beside the graph, since nothing
that runs it needs them: while a function is traced beside the region that a loop ran in, since a staged loop is traced
several times and the regions of all traces but the last are dropped; then beside the function's graph.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from runtime.dataclass import dataclass
from runtime.graph.callers import user_span
from runtime.graph.ir import Graph, Node

# Copies that a loop leaves in the graph, above which it may be what makes compiling slow; and what part of the function
# they are then at least.
MANY_COPIES = 64
LARGE_PART = 0.25


@dataclass
class Unrolled:
    """A loop's line in the user's file, its trips, and how many operations they left. times: how often the loop ran."""

    span: tuple[str, int, str]
    trips: int
    operations: int
    times: int = 1

    @property
    def copies(self) -> int:
        """The operations that a staged loop would have once, and this one has again."""
        return self.operations - self.operations * self.times // self.trips


_notes: weakref.WeakKeyDictionary[Graph, dict[tuple[str, int, str], Unrolled]] = weakref.WeakKeyDictionary()


def note_unrolled(builder: Any, trips: int, before: int) -> None:
    """Notes a loop that has just run at the user's current line while `builder` was the current one, which had `before`
    nodes then."""
    left = operations(builder.graph.nodes[before:]) if trips else 0
    span = user_span() if left else None
    if span is not None:
        _add(builder.graph, Unrolled(span, trips, left))


def operations(nodes: Iterable[Node]) -> int:
    """How many operations there are, those in regions among them."""
    count = 0
    for node in nodes:
        if node.op.name != "constant":
            count += 1
        for region in node.regions:
            count += operations(region.nodes)
    return count


def unrolled_in(graph: Graph) -> list[Unrolled]:
    """The loops that were unrolled into a function's graph, in the order of their lines."""
    return [found for _, found in sorted(_notes.get(graph, {}).items())]


def costliest_in(graph: Graph) -> Unrolled | None:
    """The loop that left the most copies in a function's graph, if they are many."""
    found = max(_notes.get(graph, {}).values(), key=lambda each: each.copies, default=None)
    if found is None or found.copies <= MANY_COPIES or found.copies < LARGE_PART * operations(graph.nodes):
        return None
    return found


def collect_notes(graph: Graph) -> None:
    """Keeps the notes of the regions beside the graph that has just been traced."""
    if not _notes:
        return
    for node in graph.walk():
        for region in node.regions:
            for found in _notes.pop(region, {}).values():
                _add(graph, found)


def inherit_notes(graph: Graph, builder: Any) -> None:
    """A graph becomes part of the one that `builder` makes: so do its loops."""
    for found in unrolled_in(graph):
        _add(builder.graph, found)


def _add(graph: Graph, new: Unrolled) -> None:
    notes = _notes.setdefault(graph, {})
    old = notes.get(new.span)
    if old is None:
        notes[new.span] = Unrolled(new.span, new.trips, new.operations, new.times)
    else:
        old.trips += new.trips
        old.operations += new.operations
        old.times += new.times
