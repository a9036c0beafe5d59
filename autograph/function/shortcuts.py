"""Which calls of a function take a shortcut (`runtime/engine/fastcall/inline_cache.py`), and how its calls are switched
over to it.

A call may take one where all its trace is one compiled kernel, and all that the trace depends on can be compared by
machine code: tensors and variables by dtype and shape, Python values by identity, globals and closure variables that
are baked in by identity. Everything else, and every call that differs in anything from those seen, goes the long way,
`Function.__call__`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from autograph.function.concrete import ConcreteFunction
from autograph.function.guards import Guard
from autograph.function.signature import Arguments
from runtime import nest
from runtime.tensor import EagerTensor
from runtime.tracebacks import drop_own_frames

# Kinds of calls that one function has shortcuts for; telling one from another costs some nanoseconds.
MOST_PLANS = 8
_VALUES = frozenset({int, float, bool, complex, str, bytes, type(None)})


class Shortcuts:
    """The plans of one function."""

    def __init__(self) -> None:
        self._plans: list[Any] = []

    def add(
        self,
        concrete: ConcreteFunction,
        args: tuple,
        named: dict[str, Any],
        tensors: Sequence[EagerTensor],
        otherwise: Callable[..., Any],
    ) -> Callable[..., Any] | None:
        """What answers calls like this one, and those before, from now on; None where this one can't be.

        args, named: as they are given. tensors: those that the function found in them, in its parameters' order.
        """
        from runtime.engine.fastcall import inline_cache

        if len(self._plans) >= MOST_PLANS:
            return None
        description = inline_cache.Description(len(args), tuple(named))
        found: list[list[EagerTensor]] = []  # of each argument
        shapes = {id(tensor): shape for tensor, shape in zip(tensors, concrete.shapes_like(tensors))}
        for argument in (*args, *named.values()):
            before = len(description.tensors)
            if not _describe(argument, description, shapes):
                return None
            found.append(description.tensors[before:])
        for guard in concrete.guards:
            _describe_guard(guard, description)
        order = _order(concrete.parameters, len(args), tuple(named), list(map(len, found)))
        # Other tensors are defaults, or were converted.
        if len(order) != len(tensors) or any(description.tensors[k] is not t for k, t in zip(order, tensors)):
            return None
        plan = concrete.plan(description, order, otherwise, _raising)
        if plan is None:
            return None
        self._plans.append(plan)
        return inline_cache.function(self._plans, otherwise)


def _order(parameters: Arguments, count: int, names: Sequence[str], tensors: Sequence[int]) -> list[int]:
    """Of the tensors in a call's arguments, so many in each, the places in the order of the function's parameters."""
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


def _describe(thing: Any, description: Any, shapes: Any) -> bool:
    kind = type(thing)
    if kind is EagerTensor:
        return id(thing) in shapes and bool(description.tensor(thing, shapes[id(thing)]))
    if kind in _VALUES:
        description.same(thing)
        return True
    if kind is tuple or kind is list or nest.is_namedtuple(kind):
        description.sequence(kind, len(thing))
        return all(_describe(item, description, shapes) for item in thing)
    if kind is dict and all(type(name) is str for name in thing):
        description.dictionary(len(thing))
        for name in sorted(thing):  # as `nest.flatten` has them
            description.key(name)
            if not _describe(thing[name], description, shapes):
                return False
        return True
    return False


def _describe_guard(guard: Guard, description: Any) -> None:
    place = getattr(guard.read, "place", None)
    if place is None:
        description.asked(guard.holds)
    else:
        description.guard(*place, guard.value)


def _raising(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except drop_own_frames():
            raise

    return call
