"""Garbage collection while graphs are built: put off, since nodes are no garbage while they grow.

    with rarely():                      the collector looks once in 50,000 new objects, not in 700
        trace(function)

Python's collector goes through young objects every 700 allocations, and through all objects of the process every now
and then: 20 ms where a few libraries are loaded, which a first call would wait for.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import threading
from collections.abc import Iterator

_OBJECTS = 50_000  # allocated, less freed, between two looks at the young ones: a few milliseconds' worth
_FROZEN_AT_START = 1_000  # Python 3.12 itself has frozen 375 objects; a program that freezes has many more

_lock = threading.Lock()
_inside = 0  # blocks that are running, in all threads
_usual: tuple[int, ...] = ()  # the thresholds outside of them
_set = _OBJECTS  # the first one inside of them


@contextlib.contextmanager
def rarely() -> Iterator[None]:
    """Within it the collector rarely looks. Blocks may nest and run in several threads; what the user has switched off,
    or set higher, stays so."""
    put_off()
    try:
        yield
    finally:
        resume()


def put_off(objects: int = _OBJECTS) -> None:
    """The beginning of such a block, in which it looks once in so many; each is followed by a `resume`."""
    global _inside, _usual, _set
    with _lock:
        _inside += 1
        if _inside == 1:
            _usual = gc.get_threshold()
            _set = objects
            if 0 < _usual[0] < objects:
                gc.set_threshold(objects, *_usual[1:])


def resume() -> None:
    """The end of such a block."""
    global _inside
    with _lock:
        _inside -= 1
        # Not where the user's code has set others meanwhile.
        if _inside == 0 and gc.get_threshold()[0] == _set:
            gc.set_threshold(*_usual)


def count_as_old() -> None:
    """All objects that there are count as ones that the collector has looked through: what importing has made lives on,
    and the first look at it, in the middle of a first call, would take 10 ms, or 50 where Keras is imported."""
    # Else somebody keeps objects away from the collector, whom the next lines would undo.
    if gc.get_freeze_count() <= _FROZEN_AT_START:
        gc.freeze()
        gc.unfreeze()


# The same at the first trace, after which it does nothing: libraries may have been imported after this project.
count_imports_as_old = functools.cache(count_as_old)
# The same after the first kernel, for the modules of the compiler: the first look at them would take 4 ms.
count_compiler_as_old = functools.cache(count_as_old)
