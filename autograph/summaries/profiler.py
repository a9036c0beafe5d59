"""`ag.profiler`: profiles of programs, as files that Perfetto, chrome://tracing and TensorBoard's profiles open."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from autograph.summaries import chrome_trace, xplane
from runtime import profiling
from runtime.errors import AlreadyExistsError, UnavailableError, is_own_file


class ProfilerOptions(NamedTuple):
    """Options of a profile.

    host_tracer_level: 0 nothing, 1 calls, tracing, compilers and kernels, 2 also graph passes,
    single operations, copies and garbage collection. python_tracer_level: 1 also records calls of the program's own
    Python functions, in the thread that starts the profile and in threads started later; this makes Python several
    times slower. device_tracer_level, delay_ms: accepted for TensorFlow programs, without effect: only the host is
    profiled.
    """

    host_tracer_level: int = 2
    python_tracer_level: int = 0
    device_tracer_level: int = 1
    delay_ms: int | None = None


class _Session:
    """A profile that is running, and where it will be written: a folder of TensorBoard's, or a file."""

    def __init__(self, options: ProfilerOptions) -> None:
        self.profile = profiling.start(options.host_tracer_level)
        self._calls = _PythonCalls() if options.python_tracer_level else None

    def stop(self) -> None:
        if self._calls is not None:
            self._calls.stop()
        profiling.stop(self.profile)


_lock = threading.Lock()
_running: tuple[_Session, Path] | None = None


def start(logdir: Any, options: ProfilerOptions | None = None) -> None:
    """Starts a profile of the process, of all its threads.

    logdir: the folder below which `stop` writes it. options: `ProfilerOptions`.

    Raises AlreadyExistsError while another profile of `start` is running.
    """
    global _running
    with _lock:
        if _running is not None:
            raise AlreadyExistsError(
                f"Another profiler is running: that of {_running[1]}. Stop it first, with profiler.experimental.stop()"
            )
        _running = _Session(options or ProfilerOptions()), Path(os.fspath(logdir))


def stop(save: bool = True) -> None:
    """Ends the profile and writes it to a folder `LOGDIR/plugins/profile/TIME`.

    `HOST.xplane.pb` there is for TensorBoard's plugin for profiles, `HOST.trace.json.gz` for Perfetto.

    save: False to write nothing.

    Raises UnavailableError if none is running.
    """
    global _running
    with _lock:
        if _running is None:
            raise UnavailableError(
                "Cannot export profiling results. No profiler is running: profiler.experimental.start begins one"
            )
        session, logdir = _running
        _running = None
    session.stop()
    if save:
        folder = logdir / "plugins" / "profile" / _unused(logdir / "plugins" / "profile")
        folder.mkdir(parents=True)
        host = socket.gethostname()
        chrome_trace.write(session.profile, folder / f"{host}.trace.json.gz")
        xplane.write(session.profile, folder / f"{host}.xplane.pb", host)


def _unused(folder: Path) -> str:
    """A name for a profile: the time, and a number where there is one of this second."""
    base = name = time.strftime("%Y_%m_%d_%H_%M_%S")
    number = 1
    while (folder / name).exists():
        name, number = f"{base}_{number}", number + 1
    return name


class Profile:
    """A block that is profiled: calls `start` and `stop`.

    logdir, options: those of `start`. Entering raises AlreadyExistsError while another profile is running.
    """

    def __init__(self, logdir: Any, options: ProfilerOptions | None = None) -> None:
        self._logdir, self._options = logdir, options

    def __enter__(self) -> None:
        start(self._logdir, self._options)

    def __exit__(self, *exception: Any) -> None:
        stop()


class Trace:
    """A named block in profiles, such as a step of training; without effect outside of a profile.

    name: what profiles show. Keyword arguments, such as `step_num`, are shown with it.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        self._arguments = kwargs
        self._span = profiling.Span("user", name, kwargs) if profiling.recording else None

    def __enter__(self) -> Trace:
        if self._span is not None:
            self._span.__enter__()
        return self

    def set_metadata(self, **kwargs: Any) -> None:
        """Adds to what is shown with the block."""
        self._arguments.update(kwargs)

    def __exit__(self, *exception: Any) -> None:
        if self._span is not None:
            self._span.__exit__()


@contextlib.contextmanager
def trace(path: Any, options: ProfilerOptions | None = None) -> Iterator[None]:
    """A block whose profile is written to one file, for Perfetto (ui.perfetto.dev) and chrome://tracing.

    path: the file; compressed by gzip if its name ends with ".gz". options: `ProfilerOptions`. Blocks may nest, and may
    run beside `start`. The file is written at the end of the block, also after an exception.
    """
    session = _Session(options or ProfilerOptions())
    try:
        yield
    finally:
        session.stop()
        chrome_trace.write(session.profile, os.fspath(path))


class _PythonCalls:
    """Spans for the calls of the program's own Python functions, by the interpreter's profiling hook."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._before = sys.getprofile()
        threading.setprofile(self._hook)
        sys.setprofile(self._hook)

    def stop(self) -> None:
        threading.setprofile(None)
        sys.setprofile(self._before)
        self._stopped = True

    _stopped = False

    def _hook(self, frame: FrameType, event: str, argument: Any) -> None:
        if self._stopped:
            sys.setprofile(None)  # in a thread that was started meanwhile
            return
        if event not in ("call", "return") or is_own_file(frame.f_code.co_filename):
            return
        stack = vars(self._local).setdefault("stack", [])
        if event == "call":
            code = frame.f_code
            place = f"{code.co_filename}:{code.co_firstlineno}"
            stack.append((frame, profiling.Span("python", code.co_name, {"file": place})))
            stack[-1][1].__enter__()
        elif stack and stack[-1][0] is frame:
            stack.pop()[1].__exit__()
