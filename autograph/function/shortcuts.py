"""Which calls of a function take a shortcut (`runtime/engine/shortcut.py`), and how its calls are switched over to it.

A call may take one where its trace has no variables, its kernel is compiled, and all that the trace depends on can be
compared by machine code: tensors by dtype and shape, Python values by identity, globals and closure variables that are
baked in by identity. Everything else, and every call that differs in anything from those seen, goes the long way,
`Function.__call__`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from autograph.function.concrete import ConcreteFunction
from autograph.function.guards import Guard
from autograph.operators.tracebacks import drop_own_frames
from runtime.tensor import EagerTensor

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
        tensors: Sequence[EagerTensor],
        otherwise: Callable[..., Any],
    ) -> Callable[..., Any] | None:
        """What answers calls like this one, and those before, from now on; None where this one can't be.

        args: as they are given, by position. tensors: those that the function found in them.
        """
        from runtime.engine import shortcut

        if len(self._plans) >= MOST_PLANS:
            return None
        description = _described(concrete, args, tensors)
        if description is None:
            return None
        plan = concrete.plan(description, otherwise, _raising)
        if plan is None:
            return None
        self._plans.append(plan)
        return shortcut.function(self._plans, otherwise)


def _described(concrete: ConcreteFunction, args: tuple, tensors: Sequence[EagerTensor]) -> Any:
    """The call as a `Description`; None where there is something in it that machine code can't compare."""
    from runtime.engine.shortcut import Description

    description = Description(len(args))
    shapes = iter(concrete.shapes_like(tensors))
    if not all(_describe(argument, description, shapes) for argument in args):
        return None
    if not all(_describe_guard(guard, description) for guard in concrete.guards):
        return None
    # Others are defaults, or were converted.
    found = description.tensors
    return description if len(found) == len(tensors) and all(map(operator.is_, found, tensors)) else None


def _describe(thing: Any, description: Any, shapes: Any) -> bool:
    kind = type(thing)
    if kind is EagerTensor:
        return bool(description.tensor(thing, next(shapes, ())))
    if kind in _VALUES:
        description.same(thing)
        return True
    if kind is tuple or kind is list:
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


def _describe_guard(guard: Guard, description: Any) -> bool:
    place = getattr(guard.read, "place", None)
    if place is None:
        return False
    description.guard(*place, guard.value)
    return True


def _raising(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except drop_own_frames():
            raise

    return call
