"""Whose code emits a node: the user's line, and the name that the user gives.

Both come from the frames that are running: the innermost one that isn't this project's own, and the call from it into
this project.
"""

from __future__ import annotations

import functools
import inspect
import sys
from types import CodeType
from typing import Any

from runtime.context import ctx
from runtime.errors import is_own_file

# Functions whose parameter `name` is no name of an operation.
_NOT_NAMES = frozenset(["call", "trace", "trace_region", "__init__", "__getattr__"])


def user_span() -> tuple[str, int, str] | None:
    """File, line and function of the innermost frame that isn't this project's own."""
    return user_place()[0]


def user_place() -> tuple[tuple[str, int, str] | None, str | None]:
    """File, line and function of the innermost frame of the user's, and the name of the node being emitted: the `name=`
    of the call into this project, after the open name scopes; None if it has none."""
    frame: Any = sys._getframe(1)
    own: list[Any] = []  # the frames of this project on the way
    while frame is not None and _is_own(frame.f_code.co_filename):
        own.append(frame)
        frame = frame.f_back
    span = None if frame is None else (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
    name = None
    while own:
        inside = own.pop()
        kind = _kind(inside.f_code)
        if kind == "names":
            name = inside.f_locals.get("name")
        if kind != "forwards":
            break
    scope = ctx.scope
    if not isinstance(name, str) or not name:
        return span, scope or None
    return span, name[:-1] if name.endswith("/") else scope + name


@functools.cache
def _is_own(filename: str) -> bool:
    return is_own_file(filename) or filename.startswith("<frozen")


# Kinds of this project's functions, whose number is bounded, by identity: a code object's hash goes through its text.
_naming: dict[int, tuple[CodeType, str]] = {}


def _kind(code: CodeType) -> str:
    known = _naming.get(id(code))
    if known is None:
        known = _naming[id(code)] = code, _kind_of(code)
    return known[1]


def _kind_of(code: CodeType) -> str:
    if _forwards_all_arguments(code):
        return "forwards"
    named = "name" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] and code.co_name not in _NOT_NAMES
    return "names" if named else "doesn't name"


def _forwards_all_arguments(code: CodeType) -> bool:
    """Whether a function is `def wrapper(*args, **kwargs)`, whose own parameters say nothing."""
    both = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    return code.co_flags & both == both and code.co_argcount + code.co_kwonlyargcount == 0
