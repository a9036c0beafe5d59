"""Kernel text to machine code: through the cache on disk, once per process and text.

This is the only module besides `library.py` that imports numba, and it does so when the first kernel is compiled.
"""

from __future__ import annotations

import contextlib
import pickle
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime import errors
from runtime.codegen import cache, cache_room
from runtime.codegen.source import KernelSource


@dataclass
class Counters:
    """What compiling did in this process."""

    compiled: int = 0  # kernels that numba compiled
    loaded: int = 0  # kernels whose code came from the cache on disk
    shared: int = 0  # requests that a kernel of this process answered


@dataclass(frozen=True)
class Record:
    """How a kernel came into this process: its file (None: in memory only), whether its code was on disk, the seconds
    that took, and what was wrong with the cache, if anything was."""

    name: str
    path: Path | None
    loaded: bool
    seconds: float
    note: str | None


counters = Counters()
records: dict[str, Record] = {}
_entries: dict[str, Callable[..., Any]] = {}
_locks: dict[str, threading.Lock] = {}
_lock = threading.Lock()
# Held while numba works, which compiles one kernel at a time anyway. A fork waits for it: see engine/background.py.
compiling = threading.RLock()

# What code that another build of numba or LLVM has written can raise when it is unpickled and linked. The digest and
# the versions in a kernel's name leave only those that share a version number.
_UNREADABLE = (
    pickle.UnpicklingError, AttributeError, ImportError, EOFError, IndexError, KeyError, TypeError, ValueError,
    AssertionError, RuntimeError, MemoryError,
)  # fmt: skip


def compile_kernel(source: KernelSource) -> Callable[..., Any]:
    """The kernel's entry point: takes exactly the arguments of its signature, unchecked.

    Raises KernelError when numba refuses the text: an error of this project.
    """
    with compiling:
        name = cache.kernel_name(source.text, source.signature)
    with _lock:
        lock = _locks.setdefault(name, threading.Lock())
    with lock:
        entry = _entries.get(name)
        if entry is not None:
            counters.shared += 1
            return entry
        with compiling, _interrupts_wait():
            entry = _entries[name] = _load_or_compile(name, source)
        return entry


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Ctrl-C takes effect at the end of the block: in the middle of its work, numba would be left half initialised, and
    no kernel could be compiled in this process any more."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is None or threading.current_thread() is not threading.main_thread():
        yield  # other threads don't see the signal; None: the handler isn't Python's to set
        return
    waiting: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if waiting:
            signal.raise_signal(signal.SIGINT)


def record_of(source: KernelSource) -> Record | None:
    """How the kernel of this text came here; None where nobody has asked for it yet."""
    return records.get(cache.kernel_name(source.text, source.signature))


def forget_waiting() -> None:
    """In a forked child: drops the locks of threads that exist only in the parent."""
    global _lock
    _lock = threading.Lock()
    _locks.clear()


def _load_or_compile(name: str, source: KernelSource) -> Callable[..., Any]:
    start = time.perf_counter()
    module, on_disk = cache.open_module(name, source.text)
    note = None if on_disk else cache.memory_reason()
    entry = None
    if on_disk:
        entry, note = _load(name)
    loaded = entry is not None
    if entry is not None:
        counters.loaded += 1
    else:
        entry, code = _compile(name, source, module.kernel)
        counters.compiled += 1
        if on_disk:
            if code is None:
                note = "numba didn't give its compiled form"
            elif cache.write_code(name, code):
                cache_room.make_room(name)
            else:
                note = cache.memory_reason()
    path = cache.text_file(name) if on_disk else None
    records[name] = Record(name, path, loaded, time.perf_counter() - start, note)
    return entry


def _load(name: str) -> tuple[Callable[..., Any] | None, str | None]:
    """The entry point from the code on disk, or None; and what was wrong with it."""
    content = cache.read_code(name)
    if content is None:
        return None, None
    from numba.core.compiler import CompileResult
    from numba.core.registry import cpu_target

    context = cpu_target.target_context
    context.refresh()
    try:
        return CompileResult._rebuild(context, *pickle.loads(content)).entry_point, None
    except _UNREADABLE as error:
        cache.discard_code(name)
        return None, f"its code on disk could not be read: {type(error).__name__}: {error}"


def _compile(name: str, source: KernelSource, function: Any) -> tuple[Callable[..., Any], bytes | None]:
    """The entry point, and the compiled form for the disk; None where numba has lost it."""
    import numba
    from numba.core.errors import NumbaError
    from numba.core.serialize import dumps

    options = {"nogil": True, "error_model": "numpy", "boundscheck": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=numba.NumbaWarning)
        try:
            dispatcher = numba.njit(source.signature, **options)(function)
        except (NumbaError, NotImplementedError, AssertionError, KeyError, TypeError) as error:
            raise errors.KernelError(f"numba can't compile kernel {name} of '{source.name}': {error}") from error
    # The overload's entry point skips the dispatch on argument types, which are known to be right.
    (overload,) = dispatcher.overloads.values()
    try:
        return overload.entry_point, dumps(overload._reduce())
    except RuntimeError:
        # LLVM hands the object code to a hook of llvmlite's, which can miss it while another thread drops a module.
        # The kernel is sound; a later process compiles it again.
        return overload.entry_point, None
