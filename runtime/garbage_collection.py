"""Fewer garbage collections while graphs are built: nodes aren't garbage while a graph grows.

    with raised_threshold():    Python collects once in 50,000 new objects, not in 700
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

_OBJECTS = 50_000  # allocated, less freed, between two collections of the young ones: some milliseconds' worth
_FROZEN_AT_START = 1_000  # Python 3.12 itself has frozen 375 objects; a program that freezes has many more

_lock = threading.Lock()
_inside = 0  # blocks that are running, in all threads
_usual: tuple[int, ...] = ()  # the thresholds outside of them
_set = _OBJECTS  # the first one inside of them


@contextlib.contextmanager
def raised_threshold() -> Iterator[None]:
    """A context in which Python collects garbage less often. Contexts may nest and run in several threads. If the user
    has switched collection off, or set a higher threshold, that stays."""
    raise_threshold()
    try:
        yield
    finally:
        restore_threshold()


def raise_threshold(objects: int = _OBJECTS) -> None:
    """Enters the context: collections of young objects are `objects` allocations apart. Each call needs a call of
    `restore_threshold`."""
    global _inside, _usual, _set
    with _lock:
        _inside += 1
        if _inside == 1:
            _usual = gc.get_threshold()
            _set = objects
            if 0 < _usual[0] < objects:
                gc.set_threshold(objects, *_usual[1:])


def restore_threshold() -> None:
    """Leaves the context; the last one to leave sets the thresholds from before the first."""
    global _inside
    with _lock:
        _inside -= 1
        # If the user's code has set other thresholds meanwhile, they stay.
        if _inside == 0 and gc.get_threshold()[0] == _set:
            gc.set_threshold(*_usual)


def promote_all() -> None:
    """Moves all objects to the oldest generation. Objects made by imports live on; the first collection that meets
    them, in the middle of a first call, would take 10 ms, or 50 ms if Keras is imported."""
    # A program that has frozen objects itself keeps them so: the next lines would unfreeze them.
    if gc.get_freeze_count() <= _FROZEN_AT_START:
        gc.freeze()
        gc.unfreeze()


# For the first trace: libraries may have been imported after this project. Later calls do nothing.
promote_imports = functools.cache(promote_all)
# For the first kernel: collecting the compiler's modules for the first time would take 4 ms.
promote_compiler = functools.cache(promote_all)
