"""Calls of functions that are traced already, a million of them, on one thread and on sixteen, must not use up memory.

    python -m tests.soak calls [--count N] [--threads N]

Each call is checked. The functions: native code over scalars and arrays, a variable assigned, a gradient, an error that
is raised and caught. Prints memory as it goes; exits with 1 when the process or its number of objects has grown over
the second half, when a result is wrong, or when anything was traced or compiled again.
"""

from __future__ import annotations

import argparse
import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import autograph as ag
from runtime.engine import kernel_counters, wait_for_background
from tests.soak.function_calls import memory

MOST_MIB = 8.0
MOST_BLOCKS = 20_000  # of Python's memory: a call that leaves one object would leave 500,000


def make_calls() -> list[tuple[int, Callable[[int], bool]]]:
    """(share of the calls, a call that says whether its result was right)."""
    total = ag.Variable(0, dtype=ag.int64)
    lock = threading.Lock()
    x = ag.constant(np.linspace(-1.0, 1.0, 64, dtype=np.float32))
    expected = float(np.sum(np.tanh(x.numpy().astype(np.float64)) ** 2))

    @ag.function(jit_compile=True)
    def scalars(a: Any, n: Any) -> Any:
        for _ in ag.range(n):
            a = a * 3 + 1
        return a

    @ag.function(jit_compile=True)
    def arrays(x: Any) -> Any:
        return ag.reduce_sum(ag.square(ag.tanh(x)))

    @ag.function(jit_compile=True)
    def assigns(n: Any) -> Any:
        total.assign_add(n)
        return total.read_value()

    @ag.function(jit_compile=True)
    def fails(n: Any) -> Any:
        return 7 // n

    @ag.function(jit_compile=False)
    def interpreted(x: Any) -> Any:
        return x[1:] - x[:-1]

    three, one, zero = ag.constant(3), ag.constant(1, ag.int64), ag.constant(0)

    def call_assigns(index: int) -> bool:
        with lock:  # a read, an addition and an assignment of a variable are three steps, as in any program
            before = int(total)
            return int(assigns(one)) == before + 1

    def call_gradient(index: int) -> bool:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = arrays(x)
        return bool(tape.gradient(y, x).shape == (64,))

    def call_fails(index: int) -> bool:
        try:
            fails(zero)
        except ag.errors.InvalidArgumentError:
            return True
        return False

    return [
        (70, lambda index: int(scalars(ag.constant(index % 5), three)) == (index % 5) * 27 + 13),
        (15, lambda index: abs(float(arrays(x)) - expected) < 1e-4),
        (5, call_assigns),
        (4, lambda index: interpreted(x).shape == (63,)),
        (3, call_gradient),
        (3, call_fails),
    ]


def run(count: int, threads: int, report: Callable[[str], None] = print) -> bool:
    """Whether `count` calls by so many threads went well."""
    plan = [call for share, call in make_calls() for _ in range(share)]
    for index in range(3 * len(plan)):
        plan[index % len(plan)](index)
    wait_for_background()
    before = (kernel_counters().compiled, kernel_counters().loaded)
    wrong: list[str] = []
    marks: list[tuple[float, int]] = []

    def work(first: int, last: int) -> None:
        for index in range(first, last):
            try:
                if not plan[index % len(plan)](index):
                    wrong.append(f"call {index} gave a wrong result")
            except Exception as error:
                wrong.append(f"call {index}: {type(error).__name__}: {error}")
            if len(wrong) > 10:
                return

    parts = 10
    for part in range(parts):
        first, size = part * count // parts, count // parts
        bounds = [first + size * t // threads for t in range(threads + 1)]
        workers = [threading.Thread(target=work, args=pair) for pair in zip(bounds, bounds[1:])]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        gc.collect()
        marks.append((memory(), sys.getallocatedblocks()))
        report(f"{first + size:>9} calls  {marks[-1][0]:8.1f} MiB  {marks[-1][1]} blocks")
    grown, blocks = (marks[-1][i] - marks[parts // 2 - 1][i] for i in (0, 1))
    again = (kernel_counters().compiled, kernel_counters().loaded) != before
    report(f"second half: {grown:+.2f} MiB, {blocks:+.0f} blocks; compiled again: {again}; wrong: {wrong[:3]}")
    return grown <= MOST_MIB and blocks <= MOST_BLOCKS and not again and not wrong


def main(arguments: list[str] | None = None) -> int:
    """Runs the calls on one thread, then half as many on several."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.calls")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=16)
    options = parser.parse_args(arguments)
    good = run(options.count, 1)
    return int(not (run(options.count // 2, options.threads) and good))


if __name__ == "__main__":
    sys.exit(main())
