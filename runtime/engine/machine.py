"""A roofline model of this machine: lower bounds for the run time of kernels.

The model is measured once per process, at first use, in about 200 ms: memory bandwidth as the best of several copies of
32 MiB by all threads (bytes read and written), arithmetic as the best of several products of 512 x 512 float32 matrices
by NumPy's BLAS. Data in the processor's caches can exceed the bandwidth. Many runs are measured, since other programs
slow most of them down.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable

import numpy as np

from runtime.codegen.passes.parallelize import thread_count
from runtime.dataclass import dataclass

_BYTES = 32 << 20
_SIZE = 512
_TRIES, _SECONDS = 4, 0.1  # the least number of tries, and their least total time


@dataclass(frozen=True)
class Machine:
    """bandwidth: bytes per second; arithmetic: float32 operations per second; threads: the number with which the
    bandwidth was measured; seconds: the time of the measurement."""

    bandwidth: float
    arithmetic: float
    threads: int
    seconds: float

    def floor(self, moved: int, operations: int) -> tuple[float, str]:
        """The least time in seconds for moving `moved` bytes and computing `operations`, and which of the two limits
        it."""
        memory, compute = moved / self.bandwidth, operations / self.arithmetic
        return (memory, "memory") if memory >= compute else (compute, "arithmetic")

    def allows(self, intensity: float) -> float:
        """The highest rate, in operations per second, of a kernel with this number of operations per byte."""
        return min(self.arithmetic, self.bandwidth * intensity)


@functools.cache
def machine() -> Machine:
    """The measured limits."""
    start = time.perf_counter()
    threads = min(thread_count(), 16)
    source, target = np.ones(_BYTES, np.uint8), np.empty(_BYTES, np.uint8)
    np.copyto(target, source)  # the pages exist
    bandwidth = 2 * _BYTES / _best(lambda: _copy(target, source, threads))
    a = np.ones((_SIZE, _SIZE), np.float32)
    out = a @ a
    arithmetic = 2 * _SIZE**3 / _best(lambda: np.matmul(a, a, out=out))
    return Machine(bandwidth, arithmetic, threads, time.perf_counter() - start)


def _copy(target: np.ndarray, source: np.ndarray, threads: int) -> None:
    step = -(-len(source) // threads)
    workers = [
        threading.Thread(target=np.copyto, args=(target[at : at + step], source[at : at + step]))
        for at in range(0, len(source), step)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _best(action: Callable[[], object]) -> float:
    times: list[float] = []
    end = time.perf_counter() + _SECONDS
    while len(times) < _TRIES or time.perf_counter() < end:
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)
