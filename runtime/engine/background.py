"""The background thread that compiles while the interpreter answers.

It starts with the first job and lives until the process ends. At exit it is interrupted, so that a long compilation
doesn't delay the exit; only the files of finished kernels are still written. A fork waits for the kernel being
compiled, so that the child inherits no locked locks; the child starts a thread of its own.
"""

from __future__ import annotations

import _thread
import atexit
import collections
import contextlib
import ctypes
import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from runtime import cancellation, system
from runtime.cancellation import Cancelled
from runtime.codegen.backends import driver as kernels
from runtime.dataclass import dataclass
from runtime.ops.blas import one_thread

# Python runs one thread at a time. A compiler that started at once would double the time of the call that requests it,
# and hold the lock that a running loop needs for its own compilation (`on_stack_replacement.py`). Only later calls
# profit from the compiled code, so the compiler first lets that call finish, and any calls that follow at once, for up
# to this many seconds.
START_TIMEOUT = 5.0
QUIET = 0.02  # seconds after the last such call
# Later calls wait for the compiler too, wherever it runs Python code. A job whose gain is smaller than 1 hasn't taken
# enough time yet (`compile_cost.py`): it starts when nothing has been interpreted for QUIET seconds.
_DUE = 1.0
# Seconds that the exit waits for the thread to reach a cancellation point, and Ctrl-C for a thread to have compiled its
# kernel. The former takes one at most, in which LLVM optimises a function, and some more on an emulated processor. A
# process that ended meanwhile would take the data from under LLVM, which aborts then.
_EXIT_TIMEOUT = 60.0


# Does a part of a job; True if there is more. It handles its own errors.
Step = Callable[[], "bool | None"]


@dataclass(eq=False)
class _Job:
    step: Step
    gain: Callable[[], float]
    before_exit: bool = False


@dataclass
class _Calls:
    """Calls that jobs wait for: how many are running, and when the last one ended."""

    running: int = 0
    last_end: float = -QUIET


def _at_once() -> float:
    return math.inf


class Worker:
    """A priority queue of jobs and its thread.

    The waiting job with the largest gain runs first. A job that isn't done after a step is queued again, so that short
    jobs don't wait for long ones.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._jobs: list[_Job] = []  # in order of submission
        self._urgent: collections.deque[Step] = collections.deque()  # those that a running call waits for
        self._busy = False
        self._current: Step | None = None
        self._must_end = False  # the running job isn't interrupted
        self._calls = _Calls()  # those that all jobs wait for
        self._interpreted = _Calls()  # those that jobs wait for that aren't due
        self._waiting = 0  # threads in `wait`
        self._closed = False
        self._started = self._ended = False
        self._ident: int | None = None  # of the thread, once it runs

    def submit(
        self, step: Step, urgent: bool = False, gain: Callable[[], float] = _at_once, before_exit: bool = False
    ) -> bool:
        """Runs `step` in the background until it returns False. Returns False, without running it, once the process is
        exiting.

        gain: the priority, evaluated whenever a job is chosen; infinite by default. Below 1, the job waits for a pause
        of interpreted calls. urgent: before all others, and without waiting for calls to end. before_exit: the exit
        waits for it, and does it if it hasn't begun.
        """
        with self._condition:
            if self._closed:
                return False
            if urgent:
                self._urgent.append(step)
            else:
                self._jobs.append(_Job(step, gain, before_exit))
            if not self._started:
                self._started = True
                # `threading.Thread` waits until the new thread runs, which takes milliseconds when others want to run.
                _thread.start_new_thread(self._run, ())
            self._condition.notify_all()
            return True

    def withdraw(self, is_chosen: Callable[[Step], bool]) -> list[Step]:
        """Takes waiting jobs that aren't urgent out of the queue. Returns their steps."""
        with self._condition:
            found = [job for job in self._jobs if is_chosen(job.step)]
            self._jobs = [job for job in self._jobs if job not in found]
            self._condition.notify_all()
        return [job.step for job in found]

    def is_compiling(self, step: Step) -> bool:
        """Whether an urgent job is running or will run next."""
        with self._condition:
            return self._current == step or (not self._busy and bool(self._urgent) and self._urgent[0] == step)

    @contextlib.contextmanager
    def held_back(self, only_early: bool = False) -> Iterator[None]:
        """No job starts within this block until START_TIMEOUT has passed. only_early: this holds for jobs with a gain
        below 1; others may start."""
        calls = self._interpreted if only_early else self._calls
        with self._condition:
            calls.running += 1
        try:
            yield
        finally:
            with self._condition:
                calls.running -= 1
                calls.last_end = time.monotonic()
                if not only_early:  # the thread looks again after QUIET anyway
                    self._condition.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until nothing is queued or running; False after `timeout` seconds."""
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
                    self._wait_for_calls(QUIET if was_idle else 0.0)
                    if self._closed:
                        return
                    if not self._jobs and not self._urgent:  # withdrawn meanwhile
                        continue
                    was_idle = bool(self._urgent)
                    job = None if self._urgent else max(self._jobs, key=lambda each: each.gain())
                    step = self._current = self._urgent.popleft() if job is None else job.step
                    if job is not None:
                        self._jobs.remove(job)
                    self._must_end = job is not None and job.before_exit
                    self._busy = True
                more = False
                try:
                    with one_thread:  # a second thread of NumPy's products would wait for the core that compiles
                        more = bool(step())
                except Cancelled:
                    raise
                except BaseException:  # no error of a job may end the thread, as pytest.fail() in a patched function
                    threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
                finally:
                    with self._condition:
                        self._busy, self._current = False, None
                        if more and job is not None and not self._closed:
                            self._jobs.append(job)
                        self._condition.notify_all()
        except Cancelled:
            return
        finally:
            with self._condition:
                cancellation.forget(threading.get_ident())
                self._ended = True
                self._condition.notify_all()

    def _wait_for_calls(self, quiet: float) -> None:
        """Waits until no call has run for `quiet` seconds, and a job is due or nothing has been interpreted for QUIET
        seconds; at most until START_TIMEOUT has passed, somebody waits for the jobs, or something is urgent."""
        until = time.monotonic() + START_TIMEOUT
        begin: float | None = None
        while not self._closed and not self._urgent:
            now = time.monotonic()
            if self._waiting:  # however long a call runs: each job would wait for it again
                break
            if not self._calls.running and begin is None:
                begin = min(self._calls.last_end + quiet, until)
            if self._calls.running or begin is None:
                wake = until
            elif now < begin or any(job.gain() >= _DUE for job in self._jobs):
                wake = begin
            else:
                last = now if self._interpreted.running else self._interpreted.last_end
                wake = min(until, last + QUIET)
            if wake <= now:
                break
            self._condition.wait(wake - now)

    def close(self) -> None:
        """Drops the queue and interrupts the running job, but for jobs that the exit waits for."""
        with self._condition:
            self._closed = True
            left = [job.step for job in self._jobs if job.before_exit]
            self._jobs.clear()
            self._urgent.clear()
            self._condition.notify_all()
        if self._started and self._ident != threading.get_ident():
            self._stop()
        for step in left:
            step()

    def _stop(self) -> None:
        """Ends the thread."""
        with self._condition:
            if self._ident is not None and not self._must_end:  # one that hasn't begun ends of its own accord
                cancellation.cancel(self._ident)
            self._condition.wait_for(lambda: self._ended, _EXIT_TIMEOUT)


def interrupt(thread: int) -> None:
    """Raises KeyboardInterrupt in another thread, but not while that compiles (see `runtime/cancellation.py`)."""
    is_free = kernels.compiling.acquire(timeout=_EXIT_TIMEOUT)
    try:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))
    finally:
        if is_free:
            kernels.compiling.release()


def may_end_at_once() -> bool:
    """Whether this process may end without doing what its exit waits for: `multiprocessing` ends its processes so."""
    process: Any = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


worker = Worker()


def _renew() -> None:
    global worker
    worker = Worker()
    kernels.reset_after_fork()
    kernels.compiling.release()


def _at_exit() -> None:
    worker.close()


atexit.register(_at_exit)
# `logging` takes its lock at a fork as well. Handlers run in reverse order of registration, and a compilation may log
# before it ends; so logging must have registered before us.
assert logging
system.at_fork(before=kernels.compiling.acquire, after_in_parent=kernels.compiling.release, after_in_child=_renew)
