"""Kernel text to machine code: through the cache on disk, once per process and text.

This is the only module besides `library.py` that imports numba, and it does so when the first kernel is compiled.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runtime import errors
from runtime.codegen import cache
from runtime.codegen.source import KernelSource


@dataclass
class Counters:
    """What compiling did in this process."""

    compiled: int = 0  # kernels that numba compiled
    loaded: int = 0  # kernels whose code came from the cache on disk
    shared: int = 0  # requests that a kernel of this process answered


counters = Counters()
_entries: dict[str, Callable[..., Any]] = {}
_locks: dict[str, threading.Lock] = {}
_lock = threading.Lock()
# Held while numba works, which compiles one kernel at a time anyway. A fork waits for it: see engine/background.py.
compiling = threading.RLock()


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
        with compiling:
            entry = _entries[name] = _load_or_compile(name, source)
        return entry


def forget_waiting() -> None:
    """In a forked child: drops the locks of threads that exist only in the parent."""
    global _lock
    _lock = threading.Lock()
    _locks.clear()


def _load_or_compile(name: str, source: KernelSource) -> Callable[..., Any]:
    module, on_disk = cache.open_module(name, source.text)
    if on_disk:
        cache.check_compiled(name)
        try:
            return _entry(_jit(module.kernel, source, name, cached=True))
        except errors.KernelError:
            raise
        except Exception:
            # numba reads and writes its files here; whatever is wrong with them, memory will do.
            cache.discard_compiled(name)
    return _entry(_jit(module.kernel, source, name, cached=False))


def _jit(function: Any, source: KernelSource, name: str, cached: bool) -> Any:
    import numba
    from numba.core.errors import NumbaError

    options = {"nogil": True, "cache": cached, "error_model": "numpy", "boundscheck": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=numba.NumbaWarning)
        try:
            dispatcher = numba.njit(source.signature, **options)(function)
        except (NumbaError, NotImplementedError, AssertionError, KeyError, TypeError) as error:
            raise errors.KernelError(f"numba can't compile kernel {name} of '{source.name}': {error}") from error
    if sum(dispatcher.stats.cache_hits.values()):
        counters.loaded += 1
    else:
        counters.compiled += 1
        if cached:
            cache.seal_compiled(name)
    return dispatcher


def _entry(dispatcher: Any) -> Callable[..., Any]:
    # The overload's entry point skips the dispatch on argument types, which are known to be right.
    (overload,) = dispatcher.overloads.values()
    return overload.entry_point
