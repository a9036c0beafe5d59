"""Loops that ran in Python while a function was traced, and so left a copy of their body in the graph for each trip.

    for w in weights:            %1 = matmul(%x, %w0)
        x = x @ w          →     %2 = matmul(%1, %w1)

`f.explain` shows them. They are kept beside the graph, since nothing that runs it needs them.
"""

from __future__ import annotations

import weakref
from typing import Any

from runtime.dataclass import dataclass
from runtime.graph.callers import user_span
from runtime.graph.ir import Graph


@dataclass
class Unrolled:
    """A loop's line in the user's file, its trips, and how many operations they left. times: how often the loop ran."""

    span: tuple[str, int, str]
    trips: int
    operations: int
    times: int = 1


_notes: weakref.WeakKeyDictionary[Graph, dict[tuple[str, int, str], Unrolled]] = weakref.WeakKeyDictionary()


def note_unrolled(builder: Any, trips: int, operations: int) -> None:
    """Notes a loop that has just run at the user's current line while `builder` was the current one."""
    span = user_span()
    if span is not None and trips and operations:
        _add(_root(builder), Unrolled(span, trips, operations))


def unrolled_in(graph: Graph) -> list[Unrolled]:
    """The loops that were unrolled into a function's graph, in the order of their lines."""
    return [found for _, found in sorted(_notes.get(graph, {}).items())]


def inherit_notes(graph: Graph, builder: Any) -> None:
    """A graph becomes part of the one that `builder` makes: so do its loops."""
    for found in unrolled_in(graph):
        _add(_root(builder), found)


def _root(builder: Any) -> Graph:
    while builder.parent is not None:
        builder = builder.parent
    return builder.graph


def _add(graph: Graph, new: Unrolled) -> None:
    notes = _notes.setdefault(graph, {})
    old = notes.get(new.span)
    if old is None:
        notes[new.span] = Unrolled(new.span, new.trips, new.operations, new.times)
    else:
        old.trips += new.trips
        old.operations += new.operations
        old.times += new.times
