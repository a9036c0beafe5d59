"""Matrix products by NumPy, small ones on the caller's thread alone.

OpenBLAS, which NumPy brings along, hands parts of all but tiny products to threads of its own and spins until they
are done. For a product of less than a millisecond that gains little where the other cores have nothing to do, and where
they have (the background compiler's thread, another program) the caller waits for a time slice: an LSTM's first
gradient took 2.4 s beside one busy process, 43 ms without these threads. How many threads it may use is a setting of
the whole process: it is put down while a small product runs, or the background compiler, and put back.

Where the other cores do have nothing to do, two threads halve the time of a product of 80 us. Graphs that are
interpreted until they are compiled (`spare_cores`) try that, and stop for a while once a product has waited. The bits
of a product depend on the number of threads. So other calls, whose results nothing else changes from run to run, don't.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

# Multiplications: below the first OpenBLAS stays on one thread itself; beyond the second, some 1 ms, threads pay.
_FEW, _MANY = 1 << 18, 1 << 26
_NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads64_")


@functools.cache
def _setting() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """What tells and sets OpenBLAS's number of threads; None where NumPy has another library."""
    core = importlib.import_module(f"numpy.{'_core' if hasattr(np, '_core') else 'core'}._multiarray_umath")
    try:
        library = ctypes.PyDLL(core.__file__)  # finds what it is linked with, too
    except (OSError, TypeError):
        return None
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
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=one_thread.forget)


# Seconds that a product on all threads may take longer than on one before it counts as one that has waited: a time
# slice is several milliseconds. Then the seconds until all threads are tried again, which double up to the longest, and
# the seconds without waiting after which they are short again.
_WAITED, _PAUSE, _LONGEST_PAUSE, _CALM = 5e-4, 0.5, 4.0, 1.0
# Multiplications, some 35 us: below, all threads gain too little for what waiting costs.
_WORTH_THREADS = 1 << 21
_clock = time.perf_counter


class _SpareCores(threading.local):
    """A context in which products of the thread use all cores, as long as these have nothing else to do."""

    def __init__(self) -> None:
        self._inside = 0
        self._rate = 0.0  # multiplications per second on one thread, at best
        self._again, self._pause = -math.inf, _PAUSE  # when to try all threads, and the last pause before that

    def __enter__(self) -> None:
        self._inside += 1

    def __exit__(self, *error: Any) -> None:
        self._inside -= 1

    def matmul(self, a: Any, b: Any, work: int) -> Any:
        """The product; work: its multiplications."""
        start = _clock()
        if not (self._inside and self._rate and start >= self._again and work >= _WORTH_THREADS):
            with one_thread:
                result = np.matmul(a, b)
            self._rate = max(self._rate, work / max(_clock() - start, 1e-9))
            return result
        result = np.matmul(a, b)
        end = _clock()
        if end - start > _WAITED + work / self._rate:
            self._pause = _PAUSE if start > self._again + _CALM else min(2 * self._pause, _LONGEST_PAUSE)
            self._again = end + self._pause
        return result


spare_cores = _SpareCores()


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
    if work <= _MANY and a.dtype.kind in "fc":
        return spare_cores.matmul(a, b, work)
    return np.matmul(a, b)
