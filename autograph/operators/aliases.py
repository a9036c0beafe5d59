"""Lists and objects that a program chooses are copies: changing one where Python would change two is refused.

    c = a if t > 0 else b       # `c` is put together from the items of `a` and `b`
    c[0] += 1                   # in Python this changes `a` or `b` too

A region remembers what it has chosen, from what, and which variables held that. When it ends, nothing chosen may have
changed while a variable still holds the original, and no original while what was chosen from it is in use. Variables
that no block mentions count if they are read again (see live.py).
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from autograph.errors import Location, StagingError, user_location
from autograph.operators import elements
from autograph.operators.evaluation_stack import may_wait
from autograph.operators.live import is_live
from autograph.operators.structure import children, is_mutable
from autograph.operators.symbolic import same_python_value
from runtime.context import ctx
from runtime.interpreter import doubt
from runtime.staged_list import StagedList, moved

# An attribute or item that held something: its dictionary or list, and the key in it. Of variables live.py knows.
Holder = tuple[Any, Any]


class _Chosen:
    """A copy that stands for one of several objects after a staged choice, with what is needed to refuse code that
    could tell it from the originals: the places that hold the copy, for each original the places that held it, and what
    the copy and the originals contained at the choice."""

    def __init__(
        self,
        label: str,
        copy: Any,
        holders: list[Holder],
        originals: Sequence[tuple[Any, list[Holder]]],
        location: Location | None,
        is_result: bool,
    ) -> None:
        self.label = label
        self.location = location
        self.copy = copy
        self.holders = holders
        self.before = held(copy)
        self.originals = [(original, holders, held(original), False) for original, holders in originals]
        self.is_result = is_result
        self.is_read: bool | None = None  # whether the copy is in a variable that will be read
        self.was_used = False  # when it was last looked at
        self.has_parted = False  # an original has changed since then

    def look(self) -> bool:
        """Finds out which of the objects will be used again, now that all variables are set; False if it never matters.

        An original that no variable holds any more can't change; neither can the copy.
        """
        self.has_parted = self.has_parted or (self.was_used and self.is_original_changed())
        if self.is_read is None:
            self.is_read = self.is_result or is_needed(self.copy)
            found = [(*each[:3], is_needed(each[0])) for each in self.originals]
            self.originals = [each for each in found if each[3] or is_held(each[0], each[1]) or self._has_twin(each[0])]
        elif self.is_read and not self.is_result:
            self.is_read = is_needed(self.copy)
        self.was_used = self.is_in_use()
        return self.was_used or self.is_broken()

    def is_in_use(self) -> bool:
        return bool(self.is_read) or is_held(self.copy, self.holders)

    def is_changed(self) -> bool:
        return not same(self.before, held(self.copy))

    def is_original_changed(self) -> bool:
        return any(not same(before, held(original)) for original, _, before, _ in self.originals)

    def is_broken(self, always_changing: Collection[int] = ()) -> bool:
        """Whether one of two has changed that Python would keep one."""
        if self.has_parted:
            return True
        changed = self.is_changed()
        for original, holders, before, is_read in self.originals:
            moving = id(original) in always_changing or not same(before, held(original))
            if changed and (is_read or is_held(original, holders) or self._has_twin(original)):
                return True
            if moving and self.is_in_use():
                return True
        return False

    def _has_twin(self, original: Any) -> bool:
        """Whether another copy of an original is in use, which nothing else may hold any more."""
        builder, original = ctx.builder, canonical(original)
        while builder is not None:
            for each in _chosen.get(builder, ()):
                is_twin = any(canonical(other[0]) is original for other in each.originals)
                if is_twin and each.copy is not self.copy and each.is_in_use():
                    return True
            builder = builder.parent
        return False


class _Derivation:
    """Which objects a copy stands for after each branch of a staged statement."""

    def __init__(self, copy: Any, sides: Sequence[Sequence[Any]], statement: Any, order: int | None = None) -> None:
        self.copy = copy
        self.sides = sides
        self.statement = statement
        self.order = new_order() if order is None else order


_counter = itertools.count()


def new_order() -> int:
    """The place of a statement among those that derive copies: later ones have higher numbers."""
    return next(_counter)


# Values of expressions beyond so many later ones are in variables, or gone.
_MOST_RESULTS = 32


class _Derivations:
    """How the copies of a trace were derived, by their ids."""

    def __init__(self) -> None:
        self.found: dict[int, _Derivation] = {}
        # Objects that are two, whatever way the program takes, by their ids.
        self.apart: dict[tuple[int, int], tuple[Any, Any]] = {}

    def may_be_one(self, one: Any, other: Any) -> bool:
        """Whether two objects may be one for Python on some way through the program."""
        waiting, seen = [(canonical(one), canonical(other))], dict[tuple[int, int], tuple[Any, Any]]()
        while waiting:
            one, other = waiting.pop()
            if one is other:
                return True
            key = id(one), id(other)
            if key in seen or key in self.apart:
                continue
            seen[key] = one, other
            waiting += [(canonical(a), canonical(b)) for a, b in self._before(one, other)]
        self.apart.update(seen)
        return False

    def _before(self, one: Any, other: Any) -> Iterable[tuple[Any, Any]]:
        """What two objects may have been together before the later statement that made one of them."""
        first, second = self.found.get(id(one)), self.found.get(id(other))
        if first is not None and second is not None and first.statement is second.statement:
            return [(a, b) for side, its in zip(first.sides, second.sides) for a in side for b in its]
        if first is not None and (second is None or first.order > second.order):
            return [(a, other) for side in first.sides for a in side]
        return [] if second is None else [(one, b) for side in second.sides for b in side]


# By root builder.
_derivations: WeakKeyDictionary[Any, _Derivations] = WeakKeyDictionary()


def is_held(value: Any, holders: Sequence[Holder]) -> bool:
    """Whether one of the given attributes or items still holds the value."""
    return any(
        (place.get(key) if isinstance(place, Mapping) else dict(enumerate(place)).get(key)) is value
        for place, key in holders
    )


# By builder: what was chosen in its region.
_chosen: WeakKeyDictionary[Any, list[_Chosen]] = WeakKeyDictionary()
# By builder: what was chosen in regions inside of its own that have ended.
_ended: WeakKeyDictionary[Any, list[_Chosen]] = WeakKeyDictionary()
# By builder: copies that its region, or one inside of it, has changed, and that nobody uses any more.
_changed: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()


def mutables(label: str, value: Any) -> list[tuple[str, Any]]:
    """The containers in a value that can change, with their labels, outer ones first."""
    return list(_mutables(label, value))


def _mutables(label: str, value: Any) -> Iterator[tuple[str, Any]]:
    if is_mutable(value):
        yield label, value
    for key, item in children(value) or ():
        yield from _mutables(label + key, item)


def is_exchanged(before: Any, now: Any) -> bool:
    """Whether a value is another one than before: for what can change, whether it is another object."""
    return now is not before and (is_mutable(now) or is_mutable(before) or not same_python_value(before, now))


def chosen(
    label: str,
    copy: Any,
    sides: Sequence[Sequence[Any]],
    holders: Callable[[Any], list[Holder]],
    statement: Any = None,
    is_result: bool = False,
) -> None:
    """Remembers that ``copy`` holds what one of some objects held; they are not the same object any more.

    sides: for each way through the statement what the copy may be for Python. What two copies of one statement are,
    they are on the same way. is_result: the copy is in the value of an expression, and no variable holds it yet.
    """
    if not is_mutable(copy):
        return
    elements.derived(copy, sides)
    known = _derivations.setdefault(_root(ctx.builder), _Derivations())
    known.found[id(canonical(copy))] = _Derivation(copy, sides, object() if statement is None else statement)
    found = [each for side in sides for original in side for each in (original, *origins(original))]
    everything = {id(each): each for each in (current(canonical(each)) for each in found)}
    for each in _records(ctx.builder):
        if id(current(each.copy)) not in everything and known.may_be_one(copy, each.copy):
            everything[id(current(each.copy))] = current(each.copy)
    apart = [(each, holders(each)) for each in everything.values() if each is not current(copy) and is_mutable(each)]
    _chosen.setdefault(ctx.builder, []).append(_Chosen(label, copy, holders(copy), apart, user_location(), is_result))


def is_needed(value: Any, without: Collection[str] = ()) -> bool:
    """Whether a variable that is read again holds an object, or an expression that has not used it yet.

    without: names of variables that don't count.
    """
    known = _derivations.get(_root(ctx.builder))
    found = {} if known is None else known.found

    def originals(copy: Any) -> list[Any]:
        derivation = found.get(id(canonical(copy)))
        return [] if derivation is None else [each for side in derivation.sides for each in side]

    return is_live(value, without=without) or may_wait(value, originals)


def born(value: Any, statement: Any) -> None:
    """Notes that an object has come to be in a branch: it is none that was there before."""
    known = _derivations.setdefault(_root(ctx.builder), _Derivations())
    known.found.setdefault(id(canonical(value)), _Derivation(value, (), statement))


def starts(pairs: Iterable[tuple[Any, Sequence[Sequence[Any]]]], statement: Any, order: int) -> None:
    """Notes what the copies that an iteration starts with are: what was before the loop, or at an iteration's end.

    pairs: each copy and its sides (see `chosen`). order: from when the iteration started, see `new_order`.
    """
    known = _derivations.setdefault(_root(ctx.builder), _Derivations())
    for copy, sides in pairs:
        known.found[id(canonical(copy))] = _Derivation(copy, sides, statement, order)
    known.apart.clear()  # some were two as long as nothing was known of them


def may_be_one(one: Any, other: Any) -> bool:
    """Whether two objects may be one for Python on some way through the program, as far as it has been traced."""
    return _derivations.setdefault(_root(ctx.builder), _Derivations()).may_be_one(one, other)


def canonical(value: Any) -> Any:
    """A staged list as the list that it was first, in whatever region that has become a staged one."""
    while isinstance(value, StagedList) and value.origin is not None:
        value = value.origin
    return value


def current(value: Any) -> Any:
    """A list that has become a staged one as that."""
    staged = moved(value)
    return value if staged is None else staged


def _records(builder: Any) -> list[_Chosen]:
    """What was chosen in the region of a builder, in those around it, and in those inside of them that have ended."""
    found: list[_Chosen] = []
    while builder is not None:
        found += [*_chosen.get(builder, ()), *_ended.get(builder, ())]
        builder = builder.parent
    return found


def _root(builder: Any) -> Any:
    while builder.parent is not None:
        builder = builder.parent
    return builder


def origins(value: Any) -> list[Any]:
    """What a value was chosen from and still is in use, in the current region, or in one inside that has ended."""
    known = [*_chosen.get(ctx.builder, ()), *_ended.get(ctx.builder, ())]
    return [each[0] for record in known if canonical(record.copy) is canonical(value) for each in record.originals]


def may_have_been(value: Any) -> list[Any]:
    """What a value may be for Python besides itself: what it was chosen from, in the current region or around it."""
    records = _records(ctx.builder)
    found = {id(value): value}
    waiting = [canonical(value)]
    while waiting:
        copy = waiting.pop()
        for original in [each[0] for record in records if canonical(record.copy) is copy for each in record.originals]:
            if id(original) not in found:
                found[id(original)] = original
                waiting.append(canonical(original))
    return [each for each in found.values() if each is not value]


def look_at_chosen(builder: Any) -> None:
    """Notes which of the lists and objects that were just chosen will be used: the variables are set now."""
    if builder in _chosen:
        used: list[_Chosen] = []
        unused: list[_Chosen] = []
        for each in _chosen[builder]:
            (used if each.look() else unused).append(each)
        _chosen[builder] = used
        _note_changed(builder, unused)
        for each in [each for each in _chosen[builder] if each.is_result][:-_MOST_RESULTS]:
            each.is_result = False
    _ended.pop(builder, None)  # what they may be has become part of what the statement has chosen
    elements.end_statement()


def check_chosen(builder: Any, always_changing: Collection[int] = ()) -> None:
    """Raises StagingError if the region of a builder, at its end, has changed one of two that Python would keep one.

    always_changing: ids of containers that every iteration of the region changes, before or after a choice.
    """
    elements.end_region(builder)
    ended = _chosen.get(builder, [])
    broken = next((each for each in ended if each.is_broken(always_changing)), None)
    _chosen.pop(builder, None)
    if broken is not None:
        raise shared(broken.label, broken.location)
    if builder.parent is None:
        return
    _note_changed(builder.parent, ended)
    _changed[builder.parent] += _changed.pop(builder, ())
    ended += _ended.pop(builder, ())
    if ended:
        _ended.setdefault(builder.parent, []).extend(ended)


def _note_changed(builder: Any, records: Iterable[_Chosen]) -> None:
    _changed.setdefault(builder, []).extend([each.copy for each in records if each.is_changed()])


def note_changed(copies: Iterable[Any], builder: Any = None) -> None:
    """Tells the regions around the current one, or that of a builder, of containers that it has changed."""
    _changed.setdefault(builder or ctx.builder, []).extend(copies)


def changed_copies(builder: Any) -> list[Any]:
    """The copies that the region of a builder has changed so far."""
    return [*_changed.get(builder, ()), *[each.copy for each in _chosen.get(builder, ()) if each.is_changed()]]


def forget_chosen(builder: Any) -> None:
    """Drops what a region has chosen that is traced again."""
    _chosen.pop(builder, None)
    _changed.pop(builder, None)


def shared(label: str, location: Location | None) -> StagingError:
    """The error for a list or object with two names, of which one is changed."""
    name = label[1:].replace("'", "", 1) if label.startswith("'") else label  # `'box'.items`
    quoted = f"'{name}'"
    label = "what is chosen here" if label.startswith("the returned") else quoted
    return StagingError(
        f"{label} is a list or object that also has another name, depending on a tensor, and one of the two is changed",
        location=location,
        cause="in Python the other one would change with it, but which one is known only at run time" + doubt(),
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
