"""Lists and objects with several names around a staged loop.

A variable that the loop's body gives another list or object starts every iteration with a copy of its own, made from
what the loop carries:

    first = now                 # one list
    for v in xs:
        now = now + [v]         # `now` is a copy in the loop; `first` isn't

In Python a list may be the one that another variable, attribute or item holds, in the first iteration (what the
variable holds before the loop) or in the following ones (what it holds at an iteration's end). As long as no iteration
changes either, nobody can tell; otherwise the loop is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from autograph.errors import user_location
from autograph.operators.aliases import (
    born,
    canonical,
    changed_copies,
    chosen,
    held,
    is_held,
    is_needed,
    may_be_one,
    may_have_been,
    mutables,
    new_order,
    note_changed,
    origins,
    same,
    shared,
    starts,
)
from autograph.operators.attributes import attributes_of
from autograph.operators.containers import STAGED, ContentSlot
from autograph.operators.elements import begin_iteration, end_iteration
from autograph.operators.frame import Frame
from autograph.operators.live import is_read_in
from autograph.operators.loop_variables import Variable
from autograph.operators.state import Slot
from runtime.context import ctx


class _Copy:
    """A container that an iteration starts with, and the one that it stands for before the loop."""

    def __init__(self, slot: Slot, label: str, initial: Any, start: Any) -> None:
        self.slot = slot
        self.label = label
        self.initial = initial
        self.start = start
        self.before = held(start)

    def is_changed(self) -> bool:
        return not same(self.before, held(self.start))


class Copies:
    """The copies of one iteration; made when it starts."""

    def __init__(self, variables: Sequence[Variable], frame: Frame) -> None:
        self.frame = frame
        self.order = new_order()  # what the iteration makes comes later
        self.variables = [each for each in variables if not isinstance(each.slot, ContentSlot)]
        self.copies = [
            _Copy(variable.slot, label, initial, start)
            for variable in self.variables
            for (label, initial), (_, start) in zip(
                mutables(variable.slot.label, variable.initial), mutables(variable.slot.label, variable.slot.get())
            )
        ]
        # What an iteration starts with outside: lists that are staged ones hold the loop's carries already.
        self.outside = [(owner, _inside(owner)) for owner in frame.owners()]
        self.changing: set[int] = set()  # see `moving`, as it was when this was checked
        begin_iteration([each.start for each in self.copies])
        self.names = [each.slot.label for each in self.variables if hasattr(each.slot, "cell")]

    def check(self) -> dict[tuple[int, str], list[Any]]:
        """Raises StagingError if the iteration, at its end, has changed one of two that Python would keep one.

        Gives what the variables may hold for Python when the iteration ends, by slot and label.
        """
        moving = self.changing = self.moving()
        others = changed_copies(ctx.builder)
        changed = {
            (id(each.slot), each.label)
            for each in self.copies
            if each.is_changed() or any(other is each.initial or may_be_one(other, each.start) for other in others)
        }
        note_changed([each.start for each in self.copies if each.is_changed()])
        copies = {(id(each.slot), each.label): each for each in self.copies}
        ends = [
            (variable.slot, label, value)
            for variable in self.variables
            for label, value in mutables(variable.slot.label, variable.slot.get())
        ]
        for key, each in copies.items():
            is_exchanged = key in changed and self._is_exchanged(each, ends) and self._is_shared(each.initial)
            if id(each.initial) in moving or is_exchanged:
                raise shared(each.slot.label, user_location())
        found: dict[tuple[int, str], list[Any]] = defaultdict(list)
        for slot, label, value in ends:
            for each in {id(each): each for each in (value, *origins(value))}.values():
                found[id(slot), label].append(each)
        sides = [(each.initial, each.start, key in changed, found.get(key, [])) for key, each in copies.items()]
        end_iteration(sides, moving, lambda value: self.frame.is_outside(canonical(value)))
        self._derive(ends, found)
        for key, each in copies.items():
            if key in changed and any(
                each is not other and may_be_one(each.start, other.start) for other in self.copies
            ):
                raise shared(each.slot.label, user_location())
        outside = [*self.frame.owners(), *[each.initial for each in self.copies]]
        for slot, label, value in ends:
            key = id(slot), label
            for owner in {id(each): each for each in outside}.values():
                if (key in changed or id(owner) in moving) and may_be_one(value, owner):
                    self._refuse_shared(owner, slot)
        return found

    def refuse_changed(self) -> None:
        """Raises StagingError if the iteration has changed what a variable is a copy of."""
        moving = self.moving()
        for each in self.copies:
            if id(each.initial) in moving:
                raise shared(each.slot.label, user_location())

    def _derive(self, ends: Sequence[tuple[Slot, str, Any]], found: dict[tuple[int, str], list[Any]]) -> None:
        """Notes that what an iteration starts with is what the one before it has ended with."""
        copies = {id(canonical(each.start)) for each in self.copies}
        for _, _, value in ends:
            if id(canonical(value)) not in copies and not self.frame.is_outside(canonical(value)):
                born(value, self)
        sides = [[[each.initial], found.get((id(each.slot), each.label), [])] for each in self.copies]
        starts(zip([each.start for each in self.copies], sides), self, self.order)

    def _refuse_shared(self, value: Any, slot: Slot) -> None:
        """For a variable that may hold a container from outside of the loop at an iteration's end."""
        is_read_again = is_read_in(self.frame.blocks, value, self.names)
        if is_read_again or is_held(value, self.frame.holders(value)) or self._is_shared(value, self.names):
            raise shared(slot.label, user_location())

    def moving(self) -> set[int]:
        """The ids of containers and objects outside of the loop that the iteration changes."""
        return {id(owner) for owner, before in self.outside if not same(before, _inside(owner))}

    def _is_exchanged(self, copy: _Copy, ends: Sequence[tuple[Slot, str, Any]]) -> bool:
        """Whether a variable has another container at the iteration's end than it started with."""
        return not any(slot is copy.slot and label == copy.label and value is copy.start for slot, label, value in ends)

    def _is_shared(self, value: Any, without: Sequence[str] = ()) -> bool:
        """Whether a variable holds a container, or what it was chosen from, and is read again."""
        return any(is_needed(each, without) for each in (value, *may_have_been(value)))


def _inside(owner: Any) -> list[Any]:
    """What a container or object holds, whether its class counts by its attributes or not yet."""
    return held(owner) if isinstance(owner, (list, dict, *STAGED)) else list((attributes_of(owner) or {}).values())


def remember(variables: Sequence[Variable], ends: dict[tuple[int, str], list[Any]], frame: Frame) -> None:
    """Notes, after a loop, which containers its variables may share with others."""
    statement = object()
    for variable in variables:
        if isinstance(variable.slot, ContentSlot):
            continue
        initial = dict(mutables(variable.slot.label, variable.initial))
        for label, value in mutables(variable.slot.label, variable.slot.get()):
            # Without an iteration, and after one.
            sides = [[initial[label]] if label in initial else [], ends.get((id(variable.slot), label), [])]
            if any(sides):
                chosen(variable.slot.label, value, sides, frame.all_holders, statement)
