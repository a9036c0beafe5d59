"""Summary writers, and which of them the current thread writes to: with what step, and under what condition."""

from __future__ import annotations

import abc
import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from autograph.summaries.event_files import EventFile
from runtime.context import ctx
from runtime.ops.control import HOST_CALL
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply
from runtime.tensor import EagerTensor, Tensor
from runtime.thread_state import propagated


class _State(threading.local):
    """The current thread's default writer, step and recording condition."""

    writer: SummaryWriter | None = None
    step: Any = None
    condition: Any = True


state = propagated(_State())


def run(action: Callable[..., None], *tensors: Tensor) -> None:
    """Calls `action` with the tensors' arrays, in a traced function each time that the program gets there."""
    apply(HOST_CALL, tensors, {"function": action, "types": ()})


class _AsDefault:
    """The block of `as_default`. A class, so that `set_as_default` can enter it and never leave."""

    def __init__(self, writer: SummaryWriter, step: Any) -> None:
        self._writer, self._step = writer, step
        self._outer: tuple[Any, Any] = (None, None)

    def __enter__(self) -> SummaryWriter:
        self._outer = (state.writer, state.step)
        state.writer = self._writer
        if self._step is not None:
            state.step = self._step
        return self._writer

    def __exit__(self, *exception: Any) -> None:
        self._writer.flush()
        state.writer = self._outer[0]
        if self._step is not None:
            state.step = self._outer[1]


class SummaryWriter(abc.ABC):
    """A writer of summaries; made by `create_file_writer` and `create_noop_writer`."""

    def as_default(self, step: Any = None) -> Any:
        """A block in which this is the thread's default writer; flushes it at the end.

        step: the default of the `step` argument in the block: an integer, a tensor or a variable. A traced function
        reads a variable at run time, and keeps anything else, also the writer, from the time of the trace. Raises
        RuntimeError when the writer is closed.
        """
        return _AsDefault(self, step)

    def set_as_default(self, step: Any = None) -> None:
        """Makes this the thread's default writer from now on.

        step: the default of the `step` argument from now on, if given. Raises RuntimeError when the writer is closed.
        """
        self.as_default(step).__enter__()

    @abc.abstractmethod
    def init(self) -> None:
        """Creates the file if it doesn't exist. Raises RuntimeError if the writer is closed."""

    @abc.abstractmethod
    def flush(self) -> None:
        """Writes all pending summaries; in a traced function, at run time."""

    @abc.abstractmethod
    def close(self) -> None:
        """Writes all pending summaries and closes the file; in a traced function, at run time."""


class FileWriter(SummaryWriter):
    """Writes to an event file."""

    def __init__(self, file: EventFile) -> None:
        self.file = file
        self._closed = False
        # Also when the process ends.
        weakref.finalize(self, file.close)

    def as_default(self, step: Any = None) -> Any:
        self._check_open()
        return super().as_default(step)

    def init(self) -> None:
        self._check_open()
        self.file.open()

    def flush(self) -> None:
        if not self._closed:
            run(self.file.flush)

    def close(self) -> None:
        if not self._closed:
            run(self.file.close)
            self._closed = ctx.builder is None

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(f"SummaryWriter {self!r} is already closed")

    def __repr__(self) -> str:
        return f"<SummaryWriter of {self.file.path!r}>"


class _NoopWriter(SummaryWriter):
    """A writer that writes nothing and doesn't become the default."""

    def as_default(self, step: Any = None) -> Any:
        return contextlib.nullcontext()

    def init(self) -> None:
        """Does nothing."""

    def flush(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


def create_file_writer(
    logdir: Any,
    max_queue: int | None = None,
    flush_millis: int | None = None,
    filename_suffix: str | None = None,
    name: str | None = None,
) -> SummaryWriter:
    """A writer of an event file in the folder `logdir`, for TensorBoard.

    max_queue: how many summaries may be pending, 10 by default. flush_millis: after how many milliseconds the next
    summary flushes the pending ones, 120000 by default. filename_suffix: the end of the file's name, ".v2" by
    default. In a traced function the writer is made when it is traced, its file by the first summary.

    Raises ValueError for a folder that is None, and for arguments without a value while tracing; ImportError if the
    package `tensorboard` isn't installed.
    """
    if logdir is None:
        raise ValueError("Argument `logdir` cannot be None")
    file = EventFile(
        os.fspath(_known("logdir", logdir)),
        int(_known("max_queue", 10 if max_queue is None else max_queue)),
        int(_known("flush_millis", 120_000 if flush_millis is None else flush_millis)),
        str(_known("filename_suffix", ".v2" if filename_suffix is None else filename_suffix)),
    )
    writer = FileWriter(file)
    if ctx.builder is None:
        writer.init()
    return writer


def _known(name: str, value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    if not isinstance(value, EagerTensor):
        raise ValueError(
            f"Invalid argument '{name}={value}' to create_file_writer() inside a traced function: the writer is made "
            "when the function is traced, and the tensor has its value only when it runs"
        )
    found = value.numpy()
    return found.decode() if isinstance(found, bytes) else found


def create_noop_writer() -> SummaryWriter:
    """A writer that does nothing, for code that requires one. It doesn't become the default."""
    return _NoopWriter()


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Writes all pending summaries of a writer, by default of the thread's default writer.

    Raises ValueError for something that isn't a writer.
    """
    writer = state.writer if writer is None else writer
    if writer is not None:
        if not isinstance(writer, SummaryWriter):
            raise ValueError(f"Invalid argument to flush(): {writer!r}")
        writer.flush()


@contextlib.contextmanager
def record_if(condition: Any) -> Iterator[None]:
    """A block in which the thread's summaries are written only if a condition holds.

    condition: a bool, a boolean tensor, or a function without arguments that returns one, called by each summary. In a
    traced function the result may be a tensor that the program decides.
    """
    outer, state.condition = state.condition, condition
    try:
        yield
    finally:
        state.condition = outer


def should_record_summaries() -> Tensor:
    """Whether summaries are written now: whether there is a default writer, and `record_if`'s condition holds."""
    if state.writer is None:
        return convert_to_tensor(False)
    condition = state.condition
    return convert_to_tensor(condition() if callable(condition) else condition)


def get_step() -> Any:
    """The thread's default step, as it was set, or None."""
    return state.step


def set_step(step: Any) -> None:
    """Sets the thread's default of the `step` argument; None removes it.

    step: an integer, a tensor or a variable. A traced function reads a variable at run time, and keeps anything else
    from the time of the trace.
    """
    state.step = step
