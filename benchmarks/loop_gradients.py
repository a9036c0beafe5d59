"""What gradients of loops cost: `python -m benchmarks.loop_gradients [--quick]` writes docs/loop_gradients.md and .svg.

Three things are measured: the time of value and gradient over the time of the value alone, what the forward loop saves
per trip, and a loop of 1e7 steps with a budget of 1 MiB beside one that keeps everything. `CASES`, for `python -m
benchmarks`, compares an eager tape over many small ops with torch's autograd and TensorFlow's tape.
"""

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import autograph as ag
from benchmarks import peers
from benchmarks.harness import Call, Case

DOCS = Path(__file__).resolve().parent.parent / "docs"
BUDGET = 2**20

# --- programs --------------------------------------------------------------------------------------------------------


def logistic(r, n):
    x = ag.constant(0.3, ag.float64)
    for _ in ag.range(n):
        x = r * x * (1.0 - x)
    return x


def pendulum(length, n):
    angle, speed = ag.constant(1.0, ag.float64), ag.constant(0.0, ag.float64)
    for _ in ag.range(n):
        speed = speed - 0.001 * 9.81 / length * ag.sin(angle)
        angle = angle + 0.001 * speed
    return angle


def series(x, n):
    """Only sums: nothing has to be saved."""
    total = ag.constant(0.0, ag.float64)
    for i in ag.range(n):
        total += ag.sin(x * ag.cast(i, ag.float64)) * 1e-3
    return total


def search(x, n):
    """Ends when the value says so, with a branch in each trip."""
    y, i = x, ag.constant(0)
    while i < n and y > 1e-6:
        if y > 0.5:
            y = y * 0.99999
        else:
            y = y - 1e-6 * y * y
        i += 1
    return y


def dot(x, n):
    """Reads the rows of a vector."""
    total = ag.constant(0.0, ag.float64)
    for i in ag.range(n):
        total += x[i] * x[i] * 0.5
    return total


def recurrent(w, n):
    """A network's layer again and again: a product of matrices is most of it."""
    h = ag.ones((64, 128), ag.float32) * 0.1
    for _ in ag.range(n):
        h = ag.tanh(ag.linalg.matmul(h, w))
    return ag.reduce_sum(h)


def power(w, n):
    """Powers of a matrix."""
    m = w
    for _ in ag.range(n):
        m = ag.linalg.matmul(m, w) * 0.5
    return ag.reduce_sum(m)


@dataclass(frozen=True)
class Program:
    function: Callable[..., Any]
    source: Callable[[], Any]
    trips: int
    needed: int  # bytes of the carries that the adjoint needs, per trip
    target: float

    @property
    def name(self) -> str:
        return self.function.__name__


def _square(size: int) -> Any:
    return ag.constant(np.random.default_rng(1).normal(size=(size, size)) / size**0.5, ag.float32)


def programs(quick: bool) -> list[Program]:
    steps, layers = (10_000, 5) if quick else (10_000, 50)
    number = lambda value: lambda: ag.constant(value, ag.float64)  # noqa: E731
    return [
        Program(logistic, number(3.2), steps, 8, 5.0),
        Program(pendulum, number(1.0), steps, 8, 5.0),
        Program(series, number(0.01), steps, 0, 5.0),
        Program(search, number(1.0), steps, 8, 5.0),
        Program(dot, lambda: ag.constant(np.linspace(0, 1, steps)), steps, 0, 5.0),
        # h, and the operand of tanh: from tanh(x) alone its slope has no digits left far out.
        Program(recurrent, lambda: _square(128), layers, 2 * 64 * 128 * 4, 4.0),
        Program(power, lambda: _square(256), layers, 256 * 256 * 4, 4.0),
    ]


# --- times -----------------------------------------------------------------------------------------------------------


def with_gradient(function: Callable[..., Any], memory: int | None = None) -> Callable[..., Any]:
    """The compiled value and gradient."""

    @ag.function(jit_compile=True, gradient_memory=memory)
    def both(x, n):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = function(x, n)
        return y, tape.gradient(y, x)

    return both


def ratio_of_times(
    slow: Callable[..., Any], fast: Callable[..., Any], arguments: tuple, quick: bool
) -> tuple[float, float]:
    """time(slow) / time(fast) and time(fast): of each the best round, since a machine shared with others only adds.
    They are timed in turn."""
    rounds, block = (5, 0.01) if quick else (15, 0.05)
    slow(*arguments)
    fast(*arguments)
    began = time.perf_counter()
    fast(*arguments)
    count = max(1, round(block / (time.perf_counter() - began + 1e-9)))
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for which, call in enumerate((fast, slow)):
            began = time.perf_counter()
            for _ in range(count):
                call(*arguments)
            best[which] = min(best[which], (time.perf_counter() - began) / count)
    return best[1] / best[0], best[0]


def bytes_saved(function: Callable[..., Any], *args: Any) -> int:
    """Bytes that the forward loops push on stacks, once a trip."""
    from runtime.autodiff.vjp import build_vjp
    from runtime.graph.passes.pipeline import optimize

    graph = ag.function(function).get_concrete_function(*args).graph
    forward = optimize(build_vjp(graph, [0], [0]).forward)
    pushed = [n.inputs[1] for n in forward.walk() if n.op.name == "stack_push"]
    return sum(int(np.prod(v.shape, dtype=np.int64)) * v.dtype.size for v in pushed)


def table(quick: bool) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for program in programs(quick):
        x, n = program.source(), ag.constant(program.trips)
        value = ag.function(program.function, jit_compile=True)
        both = with_gradient(program.function)
        ratio, seconds = ratio_of_times(both, value, (x, n), quick)
        saved = bytes_saved(program.function, x, n)
        rows.append(
            (
                program.name,
                f"{program.trips:,}",
                f"{seconds * 1e6:,.0f} µs",
                f"{ratio:.1f}",
                f"{program.target:.0f}",
                f"{saved:,}",
                f"{program.needed:,}",
            )
        )
        print("  ".join(rows[-1]), flush=True)
    return rows


# --- memory ----------------------------------------------------------------------------------------------------------


def one_run(steps: int, memory: int | None) -> None:
    """In a process of its own: time of value and gradient over that of the value, the gradient, and the peak of memory
    above what is there before the first call."""
    value = ag.function(logistic, jit_compile=True)
    both = with_gradient(logistic, memory)
    r, n = ag.constant(3.2, ag.float64), ag.constant(steps)
    both(r, ag.constant(10))
    value(r, ag.constant(10))
    again = max(1, 10_000_000 // steps)  # long enough for the watcher
    peak, (_, gradient) = with_peak(lambda: [both(r, n) for _ in range(again)][-1])
    ratio, _ = ratio_of_times(both, value, (r, n), True)
    print(ratio, float(gradient).hex(), peak)


def with_peak(call: Call) -> tuple[int, Any]:
    """The most memory, in bytes, that the process had during a call beyond what it had before; and the call's result.

    Another thread looks again and again (Linux only), while native code runs without the interpreter's lock.
    """
    libc = ctypes.CDLL(None)
    libc.malloc_trim(0)  # what was freed before is given back, or it would be taken from there
    status, page_size = Path("/proc/self/statm"), os.sysconf("SC_PAGESIZE")
    resident = lambda: int(status.read_text().split()[1]) * page_size  # noqa: E731
    before, seen, done = resident(), [0], threading.Event()

    def watch() -> None:
        while not done.is_set():
            seen.append(resident())
            time.sleep(0.0002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        result = call()
        seen.append(resident())
    finally:
        done.set()
        watcher.join()
    return max(0, max(seen) - before), result


def measured_apart(steps: int, memory: int | None) -> tuple[float, str, int]:
    command = [sys.executable, "-m", "benchmarks.loop_gradients", "--one", str(steps), str(memory or 0)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=DOCS.parent).stdout.split()
    return float(found[0]), found[1], int(found[2])


def memory_against_steps(quick: bool) -> list[tuple[int, int | None, float, str, int]]:
    found = []
    for steps in (10_000, 100_000) if quick else (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000):
        for memory in (BUDGET, None):
            found.append((steps, memory, *measured_apart(steps, memory)))
            print(found[-1], flush=True)
        if found[-1][3] != found[-2][3]:
            raise AssertionError(f"{steps} steps: the gradients differ")
    return found


def plot(found: Sequence[tuple[int, int | None, float, str, int]], path: Path) -> None:
    import matplotlib  # type: ignore[import-not-found,unused-ignore]

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "loop_gradients"
    from matplotlib import pyplot  # type: ignore[import-not-found,unused-ignore]

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6))
    for memory, label in ((None, "everything kept"), (BUDGET, "gradient_memory = 1 MiB")):
        steps = [row[0] for row in found if row[1] == memory]
        left.plot(steps, [max(row[4], 4096) / 2**20 for row in found if row[1] == memory], "o-", label=label)
        right.plot(steps, [row[2] for row in found if row[1] == memory], "o-", label=label)
    left.set(xscale="log", yscale="log", xlabel="steps", ylabel="peak of memory, MiB")
    left.axhline(1, color="gray", linewidth=0.8, linestyle=":")
    right.set(xscale="log", xlabel="steps", ylabel="value and gradient / value", ylim=(0, None))
    for axes in (left, right):
        axes.legend()
        axes.grid(alpha=0.3)
    figure.suptitle("Gradient of the logistic map, float64")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


# --- the page --------------------------------------------------------------------------------------------------------

_HEAD = """# What gradients of loops cost

Written by `python -m benchmarks.loop_gradients`. Times are of value and gradient together over the value alone, both
compiled, measured in turn on one thread, the best of some rounds. Saved are the bytes that the forward loop keeps per
trip, needed those of the carries that the gradient needs.

| loop | trips | value | value and gradient / value | target | bytes saved per trip | needed |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
"""

_MEMORY = """
## In bounded memory

The logistic map in float64, which needs 8 bytes a step, with everything kept and with `gradient_memory=2**20`. The
gradients are equal to the last bit at each number of steps. Memory is the peak of the process above what it takes after
the first calls.

![Memory and time against steps](loop_gradients.svg)

| steps | budget | value and gradient / value | peak of memory |
| ---: | --- | ---: | ---: |
"""


def page(rows: Sequence[tuple[str, ...]], found: Sequence[tuple[int, int | None, float, str, int]]) -> str:
    lines = [_HEAD.rstrip("\n"), *[f"| {' | '.join(row)} |" for row in rows], _MEMORY.rstrip("\n")]
    for steps, memory, ratio, _, peak in found:
        budget = "1 MiB" if memory else "none"
        lines.append(f"| {steps:,} | {budget} | {ratio:.1f} | {peak / 2**20:.1f} MiB |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loop_gradients", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds; writes nothing")
    parser.add_argument("--one", nargs=2, type=int, metavar=("STEPS", "BYTES"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        one_run(options.one[0], options.one[1] or None)
        return 0
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        # Else threads that wait for each other in small products are what is measured. BLAS reads this when loaded.
        command = [sys.executable, "-m", "benchmarks.loop_gradients", *(arguments or sys.argv[1:])]
        return subprocess.run(command, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, cwd=DOCS.parent).returncode
    with tempfile.TemporaryDirectory(prefix="autograph-benchmarks-", ignore_cleanup_errors=True) as cache:
        os.environ.setdefault("AUTOGRAPH_CACHE_DIR", cache)
        rows = table(options.quick)
        found = memory_against_steps(options.quick)
    if not options.quick:
        (DOCS / "loop_gradients.md").write_text(page(rows, found), encoding="utf-8")
        plot(found, DOCS / "loop_gradients.svg")
    return 0


# --- an eager tape beside others -------------------------------------------------------------------------------------


def _ops(quick: bool) -> int:
    return 20 if quick else 100


def eager(quick: bool) -> Call:
    count, x = _ops(quick), ag.constant(np.linspace(0, 1, 10, dtype=np.float32))

    def gradient():
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(count):
                y = ag.sin(y) * x
        return tape.gradient(y, x)

    return gradient


def eager_torch(quick: bool) -> Call:
    library, count = peers.load("torch"), _ops(quick)
    x = library.linspace(0, 1, 10, requires_grad=True)
    ones = library.ones(10)

    def gradient():
        y = x
        for _ in range(count):
            y = library.sin(y) * x
        return library.autograd.grad(y, x, ones)[0]

    return gradient


def eager_tensorflow(quick: bool) -> Call:
    tf, count = peers.load("tensorflow"), _ops(quick)
    x = tf.linspace(0.0, 1.0, 10)

    def gradient():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(count):
                y = tf.sin(y) * x
        return tape.gradient(y, x)

    return gradient


CASES = [
    Case(
        "eager-tape",
        "Eager tape over 200 small ops, float32",
        {peers.AUTOGRAPH: eager, peers.TORCH: eager_torch, peers.TF: eager_tensorflow},
        rtol=1e-4,
    ),
]

if __name__ == "__main__":
    sys.exit(main())
