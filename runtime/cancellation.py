"""Cancellation points: where a thread of the compiler ends if the process is ending.

An exception that one thread raises in another by Python's own means may arrive between a call of LLVM and the line that
notes the call: what was freed is then freed again, and the process aborts. So the compiler asks, at the beginning of
each pass, of each operation, of each function that it writes and of each run of LLVM.
"""

from __future__ import annotations

import threading

_cancelled: set[int] = set()  # identifiers of threads


class Cancelled(BaseException):
    """Raised in a thread that has been cancelled."""


def cancel(thread: int) -> None:
    """Makes the thread's next cancellation point raise, and those after it."""
    _cancelled.add(thread)


def forget(thread: int) -> None:
    """To be called when a thread has ended, whose identifier another may get."""
    _cancelled.discard(thread)


def point() -> None:
    """Raises Cancelled if this thread has been cancelled."""
    if _cancelled and threading.get_ident() in _cancelled:
        raise Cancelled
