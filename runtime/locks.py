"""Locks of variables: what reads a variable and then assigns it is one step for the other threads.

A call of a function that assigns variables holds their locks while it runs, an eager `assign_add` or the like holds
one; reading takes none, since a value that was read stays as it is. A few locks serve all variables, by their numbers,
and are taken in order, so that no two threads wait for each other.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from runtime import system

_COUNT = 64
_locks = [threading.RLock() for _ in range(_COUNT)]
_Method = TypeVar("_Method", bound=Callable[..., Any])


def places(numbers: Iterable[int]) -> tuple[int, ...]:
    """Which locks belong to variables of these numbers, in order."""
    return tuple(sorted({number % _COUNT for number in numbers}))


def of(numbers: Iterable[int]) -> list[Any]:
    """The locks of the variables with these numbers, in the order in which a thread must take them."""
    return [_locks[place] for place in places(numbers)]


class Held:
    """A context in which this thread holds the locks at `places`."""

    __slots__ = ("_held", "_places")

    def __init__(self, places: tuple[int, ...]) -> None:
        self._places = places
        self._held: list[Any] = []

    def __enter__(self) -> None:
        try:
            for place in self._places:
                lock = _locks[place]
                lock.acquire()
                self._held.append(lock)
        except BaseException:  # Ctrl-C
            self.__exit__()
            raise

    def __exit__(self, *exception: object) -> None:
        for lock in self._held:
            lock.release()


def one_at_a_time(method: _Method) -> _Method:
    """A method of variables that holds the variable's lock."""

    @functools.wraps(method)
    def locked(variable: Any, *args: Any, **kwargs: Any) -> Any:
        with _locks[variable._id % _COUNT]:
            return method(variable, *args, **kwargs)

    return locked  # type: ignore[return-value]


def _renew() -> None:
    """In a forked child, which has none of the threads that hold locks."""
    for lock in _locks:
        lock._at_fork_reinit()  # type: ignore[attr-defined]


system.at_fork(after_in_child=_renew)
