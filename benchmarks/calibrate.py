"""Measures the cost model on this machine: `python -m benchmarks.calibrate [NAME ...] [--quick]`.

For each entry of `runtime/codegen/cost_model.py` it compiles small programs with several values of that entry and times
them side by side. It prints the value in the file, the value with which they were fastest, and how much longer they
take with the file's: 1.00 says that nothing is to be gained on this machine. Entries in ticks are times of what they
count. Programs decide little when they take the same time with all values, so look at the spread before changing an
entry: a value wins that is clearly faster, not the first of equals. Entries named DEVICE_... are for GPUs; this command
measures the processor and leaves them out.
"""

import argparse
import itertools
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import autograph as ag
from benchmarks import harness
from runtime.codegen import cost_model

Program = tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]  # a function, and what makes its arguments


@dataclass(frozen=True)
class Sweep:
    """Programs whose time depends on an entry, and the values to try. unit: of the entry."""

    unit: str
    values: tuple[int, ...]
    programs: tuple[Program, ...]


@dataclass(frozen=True)
class Timed:
    """An entry in ticks, of about a nanosecond: `loop` runs `trips` of what it counts, `empty` as many without."""

    unit: str
    trips: int
    loop: Program
    empty: Program


# --- programs --------------------------------------------------------------------------------------------------------


def arrays(*shapes: tuple[int, ...], dtype: Any = np.float32) -> Callable[[], tuple[Any, ...]]:
    def make() -> tuple[Any, ...]:
        random = np.random.default_rng(0)
        return tuple(ag.constant(random.uniform(0.5, 1.5, shape).astype(dtype)) for shape in shapes)

    return make


def sizes(function: Callable[..., Any], *counts: int) -> tuple[Program, ...]:
    return tuple((function, arrays((count,), (count,))) for count in counts)


def several(function: Callable[..., Any], *shapes: tuple[int, ...]) -> tuple[Program, ...]:
    return tuple((function, arrays(shape)) for shape in shapes)


def line(x, y):
    return x * y + x


def softmax(x):
    raised = ag.exp(x - ag.reduce_max(x, axis=-1, keepdims=True))
    return raised / ag.reduce_sum(raised, axis=-1, keepdims=True)


def sharing(x):
    raised = ag.exp(x)
    return ag.reduce_sum(raised * x), ag.reduce_sum(raised / (1.0 + raised), axis=0)


def chain(x, y):
    for step in range(100):
        x = x * y + float(step)
    return x


def normalised(x):
    for _ in ag.range(4):
        centred = x - ag.reduce_mean(x, axis=1, keepdims=True)
        x = centred / ag.sqrt(ag.reduce_mean(centred * centred, axis=1, keepdims=True) + 1e-3) * 0.9 + centred * 0.1
    return x


def softmax_in_loop(x):
    for _ in ag.range(20):
        x = softmax(x) + x
    return x


def small_products(a, x):
    for _ in ag.range(500):
        x = a @ x @ a * 0.5 + 0.1
    return x


def squared(x):
    for _ in ag.range(200):
        x = x @ x * 0.05
    return x


def stacked(x):
    for _ in ag.range(500):
        x = ag.stack([x[k] * 0.5 + x[k - 1] * 0.25 for k in range(x.shape[0])])
    return x


def stencil(x):
    for _ in ag.range(20):
        left, right = ag.concat([x[-1:], x[:-1]], 0), ag.concat([x[1:], x[:1]], 0)
        x = x + 0.1 * (left + right - 2.0 * x)
    return x


def rolled(x):
    """Of three dimensions, each cell with its 26 neighbours."""
    for _ in ag.range(5):
        total = 0.0 * x
        for shift in np.ndindex(3, 3, 3):
            total += ag.roll(x, [each - 1 for each in shift], [0, 1, 2])
        x = total / 27.0
    return x


def convolved(x, w):
    """A convolution and its gradients."""
    return _gradients(x, w, 1)


def strided(x, w):
    """The same of every second window along each dimension."""
    return _gradients(x, w, 2)


def _gradients(x, w, strides):
    with ag.GradientTape() as tape:
        tape.watch([x, w])
        y = ag.nn.conv2d(x, w, strides, "SAME")
        value = ag.reduce_mean(y * y)
    return y, *tape.gradient(value, [x, w])


def total(x):
    return ag.reduce_sum(x)


def columns(x):
    return ag.reduce_sum(x, axis=0)


def rows(x):
    return ag.reduce_sum(x, axis=1)


def running(x):
    return ag.cumsum(x, axis=0)


def largest(x):
    return ag.argmax(x, axis=1)


def largest_in_loop(x):
    found = ag.zeros([], ag.int64)
    for _ in ag.range(50):
        found += ag.argmax(x * 2.0 + ag.cast(found, x.dtype), axis=0)
    return found


def selected(x):
    return ag.boolean_mask(x, x > 1.0)


def ordered(x):
    return ag.argsort(x, axis=1)


def solved(a, b):
    for _ in ag.range(3):
        b = ag.linalg.solve(a + ag.eye(a.shape[0]) * 4.0, b)
    return b


def few_draws(x):
    for _ in ag.range(500):
        x += ag.reduce_sum(ag.random.stateless_uniform([6], seed=[1, ag.cast(x, ag.int32)]))
    return x


def counting(x):
    k = ag.constant(0)
    while k < 20_000:
        x = x * 0.5 + 1.0
        k += 1
    return x


def with_array(x, y):
    k = ag.constant(0)
    while k < 20_000:
        y = ag.concat([y[1:], y[:1] * 0.5 + x], 0)
        x = x * 0.5 + 1.0
        k += 1
    return x, y


def with_product(x, y):
    k = ag.constant(0)
    while k < 2_000:
        y = y @ y * 0.001
        k += 1
    return x, y


def without_product(x, y):
    k = ag.constant(0)
    while k < 2_000:
        x = x * 0.5 + 1.0
        k += 1
    return x, y


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def recursive(x):
    return fibonacci(ag.cast(x, ag.int32) + 18)


def nothing(x):
    return x


_SCALAR = arrays(())
_LINES = sizes(line, 1 << 14, 1 << 17, 1 << 20)
_PRODUCTS, _NO_PRODUCTS = ((function, arrays((), (16, 16))) for function in (with_product, without_product))
_CHAIN = ((chain, arrays((100_000,), (100_000,))),)
_SOFTMAX_ROWS = tuple((softmax, arrays((40_000 // n, n))) for n in (8, 24, 48))
_SMALL = tuple((small_products, arrays((n, n), (n, n), dtype=np.float64)) for n in (2, 4, 5))
_STENCIL = ((stencil, arrays((400,))), (stencil, arrays((20_000,))), (rolled, arrays((48, 48, 48))))
_IMAGES = tuple((each, arrays((32, 28, 28, 16), (3, 3, 16, 32))) for each in (convolved, strided))
_DEEP = tuple((each, arrays((8, 7, 7, 512), (3, 3, 512, 512))) for each in (convolved, strided))
_ONE_IMAGE = ((convolved, arrays((1, 14, 14, 256), (3, 3, 256, 256))),)
_CHANNELS = tuple((convolved, arrays((32, 28, 28, n), (3, 3, n, 32))) for n in (8, 16, 32))
_COLUMNS = tuple((columns, arrays(shape)) for shape in ((4_000, 200), (1_000, 800), (125_000, 8)))
_FEW, _MANY = (16, 64, 256), (1024, 4096, 16384)

PROBES: dict[str, Sweep | Timed] = {
    "PARALLEL_WORK": Sweep("additions", (1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 60), _LINES),
    "COSTLY_OP": Sweep("additions", (2, 10, 1000), (*_SOFTMAX_ROWS, (sharing, arrays((500, 500))))),
    "FUSION_GROUP_NODES": Sweep("nodes", (8, 32, 64, 256), _CHAIN),
    "LOOP_FUSION_STATEMENTS": Sweep("statements", (1, 30, 120, 480), ((normalised, arrays((200, 300))),)),
    "NEST_EXPRESSION_SIZE": Sweep("expressions", (3, 11, 50), _CHAIN),
    "EXPRESSION_SIZE": Sweep("expressions", (3, 9, 50), ((counting, _SCALAR), *_SMALL[:1])),
    "NESTS_PER_LOOP": Sweep("loops", (1, 3, 1 << 20), ((normalised, arrays((200, 300))), *_SMALL[:1])),
    "SHORT_ROW_IN_LARGE_NEST": Sweep("elements", (1, 8, 32, 64), _SOFTMAX_ROWS),
    "GEMM_MULTIPLICATIONS": Sweep("multiplications", (1 << 12, 1 << 13, 1 << 15), several(squared, (16, 16), (24, 24))),
    "SHARED_BATCH": Sweep(
        "multiplications", (1 << 18, 1 << 20, 1 << 60), several(squared, (16, 32, 32), (128, 32, 32))
    ),
    "SHARED_PRODUCT": Sweep("multiplications", (1 << 15, 1 << 22, 1 << 60), several(squared, (8, 128, 128))),
    "SHORT_ROW_IN_LOOP": Sweep("elements", (1, 4, 8, 16), several(softmax_in_loop, (64, 8), (64, 16))),
    "SCALARIZED_ELEMENTS": Sweep("elements", (1, 4, 16, 32), _SMALL),
    "SCALARIZED_STATEMENTS": Sweep("statements", (1, 100, 400, 1600), _SMALL),
    "VECTOR_IN_VARIABLES": Sweep("elements", (1, 4, 16, 32), several(stacked, (4,), (12,))),
    "CONVOLUTION_STRIP": Sweep("bytes", (1 << 17, 1 << 19, 1 << 21), (*_IMAGES, *_DEEP)),
    "CONVOLUTION_WINDOWS": Sweep("windows", (1, 32, 128), (*_DEEP, *_ONE_IMAGE)),
    "CONVOLUTION_CHANNELS": Sweep("channels", (1, 16, 64), _CHANNELS),
    "CONVOLUTION_DEPTH": Sweep("filters", (256, 1 << 20), (*_IMAGES, *_DEEP)),
    "CONVOLUTION_LANES": Sweep("lanes", (1, 4, 16), _IMAGES),
    "WINDOW_UNROLL": Sweep("elements", (1, 32, 128), _IMAGES),
    "CONVOLUTION_IMAGES": Sweep("images", (4, 1 << 20), _IMAGES),
    "CONVOLUTION_SUMS": Sweep("sums", (4, 16, 64), _IMAGES),
    "CONVOLUTION_FILTERS": Sweep("elements", (1, 1 << 16, 1 << 20), (*_IMAGES, *_ONE_IMAGE)),
    "CONCAT_VIEW_SEGMENTS": Sweep("segments", (1, 2, 4, 8), _STENCIL),
    "CONCAT_VIEW_NODES": Sweep("nodes x segments", (1, 60, 240, 960), _STENCIL),
    "CONCAT_VIEW_SHORT_ROW": Sweep("elements", (1, 4, 8), several(stencil, (3_000, 3), (1_000, 8))),
    "REDUCTION_CHUNK": Sweep("elements", _MANY, several(total, (1_000_000,), (30_000,))),
    "COLUMN_CHUNK_ROWS": Sweep("rows", (8, 32, 128), _COLUMNS),
    "COLUMN_CHUNK_FEW_ROWS": Sweep("rows", (4, 8, 32), ((columns, arrays((300, 2_000))),)),
    "COLUMN_CHUNK_MANY": Sweep("rows", (64, 512, 4096), _COLUMNS),
    "COLUMN_UNROLL": Sweep("rows", (2, 4, 8, 16), _COLUMNS),
    "SINGLE_PRECISION_ROW": Sweep("elements", (64, 1024, 4096), several(rows, (1_000, 1_000), (300, 3_000))),
    "SCAN_COLUMNS": Sweep("columns", (64, *_MANY[:2]), ((running, arrays((300, 5_000))),)),
    "EXTREME_BLOCK": Sweep("elements", (32, 128, 512), ((largest, arrays((1_000, 1_000))),)),
    "SCAN_IN_LOOP": Sweep("elements", (16, 256, 4096), several(largest_in_loop, (200,), (3_000,))),
    "SELECTION_CHUNK": Sweep("elements", (32, 128, 1024), several(selected, (1_000_000,), (3_000,))),
    "SORT_ROW": Sweep("elements", (64, 256, 1024), several(ordered, (100, 100), (20, 800))),
    "FACTORIZATION_ROWS": Sweep("rows", _FEW, tuple((solved, arrays((n, n), (n, 4))) for n in (12, 48, 128))),
    "RANDOM_IN_VARIABLES": Sweep("numbers", (1, 8, 32), ((few_draws, _SCALAR),)),
    "POLL_TICKS": Sweep("ticks", (1 << 16, 1 << 20, 1 << 24, 1 << 28), ((counting, _SCALAR), _PRODUCTS)),
    "STRIP_TRIPS": Sweep("trips", (1 << 12, 1 << 17, 1 << 22), ((counting, _SCALAR), (stacked, arrays((4,))))),
    "ARRAY_TICKS": Timed("ns, trips with 256 numbers", 20_000, (with_array, arrays((), (256,))), (counting, _SCALAR)),
    "PRODUCT_TICKS": Timed("ns, products of 16 x 16", 2_000, _PRODUCTS, _NO_PRODUCTS),
    "CALL_TICKS": Timed("ns, calls", 8361, (recursive, _SCALAR), (nothing, _SCALAR)),
}  # fmt: skip


# --- measurements ----------------------------------------------------------------------------------------------------


@contextmanager
def value_of(name: str, value: int) -> Iterator[None]:
    """Kernels are made with this value of an entry, and found in no cache."""
    before, folder = getattr(cost_model, name), os.environ.get("AUTOGRAPH_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="autograph-calibrate-", ignore_cleanup_errors=True) as cache:
        os.environ["AUTOGRAPH_CACHE_DIR"] = cache
        setattr(cost_model, name, value)
        try:
            yield
        finally:
            setattr(cost_model, name, before)
            if folder is None:
                del os.environ["AUTOGRAPH_CACHE_DIR"]
            else:
                os.environ["AUTOGRAPH_CACHE_DIR"] = folder


def compiled(program: Program) -> harness.Call:
    function, make = program
    run, given = ag.function(function, jit_compile=True), make()
    run(*given)
    return lambda: run(*given)


def agree(name: str, expected: Any, found: Any) -> None:
    """Raises Disagreement unless results are the same but for the order of sums: an entry decides nothing else."""
    for one, other in zip(harness.arrays(expected), harness.arrays(found), strict=True):
        if not np.allclose(one, other, rtol=1e-3, atol=1e-3, equal_nan=True):
            raise harness.Disagreement(f"another value of {name} changes results")


def fastest(calls: dict[str, harness.Call], quick: bool) -> dict[str, float]:
    """Seconds of a call, by label: the fastest of blocks of all of them in turn, since other work only adds to it."""
    rounds, block = (3, 0.002) if quick else (9, 0.01)
    repeats = {label: harness.repeats(call, block) for label, call in calls.items()}
    times: dict[str, list[float]] = {label: [] for label in calls}
    for turn in range(rounds):
        for label in itertools.islice(itertools.cycle(calls), turn % len(calls), turn % len(calls) + len(calls)):
            call = calls[label]
            call()
            began = time.perf_counter()
            for _ in range(repeats[label]):
                call()
            times[label].append((time.perf_counter() - began) / repeats[label])
    return {label: min(each) for label, each in times.items()}


def swept(name: str, sweep: Sweep, quick: bool) -> dict[int, float]:
    """The geometric mean of the programs' times by value, as a multiple of that with the file's value."""
    own = getattr(cost_model, name)
    values = dict.fromkeys([own, *sweep.values])
    logs = dict.fromkeys(values, 0.0)
    for program in sweep.programs:
        calls: dict[str, harness.Call] = {}
        for value in values:
            with value_of(name, value):
                calls[str(value)] = compiled(program)
            agree(name, calls[str(own)](), calls[str(value)]())
        times = fastest(calls, quick)
        for value in values:
            logs[value] += math.log(times[str(value)] / times[str(own)]) / len(sweep.programs)
    return {value: math.exp(each) for value, each in logs.items()}


def nanoseconds(timed: Timed, quick: bool) -> float:
    """What one of the things takes that an entry counts."""
    times = fastest({"loop": compiled(timed.loop), "empty": compiled(timed.empty)}, quick)
    return (times["loop"] - times["empty"]) / timed.trips * 1e9


def report(name: str, quick: bool) -> str:
    """A line of the table: the entry, its unit, its value, what was measured."""
    probe, own = PROBES[name], getattr(cost_model, name)
    head = f"{name:27} {probe.unit:26} {own:>12,} "
    if isinstance(probe, Timed):
        return f"{head}{nanoseconds(probe, quick):>12,.0f}"
    found = swept(name, probe, quick)
    best = min(found, key=lambda value: found[value])
    spread = "  ".join(f"{value:,}: {found[value]:.2f}" for value in sorted(found))
    return f"{head}{best:>12,} {1 / found[best]:>10.2f}   {spread}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibrate", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="entries of the cost model (default: all)")
    parser.add_argument("--quick", action="store_true", help="few rounds: does everything work?")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in PROBES]
    if unknown:
        parser.error(f"no such entry: {', '.join(unknown)}")
    print(
        f"{'entry':27} {'unit':26} {'in the file':>12} {'measured':>12} {'file/best':>10}   time by value, file's = 1"
    )
    for name in options.names or PROBES:
        print(report(name, options.quick), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
