"""Matrix products by NumPy, small ones on the caller's thread alone.

OpenBLAS, which NumPy brings along, hands parts of all but tiny products to threads of its own and spins until they
are done. For a product of less than a millisecond that gains little where the other cores have nothing to do, and where
they have (the background compiler's thread, another program) the caller waits for a time slice: an LSTM's first
gradient took 2.4 s beside one busy process, 43 ms without these threads. How many threads it may use is a setting of
the whole process: it is put down while a small product runs, or the background compiler, and put back.

Graphs that are interpreted until they are compiled use the products of compiled code (`native`), as soon as there are
any: their threads don't wait for cores, and NumPy's products take twice as long on processors that OpenBLAS knows only
by their predecessors. Bits differ, and when a graph gets them depends on what else the machine does, as with compiled
code. So other calls, whose results nothing else changes from run to run, keep to NumPy.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from runtime import system

# Multiplications: below the first OpenBLAS stays on one thread itself; beyond the second, some 1 ms, threads pay.
_FEW, _MANY = 1 << 18, 1 << 26
_NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads64_")


@functools.cache
def _setting() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """What tells and sets OpenBLAS's number of threads; None where NumPy has another library."""
    core = importlib.import_module(f"numpy.{'_core' if hasattr(np, '_core') else 'core'}._multiarray_umath")
    # The first finds what it is linked with, too, but not on Windows, where wheels bring OpenBLAS along as the second.
    beside = Path(np.__file__).parents[1] / "numpy.libs"
    for file in (core.__file__, *beside.glob("*openblas*.dll")):
        try:
            library = ctypes.PyDLL(str(file))
        except OSError:
            continue
        for name in _NAMES:
            if hasattr(library, name.format("get")) and hasattr(library, name.format("set")):
                return library[name.format("get")], library[name.format("set")]
    return None


class _OneThread:
    """A context in which OpenBLAS uses no threads of its own. Contexts may overlap in several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._usual = 1  # threads outside of these contexts

    def __enter__(self) -> None:
        setting = _setting()
        if setting is not None:
            with self._lock:
                self._inside += 1
                if self._inside == 1:
                    self._usual = setting[0]()
                    if self._usual > 1:
                        setting[1](1)

    def __exit__(self, *error: Any) -> None:
        setting = _setting()
        if setting is not None:
            with self._lock:
                self._inside -= 1
                # Not where somebody has set another number meanwhile.
                if self._inside == 0 and self._usual > 1 and setting[0]() == 1:
                    setting[1](self._usual)

    def forget(self) -> None:
        """In a forked child, whose other threads are gone: ends their contexts."""
        self._lock = threading.Lock()
        if self._inside:
            self._inside = 1
            self.__exit__()


one_thread = _OneThread()
system.at_fork(after_in_child=one_thread.forget)


# Multiplications, some 20 ms of NumPy's: compiling takes 65 ms of a core, and half of that holds the interpreter lock.
# With twice as many, a transformer's first epoch takes 396 ms instead of 349; with half of them, that of an LSTM takes
# 4 % more.
_WORTH_COMPILING = 1 << 30


class _Native:
    """A context in which a thread's products are by compiled code, once there is some.

    functions: by the characters of dtypes. request: called with the character where products could have used one for
    long enough.
    """

    def __init__(self) -> None:
        self.functions: dict[str, Callable[[Any, Any], Any]] = {}
        self.request: Callable[[str], None] | None = None
        self._missed = 0  # multiplications that compiled code could have done
        self._of_thread = threading.local()

    def __enter__(self) -> None:
        self._of_thread.depth = getattr(self._of_thread, "depth", 0) + 1

    def __exit__(self, *error: Any) -> None:
        self._of_thread.depth -= 1

    def function(self, a: Any, b: Any, work: int) -> Callable[[Any, Any], Any] | None:
        """What multiplies these matrices, by `work` multiplications; None if NumPy has to."""
        kind = a.dtype.char
        if kind not in "fd" or b.dtype.char != kind or not a.ndim == 2 == b.ndim or a.shape[1] != b.shape[0]:
            return None
        if not getattr(self._of_thread, "depth", 0):
            return None
        found = self.functions.get(kind)
        if found is None and self.request is not None:
            self._missed += work
            if self._missed >= _WORTH_COMPILING:
                self.request(kind)
        return found


native = _Native()


def matmul(a: Any, b: Any) -> Any:
    """`np.matmul` of arrays of two dimensions or more."""
    if a.ndim > 2 == b.ndim and a.flags.c_contiguous:
        # One product of all rows, where NumPy would make one for each matrix of the batch.
        rows = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
        return matmul(rows, b).reshape(*a.shape[:-1], b.shape[-1])
    work = a.shape[-2] * a.shape[-1] * b.shape[-1]  # of each product
    if work <= _FEW:
        # Half of the time of `np.matmul`, where that is all there is to it.
        return a.dot(b) if a.ndim == 2 == b.ndim and a.dtype.char in "fd" else np.matmul(a, b)
    function = native.function(a, b, work)
    if function is not None:
        return function(a, b)
    if work <= _MANY and a.dtype.kind in "fc":
        with one_thread:
            return np.matmul(a, b)
    return np.matmul(a, b)
