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
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from autograph.syntax import source
from autograph.syntax.names import Path
from autograph.syntax.outer_names import outer_names
from runtime import nest

_SIMPLE = frozenset({int, float, complex, bool, str, bytes, type(None)})
_MISSING: Any = object()
_GONE: Any = object()  # an argument of the first call that no longer exists: nothing of it can have changed
# How many functions deep and wide the search goes: a guard that is missed makes a stale value possible, but a library
# that is reached by accident must not make tracing slow.
_MAX_FUNCTIONS = 200


class Guard:
    """One value: `read()` gives it now, or _MISSING."""

    __slots__ = ("label", "read", "value")

    def __init__(self, label: str, read: Callable[[], Any]) -> None:
        self.label = label
        self.read = read
        self.value = read()

    def holds(self) -> bool:
        now = self.read()
        return now is self.value or now is _GONE or (type(now) is type(self.value) and bool(now == self.value))


def guards_of(function: Callable[..., Any], args: tuple, is_user_code: Callable[[Any], bool]) -> list[Guard]:
    """Guards for what a trace of `function(*args)` may read, taken before it runs. See `settled`."""
    found: dict[str, Guard] = {}
    written: set[str] = set()
    pending: list[tuple[Any, tuple]] = [(function, args)]
    seen: set[Any] = set()
    while pending and len(seen) < _MAX_FUNCTIONS:
        target, given = pending.pop()
        plain, given = _plain_function(target, given)
        if plain is None or (plain, _first_id(given)) in seen or not is_user_code(plain):
            continue
        seen.add((plain, _first_id(given)))
        reads, writes = _names_of(plain)
        env = _Environment(plain, given)
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


# --- reading functions -----------------------------------------------------------------------------------------------


def _plain_function(target: Any, given: tuple) -> tuple[Any, tuple]:
    """The Python function behind a method, partial or `ag.function`, with the arguments that are known."""
    for _ in range(8):
        if isinstance(target, types.FunctionType):
            return target, given
        if isinstance(target, type):  # its instances' attributes are none of its own
            break
        if isinstance(target, types.MethodType) or (hasattr(target, "__func__") and hasattr(target, "__self__")):
            target, given = target.__func__, (target.__self__, *given)
        elif hasattr(target, "python_function"):
            target = target.python_function
        elif hasattr(target, "func") and hasattr(target, "keywords"):
            target, given = target.func, (*target.args, *given)
        else:
            break
    return None, given


def _first_id(given: tuple) -> int:
    return id(given[0]) if given else 0


def _names_of(function: types.FunctionType) -> tuple[list[Path], list[Path]]:
    """The names and attribute paths that a function (or one defined in it) reads, and those that it writes."""
    try:
        node = source.find(function).node
    except source.SourceUnavailable:
        names = [*function.__code__.co_names, *function.__code__.co_freevars]
        return [Path.parse(n) for n in names if n.isidentifier()], []
    reads, writes = outer_names(node)
    return sorted(reads, key=str), list(writes)


class _Environment:
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
            return f"closure variable '{name}' of {self.name}", lambda: _contents(cell)
        if name in self.parameters:
            return f"argument '{name}'", _weakly(self.parameters[name])
        namespace = self.globals
        if name in self.locals or name not in namespace:
            return None
        return f"global '{name}' of {self.module}", lambda: namespace.get(name, _MISSING)

    def label(self, path: Path) -> str:
        root = self.root(path.root)
        return _label(root[0], path) if root else str(path)


def _label(root: str, path: Path) -> str:
    rest = str(path)[len(path.root) :]
    return f"'{path}' ({root})" if rest else root


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _visit(env: _Environment, path: Path, found: dict[str, Guard], pending: list) -> None:
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
        if owner is _MISSING:
            return
        value = inspect.getattr_static(owner, name, _MISSING)
        if isinstance(value, types.FunctionType) and not isinstance(owner, (type, types.ModuleType)):
            pending.append((value, (owner,)))
            return
        label = _label(root[0], path)
        is_part = is_part and nest.is_nested(owner)
        if is_part:
            read = _weakly(value)
        else:
            attributes.append(name)
    if _is_simple(value):
        if is_part:
            return  # the signature tells them apart
        found.setdefault(label, Guard(label, _attributes(read, attributes) if attributes else read))
    elif callable(value):
        pending.append((value, ()))


def _weakly(value: Any) -> Callable[[], Any]:
    """How to read an argument without keeping it alive."""
    try:
        reference = weakref.ref(value)
    except TypeError:
        return lambda: value

    def read() -> Any:
        now = reference()
        return _GONE if now is None else now

    return read


def _attributes(read: Callable[[], Any], names: list[str]) -> Callable[[], Any]:
    """How to read a path of attributes: each from what the one before it is now."""

    def follow() -> Any:
        value = read()
        for name in names:
            if value is _MISSING or value is _GONE:
                break
            value = getattr(value, name, _MISSING)
        return value

    return follow


def _is_simple(value: Any) -> bool:
    return type(value) in _SIMPLE or (type(value) is tuple and all(map(_is_simple, value)))
