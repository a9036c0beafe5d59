"""Python iterators that staged code takes items from: that happens while tracing, whatever the program does later.

    it = iter(rows)
    if x > 0:
        first = next(it)        # taken, although the program may never get here

A loop's body is traced once and runs many times, so it can't take items from an iterator made outside of it; nor can a
branch, if the iterator is used afterwards.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import operator
import threading
from collections.abc import Iterable, Iterator
from types import FunctionType, GeneratorType
from typing import Any

from autograph.errors import StagingError, user_location
from autograph.operators.live import is_live
from runtime.context import ctx
from runtime.interpreter import doubt
from runtime.thread_state import propagated


class _Outside(threading.local):
    """The iterators that could be reached before each block that is being traced, outer blocks first.

    seen       their ids
    positions  how far they had come
    """

    def __init__(self) -> None:
        self.seen: list[frozenset[int]] = []
        self.positions: list[list[Position]] = []


_outside = propagated(_Outside())


@contextlib.contextmanager
def outside(iterators: Iterable[Any], positions: list[Position]) -> Iterator[None]:
    """While a block is traced, around which these iterators are known, and had come so far."""
    _outside.seen.append(frozenset(map(id, iterators)))
    _outside.positions.append(positions)
    try:
        yield
    finally:
        _outside.seen.pop()
        _outside.positions.pop()


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """While a function runs that the user keeps from being converted: what it takes from iterators, it takes while it
    is traced, which is what the user asks for."""
    still = [each for positions in _outside.positions for each in positions if not each.has_moved()]
    try:
        yield
    finally:
        for each in still:
            each.renew()


class Positioned:
    """An iterator of this project's that knows its position, which is state: see drawn.py.

    STATE  the attribute that tells it
    """

    STATE = "position"
    arguments: tuple[Any, ...]  # what it was made from


class Position:
    """How far an iterator has come, as far as can be seen without taking an item: also those that it takes from."""

    def __init__(self, iterator: Any) -> None:
        self.iterator = iterator
        self.renew()

    def renew(self) -> None:
        """Takes the iterator's present position as the one that `has_moved` compares with."""
        self.seen = list(_position(self.iterator))

    def has_moved(self) -> bool:
        """Whether items have been taken since."""
        now = list(_position(self.iterator))
        return len(now) != len(self.seen) or any(a is not b and a != b for a, b in zip(now, self.seen))


class _Same:
    """A value that is equal to itself alone."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    __hash__ = None  # type: ignore[assignment]


def _position(iterator: Any) -> Iterator[Any]:
    waiting, known = [iterator], {id(iterator)}
    while waiting:
        each = waiting.pop()
        if isinstance(each, GeneratorType):
            frame = each.gi_frame
            yield None if frame is None else frame.f_lasti
            held = [] if frame is None else list(frame.f_locals.values())
            yield from map(_Same, held)
        else:
            yield repr(each) if type(each) is itertools.count else _left(each)
            held = list(vars(each).values()) if hasattr(each, "__dict__") else gc.get_referents(each)
        held += [item for items in held if type(items) is tuple for item in items]  # of `zip` and `map`
        found = [item for item in held if is_of_c(item) and id(item) not in known]
        known.update(map(id, found))
        waiting += found


def _left(iterator: Any) -> int:
    try:
        return operator.length_hint(iterator, -1)
    except Exception:  # what it runs over may be gone, or staged
        return -1


def is_of_c(value: Any) -> bool:
    """Whether a value is an iterator that isn't written in Python: who takes its items changes what nobody sees."""
    return isinstance(value, Iterator) and type(type(value).__next__) is not FunctionType


def taking_from(iterator: Any) -> None:
    """Raises StagingError if the items of an iterator can't be taken while a block is traced."""
    builder = ctx.builder
    if builder is None or builder.parent is None or not any(id(iterator) in seen for seen in _outside.seen):
        return
    while builder.parent is not None:
        if builder.name in ("body", "test") or is_live(iterator, in_loops_only=True):
            raise _refused("from outside of a branch or loop on tensors gives its items in there")
        builder = builder.parent


def taking_all_from(iterator: Any) -> None:
    """Raises StagingError if an iterator is used after a loop over it that may be left, or not, by a tensor."""
    if is_live(iterator, in_loops_only=True):
        raise _refused("is used after a loop over it that a condition on a tensor leaves")


def _refused(what: str) -> StagingError:
    return StagingError(
        f"an iterator {what}",
        location=user_location(),
        cause="a Python iterator runs only once, while the function is traced" + doubt(),
        fix="take the items before the loop, or use a tensor or list and an index",
    )
