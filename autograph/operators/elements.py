"""Lists, dictionaries and objects that are elements of staged lists.

A staged list holds tensors. A container that is put in is taken apart, and one that is read is made anew; in Python
both would be the element itself:

    rows.append(row)
    row[0] = v                  # changes the last element, too
    rows[i][0] = v              # changes a container that has just been made from the element

Each region knows the containers that the program can still use. One whose place in a list is known is written back
when the list is read again. Where which elements change is known only at run time, changing one is refused.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from autograph.errors import StagingError, is_own_file, user_location
from autograph.operators.evaluation_stack import Expression, are_running, expressions_with
from autograph.operators.live import is_in_variable, is_live, is_read_in
from autograph.operators.records import put_together, take_apart
from autograph.operators.structure import children, flatten, is_mutable
from autograph.operators.symbolic import same_python_value
from runtime import dtypes
from runtime.bytecode import key_taken_next
from runtime.context import ctx
from runtime.interpreter import ALONE, doubt, understands
from runtime.ops.convert import convert_to_tensor, static_value
from runtime.staged_list import Elements, StagedList, moved
from runtime.tensor import SymbolicTensor

# What the elements of staged lists have in common that may share them: their structure, and the ranks of their tensors.
Kind = tuple[Any, tuple[int, ...]]


class _Held:
    """A container, with the parts of it that can change. Nothing else here refers to it.

    is_copy      whether it stands for another object of Python's
    is_counted   whether its references tell if an expression waits for it; not if frames remember it
    waiting      the expressions that may do so otherwise
    """

    __slots__ = ("is_copy", "is_counted", "kind", "location", "parts", "value", "waiting")

    def __init__(self, value: Any, parts: list[Any], kind: Kind, is_copy: bool = True) -> None:
        self.value = value
        self.parts = parts
        self.kind = kind
        self.is_copy = is_copy
        self.is_counted = True
        self.waiting: list[Expression] = []
        self.location = user_location()


class _Element:
    """A container that is an element of a staged list, or may be one, as a region knows it.

    items      the list; None if it isn't known which one it is, or where in it the element stands
    position   the element's index
    before     what was in the container when it and the list agreed; None if they don't any more
    rivals     for one that was taken out of its list, the containers that it may be one with; None for the others
    """

    def __init__(self, held: _Held, items: StagedList | None, position: Any) -> None:
        self.held = held
        self.items = items
        self.position = position
        self.before: list[tuple[str, Any]] | None = flatten(held.value)
        self.rivals: list[_Held] | None = None
        self.is_new = True  # made in this region

    def is_changed(self) -> bool:
        return self.before is None or not _agree(self.before, flatten(self.held.value))

    def may_be(self, other: _Element) -> bool:
        """Whether two containers stand for one object of Python's, as far as can be told."""
        if self.held is other.held or self.held.kind != other.held.kind or _share(self.held, other.held):
            return False
        if not (self.held.is_copy or other.held.is_copy):
            return False
        if self.rivals is not None or other.rivals is not None:
            return other.held in (self.rivals or ()) or self.held in (other.rivals or ())
        if self.items is None or other.items is None:
            return True
        return self.items is other.items and not _are_apart(self.position, other.position)

    def loosen(self) -> None:
        """Forgets where the element stands."""
        self.items = self.position = None


class _Region:
    """What is known in a region.

    shared     kinds of elements that may stand in several places
    read, written    kinds of which the region has read lists, and written to an element
    touched    the lists that it has changed, but for elements added at the end
    """

    def __init__(self, around: _Region | None = None) -> None:
        self.elements: list[_Element] = []
        self.shared: list[Kind] = [] if around is None else list(around.shared)
        self.read: list[Kind] = []
        self.written: list[Kind] = []
        self.touched: dict[int, StagedList] = {}
        self.ended: list[_Region] = []  # regions inside, until the statement that they belong to is complete
        self.starts: list[int] = []  # ids of what an iteration starts with and reads
        self.copies: dict[int, Any] = {} if around is None else dict(around.copies)  # what stands for other objects
        self.blocks: Sequence[Any] = ()  # of a loop
        for each in () if around is None else around.elements:
            inherited = copy.copy(each)
            inherited.is_new = False
            self.elements.append(inherited)

    def holding(self, value: Any) -> list[_Element]:
        """The elements that a container is, or is a part of."""
        value = _current(value)
        return [each for each in self.elements if any(part is value for part in each.held.parts)]


# By builder.
_regions: WeakKeyDictionary[Any, _Region] = WeakKeyDictionary()


def _region(builder: Any = None) -> _Region:
    builder = ctx.builder if builder is None else builder
    found = _regions.get(builder)
    if found is None:
        found = _regions[builder] = _Region(None if builder.parent is None else _region(builder.parent))
        for each in found.elements:
            each.loosen()
    return found


# --- what lists tell ------------------------------------------------------------------------------------------------


class _Watch(Elements):
    """What staged lists tell of their elements while a program is traced."""

    taken_apart = staticmethod(take_apart)
    put_together = staticmethod(put_together)

    def settle(self, items: StagedList) -> None:
        if ctx.builder is None:
            return
        region = _region()
        kind = _kind(items)
        if kind not in region.read:
            region.read.append(kind)
        for each in region.elements if region.elements else ():
            if each.held.kind != kind or each.rivals is not None or not each.is_changed():
                continue
            if each.items is None:
                raise _refusal(each)
            if each.items is items:
                _write(region, each)

    def read(self, items: StagedList, value: Any, position: Any) -> Any:
        if ctx.builder is None:
            return value
        parts = _parts(value)
        if not parts:
            return value
        region = _region()
        _prune(region)
        for each in region.elements:
            if each.items is items and _are_same(each.position, position):
                return each.held.value
        if len(parts) > 1 or not _is_read_at_once(value):
            region.elements.append(_Element(_Held(value, parts, _kind(items)), items, position))
        return value

    def taken(self, items: StagedList, value: Any, position: Any) -> Any:
        if ctx.builder is None:
            return value
        region = _region()
        region.touched[id(items)] = items
        parts = _parts(value)
        if not parts:
            return value
        _prune(region)
        known = next((e for e in region.elements if e.items is items and _are_same(e.position, position)), None)
        if known is None:
            known = _Element(_Held(value, parts, _kind(items)), items, position)
            region.elements.append(known)
        _take_out(region, known)
        return known.held.value

    def made(self, items: StagedList, values: Sequence[Any]) -> None:
        for index, value in enumerate(values):
            held = self._store(items, value, convert_to_tensor(index, dtypes.int32))
            if held is not None:
                held.is_counted = False
                held.waiting = expressions_with(held.parts)

    def stored(self, items: StagedList, value: Any, position: Any) -> None:
        self._store(items, value, position)

    def _store(self, items: StagedList, value: Any, position: Any) -> _Held | None:
        if ctx.builder is None:
            return None
        region = _region()
        value = _current(value)
        parts = _parts(value)
        if not parts:
            return None
        _prune(region)
        kind = _kind(items)
        before = [each for part in parts for each in region.holding(part) if each.rivals is None]
        if before or _share_parts(parts):
            region.shared += [kind, *[each.held.kind for each in before]]
        known = next((each.held for each in before if each.held.value is value and each.held.kind == kind), None)
        is_copy = any(id(part) in region.copies for part in parts)
        held = _Held(value, parts, kind, is_copy) if known is None else known
        region.elements.append(_Element(held, None if position is None else items, position))
        return held

    def replaced(self, items: StagedList, position: Any) -> None:
        if ctx.builder is None:
            return
        region = _region()
        region.touched[id(items)] = items
        for each in [each for each in region.elements if each.items is items]:
            if _are_same(each.position, position):
                _take_out(region, each)
            elif not _are_apart(each.position, position):
                each.loosen()

    def moved(self, items: StagedList) -> None:
        if ctx.builder is None:
            return
        region = _region()
        region.touched[id(items)] = items
        for each in region.elements:
            if each.items is items:
                each.loosen()

    def cleared(self, items: StagedList) -> None:
        if ctx.builder is None:
            return
        region = _region()
        region.touched[id(items)] = items
        for each in [each for each in region.elements if each.items is items]:
            _take_out(region, each)

    def copied(self, items: StagedList) -> None:
        if ctx.builder is None:
            return
        region = _region()
        if items.holds_containers:
            region.shared.append(_kind(items))
        for each in region.elements:
            if each.items is items:
                each.loosen()


def _take_out(region: _Region, element: _Element) -> None:
    """Notes that a container is no element any more."""
    rivals = [each.held for each in region.elements if element.may_be(each)]
    region.elements.remove(element)
    if element.held.kind in region.shared:
        element.loosen()
        region.elements.append(element)
    elif rivals:
        element.rivals = rivals
        region.elements.append(element)


def _write(region: _Region, element: _Element) -> None:
    """Writes a container that has changed back to its place in the list."""
    _refuse_rivals(region, element)
    if element.held.kind in region.shared:
        raise _refusal(element)
    assert element.items is not None
    try:
        element.items.write_through(element.position, element.held.value)
    except (TypeError, ValueError) as error:
        raise _refusal(element, f"its structure or dtype changes: {error}") from error
    element.before = flatten(element.held.value)
    region.written.append(element.held.kind)
    region.touched[id(element.items)] = element.items


def _refuse_rivals(region: _Region, element: _Element) -> None:
    for other in region.elements:
        if element.may_be(other):
            raise _refusal(element)


# --- regions --------------------------------------------------------------------------------------------------------


def settle_elements() -> None:
    """Has the lists hold what containers hold that have changed since they were put in, or taken out."""
    region = None if ctx.builder is None else _regions.get(ctx.builder)
    if region is None:
        return
    for items in {id(each.items): each.items for each in region.elements if each.items is not None}.values():
        for each in region.elements:
            if each.items is items and each.rivals is None and each.is_changed():
                _write(region, each)


def begin_branch(outside: Collection[int]) -> None:
    """At the start of a branch. outside: ids of the containers whose contents are its state."""
    region = _regions[ctx.builder] = _Region(_region(ctx.builder.parent))
    for each in region.elements:
        if id(each.items) not in outside:
            each.loosen()


def enter_loop(blocks: Sequence[Any]) -> None:
    """At the start of a loop's region, before the variables are set to what an iteration starts with."""
    around = _region(ctx.builder.parent)
    region = _regions[ctx.builder] = _Region(around)
    region.blocks = blocks
    for each in region.elements:
        if each.items is None and each.is_changed():
            each.before = None
        each.loosen()


def begin_iteration(starts: Iterable[Any]) -> None:
    """When an iteration's variables are set. starts: the containers that they hold."""
    region = _region()
    starts = list(starts)
    region.copies.update((id(each), each) for each in starts)
    region.starts = [id(each) for each in starts if is_read_in(region.blocks, each)]
    for each in region.elements:
        if each.before is not None:
            each.before = flatten(each.held.value)


def end_iteration(
    copies: Iterable[tuple[Any, Any, bool, Sequence[Any]]], moving: Collection[int], is_outside: Callable[[Any], bool]
) -> None:
    """Raises StagingError if an iteration changes what the list got from an earlier one.

    copies: what a variable holds before the loop and at the iteration's start, whether the iteration changes that, and
        what it may hold at the iteration's end. moving: ids of containers from outside that the iteration changes.
    """
    region = _region()
    if not region.elements:
        return
    copies = list(copies)
    changing = {*moving, *[id(start) for _, start, changed, _ in copies if changed]}
    for each in region.elements:
        is_known = each.is_new or each.held.kind in region.read
        if is_known and any(id(part) in changing for part in each.held.parts):
            raise _refusal(each)
        if each.is_new and any(is_outside(part) for part in each.held.parts):
            region.shared.append(each.held.kind)  # once for every iteration
    for initial, start, changed, ends in copies:
        put = region.holding(start)
        for each in [found for value in (initial, *ends) for found in region.holding(value)]:
            if changed or (each.held.kind in region.written and id(start) in region.starts):
                raise _refusal(each)
            if put:
                region.shared.append(each.held.kind)
        for each in put:  # in the first iteration
            _add_uncertain(region, initial, each.held)


def end_region(builder: Any) -> None:
    """At a region's end; hands what it knows to the one around it."""
    region = _region(builder)
    for each in region.elements:
        if each.is_changed():
            _refuse_rivals(region, each)
    if builder.parent is not None:
        _region(builder.parent).ended.append(region)


def derived(value: Any, sides: Sequence[Sequence[Any]]) -> None:
    """Notes that a container stands for others after a statement, which may be elements."""
    region = _region()
    region.copies[id(value)] = value
    is_result = not is_in_variable(value)  # of an expression, which no variable holds yet
    for original in [each for side in sides for each in side]:
        for known in [region, *region.ended]:
            for each in known.holding(original):
                _add_uncertain(region, value, each.held, is_result)
            if isinstance(original, StagedList):
                for each in known.elements:
                    if each.items is original:
                        each.loosen()


def end_statement() -> None:
    """When the variables are set after a loop or branch: takes over what its regions know."""
    region = _regions.get(ctx.builder)
    if region is None:
        return
    ended, region.ended = region.ended, []
    for each in region.elements:
        if any(id(each.items) in inner.touched for inner in ended):
            if all(any(e.held is each.held and e.items is each.items for e in inner.elements) for inner in ended):
                each.before = flatten(each.held.value)  # every branch has written its changes back
            else:
                each.loosen()
    for inner in ended:
        region.shared += [each for each in inner.shared if each not in region.shared]
        region.read += [each for each in inner.read if each not in region.read]
        region.written += [each for each in inner.written if each not in region.written]
        region.touched.update(inner.touched)
        for each in inner.elements:
            for part in each.held.parts if each.is_new else ():
                _add_uncertain(region, part, each.held)


def _add_uncertain(region: _Region, value: Any, like: _Held, is_result: bool = False) -> None:
    """Notes that a container may be an element like another one, if the program can still use it."""
    value = _current(value)
    if any(each.items is None and each.held.kind == like.kind for each in region.holding(value)):
        return
    parts = _parts(value)
    if parts and (is_result or any(_is_in_use(region, part) for part in parts if is_in_variable(part))):
        held = _Held(value, parts, like.kind, any(id(part) in region.copies for part in parts))
        held.location, held.is_counted = like.location, is_result
        region.elements.append(_Element(held, None, None))


# --- which containers matter ----------------------------------------------------------------------------------------


def _prune(region: _Region) -> None:
    """Drops the containers that the program can't use any more."""
    region.elements = [each for each in region.elements if each.is_changed() or _is_used(region, each.held)]


def _is_used(region: _Region, held: _Held) -> bool:
    if held.waiting and are_running(held.waiting):
        return True
    for index in range(len(held.parts)):
        if is_in_variable(held.parts[index]):
            if _is_in_use(region, held.parts[index]):
                return True
        elif held.is_counted and _is_referred_to(held, index):
            return True  # an argument, or a value that an expression waits for
    return False


def _is_in_use(region: _Region, part: Any) -> bool:
    if is_live(part):
        return True
    builder = ctx.builder
    while builder is not None:  # a loop's body may not have started yet
        if builder in _regions and is_read_in(_regions[builder].blocks, part):
            return True
        builder = builder.parent
    return False


def _is_referred_to(held: _Held, index: int) -> bool:
    """Whether something else refers to a part, as far as counts of references tell."""
    return not ALONE or _count(held, index) > _UNUSED[index == 0 and held.parts[0] is held.value]


def _count(held: _Held, index: int) -> int:
    return sys.getrefcount(held.parts[index])


def _unused() -> tuple[int, int]:
    """How many references a container has that is a part of an element, or the element, and that nobody else uses."""
    inner: list[Any] = []
    value = [inner]
    held = _Held(value, [value, inner], (None, ()))
    del value, inner
    return _count(held, 1), _count(held, 0)


def _is_read_at_once(value: Any) -> bool:
    """Whether the user's expression takes a tensor out of an element and drops the element: ``rows[i][0]``."""
    items = children(value) or ()
    if any(children(item) is not None for _, item in items):
        return False
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_name in _READING and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    if is_own_file(frame.f_code.co_filename) or not understands(frame.f_code):
        return False
    key = key_taken_next(frame.f_code, frame.f_lasti)
    return key == "[]" or key in [each for each, _ in items]


_READING = ("read", "__getitem__", "item", "keeping")


# --- parts ----------------------------------------------------------------------------------------------------------


def _current(value: Any) -> Any:
    staged = moved(value)
    return value if staged is None else staged


def _parts(value: Any) -> list[Any]:
    """The containers in an element that can change; a staged list is one part."""

    def parts(value: Any) -> Iterator[Any]:
        value = _current(value)
        if is_mutable(value):
            yield value
        if not isinstance(value, StagedList):
            for _, item in children(value) or ():
                yield from parts(item)

    return [] if isinstance(value, SymbolicTensor) else list(parts(value))


def _share_parts(parts: Sequence[Any]) -> bool:
    return len({id(each) for each in parts}) < len(parts)


def _share(one: _Held, other: _Held) -> bool:
    """Whether two elements have a part in common: each is told of its changes."""
    return any(a is b for a in one.parts for b in other.parts)


def _agree(before: list[tuple[str, Any]], now: list[tuple[str, Any]]) -> bool:
    return len(before) == len(now) and all(
        key == other and (a is b or same_python_value(a, b)) for (key, a), (other, b) in zip(before, now)
    )


def _kind(items: StagedList) -> Kind:
    return items._like, tuple([len(each.shape or ()) for each in items.element_types])


# --- places ---------------------------------------------------------------------------------------------------------


def _are_same(one: Any, other: Any) -> bool:
    """Whether two positions are known to be one."""
    first, second = _offset(one), _offset(other)
    return first[1] == second[1] and _same_value(first[0], second[0])


def _are_apart(one: Any, other: Any) -> bool:
    """Whether two positions are known to be two."""
    first, second = _offset(one), _offset(other)
    return first[1] != second[1] and _same_value(first[0], second[0])


def _offset(position: Any) -> tuple[Any, int]:
    """A position as a value of the program and a number that is added to it."""
    static = static_value(position)
    if static is not None:
        return None, int(static)
    value, offset = position.value, 0
    while value.node is not None and value.node.op.name == "add":
        left, right = value.node.inputs
        number = _constant(right)
        if number is None:
            break
        offset += number
        value = left
    return value, offset


def _constant(value: Any) -> int | None:
    if value.type.shape != () or not value.type.dtype.is_integer:
        return None
    static = static_value(SymbolicTensor(value, ctx.builder))
    return None if static is None else int(static)


def _same_value(one: Any, other: Any, depth: int = 6) -> bool:
    if one is other:
        return True
    if one is None or other is None or depth == 0:
        return False
    first, second = one.node, other.node
    if first is None or second is None:
        return False
    if first.op.name == second.op.name == "constant":
        return one.type.shape == () == other.type.shape and _constant(one) == _constant(other) is not None
    return (
        first.op is second.op
        and first.op.is_elementwise
        and first.attrs == second.attrs
        and all(_same_value(a, b, depth - 1) for a, b in zip(first.inputs, second.inputs))
    )


def _refusal(element: _Element, why: str = "") -> StagingError:
    return StagingError(
        "an element of a list is a list, dictionary or object that is changed under another name, or in several places",
        location=element.held.location,
        cause="a list that a loop or branch on tensors changes holds what its elements consist of, not the objects; "
        + (why or "which of them would change is known only at run time" + doubt()),
        fix="put a copy into the list (`rows.append(list(row))`), change it before that, or name its place: "
        "`rows[i][0] = v`",
    )


_UNUSED = _unused()
StagedList.elements = _Watch()
