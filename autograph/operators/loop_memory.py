"""What settling a loop inside a loop has found, kept for the next trace of the outer loop's body.

A loop's body is traced until the types of what it carries no longer change. Were each loop in it settled anew in each
of these traces, a nest of d loops would be traced some 3 ** d times. So a loop that starts from values of the same
types as in the last trace starts with the types that it had in the end. That is a guess, which the trace confirms: the
types settle at once, from captured values of the same types. Otherwise the loop is settled from the beginning.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from runtime.context import ctx


@dataclass(frozen=True)
class Settled:
    """What a loop began with, and what was found.

    leaves    for each leaf whether it is carried, its type, its default as a number, and whether it is still flexible
    numbers   for each variable that is a staged list those of its elements
    evidence  the types of what the last trace of the body captured and gave
    """

    start: Hashable
    leaves: Sequence[tuple[bool, Any, Any, bool]]
    numbers: Sequence[Any]
    evidence: Hashable


@dataclass
class Memory:
    """What is known of one loop, and of the loops in its body by their code, and which of several with it."""

    codes: Sequence[CodeType]  # of the loop's blocks
    settled: Settled | None = None
    inner: dict[Hashable, Memory] = field(default_factory=dict)
    met: Counter[Hashable] = field(default_factory=Counter)  # loops in the trace of the body that is going on
    root: Any = None  # the builder of the function that is being traced

    @contextlib.contextmanager
    def of_body(self) -> Iterator[None]:
        """Within it the loop's body is traced."""
        before, _open.memory = _open.memory, self
        self.met, self.root = Counter(), _root()
        try:
            yield
        finally:
            _open.memory = before


class _Open(threading.local):
    memory: Memory | None = None


_open = _Open()


def memory_of(codes: Sequence[CodeType]) -> Memory:
    """The memory for a loop that is about to be staged, whose blocks have this code."""
    outer = _open.memory
    if outer is None or outer.root is not _root():
        return Memory(codes)
    blocks = tuple(map(id, codes))  # by identity: see by_code.py
    key = blocks, outer.met[blocks]
    outer.met[blocks] += 1
    return outer.inner.setdefault(key, Memory(codes))


def _root() -> Any:
    builder = ctx.builder
    while builder is not None and builder.parent is not None:
        builder = builder.parent
    return builder
