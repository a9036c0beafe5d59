"""What the current thread is doing: tracing into a builder, recording on tapes, or plain eager execution.

This module sits below everything that dispatches, so that ops need to import neither the graph builder nor the
tape: both put themselves here.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from runtime.thread_state import propagated


class Recorder(Protocol):
    """What `ctx.recorders` holds: something that wants to see each op that runs (a GradientTape)."""

    @property
    def builder(self) -> Any: ...  # the one it was opened in; it sees only the ops of that builder (None: eager)

    def is_tracking(self, tensor: Any) -> bool: ...

    def takes_slices(self, tensor: Any) -> bool: ...

    def record(self, op: Any, inputs: tuple, attrs: dict, outputs: tuple) -> None: ...

    def record_read(self, variable: Any, value: Any) -> None: ...

    def extend(self, node: Any, result: Any) -> None: ...

    def mark(self) -> Callable[[], None]: ...


class PassiveRecorder:
    """A recorder that tracks nothing and keeps nothing. Subclasses define `builder`, and what they want to see."""

    def is_tracking(self, tensor: Any) -> bool:
        return False

    def takes_slices(self, tensor: Any) -> bool:
        return False

    def record(self, op: Any, inputs: tuple, attrs: dict, outputs: tuple) -> None:
        pass

    def record_read(self, variable: Any, value: Any) -> None:
        pass

    def extend(self, node: Any, result: Any) -> None:
        pass

    def mark(self) -> Callable[[], None]:
        return lambda: None


class Context(threading.local):
    """Per-thread state.

    builder    the innermost graph builder that ops emit into, or None for eager execution
    device     the name of the innermost `device` block; None: there is none
    traced_in  the builder of the function that was being traced when that block was entered; None: there was none
    recorders  open tapes, outermost first; a tuple that is replaced, never mutated, so that iterating it is safe
    quiet      quiet(function, *args) calls function with NumPy's floating-point warnings off, without touching the
               user's own `np.seterr`: it enters a context (contextvars) in which they were turned off once, which
               costs 20 ns where `np.errstate` costs 900. Not reentrant.
    lifting    where variables that are created while tracing go; None: nothing takes them
    created    how many variables the thread has created
    scope      the open scopes of names, each with a slash behind it: "" or "layer/cell/"
    numerics   numerics(builder, op, inputs, outputs) adds checks to a node of a graph; None: nobody asked for them
    commits    what variables hold by now, while a graph that assigns some runs: {reference: array}; None: nobody asks
    creators   what makes variables in place of their class, outermost first (`variable_creator_scope`)
    variant    what tells traces apart besides their arguments: the replica that runs; None: nothing
    walking    the number of the tape whose gradient is being made, if a staged block has paused it (`autodiff`)
    moving_items  whether a staged list moves its items, which isn't an op in Python
    decide     decide(tensor) answers for a symbolic tensor that Python asks for its truth value; None: it has none
    """

    builder: Any = None
    recorders: tuple[Recorder, ...] = ()
    walking: int | None = None
    moving_items: bool = False
    device: str | None = None
    traced_in: Any = None
    lifting: Any = None
    created: int = 0
    scope: str = ""
    numerics: Callable[..., tuple] | None = None
    commits: dict[Any, Any] | None = None
    decide: Callable[[Any], bool] | None = None
    creators: tuple[Callable[..., Any], ...] = ()
    variant: Any = None
    quiet: Callable[..., Any]

    def __init__(self) -> None:
        # threading.local calls this once per thread.
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        self.quiet = context.run

    def leave(self, tensor: Any) -> None:
        """Tells the tapes that a tensor's value becomes a NumPy array or a Python number, out of their sight."""
        for recorder in self.recorders:
            note = getattr(recorder, "leave", None)
            if note is not None:
                note(tensor)

    def assigned(self, variable: Any, value: Any) -> None:
        """Tells the tapes that a variable takes a tensor's value, which gradients don't follow."""
        for recorder in self.recorders:
            note = getattr(recorder, "assigned", None)
            if note is not None:
                note(variable, value)


ctx = propagated(Context(), but=("quiet",))
# What runs ops and graphs elsewhere than on the CPU (`engine/placement.py`); nothing while no GPU is in use.
placing: list[Any] = []
# Not 0 while calls of functions must not be answered by machine code, which reads it
# (`engine/fastcall/inline_cache.py`): functions run as the Python they were made from, or for a replica. It counts the
# reasons.
eagerly = np.zeros(1, np.int64)
_eagerly_lock = threading.Lock()


def block_inline_caches(change: int) -> None:
    """Adds a reason for calls not to be answered by machine code (1), or takes one away (-1)."""
    with _eagerly_lock:
        eagerly[0] += change


@contextlib.contextmanager
def apart(variant: Any) -> Iterator[None]:
    """A block in which functions have traces of their own, for a hashable value; None: the usual ones."""
    before = ctx.variant
    ctx.variant = variant
    if variant is not None:
        block_inline_caches(1)
    try:
        yield
    finally:
        ctx.variant = before
        if variant is not None:
            block_inline_caches(-1)


def commit(value: Any, variable: Any) -> tuple:
    """Notes what a variable holds in the graph that is running (see `runtime.graph.passes.rewrites.commits`)."""
    if ctx.commits is not None:
        ctx.commits[variable] = value
    return ()


class name_scope:
    """A block in which operations get a prefix to their names, as graphs and errors show them.

    Scopes nest; a name that ends with a slash replaces the prefix. `with` returns the prefix. Raises ValueError for a
    name
    that isn't a string.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError(f"name for name_scope must be a string, got {name!r} of type {type(name).__name__}")
        self._name = name
        self._outer: list[str] = []

    @property
    def name(self) -> str:
        return self._name

    def __enter__(self) -> str:
        self._outer.append(ctx.scope)
        if self._name.endswith("/"):
            ctx.scope = self._name
        elif self._name:
            ctx.scope += self._name + "/"
        else:
            ctx.scope = ""
        return ctx.scope

    def __exit__(self, *exception: Any) -> None:
        ctx.scope = self._outer.pop()


def get_current_name_scope() -> str:
    """The prefix of the open `name_scope`s, without the slash at its end."""
    return ctx.scope.removesuffix("/")


@contextlib.contextmanager
def init_scope() -> Iterator[None]:
    """Runs its block eagerly, outside of the function that is being traced and hidden from its tapes."""
    builder, recorders = ctx.builder, ctx.recorders
    ctx.builder, ctx.recorders = None, tuple(r for r in recorders if r.builder is None)
    try:
        yield
    finally:
        ctx.builder, ctx.recorders = builder, recorders


def executing_eagerly() -> bool:
    """Whether ops run at once, rather than being traced into a function."""
    return ctx.builder is None
