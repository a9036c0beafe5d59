"""What the names in a function's text stand for: closure variables, globals, and parameters whose values are known."""

from __future__ import annotations

import inspect
import types
import weakref
from collections.abc import Callable
from typing import Any

from autograph.operators.calls import is_checker
from autograph.syntax import source
from autograph.syntax.names import Path
from autograph.syntax.outer_names import outer_names


class _Missing:
    def __repr__(self) -> str:
        return "missing"


MISSING: Any = _Missing()
GONE: Any = object()  # an argument of the first call that no longer exists: nothing of it can have changed


def plain_function(target: Any, given: tuple) -> tuple[Any, tuple]:
    """The Python function behind a method, partial, cache, check or `ag.function`, with the known arguments."""
    for _ in range(8):
        if isinstance(target, types.FunctionType):
            if not (is_checker(target) and _has(target, "__wrapped__")):
                return target, given
            target = target.__wrapped__  # type: ignore[attr-defined]
            continue
        if isinstance(target, type):  # its instances' attributes are none of its own
            break
        if isinstance(target, types.MethodType) or _has(target, "__func__", "__self__"):
            target, given = target.__func__, (target.__self__, *given)
        elif _has(target, "python_function"):
            target = target.python_function
        elif _has(target, "func", "keywords"):
            target, given = target.func, (*target.args, *given)
        elif _has(target, "__wrapped__"):  # of `functools.lru_cache`
            target = target.__wrapped__
        else:
            break
    return None, given


def _has(target: Any, *names: str) -> bool:
    """Whether an object has some attributes; nothing of the user's runs to find out."""
    return all(inspect.getattr_static(target, name, None) is not None for name in names)


def names_of(function: types.FunctionType) -> list[Path]:
    """The names and attribute paths that a function, or one defined in it, reads."""
    try:
        found = source.find(function)
    except source.SourceUnavailable:
        names = [*function.__code__.co_names, *function.__code__.co_freevars]
        return [Path.parse(n) for n in names if n.isidentifier()]
    reads, _ = outer_names(found.node)
    source.give_back(function, found)  # it is converted next
    return sorted(reads, key=str)


def defaults_of(function: types.FunctionType) -> list[tuple[str, Any]]:
    """The parameters that have default values, with these."""
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    return [*zip(names[::-1], defaults[::-1]), *(function.__kwdefaults__ or {}).items()]


class Environment:
    """What the root of a path stands for in a function: a closure cell, a parameter with a known value, a global."""

    def __init__(self, function: types.FunctionType, given: tuple) -> None:
        code = function.__code__
        self.name = function.__qualname__
        self.globals = function.__globals__
        self.module = function.__module__
        self.cells = dict(zip(code.co_freevars, function.__closure__ or ()))
        self.parameters = dict(zip(code.co_varnames[: code.co_argcount], given))
        self.locals = frozenset(code.co_varnames) | frozenset(code.co_cellvars)

    def root(self, name: str) -> tuple[str, Callable[[], Any]] | None:
        """(label, how to read it), or None for locals and built-ins."""
        cell = self.cells.get(name)
        if cell is not None:
            return f"closure variable '{name}' of {self.name}", _in_cell(cell)
        if name in self.parameters:
            return f"argument '{name}'", weakly(self.parameters[name])
        namespace = self.globals
        if name in self.locals or name not in namespace:
            return None
        return f"global '{name}' of {self.module}", _in_namespace(namespace, name)


# What reads a place that machine code can read too says where that is, in `place`: (dictionary, key) or (cell, None).


def _in_cell(cell: Any) -> Callable[[], Any]:
    def read() -> Any:
        try:
            return cell.cell_contents
        except ValueError:
            return MISSING

    read.place = (cell, None)  # type: ignore[attr-defined]
    return read


def _in_namespace(namespace: dict[str, Any], name: str) -> Callable[[], Any]:
    def read() -> Any:
        return namespace.get(name, MISSING)

    read.place = (namespace, name)  # type: ignore[attr-defined]
    return read


def weakly(value: Any) -> Callable[[], Any]:
    """How to read an argument without keeping it alive."""
    try:
        reference = weakref.ref(value)
    except TypeError:
        return lambda: value

    def read() -> Any:
        now = reference()
        return GONE if now is None else now

    return read
