"""Room on Python's stack for functions that are traced, and for graphs with regions in regions.

A call of a function in a branch takes up to five frames where Python takes one. So that a recursive function reaches in
a trace the depth that it reaches in Python, the limit is that much higher for as long as anything is being traced, and
while a graph is walked over or run whose regions are deep: an `elif` is a region in the one before it.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

_FRAMES = 5
# Regions in regions from which on the usual limit may not do.
_DEEP = 50

_lock = threading.Lock()
_tracing = 0
_limit = 0


@contextlib.contextmanager
def room() -> Iterator[None]:
    """Raises the recursion limit while the block runs; it is the process's, so all threads count together."""
    global _tracing, _limit
    with _lock:
        if _tracing == 0:
            _limit = sys.getrecursionlimit()
            sys.setrecursionlimit(_limit * _FRAMES)
        _tracing += 1
    try:
        yield
    finally:
        with _lock:
            _tracing -= 1
            # A limit that the program has set meanwhile stays.
            if _tracing == 0 and sys.getrecursionlimit() == _limit * _FRAMES:
                sys.setrecursionlimit(_limit)


def is_deep(graph: Any) -> bool:
    """Whether a graph has so many levels of regions in regions that walking over it or running it takes `room`."""
    waiting = [(graph, 0)]
    while waiting:
        region, depth = waiting.pop()
        if depth > _DEEP:
            return True
        waiting += [(inner, depth + 1) for node in region.nodes for inner in node.regions]
    return False


def room_for(graph: Any) -> contextlib.AbstractContextManager[None]:
    """`room`, if a graph takes it."""
    return room() if is_deep(graph) else contextlib.nullcontext()
