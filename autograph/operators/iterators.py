"""Python iterators that staged code takes items from: that happens while tracing, whatever the program does later.

    it = iter(rows)
    if x > 0:
        first = next(it)        # taken, although the program may never get here

A loop's body is traced once and runs many times, so it can't take items from an iterator made outside of it; nor can a
branch, if the iterator is used afterwards.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from autograph.errors import StagingError, user_location
from autograph.operators.live import is_live
from runtime.context import ctx
from runtime.interpreter import doubt
from runtime.thread_state import propagated


class _Outside(threading.local):
    """The iterators that could be reached before each block that is being traced, outer blocks first."""

    def __init__(self) -> None:
        self.seen: list[frozenset[int]] = []


_outside = propagated(_Outside())


@contextlib.contextmanager
def outside(iterators: Iterable[Any]) -> Iterator[None]:
    """While a block is traced, around which these iterators are known."""
    _outside.seen.append(frozenset(map(id, iterators)))
    try:
        yield
    finally:
        _outside.seen.pop()


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
