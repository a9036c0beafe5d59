"""The one background thread that compiles while the interpreter answers.

It is made when there is something to do and lives until the process ends. At exit it is told to stop where it is, so
that a long compilation doesn't delay the end; a fork waits for the kernel in work, so that the child inherits no lock
in the middle of something, and starts with a thread of its own.
"""

from __future__ import annotations

import _thread
import atexit
import collections
import contextlib
import ctypes
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from runtime.codegen.backends import driver as kernels

# Python runs one thread at a time: a compiler that starts at once would make the call that asks for it take twice as
# long, and hold the lock that a running loop needs to compile itself (`on_stack_replacement.py`). What it makes serves
# later calls only, so it lets that one finish first, and then what is done with the result, if that is over within so
# many seconds.
START_PATIENCE = 5.0
QUIET = 0.02  # seconds that such a call must be over
_EXIT_PATIENCE = 5.0  # seconds that the end of the process may wait for native compiler code to return


class _Stopped(BaseException):
    """Thrown into the thread at exit."""


# Does a part of its work, and says whether there is more. It handles its own errors.
Step = Callable[[], "bool | None"]


@dataclass(eq=False)
class _Job:
    step: Step
    gain: Callable[[], float]


def _at_once() -> float:
    return math.inf


class Worker:
    """A queue and its thread.

    Of the jobs that wait, the one that gains most goes first. A job that isn't done after a step waits with the others:
    what is short doesn't wait for what is long.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._jobs: list[_Job] = []  # in the order they came
        self._urgent: collections.deque[Step] = collections.deque()  # that a running call waits for
        self._busy = False
        self._current: Step | None = None
        self._calls = 0  # that the compiler lets finish first
        self._last_call = -QUIET  # when the last of them was over
        self._waiting = 0  # threads that do nothing until all is done
        self._closed = False
        self._started = self._ended = False
        self._ident: int | None = None  # the thread's, once it runs

    def submit(self, step: Step, urgent: bool = False, gain: Callable[[], float] = _at_once) -> bool:
        """Runs `step` later, as often as it says that there is more. False, and it never runs, after the end of the
        process has begun.

        gain: what it saves for what it costs, asked whenever a job is chosen; by default it goes before those that say.
        urgent: before all others, and while calls run.
        """
        with self._condition:
            if self._closed:
                return False
            if urgent:
                self._urgent.append(step)
            else:
                self._jobs.append(_Job(step, gain))
            if not self._started:
                self._started = True
                # Not by `threading.Thread`, which waits until the thread runs: milliseconds where others want to run.
                _thread.start_new_thread(self._run, ())
            self._condition.notify_all()
            return True

    def works_at(self, step: Step) -> bool:
        """Whether an urgent job runs, or is the next to run, now."""
        with self._condition:
            return self._current == step or (not self._busy and bool(self._urgent) and self._urgent[0] == step)

    @contextlib.contextmanager
    def held_back(self) -> Iterator[None]:
        """Within it no job starts, for a while."""
        with self._condition:
            self._calls += 1
        try:
            yield
        finally:
            with self._condition:
                self._calls -= 1
                self._last_call = time.monotonic()
                self._condition.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until nothing is queued or running; False when `timeout` seconds didn't suffice."""
        with self._condition:
            self._waiting += 1
            self._condition.notify_all()
            try:
                return self._condition.wait_for(lambda: not (self._jobs or self._urgent or self._busy), timeout)
            finally:
                self._waiting -= 1

    def _run(self) -> None:
        threading.current_thread().name = "autograph-compiler"
        self._ident = threading.get_ident()
        was_idle = True
        try:
            while True:
                with self._condition:
                    was_idle = was_idle or not self._jobs
                    self._condition.wait_for(lambda: self._jobs or self._urgent or self._closed)
                    self._let_calls_finish(QUIET if was_idle else 0.0)
                    if self._closed:
                        return
                    was_idle = bool(self._urgent)
                    job = None if self._urgent else max(self._jobs, key=lambda each: each.gain())
                    step = self._current = self._urgent.popleft() if job is None else job.step
                    if job is not None:
                        self._jobs.remove(job)
                    self._busy = True
                more = False
                try:
                    more = bool(step())
                except Exception:  # a fault of the job's, which others must not suffer from
                    threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
                finally:
                    with self._condition:
                        self._busy, self._current = False, None
                        if more and job is not None and not self._closed:
                            self._jobs.append(job)
                        self._condition.notify_all()
        except _Stopped:
            return
        finally:
            with self._condition:
                self._ended = True
                self._condition.notify_all()

    def _let_calls_finish(self, quiet: float) -> None:
        """Waits until no call runs, and once until the last one has been over for so many seconds; or until something
        is urgent."""
        until = time.monotonic() + START_PATIENCE
        begin: float | None = None
        while not self._closed and not self._urgent:
            now = time.monotonic()
            if not self._calls and begin is None:
                begin = min(self._last_call + quiet, until)
            wake = until if self._calls or begin is None else now if self._waiting else begin
            if wake <= now:
                break
            self._condition.wait(wake - now)

    def close(self) -> None:
        """Drops what is queued and stops what is running."""
        with self._condition:
            self._closed = True
            self._jobs.clear()
            self._urgent.clear()
            self._condition.notify_all()
        if not self._started or self._ident == threading.get_ident():
            return
        _hide_stops()
        deadline = time.monotonic() + _EXIT_PATIENCE
        while not self._ended and time.monotonic() < deadline:
            # Takes effect between two bytecodes, so native compiler code finishes first.
            stop = ctypes.c_ulong(self._ident or 0), ctypes.py_object(_Stopped)
            if self._busy and not ctypes.pythonapi.PyThreadState_SetAsyncExc(*stop):
                return  # there is no such thread any more
            with self._condition:
                self._condition.wait_for(lambda: self._ended, 0.05)


def _hide_stops() -> None:
    """A stop that arrives while the compiler calls back into Python is dropped there, and the next one does its work;
    Python would report the drop on stderr."""
    report = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if unraisable.exc_type is not _Stopped:
            report(unraisable)

    sys.unraisablehook = hook


worker = Worker()


def _renew() -> None:
    global worker
    worker = Worker()
    kernels.forget_waiting()
    kernels.compiling.release()


def _at_exit() -> None:
    worker.close()


atexit.register(_at_exit)
# `logging` takes its lock at a fork as well. What registers later is called earlier, and the kernel in work may want to
# log before it is done; so logging must have registered before us.
assert logging
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=kernels.compiling.acquire, after_in_parent=kernels.compiling.release, after_in_child=_renew
    )
