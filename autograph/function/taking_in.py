"""Traced functions that change Python's state, called in another trace: that trace takes them in.

    @ag.function
    def run(t):
        found = []

        @ag.function
        def note(v):
            found.append(v)         each call appends: a trace of `note` would do so once

        for v in t:
            note(v)
        return ag.stack(found)

TensorFlow's rule, that what a function changes in Python changes once, while it is traced, stays for what was there
before the outermost trace, in calls from Python and in calls outside of staged code.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from autograph.errors import StagingError, user_location
from autograph.function.signature import is_tensor_like
from autograph.function.trace import as_output, parts_of, refuse_changed_arguments
from autograph.operators.called_later import OUTERMOST
from autograph.operators.frame import Frame, holds_symbolic
from runtime import nest
from runtime.context import ctx
from runtime.ops.convert import convert_to_tensor
from runtime.staged_list import resolved
from runtime.tensor import Tensor


class Taken(IntEnum):
    """Where other traces take a function in, for what its traces have changed."""

    NOWHERE = 0
    IN_BLOCKS = 1
    EVERYWHERE = 2

    def holds_here(self) -> bool:
        """Whether a trace that is under way takes the function in where it is now."""
        return self is Taken.EVERYWHERE or (self is Taken.IN_BLOCKS and _is_in_block())


class ChangesState(BaseException):
    """A trace has changed what the one around it has to change: it is void. No handler of the user's may catch it."""


class Reached:
    """What a function that is going to be traced can reach; `taken` tells afterwards where others take it in.

    Raises ChangesState at the end of a trace if the trace around it takes it in, and undoes what it has changed.
    """

    def __init__(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> None:
        self.frame = Frame.of(function, *args, *kwargs.values())
        self.taken = Taken.NOWHERE
        self._outermost = OUTERMOST.set(self.frame) if ctx.builder is None else None

    def __enter__(self) -> Reached:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if error is None or isinstance(error, Exception):
            self.taken = self._found()
        if self._outermost is not None:
            OUTERMOST.reset(self._outermost)
        elif self.taken.holds_here():
            self.frame.restore()
            raise ChangesState

    def _found(self) -> Taken:
        changes = self.frame.changed()
        if not changes:
            return Taken.NOWHERE
        outermost = OUTERMOST.get()
        outside = {each.place for each in outermost.changed()} if outermost is not None else set()
        is_constant = all(each.place in outside and not holds_symbolic(each.now) for each in changes)
        return Taken.IN_BLOCKS if is_constant else Taken.EVERYWHERE


def take_in(function: Callable[..., Any], name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Calls a function's Python code as part of the trace that is under way; what goes in and out is as in a trace."""
    args, kwargs = nest.map_structure(_given, (args, kwargs))
    given = parts_of((args, kwargs))
    result = resolved(function(*args, **kwargs))
    refuse_changed_arguments(name, given)
    return nest.map_structure(lambda value: as_output(value, name), result)


def refused_trace(name: str) -> StagingError:
    """The error for a trace that is asked for by itself where the trace around it would have to take it in."""
    return StagingError(
        f"get_concrete_function of '{name}' in a traced function",
        location=user_location(),
        cause=f"'{name}' changes Python's state there, which a graph doesn't do",
        fix=f"call '{name}' itself",
    )


def _given(value: Any) -> Any:
    return value if isinstance(value, Tensor) or not is_tensor_like(value) else convert_to_tensor(value)


def _is_in_block() -> bool:
    """Whether a branch or loop is being traced."""
    builder = ctx.builder
    while builder is not None and builder.parent is None:
        builder = getattr(builder, "outer", None)
    return builder is not None
