"""Makes, converts, runs and drops functions, and says whether memory stays flat.

    python -m tests.soak calls [--count N]      calls of functions that are traced already (see calls.py)
    python -m tests.soak [COUNT]        100,000 closures of one function, and COUNT functions of their own code (2,000)

Exit code 1 when the number of living objects, or the memory of the process, grows with the number of functions.
"""

from __future__ import annotations

import gc
import linecache
import sys
import time
from collections.abc import Callable
from pathlib import Path

from autograph.convert.api import converted
from tests.soak import calls

SOURCE = """\
def step(x, k={n}):
    total = 0
    for i in range(x):
        if i % 2 and i != k:
            total += i
    return [t for t in (total, k)]
"""
# How many blocks of memory a function may leave on average: an object that stays would be one.
MOST_BLOCKS = 0.5
PARTS = 4


def make_code(number: int) -> None:
    """One function with code of its own: made, converted, run, dropped."""
    filename = f"<soak {number}>"
    text = SOURCE.format(n=number)
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace: dict = {"__name__": "soak"}
    exec(compile(text, filename, "exec"), namespace)
    assert converted(namespace["step"])(4) == [1 + 3 - number if number in (1, 3) else 4, number]
    del linecache.cache[filename]


def make_closure(number: int) -> None:
    """One closure of the same code."""

    def step(x: int) -> int:
        if x > number:
            return x - number
        return x

    assert converted(step)(number + 1) == 1


def resident() -> int:
    """The memory of this process in bytes, or 0 where that can't be told."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * 4096 if status.exists() else 0


def soak(action: Callable[[int], None], count: int) -> tuple[float, int]:
    """Blocks of memory that each function leaves, and how far the process grew over the second half, in bytes.

    The blocks are those of the best of some parts: what leaks does so in each of them, while caches fill, and tables
    double their size, in some.
    """
    for number in range(count // 20 + 100):
        action(number)
    left, sizes = [], []
    for part in range(PARTS):
        gc.collect()
        before = sys.getallocatedblocks()
        sizes.append(resident())
        for number in range(part * count // PARTS, (part + 1) * count // PARTS):
            action(number)
        gc.collect()
        left.append((sys.getallocatedblocks() - before) * PARTS / count)
    return min(left), resident() - sizes[PARTS // 2]


def main(arguments: list[str]) -> int:
    """Runs both soaks and reports them; or what is named first."""
    if arguments[:1] == ["calls"]:
        return calls.main(arguments[1:])
    count = int(arguments[0]) if arguments else 2_000
    failed = False
    for action, times in ((make_closure, 100_000), (make_code, count)):
        start = time.perf_counter()
        left, growth = soak(action, times)
        seconds = time.perf_counter() - start
        failed |= left > MOST_BLOCKS
        name = action.__name__.replace("_", " ")
        print(
            f"{name:14} {times:8,} times  {seconds:7.1f} s  {left:8.4f} blocks left each  RSS {growth / 2**20:+.2f} MiB"
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
