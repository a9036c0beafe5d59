"""One trace for the variables that are passed as an argument.

    @ag.function
    def step(v, g):           traced for step(w, gw); serves step(b, gb) as well, on b in place of w
        v.assign_sub(0.1 * g)

A trace serves other variables than it was made with when they look the same to the function (class, dtype, shape,
trainable, and the name where it was read), when they are as distinct among each other as the first ones were, and when
the function can't reach any of them, old or new, other than through that argument: `if v is self.frozen`, a read of the
global `v`, or a table of slots by variable tell them apart. Then each keeps a trace of its own.
"""

from __future__ import annotations

import gc
import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from autograph.function.environment import GONE, MISSING, Environment, names_of, plain_function
from autograph.operators.calls import is_library
from autograph.syntax.names import Path
from runtime import nest
from runtime.dtypes import DType
from runtime.graph.ir import Graph
from runtime.tensor import Tensor, TensorReference
from runtime.variable import Variable

# Beyond this the search is given up, and the variables count as told apart.
_MAX_OBJECTS = 5000
_LEAVES = (int, float, complex, str, bytes, type(None), range, slice, DType, Tensor, np.ndarray, np.generic, np.dtype)
_OPAQUE = (types.ModuleType, types.BuiltinFunctionType, types.CodeType, types.FrameType)


def substitution(old: list[Any], new: list[Variable]) -> dict[int, Variable] | None:
    """What each of the traced variables (`VariableArgument`s, in order) is in a call: by the traced one's id.

    None if the new ones look different, or are distinct where the old ones were the same, or the other way round.
    """
    found: dict[int, Variable] = {}
    if len(old) != len(new):
        return None
    for before, now in zip(old, new):
        if not before.looks_like(now) or found.setdefault(before.id, now) is not now:
            return None
    return found if len({id(v) for v in found.values()}) == len(found) else None


def calls_python(graph: Graph) -> bool:
    """Whether Python code runs with the graph or differentiates it: that has the traced variables in its hands."""
    return any(node.op.calls_python or node.op.name == "custom_gradient" for node in graph.walk())


def reaches(function: Callable[..., Any], args: tuple, kwargs: Mapping[str, Any], targets: Iterable[Any]) -> bool:
    """Whether `function` can come to one of the variables `targets` other than as an argument, or may for all we know.

    args, kwargs: the call's arguments. Variables among them, in whatever structure, are what is passed; the objects
    among them are looked into.
    """
    search = _Search(targets)
    search.call(function, tuple([None if _is_passed(a) else a for a in args]))
    for value in args:
        if nest.is_nested(value):
            search.look_beside(value)
    for value in kwargs.values():
        search.look_beside(value)
    return search.run()


def _is_passed(argument: Any) -> bool:
    return isinstance(argument, (Variable, *_LEAVES)) or nest.is_nested(argument)


class _Search:
    """Walks functions along the names that they read, and objects along all that they hold."""

    def __init__(self, targets: Iterable[Any]) -> None:
        self.targets = {id(t) for t in targets}
        self.pending: list[Any] = []
        self.calls: list[tuple[Any, tuple]] = []
        self.seen: set[Any] = set()
        self.kept: list[Any] = []  # what was seen by its id, which mustn't be given again

    def call(self, function: Any, given: tuple) -> None:
        self.calls.append((function, given))

    def look_beside(self, argument: Any) -> None:
        """Looks into the objects in an argument, but not at the variables that it holds as a structure."""
        if nest.is_nested(argument):
            for part in nest.children(argument):
                self.look_beside(part)
        elif not _is_passed(argument):
            self._push_contents(argument)

    def run(self) -> bool:
        while self.pending or self.calls:
            if len(self.seen) > _MAX_OBJECTS:
                return True
            if self.calls:
                self._enter(*self.calls.pop())
                continue
            value = self.pending.pop()
            if id(value) in self.targets:
                return True
            if id(value) not in self.seen and not isinstance(value, (*_LEAVES, *_OPAQUE)):
                self.seen.add(id(value))
                self.kept.append(value)
                self._look_into(value)
        return False

    def _enter(self, function: Any, given: tuple) -> None:
        plain, given = plain_function(function, given)
        if plain is None:
            self.pending.append(function)
            return
        key = (plain, id(given[0]) if given else 0)
        if key in self.seen or is_library(plain):
            return
        self.seen.add(key)
        environment = Environment(plain, given)
        for path in names_of(plain):
            root = environment.root(path.root)
            if root is not None:
                self._follow(root[1](), path)
        self.pending += plain.__defaults__ or ()

    def _follow(self, value: Any, path: Path) -> None:
        """Goes on at what a path of attributes leads to; what only stands on the way isn't looked into."""
        for step in path.steps:
            if value is MISSING or value is GONE or isinstance(value, _LEAVES):
                return
            if step[0] != "." or isinstance(value, Variable):
                break
            owner, value = value, inspect.getattr_static(value, step[1], MISSING)
            if isinstance(value, property):
                self.call(value.fget, (owner,))
                return
            if isinstance(value, types.FunctionType) and not isinstance(owner, (type, types.ModuleType)):
                self.call(value, (owner,))
                return
            if value is MISSING:  # made on demand
                value = owner
                break
        if value is not MISSING and value is not GONE:
            self._push_contents(value)

    def _push_contents(self, value: Any) -> None:
        if isinstance(value, type):
            self.pending += [v for v in vars(value).values() if isinstance(v, (Variable, list, dict))]
        elif callable(value) and plain_function(value, ())[0] is not None:
            self.call(value, ())
        else:
            self.pending.append(value)

    def _look_into(self, value: Any) -> None:
        if isinstance(value, TensorReference):
            self._push_contents(value.deref())
            return
        for part in gc.get_referents(value):
            self._push_contents(part)
