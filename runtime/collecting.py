"""Garbage collection while graphs are built: put off, since nodes are no garbage while they grow.

    with rarely():                      the collector looks once in 50,000 new objects, not in 700
        trace(function)

Python's collector goes through young objects every 700 allocations, and through all objects of the process every now
and then: 20 ms where a few libraries are loaded, which a first call would wait for.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

_OBJECTS = 50_000  # allocated, less freed, between two looks at the young ones: a few milliseconds' worth

_lock = threading.Lock()
_inside = 0  # blocks that are running, in all threads
_usual: tuple[int, ...] = ()  # the thresholds outside of them


@contextlib.contextmanager
def rarely() -> Iterator[None]:
    """Within it the collector rarely looks. Blocks may nest and run in several threads; what the user has switched off,
    or set higher, stays so."""
    put_off()
    try:
        yield
    finally:
        resume()


def put_off() -> None:
    """The beginning of such a block; each is followed by a `resume`."""
    global _inside, _usual
    with _lock:
        _inside += 1
        if _inside == 1:
            _usual = gc.get_threshold()
            if 0 < _usual[0] < _OBJECTS:
                gc.set_threshold(_OBJECTS, *_usual[1:])


def resume() -> None:
    """The end of such a block."""
    global _inside
    with _lock:
        _inside -= 1
        # Not where the user's code has set others meanwhile.
        if _inside == 0 and gc.get_threshold()[0] == _OBJECTS:
            gc.set_threshold(*_usual)
