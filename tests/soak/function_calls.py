"""Calls with fresh closures, instances and objects, a million of them, must not make the process grow.

    python -m tests.soak.function_calls [calls]

Prints the process's memory and the numbers of traces, live functions and live objects as it goes; exits with 1 when
memory has grown by more than 32 MiB over the second half, or when traces have piled up. It is no part of the test
suite: a million calls take minutes.
"""

from __future__ import annotations

import gc
import resource
import sys
import warnings
import weakref
from pathlib import Path
from typing import Any

import autograph as ag

LIMIT_MIB = 32


def memory() -> float:
    """MiB that the process holds now (where the system tells), else the most it ever held."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


class Thing:
    """An object that a function reads a number from."""

    factor = 2.0

    @ag.function(jit_compile=False)
    def method(self, x: Any) -> Any:
        return x * self.factor


@ag.function(jit_compile=False)
def takes_closure(function: Any, x: Any) -> Any:
    return function(x)


@ag.function(jit_compile=False)
def takes_object(thing: Any, x: Any) -> Any:
    return x + thing.factor


@ag.function(jit_compile=False)
def same(x: Any) -> Any:
    return x + 1.0


def one_call(index: int, x: Any, live: weakref.WeakSet) -> None:
    """The kinds of calls in turn; most are of a function that has been traced already, as in programs."""
    kind = index % 200
    if kind == 0:
        offset = float(index % 7)

        def closure(v: Any) -> Any:
            return v + offset

        live.add(closure)
        takes_closure(closure, x)
    elif kind == 1:
        thing = Thing()
        live.add(thing)
        thing.method(x)
    elif kind == 2:
        thing = Thing()
        live.add(thing)
        takes_object(thing, x)
    elif kind == 3:
        fresh = ag.function(lambda v: v * 2.0, jit_compile=False)
        live.add(fresh)
        fresh(x)
    else:
        same(x)


def main(calls: int) -> int:
    warnings.simplefilter("ignore")
    x = ag.constant(1.0)
    live: weakref.WeakSet = weakref.WeakSet()
    half = 0.0
    for index in range(calls):
        one_call(index, x, live)
        if (index + 1) % max(1, calls // 10) == 0:
            gc.collect()
            traces = [len(f._cache) for f in (takes_closure, takes_object, same)]
            print(f"{index + 1:>9} calls  {memory():8.1f} MiB  traces {traces}  live {len(live)}", flush=True)
            if index + 1 <= calls // 2:
                half = memory()
    growth = memory() - half
    piled = max(len(f._cache) for f in (takes_closure, takes_object)) > takes_closure._cache.limit or len(live) > 2000
    print(f"growth over the second half: {growth:.1f} MiB; piled up: {piled}")
    return int(growth > LIMIT_MIB or piled)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
