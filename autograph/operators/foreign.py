"""Objects of the standard library's C code, and of other libraries', which keep their state where nobody sees it.

    root = ElementTree.Element("run")
    for v in t:                         staged: the body is traced a few times for all iterations
        root.append(Element("row"))     refused, because `root` has changed when the trace ends

An answer that tells their state is what copying takes along (`__reduce_ex__`), or a length. Of those that give none
(cursors, hashes, files that are read) each call of a method in a staged block is refused.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sized
from types import BuiltinFunctionType, MethodDescriptorType, ModuleType
from typing import Any, NoReturn

from autograph.errors import StagingError, user_location
from autograph.operators.libraries import LIBRARIES
from runtime.context import ctx
from runtime.thread_state import propagated

# Of these modules objects are looked at elsewhere, don't change, or are left as they were found (locks).
_UNCHANGING = frozenset(
    {"builtins", "_thread", "_struct", "re", "operator", "_contextvars", "_json", "types", "functools", "itertools"}
)


class _Kinds(dict[type, type | None]):
    """By class the class of C code that it is or is derived from, if its objects may change; None for any other."""

    def __missing__(self, kind: type) -> type | None:
        has_value = kind.__hash__ is not None and kind.__hash__ is not object.__hash__
        is_left_out = has_value or issubclass(kind, (type, ModuleType))
        found = None if is_left_out else next(filter(_is_of_c, kind.__mro__), None)
        self[kind] = found
        return found


def _is_of_c(kind: type) -> bool:
    module = kind.__module__
    root = module.partition(".")[0] if isinstance(module, str) else "builtins"  # some classes say it of their objects
    if kind is object or root in _UNCHANGING or root in LIBRARIES:
        return False
    return any(isinstance(member, MethodDescriptorType) for member in vars(kind).values())


_kinds = _Kinds()
_silent: set[type] = set()  # those that give no answer


def answer_of_foreign(value: Any) -> Callable[[Any], Any] | None:
    """The function that tells the state of an object of C code that no attribute shows; None for any other."""
    kind = _kinds[type(value)]
    if kind is None or kind in _silent:
        return None
    if kind.__module__.partition(".")[0] not in sys.stdlib_module_names:
        return len if isinstance(value, Sized) else None  # to copy it may cost much
    if kind.__name__ == "Context" and kind.__module__ == "decimal":
        return _of_context
    try:
        _state(value)
    except Exception:
        _silent.add(kind)
        return None
    return _state


def reaches_context(value: Any) -> bool:
    """Whether a value is a function by which code reaches the context of decimal numbers."""
    # Since Python 3.14 the module is `_decimal`.
    is_of_decimal = isinstance(value, BuiltinFunctionType) and value.__module__ in ("decimal", "_decimal")
    return is_of_decimal and "context" in value.__name__


def of_current_context(function: Any) -> Any:
    """The state of the context of decimal numbers that such a function reaches."""
    return _of_context(sys.modules[function.__module__].getcontext())


def _of_context(context: Any) -> Any:
    """All but the flags, which every computation sets."""
    return [getattr(context, name) for name in ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")]


def _state(value: Any) -> Any:
    return _copied(value.__reduce_ex__(2)[1:3])


def _copied(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: _copied(item) for key, item in state.items()}
    return [_copied(item) for item in state] if isinstance(state, (list, tuple)) else state


def parts_of_foreign(state: Any) -> Iterator[Any]:
    """The objects in such a state."""
    if isinstance(state, (dict, list)):
        for each in state.values() if isinstance(state, dict) else state:
            yield from parts_of_foreign(each)
    else:
        yield state


def is_silent(value: Any) -> bool:
    """Whether nothing tells the state of an object of C code."""
    return _kinds[type(value)] in _silent


class _Outside(threading.local):
    """The ids of the silent objects that could be reached before each block that is being traced."""

    def __init__(self) -> None:
        self.seen: list[frozenset[int]] = []


_outside = propagated(_Outside())


@contextlib.contextmanager
def outside(silent: Iterable[Any]) -> Iterator[None]:
    """While a block is traced, around which these objects are known."""
    _outside.seen.append(frozenset(map(id, silent)))
    try:
        yield
    finally:
        _outside.seen.pop()


def is_outside_of_block(value: Any) -> bool:
    """Whether a block is traced, around which a silent object is known."""
    is_in_block = ctx.builder is not None and ctx.builder.parent is not None
    return is_in_block and any(id(value) in each for each in _outside.seen)


def refuse_call(owner: Any, name: str) -> NoReturn:
    """Raises the StagingError for a method of such an object."""
    raise StagingError(
        f"{name}() of an object of class {type(owner).__name__} is called in a branch or loop on tensors",
        location=user_location(),
        cause="it may change the object, which was there before; whether and how often that happens is known only at "
        "run time, but such an object isn't part of the program",
        fix="call it outside of the staged code, or in a function that ag.py_function calls",
    )
