"""Python functions that the program calls when it runs, ``py_function`` and the like, and what they change.

    found = []                                        made while the function is traced
    ag.py_function(found.append, [x], [])             changes it when the program runs
    return len(found)                                 is what it was while the function was traced

What was there before the trace is the user's to read afterwards. What the trace has made can't be: that is refused,
when it happens.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from autograph.errors import StagingError, user_location
from autograph.operators.frame import Frame
from runtime.ops.control import install_guard

# What the outermost of the functions that are being traced could reach when its trace began.
OUTERMOST: ContextVar[Frame | None] = ContextVar("OUTERMOST", default=None)


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """What the program calls in place of a function: that, with a look at what it changes if that may be of a trace."""
    outermost = OUTERMOST.get()
    if outermost is None:
        return function
    outside = {id(each) for each in outermost.things()}
    made = {id(each): each for each in Frame.of(function).things() if id(each) not in outside}
    if not made:
        return function
    location = user_location()

    def call(*args: Any) -> Any:
        frame = Frame.of(function)
        result = function(*args)
        label = next((label for label, thing in frame.changed_things() if id(thing) in made), None)
        if label is not None:
            raise StagingError(
                f"{call.__name__}(), which the program calls when it runs, changes '{label}'",
                location=location,
                cause=f"'{label}' belongs to the traced function, which has read it while it was traced",
                fix="make it outside of the traced function, or let the function that is called return the value",
            )
        return result

    call.__name__ = getattr(function, "__name__", "a function")
    return call


install_guard(guarded)
