"""What tracing a loop has found out, kept for the next trace of it.

A loop's body is traced until the types of what it carries no longer change. Were each loop inside it settled by itself
in each of these traces, a nest of d loops would trace its innermost body up to 3 ** d times. So

- a loop starts from the types that its last trace ended with, for each variable that starts as it did then, and from
  the other things that it found: state beyond its own variables, lists that must become staged;
- where a body in it has been traced a few times already, a loop doesn't repeat its own trace: it goes on with results
  of the types found so far, and the loop around it is traced again in any case.

So all loops of a nest settle together, in as many traces as the slowest of them needs, whatever their depth. If that
fails, they are settled again one by one, from the inside out: what is an error then is the program's.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field
from types import CodeType, FrameType
from typing import Any

from autograph.errors import is_own_file
from autograph.operators.choices import Alternatives
from autograph.operators.state import UNSET, Slot
from autograph.operators.structure import map_leaves
from runtime.context import ctx
from runtime.dataclass import dataclass
from runtime.thread_state import propagated

# What tells which variable a slot is, from one trace of a loop to the next.
Key = tuple[type[Slot], str]
# How often the bodies in a loop are traced before the loop leaves it to those around it to repeat the trace. Below it
# only what has changed is traced again, which is less where a long body has a small loop in it.
_AT_ONCE = 3


def key_of(slot: Slot) -> Key:
    return type(slot), slot.label


@dataclass(frozen=True)
class Seen:
    """A variable of a loop as the last trace left it. It keeps no container of the program alive.

    start      what its types depended on before the first trace
    structure  what it got in the loop, if it had no value before
    parts      its leaves; numbers: of a staged list those of its elements
    """

    start: Hashable
    structure: Any
    parts: Sequence[Any]
    numbers: Any

    @classmethod
    def of(cls, variable: Any, start: Hashable) -> Seen:
        is_new = variable.initial is UNSET or variable.initial is None
        structure = map_leaves(variable.structure, lambda leaf: leaf) if is_new else None
        return cls(start, structure, variable.parts, variable.numbers)


@dataclass
class Memory:
    """What is known of one loop, and of the loops in its body by their code, and which of several with it.

    codes     of the loop's blocks
    outer     the memory of the loop around it
    seen      its variables by their keys
    found     the keys of state that the body changes through functions and objects
    plain     the keys of variables whose Python numbers the body needs as such
    choices   of the parts of variables that are exchanged for other objects what they may be, by label
    lists     requests for the lists that must become staged, by whether a variable is meant, and labels
    has_index whether a tensor indexes a Python list in the loop
    evidence  the types that the last trace of the body met: of what it captured, and of its results
    traces    how often the body has been traced
    is_open   whether a loop in the last trace of the body has gone on before its types had settled; was_open: in any
    """

    codes: Sequence[CodeType]
    outer: Memory | None = None
    seen: dict[Key, Seen] = field(default_factory=dict)
    found: set[Key] = field(default_factory=set)
    plain: set[Key] = field(default_factory=set)
    choices: dict[Key, dict[str, Alternatives]] = field(default_factory=dict)
    lists: dict[tuple[bool, str], Any] = field(default_factory=dict)
    has_index: bool = False
    evidence: Any = None
    traces: int = 0
    is_open: bool = False
    was_open: bool = False
    settles_alone: bool = False
    one_by_one: bool = False
    inner: dict[Hashable, Memory] = field(default_factory=dict)
    met: Counter[Hashable] = field(default_factory=Counter)  # loops in the trace of the body that is going on
    root: Any = None  # the builder of the function that is being traced
    recorders: Sequence[Any] = ()  # the tapes that were open when the trace began

    @contextlib.contextmanager
    def of_body(self) -> Iterator[None]:
        """Within it the loop's body is traced."""
        before, alone = _open.memory, _open.alone
        _open.memory, _open.alone = self, False
        self.met, self.root, self.recorders = Counter(), _root(), ctx.recorders
        self.traces, self.is_open = self.traces + 1, False
        try:
            yield
        finally:
            _open.memory, _open.alone = before, alone

    @property
    def is_exact(self) -> bool:
        """Whether the loops of the nest are settled one by one."""
        return self.one_by_one or (self.outer is not None and self.outer.is_exact)

    @property
    def may_wait(self) -> bool:
        """Whether the loop around may be traced again in this one's place.

        Not where a tape has been opened since: it must see how the loop makes its results.
        """
        outer = self.outer
        return outer is not None and not (self.settles_alone or self.is_exact) and ctx.recorders == outer.recorders

    @property
    def has_had_enough(self) -> bool:
        """Whether a body in the loop, or its own, has been traced often."""
        return self.traces >= _AT_ONCE or any(each.has_had_enough for each in self.inner.values())

    def settle_one_by_one(self) -> None:
        """Forgets what was found while loops went on with types that hadn't settled."""
        self.one_by_one = True
        self.forget()

    def forget(self) -> None:
        self.seen, self.found, self.lists, self.inner = {}, set(), {}, {}
        self.has_index, self.evidence = False, None


class _Open(threading.local):
    memory: Memory | None = None
    alone: bool = False


_open = propagated(_Open())


def memory_of(codes: Sequence[CodeType]) -> Memory:
    """The memory for a loop that is about to be staged, whose blocks have this code."""
    outer = _open.memory
    if outer is None or outer.root is not _root():
        return Memory(codes)
    # Loops of ours have the same blocks wherever they stand, as those of comprehensions.
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    place = -1 if frame is None else frame.f_lasti
    codes = codes if frame is None else [*codes, frame.f_code]
    blocks = (*map(id, codes), place)  # by identity: see runtime/code_memos.py
    key = blocks, outer.met[blocks]
    outer.met[blocks] += 1
    found = outer.inner.setdefault(key, Memory(codes, outer))
    found.settles_alone = _open.alone
    return found


@contextlib.contextmanager
def settling_at_once() -> Iterator[None]:
    """Within it loops settle before they go on: whoever traces here looks at the types of their results."""
    before, _open.alone = _open.alone, True
    try:
        yield
    finally:
        _open.alone = before


def _root() -> Any:
    builder = ctx.builder
    while builder is not None and builder.parent is not None:
        builder = builder.parent
    return builder
