"""Room on Python's stack for functions that are traced, and for graphs with regions in regions.

A call of a function in a branch takes up to seven frames where Python takes one. So that a recursive function reaches
in a trace the depth that it reaches in Python, the limit is that much higher for as long as anything is being traced,
and while a graph is walked over or run whose regions are deep: an `elif` is a region in the one before it. Staged
functions that call themselves have a limit of their own, and room for it.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

_FRAMES = 7
# Calls in calls that a staged recursive function may make: as many as Python's own default allows.
DEEPEST = 1000
TOO_DEEP = (
    f"maximum recursion depth exceeded: a staged function may call itself {DEEPEST} levels deep. Check that "
    "every path reaches a base case. If it does, write the function as a loop, with an explicit stack if it branches"
)
# Python's frames that there is room for in such a call on the interpreter. Up to Python 3.10 each takes some 500 bytes
# of the system's stack, which must not overflow: deep regions reach Python's limit before that.
_FRAMES_OF_CALL = 40 if sys.version_info >= (3, 11) else 6
# Regions in regions from which on the usual limit may not do.
_DEEP = 50

_lock = threading.Lock()
_wanted: Counter[int] = Counter()  # the frames that blocks have asked for
_limits: list[int] = []  # the program's own limit, while there are such blocks
_set = 0  # what the limit was made then


@contextlib.contextmanager
def room(frames: int = 0) -> Iterator[None]:
    """Raises the recursion limit while the block runs; it is the process's, so all threads count together.

    frames: how many more there must be room for, beside the usual.
    """
    global _set
    with _lock:
        if not _wanted:
            _limits.append(sys.getrecursionlimit())
        _wanted[frames] += 1
        _set = _limits[0] * _FRAMES + max(_wanted)
        sys.setrecursionlimit(_set)
    try:
        yield
    finally:
        with _lock:
            _wanted[frames] -= 1
            if not _wanted[frames]:
                del _wanted[frames]
            is_ours = sys.getrecursionlimit() == _set
            if _wanted:
                _set = _limits[0] * _FRAMES + max(_wanted)
            limit = _set if _wanted else _limits.pop()
            # A limit that the program has set meanwhile stays.
            if is_ours:
                sys.setrecursionlimit(limit)


def deep() -> contextlib.AbstractContextManager[None]:
    """`room` for a staged recursive function that is as deep as it may be."""
    return room(DEEPEST * _FRAMES_OF_CALL)


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
