"""Whose code emits a node: the user's line, and the name that the user gives.

Both come from the frames that are running: the innermost one that isn't this project's own, and the call from it into
this project.
"""

from __future__ import annotations

import inspect
import sys
from types import CodeType
from typing import Any

from runtime.context import ctx
from runtime.errors import is_own_file

_is_own_code: dict[str, bool] = {}
# Functions whose parameter `name` is no name of an operation.
_NOT_NAMES = frozenset(["call", "trace", "trace_region", "__init__", "__getattr__"])


def user_span() -> tuple[str, int, str] | None:
    """File, line and function of the innermost frame that isn't this project's own."""
    return user_place()[0]


def user_place() -> tuple[tuple[str, int, str] | None, str | None]:
    """The same, and what the user calls the node being emitted: the `name=` of the call into this project, after the
    open scopes."""
    frame: Any = sys._getframe(1)
    inside: Any = None
    span = None
    while frame is not None:
        code = frame.f_code
        own = _is_own_code.get(code.co_filename)
        if own is None:
            filename = code.co_filename
            own = _is_own_code[filename] = is_own_file(filename) or filename.startswith("<frozen")
        if not own:
            span = code.co_filename, frame.f_lineno, code.co_name
            break
        inside, frame = frame, frame.f_back
    name = None
    kind = "forwards"
    while inside is not None and kind == "forwards":
        kind = _kind(inside.f_code)
        if kind == "names":
            name = inside.f_locals.get("name")
        elif kind == "forwards":
            inside = _called_by(inside)
    scope = ctx.scope
    if not isinstance(name, str) or not name:
        return span, scope or None
    return span, name[:-1] if name.endswith("/") else scope + name


def _called_by(caller: Any) -> Any:
    """The frame that a frame has called, on the way to this one."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_back is not caller:
        frame = frame.f_back
    return frame


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
