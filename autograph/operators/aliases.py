"""Lists and objects that a program chooses are copies: changing one where Python would change two is refused.

    c = a if t > 0 else b       # `c` is put together from the items of `a` and `b`
    c[0] += 1                   # in Python this changes `a` or `b` too

A region remembers what it has chosen, and from what. When it ends, nothing chosen may have changed while the originals
are still in use, and no original while what was chosen from it still is. References tell what is in use.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import is_dataclass
from typing import Any
from weakref import WeakKeyDictionary

from autograph.errors import Location, StagingError, user_location
from autograph.operators.structure import children, is_frozen
from autograph.operators.symbolic import same_python_value
from runtime.context import ctx
from runtime.staged_list import Moved, StagedList


class _Chosen:
    """A copy, and what it was chosen from, with what each held then."""

    def __init__(self, label: str, copy: Any, originals: Sequence[Any], location: Location | None) -> None:
        self.label = label
        self.location = location
        self.places = [copy, *originals]
        self.before = [_held(each) for each in self.places]

    def changed(self) -> list[bool]:
        return [not _same(before, _held(each)) for before, each in zip(self.before, self.places)]

    def in_use(self, index: int) -> bool:
        """Whether anything but this list holds one of the places."""
        place = self.places[index]
        own = 3 + sum(each is place for each in self.places) - 1  # this variable, the argument, the list
        return sys.getrefcount(place) > own


# By builder: what was chosen in its region.
_chosen: WeakKeyDictionary[Any, list[_Chosen]] = WeakKeyDictionary()


def is_mutable(value: Any) -> bool:
    """Whether a container's items can be exchanged."""
    kind = type(value)
    return kind in (list, StagedList) or isinstance(value, dict) or (is_dataclass(kind) and not is_frozen(value))


def chosen(label: str, copy: Any, originals: Sequence[Any]) -> None:
    """Remembers that ``copy`` holds what one of the originals held; they are not the same object any more."""
    apart = [each for each in originals if each is not copy and is_mutable(each)]
    if apart and is_mutable(copy):
        _chosen.setdefault(ctx.builder, []).append(_Chosen(label, copy, apart, user_location()))


def check_chosen(builder: Any, always_changing: Collection[int] = ()) -> None:
    """Raises StagingError if the region of a builder, at its end, has changed one of two that Python would keep one.

    always_changing: ids of containers that every iteration of the region changes, before or after a choice.
    """
    for each in _chosen.pop(builder, ()):
        copy, *originals = each.changed()
        for index, changed in enumerate(originals, 1):
            moving = changed or id(each.places[index]) in always_changing
            if (copy and each.in_use(index)) or (moving and each.in_use(0)):
                raise shared(each.label, each.location)


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
