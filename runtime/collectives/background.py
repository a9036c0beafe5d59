"""Operations that run while the program computes.

    program      start ----> compute ------> results()
    background         exchange, add up ---------^

A thread runs them one after the other, in the order in which they were started, so that all workers run the same
operations in the same order.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any


class Pending:
    """An operation that was started. number: how many were started before it."""

    def __init__(self, background: Background, number: int, work: Callable[[], Any]) -> None:
        self._background = background
        self._work: Callable[[], Any] | None = work
        self._under_way = threading.Lock()
        self._under_way.acquire()
        self.is_done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self.number = number

    def run(self) -> None:
        """Does the work, in the thread that calls this."""
        work, self._work = self._work, None
        assert work is not None, "an operation runs once"
        try:
            self._value = work()
        except BaseException as error:  # whoever waits raises it
            self._error = error
        finally:
            del work  # its operands may go
            self.is_done = True
            self._under_way.release()

    def wait(self) -> None:
        """Waits until the operation is done. Ctrl-C ends the wait, not the operation."""
        if not self.is_done:
            self._background.hurry(self.number)
            with self._under_way:
                pass

    def results(self) -> Any:
        """Waits until the operation is done. Raises what it raised."""
        self.wait()
        if self._error is not None:
            raise self._error
        return self._value


class Background:
    """A thread for the operations of one group."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Pending] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        # The operation that was submitted last, unless it is done and its results have gone.
        self._last: Callable[[], Pending | None] = lambda: None
        self._submitted = 0
        self._running = self._awaited = -1

    def submit(self, work: Callable[[], Any]) -> Pending:
        """Has `work()` called after all that was submitted before."""
        with self._lock:
            pending = Pending(self, self._submitted, work)
            self._submitted += 1
            if self._thread is None:
                # A daemon: a program that ends because of an error doesn't wait for its peers.
                self._thread = threading.Thread(target=self._run, name="autograph-collectives", daemon=True)
                self._thread.start()
            self._queue.put(pending)
            self._last = weakref.ref(pending)
        return pending

    def drain(self) -> None:
        """Waits for all that was submitted, unless this is the thread that runs it."""
        last = self._last()
        if last is not None and not self.runs_here():
            last.wait()

    def runs_here(self) -> bool:
        """Whether the current thread is the one that runs operations."""
        return threading.current_thread() is self._thread

    def hurry(self, number: int) -> None:
        """Notes that a caller waits for an operation, given its number."""
        self._awaited = max(self._awaited, number)

    def has_time(self) -> bool:
        """Whether no caller waits for the operation that is running. Called in the thread that runs operations."""
        return self.runs_here() and self._awaited < self._running

    def _run(self) -> None:
        while True:
            pending = self._queue.get()
            self._running = pending.number
            pending.run()
            del pending
