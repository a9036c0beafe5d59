"""Which calls of a function its inline cache (`runtime/engine/fastcall/inline_cache.py`) may answer.

It may if the whole trace is one compiled kernel, and machine code can compare all that the trace depends on: tensors
and variables by dtype and shape, Python values by identity, globals and closure variables by identity. Every other
call, and every call that differs from those seen, goes to the fallback, `Function.__call__`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from autograph.function.concrete import ConcreteFunction
from autograph.function.guards import AnyGuard, Guard
from autograph.function.signature import Arguments
from runtime import nest
from runtime.tensor import EagerTensor
from runtime.tracebacks import drop_own_frames

# Kinds of calls in one inline cache; trying each costs some nanoseconds.
MOST_PLANS = 8
_VALUES = frozenset({int, float, bool, complex, str, bytes, type(None)})


class FastCalls:
    """The inline cache of one function."""

    def __init__(self) -> None:
        self._plans: list[Any] = []

    def add(
        self,
        concrete: ConcreteFunction,
        args: tuple,
        named: dict[str, Any],
        tensors: Sequence[EagerTensor],
        fallback: Callable[..., Any],
    ) -> Callable[..., Any] | None:
        """The callable that answers calls like this one and earlier ones; None if this one can't be answered so.

        args, named: the call's arguments. tensors: those found in them, in the order of the parameters.
        """
        from runtime.engine.fastcall import inline_cache

        if len(self._plans) >= MOST_PLANS:
            return None
        pattern = inline_cache.CallPattern(len(args), tuple(named))
        found: list[list[EagerTensor]] = []  # of each argument
        shapes = {id(tensor): shape for tensor, shape in zip(tensors, concrete.shapes_like(tensors))}
        for argument in (*args, *named.values()):
            before = len(pattern.tensors)
            if not _match(argument, pattern, shapes):
                return None
            found.append(pattern.tensors[before:])
        for guard in concrete.guards:
            _match_guard(guard, pattern)
        order = _order(concrete.parameters, len(args), tuple(named), list(map(len, found)))
        # Other tensors are default values, or were converted from arguments.
        if len(order) != len(tensors) or any(pattern.tensors[k] is not t for k, t in zip(order, tensors)):
            return None
        plan = concrete.plan(pattern, order, fallback, _raising)
        if plan is None:
            return None
        self._plans.append(plan)
        return inline_cache.make_function(self._plans, fallback)


def _order(parameters: Arguments, count: int, names: Sequence[str], tensors: Sequence[int]) -> list[int]:
    """The permutation of a call's tensors, of which each argument has so many, into the order of the parameters."""
    marks = [object() for _ in tensors]
    args, named = parameters.bind(tuple(marks[:count]), dict(zip(names, marks[count:])))
    places = {id(mark): position for position, mark in enumerate(marks)}
    starts = list(itertools.accumulate(tensors, initial=0))
    order: list[int] = []
    for mark in (*args, *[named[name] for name in sorted(named)]):
        position = places.get(id(mark))
        if position is not None:
            order += range(starts[position], starts[position + 1])
    return order


def _match(thing: Any, pattern: Any, shapes: Any) -> bool:
    kind = type(thing)
    if kind is EagerTensor:
        return id(thing) in shapes and bool(pattern.tensor(thing, shapes[id(thing)]))
    if kind in _VALUES:
        pattern.object(thing)
        return True
    if kind is tuple or kind is list or nest.is_namedtuple(kind):
        pattern.sequence(kind, len(thing))
        return all(_match(item, pattern, shapes) for item in thing)
    if kind is dict and all(type(name) is str for name in thing):
        pattern.dictionary(len(thing))
        for name in sorted(thing):  # as `nest.flatten` has them
            pattern.key(name)
            if not _match(thing[name], pattern, shapes):
                return False
        return True
    return False


def _match_guard(guard: AnyGuard, pattern: Any) -> None:
    place = getattr(guard.read, "place", None) if type(guard) is Guard else None
    if place is None:
        pattern.guard_function(guard.holds)
    else:
        pattern.guard(*place, guard.value)


def _raising(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except drop_own_frames():
            raise

    return call
