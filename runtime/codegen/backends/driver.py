"""Compiles kernels: through the cache on disk, and once per process and text.

Two compilers take the same text: `llvm_backend.py`, in some 20 ms, and, for what that one refuses,
`backends/numba_backend/compiler.py`, which knows more of Python. AUTOGRAPH_COMPILER=llvm or numba allows one of them
only.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from runtime import errors
from runtime.codegen.backends import llvm_backend
from runtime.codegen.backends.numba_backend import compiler as numba_compiler
from runtime.codegen.cache import eviction, kernel_cache
from runtime.codegen.kernel.source import KernelSource, Unreadable
from runtime.codegen.native_runtime import thread_pool
from runtime.dataclass import dataclass
from runtime.llvm.ctrl_c import interrupts_deferred
from runtime.profiling import span


@dataclass
class Counters:
    """What compiling did in this process."""

    compiled: int = 0  # kernels that were compiled
    loaded: int = 0  # kernels whose code came from the cache on disk
    shared: int = 0  # requests that a kernel of this process answered


@dataclass(frozen=True)
class Record:
    """How a kernel came into this process: its file (None: in memory only), whether its code was loaded from disk, how
    many seconds loading or compiling took, what was wrong with the cache, and which compiler made it."""

    name: str
    path: Path | None
    loaded: bool
    seconds: float
    note: str | None
    compiler: str = "numba"


counters = Counters()
records: dict[str, Record] = {}
_entries: dict[str, Callable[..., Any]] = {}
_locks: dict[str, threading.Lock] = {}
_lock = threading.Lock()
# Held while a compiler runs. A fork waits for it: see engine/background.py.
compiling = threading.RLock()


class Compiler(Protocol):
    """The interface of a backend, which is a module."""

    NAME: str
    Refused: type[Exception]  # the text uses something that the compiler doesn't support

    def available(self) -> bool: ...

    def compile(
        self, name: str, source: KernelSource, outside: Callable[[], None]
    ) -> tuple[Callable[..., Any], bytes | None]:
        """The entry point, and the code for the cache, if any. Calls `outside` when the rest of the work releases the
        interpreter lock nearly all the time."""

    def load(self, name: str, source: KernelSource, code: bytes) -> Callable[..., Any]:
        """The entry point of cached code. Raises `Unreadable` if the compiler didn't write it."""

    def text(self, source: KernelSource, form: str) -> str:
        """A kernel in a readable form: 'llvm' (as it is written), 'optimized-llvm' or 'asm'."""


def _compilers() -> list[Compiler]:
    """The backends to try, in order. Raises InvalidArgumentError if AUTOGRAPH_COMPILER names none of them."""
    return [each for each in _chosen() if os.environ.get("AUTOGRAPH_COMPILER") or each.available()]


def _chosen() -> list[Compiler]:
    """The backends that the environment allows, whether they work here or not."""
    both: list[Any] = [llvm_backend, numba_compiler]
    chosen = os.environ.get("AUTOGRAPH_COMPILER")
    if chosen and chosen not in [each.NAME for each in both]:
        raise errors.InvalidArgumentError(
            f"AUTOGRAPH_COMPILER={chosen} in the environment names no compiler; the choices are "
            f"{' and '.join(each.NAME for each in both)}, and both are used where it isn't set"
        )
    return [each for each in both if not chosen or chosen == each.NAME]


def check_environment() -> None:
    """Raises InvalidArgumentError if an environment variable has an invalid value. That is a mistake of the user's, so
    the call raises it; it isn't reported as a failure of the compiler."""
    _chosen()
    try:
        eviction.bound()
    except ValueError as error:
        raise errors.InvalidArgumentError(str(error)) from None


def compile_kernel(source: KernelSource) -> Callable[..., Any]:
    """The kernel's entry point: takes exactly the arguments of its signature, unchecked.

    Raises KernelError when no compiler takes the text: an error of this project.
    """
    with compiling, interrupts_deferred():
        name = kernel_cache.kernel_name(source.text, source.key)
    entry = _once(name, lambda: _load_or_compile(name, source))
    assert entry is not None
    return entry


def text_of(source: KernelSource, form: str) -> str:
    """A kernel in a readable form (see `Compiler.text`). Raises KernelError if no compiler has it."""
    refusals: list[str] = []
    with compiling, interrupts_deferred():
        for compiler in _compilers():
            try:
                return compiler.text(source, form)
            except compiler.Refused as error:
                refusals.append(f"{compiler.NAME} has no {form} text of '{source.name}': {error}")
    raise errors.KernelError("; ".join(refusals))


def load_kernel(name: str, text: str) -> Callable[..., Any] | None:
    """The entry point of a kernel that `llvm_backend` compiled, from this process or the cache; None if evicted."""
    return _once(name, lambda: _load_named(name, text))


def _once(name: str, make: Callable[[], Callable[..., Any] | None]) -> Callable[..., Any] | None:
    """A kernel's entry point, made unless this process has it. Threads that ask for one kernel wait for the first."""
    with _lock:
        lock = _locks.setdefault(name, threading.Lock())
    with lock:
        entry = _entries.get(name)
        if entry is not None:
            counters.shared += 1
            return entry
        with compiling, interrupts_deferred():
            entry = make()
        if entry is not None:
            _entries[name] = entry
        if _urgency.later is None:
            provide_threads()
        return entry


def provide_threads() -> None:
    """Compiles the thread pool if kernels use it: they run on one thread until then, so that no first result waits."""
    with compiling, interrupts_deferred():
        thread_pool.provide_to_kernels()


def _load_named(name: str, text: str) -> Callable[..., Any] | None:
    start = time.perf_counter()
    content = kernel_cache.read_code(name) if kernel_cache.keep_text(name, text) else None
    maker, _, code = (content or b"").partition(b"\n")
    if maker != llvm_backend.NAME.encode():
        return None
    try:
        entry = llvm_backend.entry(name, code)
    except Unreadable:
        kernel_cache.discard_code(name)  # it is compiled again, and its record says why
        return None
    counters.loaded += 1
    records[name] = Record(
        name, kernel_cache.text_file(name), True, time.perf_counter() - start, None, llvm_backend.NAME
    )
    return entry


class _Urgency(threading.local):
    """The requests of a thread that waits for this thread's kernel."""

    outside: Callable[[], None] = staticmethod(lambda: None)
    later: list[Callable[[], None]] | None = None


_urgency = _Urgency()


@contextlib.contextmanager
def urgent_compilation(outside: Callable[[], None] = lambda: None) -> Iterator[list[Callable[[], None]]]:
    """Within it, `outside` is called when this thread's compiler releases the interpreter lock for good. Gives a list
    of work. Once the kernel has been handed over, that remains to be done (files to write), and `provide_threads` to
    be called.
    """
    before = _urgency.outside, _urgency.later
    later: list[Callable[[], None]] = []
    _urgency.outside, _urgency.later = outside, later
    try:
        yield later
    finally:
        _urgency.outside, _urgency.later = before


def afterwards(work: Callable[[], None]) -> None:
    """Does work that nobody waits for: now, or after the kernel is handed over if somebody waits for this thread."""
    if _urgency.later is None:
        work()
    else:
        _urgency.later.append(work)


def run_deferred_work() -> None:
    """Does the work that has been put off so far: between kernels, so that those that are ready survive the process."""
    if _urgency.later is not None:
        left = _urgency.later[:]
        _urgency.later.clear()
        for work in left:
            work()


def record_of(source: KernelSource) -> Record | None:
    """The record of a kernel; None if it wasn't requested yet."""
    return records.get(kernel_cache.kernel_name(source.text, source.key))


def reset_after_fork() -> None:
    """In a forked child: drops locks held by threads of the parent."""
    global _lock
    _lock = threading.Lock()
    _locks.clear()


def _load_or_compile(name: str, source: KernelSource) -> Callable[..., Any]:
    start = time.perf_counter()
    on_disk = kernel_cache.keep_text(name, source.text)
    notes = [] if on_disk else [kernel_cache.memory_reason()]
    found = _load(name, source, notes) if on_disk else None
    code: bytes | None = None
    if found is not None:
        counters.loaded += 1
        entry, compiler = found
    else:
        entry, compiler, code = _compile(name, source, notes)
        counters.compiled += 1
        if on_disk and code is None:
            notes.append(f"{compiler} couldn't export its code")
    path = kernel_cache.text_file(name) if on_disk else None
    records[name] = Record(name, path, found is not None, time.perf_counter() - start, _joined(notes), compiler)
    if on_disk and code is not None:
        content = compiler.encode() + b"\n" + code
        afterwards(lambda: _keep(name, content))
    return entry


def _keep(name: str, content: bytes) -> None:
    if kernel_cache.write_code(name, content):
        eviction.make_room(name, len(content))
    else:
        record = records[name]
        records[name] = replace(record, note=_joined([record.note, kernel_cache.memory_reason()]))


def _joined(notes: Sequence[str | None]) -> str | None:
    return "; ".join(note for note in notes if note) or None


def _load(name: str, source: KernelSource, notes: list[str | None]) -> tuple[Callable[..., Any], str] | None:
    """The entry point of cached code and the compiler that wrote it; None if there is none that can be read."""
    content = kernel_cache.read_code(name)
    if content is None:
        return None
    maker, _, code = content.partition(b"\n")
    for compiler in _compilers():
        if compiler.NAME.encode() == maker:
            try:
                return compiler.load(name, source, code), compiler.NAME
            except Unreadable as error:
                kernel_cache.discard_code(name)
                notes.append(f"its code on disk could not be read: {error}")
    return None


def _compile(name: str, source: KernelSource, notes: list[str | None]) -> tuple[Callable[..., Any], str, bytes | None]:
    """The entry point, the compiler's name, and the code for the cache."""
    refusals: list[str] = []
    for compiler in _compilers():
        try:
            with span("compile", f"{compiler.NAME} compiles {source.name}", kernel=name):
                entry, code = compiler.compile(name, source, _urgency.outside)
        except compiler.Refused as error:
            refusals.append(f"{compiler.NAME} can't compile kernel {name} of '{source.name}': {error}")
            if os.environ.get("AUTOGRAPH_STRICT") == "1":
                break  # so that tests find what the faster compiler lacks
            continue
        notes += refusals
        return entry, compiler.NAME, code
    raise errors.KernelError("; ".join(refusals))
