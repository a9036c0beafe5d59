"""Lists and objects that a program chooses are copies: changing one where Python would change two is refused.

    c = a if t > 0 else b       # `c` is put together from the items of `a` and `b`
    c[0] += 1                   # in Python this changes `a` or `b` too

A region remembers what it has chosen, from what, and which variables held that. When it ends, nothing chosen may have
changed while a variable still holds the original, and no original while what was chosen from it is in use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import is_dataclass
from types import CellType
from typing import Any
from weakref import WeakKeyDictionary

from autograph.errors import Location, StagingError, user_location
from autograph.operators.state import read_cell
from autograph.operators.structure import children, is_frozen
from autograph.operators.symbolic import same_python_value
from runtime.context import ctx
from runtime.staged_list import Moved, StagedList

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
        self.before = [_held(copy), *[_held(original) for original, _ in originals]]

    def is_broken(self, always_changing: Collection[int]) -> bool:
        """Whether one of two has changed that Python would keep one."""
        changed = not _same(self.before[0], _held(self.copy))
        in_use = sys.getrefcount(self.copy) > 2  # this object's and the argument's
        for before, (original, holders) in zip(self.before[1:], self.originals):
            moving = id(original) in always_changing or not _same(before, _held(original))
            if (changed and is_held(original, holders)) or (moving and in_use):
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


def is_mutable(value: Any) -> bool:
    """Whether a container's items can be exchanged."""
    kind = type(value)
    return kind in (list, StagedList) or isinstance(value, dict) or (is_dataclass(kind) and not is_frozen(value))


def chosen(label: str, copy: Any, originals: Sequence[Any], holders: Callable[[Any], list[Holder]]) -> None:
    """Remembers that ``copy`` holds what one of the originals held; they are not the same object any more."""
    apart = [(each, holders(each)) for each in originals if each is not copy and is_mutable(each)]
    if apart and is_mutable(copy):
        _chosen.setdefault(ctx.builder, []).append(_Chosen(label, copy, apart, user_location()))


def check_chosen(builder: Any, always_changing: Collection[int] = ()) -> None:
    """Raises StagingError if the region of a builder, at its end, has changed one of two that Python would keep one.

    always_changing: ids of containers that every iteration of the region changes, before or after a choice.
    """
    for each in _chosen.pop(builder, ()):
        if each.is_broken(always_changing):
            raise shared(each.label, each.location)


def forget_chosen(builder: Any) -> None:
    """Drops what a region has chosen that is traced again."""
    _chosen.pop(builder, None)


def shared(label: str, location: Location | None) -> StagingError:
    """The error for a list or object with two names, of which one is changed."""
    quoted = f"'{label.strip(chr(39))}'"
    label = "what is chosen here" if label.startswith("the returned") else quoted
    return StagingError(
        f"{label} is a list or object that also has another name, depending on a tensor, and one of the two is changed",
        location=location,
        cause="in Python the other one would change with it; which one that is, is known only at run time",
        fix="choose a copy (list(x), dict(x), dataclasses.replace(x)), or change it in the branch that chooses it",
    )


def _held(value: Any) -> list[Any]:
    if isinstance(value, StagedList):
        return list(value.__tf_flatten__()[1])
    if type(value) is list and value and type(value[0]) is Moved:
        return _held(value[0].moved_to)
    return [item for _, item in children(value) or ()]


def _same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(a is b or same_python_value(a, b) for a, b in zip(one, other))
