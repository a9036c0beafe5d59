"""Why Python code asks a symbolic tensor for its value: what an OperatorNotAllowedInGraphError says beside its message.

That is the user's line and, where the code that stands there isn't converted, the reason and the way out: the getter of
a property, a special method, a comprehension that stays Python's.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from autograph.errors import is_own_file, user_location
from runtime.errors import explain_refusals

_COMPREHENSIONS = {
    "<genexpr>": "a generator expression with `:=`, or one deep in others",
    "<listcomp>": "a list comprehension with `:=`, or one deep in others",
    "<setcomp>": "a set comprehension",
    "<dictcomp>": "a dictionary comprehension",
}


def explanation() -> str:
    """The lines that follow the message, or nothing outside of a user's code."""
    location = user_location()
    if location is None:
        return ""
    lines = location.describe().splitlines()
    frame = _user_frame()
    if frame is not None:
        lines += _reason(frame)
    return "".join(f"\n  {line}" for line in lines)


explain_refusals(explanation)


def _user_frame(frame: FrameType | None = None) -> FrameType | None:
    """The innermost frame of the user's, or the one of the user's that called another."""
    frame = sys._getframe(1) if frame is None else frame.f_back
    while frame is not None and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _reason(frame: FrameType) -> list[str]:
    """Cause and fix for code that isn't converted although converted code led to it."""
    code = frame.f_code
    if "ag__" in code.co_freevars:
        return []
    kind = _COMPREHENSIONS.get(code.co_name)
    if kind is not None:
        return _cause_and_fix(f"{kind} isn't staged: Python runs it", "write a `for` statement that fills a list")
    caller = _user_frame(frame)
    if caller is None or "ag__" not in caller.f_code.co_freevars:
        return []
    name = code.co_name
    member = _property_of(frame)
    if member is not None and getattr(member.fget, "__code__", None) is code:
        return _cause_and_fix(
            f"the getter of the property '{name}' isn't converted where it is read: no name of the function's module, "
            "or of a function around it, is its class or an instance of that",
            "make it a method, or define its class where the function can see it by name",
        )
    if member is not None:
        return _cause_and_fix(
            f"what assigning or deleting the property '{name}' does isn't converted",
            "make it a method, or use ag.where or ag.cond in it",
        )
    if name.startswith("__") and name.endswith("__"):
        return _cause_and_fix(
            f"Python calls the special method '{name}' itself, so it isn't converted",
            "call a method with a name of its own, or use ag.where or ag.cond in it",
        )
    return []


def _cause_and_fix(cause: str, fix: str) -> list[str]:
    return [f"cause: {cause}", f"fix: {fix}"]


def _property_of(frame: FrameType) -> Any:
    """The property whose getter or setter a frame runs, or None."""
    code = frame.f_code
    if code.co_argcount == 0:
        return None
    owner = frame.f_locals.get(code.co_varnames[0])
    for base in type(owner).__mro__:
        member = vars(base).get(code.co_name)
        if isinstance(member, property):
            functions = (member.fget, member.fset, member.fdel)
            if any(getattr(each, "__code__", None) is code for each in functions):
                return member
    return None
