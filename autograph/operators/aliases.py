"""Lists and objects that a program chooses are copies: changing one where Python would change two is refused.

    c = a if t > 0 else b       # `c` is put together from the items of `a` and `b`
    c[0] += 1                   # in Python this changes `a` or `b` too

A region remembers what it has chosen, from what, and which variables held that. When it ends, nothing chosen may have
changed while a variable still holds the original, and no original while what was chosen from it is in use. Variables
that no block mentions count if they are read again (see live.py).
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import is_dataclass
from types import CellType
from typing import Any
from weakref import WeakKeyDictionary

from autograph.errors import Location, StagingError, user_location
from autograph.operators.live import is_live
from autograph.operators.state import read_cell
from autograph.operators.structure import children, is_frozen, is_opened
from autograph.operators.symbolic import same_python_value
from runtime.context import ctx
from runtime.staged_list import StagedList, moved

_MUTABLE = (list, dict, set, deque, bytearray, StagedList)
# A variable, attribute or item that held something: its cell, dictionary or list, and the key in it.
Holder = tuple[Any, Any]


class _Chosen:
    """A copy, and what it was chosen from with those who held that; and what each of them contained then."""

    def __init__(
        self, label: str, copy: Any, originals: Sequence[tuple[Any, list[Holder]]], location: Location | None
    ) -> None:
        self.label = label
        self.location = location
        self.copy = copy
        self.originals = originals
        self.before = [held(copy), *[held(original) for original, _ in originals]]
        self.live: list[bool] | None = None  # whether the copy and the originals are variables that will be read

    def look(self) -> None:
        """Finds out which of the objects will be used again, once all variables are set."""
        if self.live is None:
            self.live = [is_live(each) for each in (self.copy, *[original for original, _ in self.originals])]

    def is_broken(self, always_changing: Collection[int]) -> bool:
        """Whether one of two has changed that Python would keep one."""
        changed = not same(self.before[0], held(self.copy))
        live = self.live or [False] * len(self.before)
        in_use = live[0] or sys.getrefcount(self.copy) > 2  # this object's and the argument's
        for before, is_read, (original, holders) in zip(self.before[1:], live[1:], self.originals):
            moving = id(original) in always_changing or not same(before, held(original))
            if (changed and (is_read or is_held(original, holders))) or (moving and in_use):
                return True
        return False


def is_held(value: Any, holders: Sequence[Holder]) -> bool:
    """Whether one of those who held something still does."""
    for place, key in holders:
        if type(place) is CellType:
            # A cell that only the holders' list and this function know belongs to a function that has returned.
            if read_cell(place) is value and sys.getrefcount(place) > 3:
                return True
        elif (place.get(key) if isinstance(place, dict) else dict(enumerate(place)).get(key)) is value:
            return True
    return False


# By builder: what was chosen in its region.
_chosen: WeakKeyDictionary[Any, list[_Chosen]] = WeakKeyDictionary()
# By builder: what was chosen in regions inside of its own that have ended.
_ended: WeakKeyDictionary[Any, list[_Chosen]] = WeakKeyDictionary()


def is_mutable(value: Any) -> bool:
    """Whether a container's items can be exchanged."""
    kind = type(value)
    has_fields = is_dataclass(kind) or is_opened(value)
    return isinstance(value, _MUTABLE) or (has_fields and not is_frozen(value))


def is_exchanged(before: Any, now: Any) -> bool:
    """Whether a value is another one than before: for what can change, whether it is another object."""
    return now is not before and (is_mutable(now) or is_mutable(before) or not same_python_value(before, now))


def chosen(label: str, copy: Any, originals: Sequence[Any], holders: Callable[[Any], list[Holder]]) -> None:
    """Remembers that ``copy`` holds what one of the originals held; they are not the same object any more."""
    everything = {id(each): each for original in originals for each in (original, *origins(original))}
    apart = [(each, holders(each)) for each in everything.values() if each is not copy and is_mutable(each)]
    if apart and is_mutable(copy):
        _chosen.setdefault(ctx.builder, []).append(_Chosen(label, copy, apart, user_location()))


def origins(value: Any) -> list[Any]:
    """What a value was chosen from, in the current region or in one inside of it that has ended."""
    known = [*_chosen.get(ctx.builder, ()), *_ended.get(ctx.builder, ())]
    return [original for each in known if each.copy is value for original, _ in each.originals]


def look_at_chosen(builder: Any) -> None:
    """Notes which of the lists and objects that were just chosen will be used: the variables are set now."""
    for each in _chosen.get(builder, ()):
        each.look()


def check_chosen(builder: Any, always_changing: Collection[int] = ()) -> None:
    """Raises StagingError if the region of a builder, at its end, has changed one of two that Python would keep one.

    always_changing: ids of containers that every iteration of the region changes, before or after a choice.
    """
    ended = _chosen.pop(builder, [])
    for each in ended:
        if each.is_broken(always_changing):
            raise shared(each.label, each.location)
    ended += _ended.pop(builder, ())
    if ended and builder.parent is not None:
        _ended.setdefault(builder.parent, []).extend(ended)


def forget_chosen(builder: Any) -> None:
    """Drops what a region has chosen that is traced again."""
    _chosen.pop(builder, None)


def shared(label: str, location: Location | None) -> StagingError:
    """The error for a list or object with two names, of which one is changed."""
    name = label[1:].replace("'", "", 1) if label.startswith("'") else label  # `'box'.items`
    quoted = f"'{name}'"
    label = "what is chosen here" if label.startswith("the returned") else quoted
    return StagingError(
        f"{label} is a list or object that also has another name, depending on a tensor, and one of the two is changed",
        location=location,
        cause="in Python the other one would change with it; which one that is, is known only at run time",
        fix="choose a copy (list(x), dict(x), copy.copy(x)), or change it in the branch that chooses it",
    )


def held(value: Any) -> list[Any]:
    """What a list or object contains."""
    if isinstance(value, StagedList):
        return list(value.__tf_flatten__()[1])
    staged = moved(value)
    if staged is not None:
        return held(staged)
    if isinstance(value, set):
        return [frozenset(value)]
    return list(value) if isinstance(value, (deque, bytearray)) else [item for _, item in children(value) or ()]


def same(one: list[Any], other: list[Any]) -> bool:
    """Whether two containers' contents are the same."""
    return len(one) == len(other) and not any(is_exchanged(a, b) for a, b in zip(one, other))
