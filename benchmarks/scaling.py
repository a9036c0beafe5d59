"""How gradients of loops grow with the array: `python -m benchmarks.scaling [--quick]` writes docs/gradient_scaling.md.

Nests of one to four loops read an array element by element, write one, or do both. What is measured is the time of
value and gradient over that of the value, at four sizes of the array: it is to be flat.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import autograph as ag

PAGE = Path(__file__).resolve().parent.parent / "docs" / "gradient_scaling.md"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
TARGET = 4.0

# --- programs --------------------------------------------------------------------------------------------------------


def read_1(x):
    total = ag.zeros((), x.dtype)
    for i in ag.range(x.shape[0]):
        total += x[i] * x[i - 1]
    return total


def read_2(x):
    total = ag.zeros((), x.dtype)
    for i in ag.range(x.shape[0]):
        for j in ag.range(x.shape[1]):
            total += x[i, j] * x[i - 1, j]
    return total


def read_3(x):
    total = ag.zeros((), x.dtype)
    for i in ag.range(x.shape[0]):
        for j in ag.range(x.shape[1]):
            for k in ag.range(x.shape[2]):
                total += x[i, j, k] * x[i - 1, j, k]
    return total


def read_4(x):
    total = ag.zeros((), x.dtype)
    for i in ag.range(x.shape[0]):
        for j in ag.range(x.shape[1]):
            for k in ag.range(x.shape[2]):
                for m in ag.range(x.shape[3]):
                    total += x[i, j, k, m] * x[i - 1, j, k, m]
    return total


def scatter_1(x):
    made = ag.zeros_like(x)
    for i in ag.range(x.shape[0]):
        made = ag.tensor_scatter_nd_update(made, [[i]], [x[i] * x[i]])
    return ag.reduce_sum(made * made)


def scatter_2(x):
    made = ag.zeros_like(x)
    for i in ag.range(x.shape[0]):
        for j in ag.range(x.shape[1]):
            made = ag.tensor_scatter_nd_update(made, [[i, j]], [x[i, j] * x[i, j]])
    return ag.reduce_sum(made * made)


def scatter_3(x):
    made = ag.zeros_like(x)
    for i in ag.range(x.shape[0]):
        for j in ag.range(x.shape[1]):
            for k in ag.range(x.shape[2]):
                made = ag.tensor_scatter_nd_update(made, [[i, j, k]], [x[i, j, k] * x[i, j, k]])
    return ag.reduce_sum(made * made)


def scatter_4(x):
    made = ag.zeros_like(x)
    for i in ag.range(x.shape[0]):
        for j in ag.range(x.shape[1]):
            for k in ag.range(x.shape[2]):
                for m in ag.range(x.shape[3]):
                    made = ag.tensor_scatter_nd_update(made, [[i, j, k, m]], [x[i, j, k, m] * x[i, j, k, m]])
    return ag.reduce_sum(made * made)


def both_1(x):
    for i in ag.range(1, x.shape[0]):
        x = ag.tensor_scatter_nd_update(x, [[i]], [ag.sin(x[i - 1]) * x[i]])
    return ag.reduce_sum(x * x)


def both_2(x):
    for i in ag.range(1, x.shape[0]):
        for j in ag.range(x.shape[1]):
            x = ag.tensor_scatter_nd_update(x, [[i, j]], [ag.sin(x[i - 1, j]) * x[i, j]])
    return ag.reduce_sum(x * x)


def both_3(x):
    for i in ag.range(1, x.shape[0]):
        for j in ag.range(x.shape[1]):
            for k in ag.range(x.shape[2]):
                x = ag.tensor_scatter_nd_update(x, [[i, j, k]], [ag.sin(x[i - 1, j, k]) * x[i, j, k]])
    return ag.reduce_sum(x * x)


def both_4(x):
    for i in ag.range(1, x.shape[0]):
        for j in ag.range(x.shape[1]):
            for k in ag.range(x.shape[2]):
                for m in ag.range(x.shape[3]):
                    x = ag.tensor_scatter_nd_update(x, [[i, j, k, m]], [ag.sin(x[i - 1, j, k, m]) * x[i, j, k, m]])
    return ag.reduce_sum(x * x)


NESTS: dict[tuple[str, int], Callable[..., Any]] = {
    **{("read", depth): f for depth, f in enumerate((read_1, read_2, read_3, read_4), 1)},
    **{("scatter", depth): f for depth, f in enumerate((scatter_1, scatter_2, scatter_3, scatter_4), 1)},
    **{("both", depth): f for depth, f in enumerate((both_1, both_2, both_3, both_4), 1)},
}


def stencil(x):
    total = ag.zeros((), x.dtype)
    for y in ag.range(1, x.shape[0] - 1):
        for k in ag.range(1, x.shape[1] - 1):
            for d in ag.range(-1, 2):
                total += (x[y + d, k] - x[y, k]) ** 2
    return total


def bilateral(x):
    """A filter that keeps edges: four loops, an array that is read nine times an element and one that is written."""
    made = ag.zeros_like(x)
    for y in ag.range(1, x.shape[0] - 1):
        for k in ag.range(1, x.shape[1] - 1):
            weighted, weights = ag.zeros((), x.dtype), ag.zeros((), x.dtype)
            for dy in ag.range(-1, 2):
                for dx in ag.range(-1, 2):
                    value = x[y + dy, k + dx]
                    weight = ag.exp(-((value - x[y, k]) ** 2))
                    weighted += weight * value
                    weights += weight
            made = ag.tensor_scatter_nd_update(made, [[y, k]], [weighted / weights])
    return ag.reduce_sum(made * made)


def extremes(x):
    """The larger of an element and a product of others, at two places of an array."""
    made = ag.zeros_like(x)
    for i in ag.range(1, x.shape[0]):
        made = ag.tensor_scatter_nd_max(made, [[i]], [x[i] * x[i - 1]])
        made = ag.tensor_scatter_nd_min(made, [[i - 1]], [x[i] * made[i]])
    return ag.reduce_sum(made * made)


def branches(x):
    """An array that branches of branches read and update."""
    for i in ag.range(1, x.shape[0]):
        for j in ag.range(1, x.shape[1]):
            if x[i, j] > 0.3:
                if x[i, j - 1] > 0.5:
                    x = ag.tensor_scatter_nd_update(x, [[i, j]], [x[i, j] * x[i, j - 1]])
                else:
                    x = ag.tensor_scatter_nd_update(x, [[i, j]], [ag.sin(x[i - 1, j])])
    return ag.reduce_sum(x * x)


def loops_in_branches(x):
    """An array that a loop behind a `continue` reads and updates."""
    for i in ag.range(3, x.shape[0]):
        if x[i] < 0.2:
            continue
        for k in ag.range(3):
            x = ag.tensor_scatter_nd_update(x, [[i - k]], [x[i] * x[i - k] + x[i - k - 1]])
    return ag.reduce_sum(x * x)


# Each with the rank of its array.
PROGRAMS = {
    **{f"{kind}, depth {depth}": (function, depth) for (kind, depth), function in NESTS.items()},
    "stencil, depth 3": (stencil, 2),
    "bilateral filter, depth 4": (bilateral, 2),
    "largest and smallest, depth 1": (extremes, 1),
    "updates in branches, depth 2": (branches, 2),
    "a loop in a branch, depth 2": (loops_in_branches, 1),
}


def source(rank: int, size: int) -> Any:
    """An array of about so many elements, all sides alike."""
    side = round(size ** (1 / rank))
    return ag.constant(np.linspace(0.1, 0.9, side**rank).reshape((side,) * rank))


# --- times -----------------------------------------------------------------------------------------------------------


def times(function: Callable[..., Any], x: Any, rounds: int) -> tuple[float, float]:
    """Seconds of the processor for the value, and for value and gradient, both compiled; the least of some rounds.

    A call of many milliseconds seldom has a processor to itself on a busy machine: by the clock it looks longer.
    """

    def both(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return y, tape.gradient(y, x)

    calls = [ag.function(each, jit_compile=True) for each in (function, both)]
    for call in calls:
        call(x)
    best = [float("inf")] * 2
    for _ in range(rounds):
        for place, call in enumerate(calls):
            began = time.process_time()
            call(x)
            best[place] = min(best[place], time.process_time() - began)
    return best[0], best[1]


def table(sizes: Sequence[int], rounds: int) -> list[tuple[str, ...]]:
    rows = []
    for name, (function, rank) in PROGRAMS.items():
        found = [times(function, source(rank, size), rounds) for size in sizes]
        ratios = [slow / fast for fast, slow in found]
        cells = [f"{fast * 1e6:,.0f} µs, {ratio:.1f}" for (fast, _), ratio in zip(found, ratios, strict=True)]
        rows.append((name, *cells, "met" if max(ratios) <= TARGET else f"{max(ratios):.1f}"))
        print(" | ".join(rows[-1]), flush=True)
    return rows


_HEAD = """# How gradients of loops grow

Written by `python -m benchmarks.scaling`. Nests of loops read an array element by element (`x[i, j]`), write one
(`tensor_scatter_nd_update` and its like), or do both, and the gradient is taken with respect to the array. A cell has
the time of the value, and that of value and gradient together over it; both are compiled, on one thread, and what
counts is the processor's time, which other programs hardly change. The sides of an array are alike, so the number of
elements is about what the column says. The last column says whether value and gradient take at most
{target:.0f} times as long as the value; else the most that they take.

The gradient keeps one or several numbers for each trip of the innermost loop.

| loops | {sizes} | target |
| --- | {rules} | ---: |
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds; writes nothing")
    options = parser.parse_args(arguments)
    sizes = (64, 256) if options.quick else SIZES
    with tempfile.TemporaryDirectory(prefix="autograph-benchmarks-", ignore_cleanup_errors=True) as cache:
        os.environ.setdefault("AUTOGRAPH_CACHE_DIR", cache)
        rows = table(sizes, 2 if options.quick else 30)
    if not options.quick:
        head = _HEAD.format(
            sizes=" | ".join(f"{size:,} elements" for size in sizes),
            rules=" | ".join(["---:"] * len(sizes)),
            target=TARGET,
        )
        PAGE.write_text(head + "".join(f"| {' | '.join(row)} |\n" for row in rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
