"""What the current thread is doing: tracing into a builder, recording on tapes, or plain eager execution.

This module sits below everything that dispatches, so that ops need to import neither the graph builder nor the
tape: both put themselves here.
"""

from __future__ import annotations

import threading
from typing import Any, Protocol


class Recorder(Protocol):
    """What `ctx.recorders` holds: something that wants to see each op that runs (a GradientTape)."""

    builder: Any  # the builder it was opened in; it sees only the ops of that builder (None: eager)

    def record(self, op: Any, inputs: tuple, attrs: dict, outputs: tuple) -> None: ...

    def record_read(self, variable: Any, value: Any) -> None: ...


class Context(threading.local):
    """Per-thread state.

    builder    the innermost graph builder that ops emit into, or None for eager execution
    recorders  open tapes, outermost first; a tuple that is replaced, never mutated, so that iterating it is safe
    """

    builder: Any = None
    recorders: tuple[Recorder, ...] = ()
    device: str | None = None


ctx = Context()
