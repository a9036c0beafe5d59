"""Guards: the Python values that a trace has baked in, and whether they are still the same.

    rate = 0.1

    @ag.function
    def step(x):          the trace holds the constant 0.1; its guard: global 'rate' is 0.1
        return x * rate

When `rate` changes, the next call traces again. Guarded are numbers, strings, booleans, None, tuples of these and the
user's functions wherever the function, or a user function that it calls, reads them: globals, closure variables,
attributes, items (`reads.py` finds them), and containers that are read as a whole.

What the function changes itself, such as a counter of its traces, changes while it is traced, once. Such a place is
guarded against changes that come from elsewhere: a trace notes what it leaves there, and other traces keep to that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any
from weakref import WeakValueDictionary

from autograph.function.environment import GONE, MISSING, weakly
from autograph.function.places import CONTAINERS, ENVIRONMENT, Place, is_simple
from autograph.function.reads import Reads


class Guard:
    """One value: `read()` gives it now, or MISSING.

    owner   reads the object that holds it; step: as what
    """

    __slots__ = ("label", "owner", "read", "step", "value")

    def __init__(self, place: Place) -> None:
        self.label = place.name
        self.read = place.read
        self.owner, self.step = place.holder
        self.value: Any = self.read()

    def holds(self) -> bool:
        now = self.read()
        return now is self.value or now is GONE or _same(now, self.value)


class Contents:
    """A container that is read as a whole: how many items it has, and which simple values are where."""

    __slots__ = ("label", "read", "value")

    def __init__(self, place: Place) -> None:
        self.label = f"the contents of {place.name}"
        self.read = place.read
        self.value = _Snapshot(place.value)

    def holds(self) -> bool:
        now = self.read()
        return now is GONE or self.value.is_of(now)


class _Snapshot:
    """A container's items, and those of containers in it, to find later changes."""

    __slots__ = ("items", "keys", "kind", "types")

    def __init__(self, value: Any) -> None:
        self.kind = type(value)
        value = dict(value) if isinstance(value, ENVIRONMENT) else value
        self.keys = list(value) if isinstance(value, dict) else None
        items = list(value.values() if isinstance(value, dict) else value)
        self.types: list[type] | None = None
        if isinstance(value, (set, frozenset)):
            self.items: Any = frozenset(each for each in items if is_simple(each))
        elif all(map(is_simple, items)):
            self.items, self.types = items, [*map(type, items)]
        else:
            found = [(at, _of_item(each)) for at, each in enumerate(items)]
            self.items = len(items), [(at, each) for at, each in found if each is not MISSING]

    def is_of(self, now: Any) -> bool:
        """Whether a container still has that in it."""
        if type(now) is not self.kind:
            return False
        now = dict(now) if isinstance(now, ENVIRONMENT) else now
        if self.keys is not None:
            if len(now) != len(self.keys) or list(now) != self.keys:
                return False
            now = list(now.values())
        elif isinstance(now, (set, frozenset)):
            return {each for each in now if is_simple(each)} == self.items
        elif isinstance(now, deque):
            now = list(now)
        if self.types is not None:
            return [*map(type, now)] == self.types and all(map(_same, now, self.items))
        count, known = self.items
        return len(now) == count and all(
            before.is_of(now[at]) if type(before) is _Snapshot else _same(now[at], before) for at, before in known
        )

    def __repr__(self) -> str:
        return f"a {self.kind.__name__}" if self.types is None or self.keys is not None else repr(self.items)


def _of_item(value: Any) -> Any:
    if is_simple(value):
        return value
    return _Snapshot(value) if isinstance(value, CONTAINERS) and type(value) is not tuple else MISSING


def _same(now: Any, before: Any) -> bool:
    return now is before or (type(now) is type(before) and bool(now == before))


class _Record:
    """A place that traces change.

    value   what the latest one has left there
    epoch   how often something else has changed it, as far as traces have noticed
    """

    def __init__(self, owner: Any, value: Any) -> None:
        self.owner = weakly(owner)
        self.value = value
        self.epoch = 0


class Written:
    """A value that the trace itself changes: it must be what traces have left there."""

    __slots__ = ("epoch", "label", "read", "record")

    def __init__(self, guard: Guard, record: _Record) -> None:
        self.label = guard.label
        self.read = guard.read
        self.record = record
        self.epoch = record.epoch

    @property
    def value(self) -> Any:
        return self.record.value

    def holds(self) -> bool:
        now = self.read()
        return now is GONE or (self.epoch == self.record.epoch and _same(now, self.record.value))


AnyGuard = Guard | Contents | Written
# By the id of the object that holds the value, and as what it does. A guard keeps its record.
_records: WeakValueDictionary[tuple[int, Any], _Record] = WeakValueDictionary()


def guards_of(function: Callable[..., Any], args: tuple, is_user_code: Callable[[Any], bool]) -> list[Guard | Contents]:
    """Guards for what a trace of `function(*args)` may read, taken before it runs. See `settled`."""
    reads = Reads(is_user_code)
    try:
        reads.of(function, args)
        guards = [guard for guard in map(Guard, reads.values.values()) if _is_comparable(guard.value)]
        return [*guards, *map(Contents, reads.contents.values())]
    finally:
        reads.forget()


def _is_comparable(value: Any) -> bool:
    return value is MISSING or is_simple(value) or isinstance(value, FunctionType)


def settled(guards: Sequence[Guard | Contents]) -> tuple[AnyGuard, ...]:
    """The guards of a trace that has run: those that still hold, and what it has changed itself, as it left that."""
    found: list[AnyGuard] = []
    for guard in guards:
        if guard.holds():
            found.append(guard)
        elif isinstance(guard, Guard) and is_simple(guard.read()):
            found.append(Written(guard, _recorded(guard)))
    return tuple(found)


def _recorded(guard: Guard) -> _Record:
    """Notes that a trace has changed a value."""
    owner, now = guard.owner(), guard.read()
    key = id(owner), guard.step
    record = _records.get(key)
    if record is None or record.owner() is not owner:
        record = _records[key] = _Record(owner, now)
    elif not _same(guard.value, record.value):
        record.epoch += 1
    record.value = now
    return record


def broken(guards: Sequence[AnyGuard]) -> AnyGuard | None:
    """The first guard that no longer holds."""
    for guard in guards:
        if not guard.holds():
            return guard
    return None
