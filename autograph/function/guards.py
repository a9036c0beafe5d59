"""Guards: the Python values that a trace has baked in, and whether they are still the same.

    rate = 0.1

    @ag.function
    def step(x):          the trace holds the constant 0.1; its guard: global 'rate' is 0.1
        return x * rate

When `rate` changes, the next call traces again. Guarded are numbers, strings, booleans and None (and tuples of these)
that the function, or a user function it mentions, reads from a global, a closure variable, or an attribute of one
(`config.rate`, `self.rate`). Names and attributes that these functions write themselves are not: a function that counts
its traces would never settle.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

from autograph.function.environment import (
    GONE,
    MISSING,
    Environment,
    label_of,
    names_of,
    plain_function,
    weakly,
)
from autograph.syntax.names import Path
from runtime import nest

_SIMPLE = frozenset({int, float, complex, bool, str, bytes, type(None)})
# How many functions deep and wide the search goes: a guard that is missed makes a stale value possible, but a library
# that is reached by accident must not make tracing slow.
_MAX_FUNCTIONS = 200


class Guard:
    """One value: `read()` gives it now, or MISSING."""

    __slots__ = ("label", "read", "value")

    def __init__(self, label: str, read: Callable[[], Any]) -> None:
        self.label = label
        self.read = read
        self.value = read()

    def holds(self) -> bool:
        now = self.read()
        return now is self.value or now is GONE or (type(now) is type(self.value) and bool(now == self.value))


def guards_of(function: Callable[..., Any], args: tuple, is_user_code: Callable[[Any], bool]) -> list[Guard]:
    """Guards for what a trace of `function(*args)` may read, taken before it runs. See `settled`."""
    found: dict[str, Guard] = {}
    written: set[str] = set()
    pending: list[tuple[Any, tuple]] = [(function, args)]
    seen: set[Any] = set()
    while pending and len(seen) < _MAX_FUNCTIONS:
        target, given = pending.pop()
        plain, given = plain_function(target, given)
        if plain is None or (plain, _first_id(given)) in seen or not is_user_code(plain):
            continue
        seen.add((plain, _first_id(given)))
        reads, writes = names_of(plain)
        env = Environment(plain, given)
        for path in writes:
            written.add(env.label(path))
        for path in reads:
            _visit(env, path, found, pending)
    return [g for label, g in found.items() if label not in written]


def settled(guards: Sequence[Guard]) -> tuple[Guard, ...]:
    """The guards that still hold after the trace: what the trace itself changes can't be a condition for using it."""
    return tuple([g for g in guards if g.holds()])


def broken(guards: Sequence[Guard]) -> Guard | None:
    """The first guard that no longer holds."""
    for guard in guards:
        if not guard.holds():
            return guard
    return None


def _first_id(given: tuple) -> int:
    return id(given[0]) if given else 0


def _visit(env: Environment, path: Path, found: dict[str, Guard], pending: list) -> None:
    """Adds the guard for one path, if it ends in a simple value, or looks into the function that it names."""
    root = env.root(path.root)
    if root is None:
        return
    label, read = root
    value = read()
    # Fields of a structure among the arguments are part of the call's key; objects in it are read from where they are.
    is_part = path.root in env.parameters
    attributes: list[str] = []
    for step in path.steps:
        if step[0] != "." or isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
            return
        owner, name = value, step[1]
        if owner is MISSING:
            return
        value = inspect.getattr_static(owner, name, MISSING)
        if isinstance(value, types.FunctionType) and not isinstance(owner, (type, types.ModuleType)):
            pending.append((value, (owner,)))
            return
        label = label_of(root[0], path)
        is_part = is_part and nest.is_nested(owner)
        if is_part:
            read = weakly(value)
        else:
            attributes.append(name)
    if _is_simple(value):
        if is_part:
            return  # the signature tells them apart
        found.setdefault(label, Guard(label, _attributes(read, attributes) if attributes else read))
    elif callable(value):
        pending.append((value, ()))


def _attributes(read: Callable[[], Any], names: list[str]) -> Callable[[], Any]:
    """How to read a path of attributes: each from what the one before it is now."""

    def follow() -> Any:
        value = read()
        for name in names:
            if value is MISSING or value is GONE:
                break
            value = getattr(value, name, MISSING)
        return value

    return follow


def _is_simple(value: Any) -> bool:
    return type(value) in _SIMPLE or (type(value) is tuple and all(map(_is_simple, value)))
