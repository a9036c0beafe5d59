"""Ctrl-C while a compiler works."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Defers Ctrl-C to the end of the block (or of the function that it decorates).

    An interrupted compiler may be left half initialised, so that the process can't compile any more kernels. And Python
    loses an interrupt wherever it only prints exceptions: while it frees LLVM's objects, which takes milliseconds, and
    in callbacks of imports.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is None or threading.current_thread() is not threading.main_thread():
        yield  # other threads don't see the signal; None: Python didn't install the handler
        return
    waiting: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if waiting:
            signal.raise_signal(signal.SIGINT)
