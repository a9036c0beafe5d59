"""`python -m benchmarks.gpu [--emulated | --pretended] [--resume] [--out FOLDER] [--seconds N]`: programs on the first
GPU, beside other libraries.

Writes `benchmarks_gpu.md` and `benchmarks_gpu.json` to FOLDER (docs/), after each measurement: ours first, then library
after library. --resume goes on behind what is in them, and behind what a crash ended. With --emulated everything is
small and runs on an emulated GPU, with --pretended on a stand-in for the driver, which only shows that it runs; then
FOLDER must be given. `python -m tests.cuda` calls it.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import autograph as ag
from benchmarks import gpu_training
from runtime import device, profiling
from runtime.gpu import cuda, cuda_driver
from tests.device.pretended import Pretended

Run = Callable[[], Any]  # runs once, and waits for the end
_REPETITIONS = 5000
_COMPARED = 100_000  # elements of results


@dataclass(frozen=True)
class Workload:
    """make: for a library and a size, what runs once and gives a number or array to compare; it raises ImportError
    where the library isn't installed. moved: bytes that have to be moved. target: the most of what time ours is to
    take, by library; "copy" is the time of a copy of these bytes."""

    name: str
    sizes: tuple[int, int]  # on a GPU, and on an emulated one
    make: dict[str, Callable[[int], Run]]
    moved: Callable[[int], float] | None = None
    target: dict[str, float] = field(default_factory=dict)


@dataclass
class Result:
    """parts: the seconds of the parts of our first call, some of which are parts of others."""

    name: str
    size: int
    seconds: dict[str, float] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    floor: float | None = None
    parts: dict[str, float] = field(default_factory=dict)


# --- programs --------------------------------------------------------------------------------------------------------


def _numbers(size: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(0.5, 2.0, size).astype(np.float32)


def _ours(function: Callable[..., Any], *arguments: np.ndarray) -> Run:
    compiled = ag.function(function, jit_compile=True)
    given: list[Any] = [ag.constant(each).gpu() for each in arguments]
    for each in given:
        each.held.address()  # it is copied now, not by the first call

    def run() -> Any:
        found = compiled(*given)
        ag.test.experimental.sync_devices()
        return found

    return run


def _jax(make: Callable[[Any, Any], Callable[..., Any]], *arguments: np.ndarray) -> Run:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_default_matmul_precision", "highest")
    function = jax.jit(make(jax, jnp))
    given = [jax.device_put(each) for each in arguments]
    return lambda: jax.block_until_ready(function(*given))


def _torch(make: Callable[[Any], Callable[..., Any]], *arguments: np.ndarray, whole: bool = True) -> Run:
    """whole: the function is compiled as a whole."""
    import torch

    torch.backends.cudnn.allow_tf32 = False  # cuBLAS' is off at first
    where = "cuda" if torch.cuda.is_available() else "cpu"
    function = torch.compile(make(torch)) if where == "cuda" and whole else make(torch)
    given = [torch.from_numpy(each).to(where) for each in arguments]

    def run() -> Any:
        found = function(*given)
        if where == "cuda":
            torch.cuda.synchronize()
        return found

    return run


def _cupy(make: Callable[[Any], Callable[..., Any]], *arguments: np.ndarray) -> Run:
    import cupy  # type: ignore[import-not-found]

    function, given = make(cupy), [cupy.asarray(each) for each in arguments]

    def run() -> Any:
        found = function(*given)
        cupy.cuda.runtime.deviceSynchronize()
        return found

    return run


def _chain(m: Any) -> Callable[..., Any]:
    return lambda x: m.tanh(m.exp(-x * x) * 2.0 + m.sin(x)) * x + 1.0


def _newton_jax(jax: Any, jnp: Any) -> Callable[..., Any]:
    def step(state: Any) -> Any:
        y, _, n, x = state
        z = 0.999 * y + 0.001 * (0.5 * (y + x / y))
        return z, jnp.max(jnp.abs(z - y)), n + 1, x

    return lambda x: jax.lax.while_loop(lambda s: (s[1] > 0.0) & (s[2] < 2000), step, (x, jnp.float32(1.0), 0, x))[0]


def _newton(x: Any) -> Any:
    y, change, n = x, ag.constant(1.0), 0
    while change > 0.0 and n < 2000:
        z = 0.999 * y + 0.001 * (0.5 * (y + x / y))
        change = ag.reduce_max(ag.abs(z - y))
        y = z
        n += 1
    return y


def _newton_torch(torch: Any) -> Callable[..., Any]:
    def step(x: Any, y: Any) -> Any:
        z = 0.999 * y + 0.001 * (0.5 * (y + x / y))
        return z, (z - y).abs().max()

    step = torch.compile(step) if torch.cuda.is_available() else step

    def run(x: Any) -> Any:
        y, n = x, 0
        while n < 2000:
            y, change = step(x, y)
            n += 1
            if not change > 0.0:
                break
        return y

    return run


def _scalar_loop(x: Any) -> Any:
    n = ag.constant(0)
    while n < 2000:
        x = ag.sin(x) + 1.0
        n += 1
    return x


def _scalar_jax(jax: Any, jnp: Any) -> Callable[..., Any]:
    return lambda x: jax.lax.while_loop(lambda s: s[1] < 2000, lambda s: (jnp.sin(s[0]) + 1.0, s[1] + 1), (x, 0))[0]


def _plane(side: int) -> tuple[np.ndarray, np.ndarray]:
    across, down = np.meshgrid(np.linspace(-2, 0.6, side), np.linspace(-1.3, 1.3, side))
    return across.reshape(-1).astype(np.float32), down.reshape(-1).astype(np.float32)


def _mandelbrot(real: Any, imaginary: Any) -> Any:
    def trips(point: Any) -> Any:
        a, b = point
        x, y, n = a, b, 0
        while n < 200 and x * x + y * y < 4.0:
            x, y = x * x - y * y + a, 2.0 * x * y + b
            n += 1
        return n

    return ag.vectorized_map(trips, (real, imaginary))


def _mandelbrot_jax(jax: Any, jnp: Any) -> Callable[..., Any]:
    def trips(a: Any, b: Any) -> Any:
        def step(s: Any) -> Any:
            return s[0] * s[0] - s[1] * s[1] + a, 2.0 * s[0] * s[1] + b, s[2] + 1

        return jax.lax.while_loop(lambda s: (s[2] < 200) & (s[0] * s[0] + s[1] * s[1] < 4.0), step, (a, b, 0))[2]

    return jax.vmap(trips)


def _rnn_data(steps: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(2)
    return random.normal(size=(steps, 64)).astype(np.float32), (random.normal(size=(64, 64)) / 8).astype(np.float32)


def _rnn(x: Any, w: Any) -> Any:
    h = ag.zeros([1, 64])
    for row in x:
        h = ag.tanh(h @ w + row[None, :])
    return h


def _rnn_jax(jax: Any, jnp: Any) -> Callable[..., Any]:
    def run(x: Any, w: Any) -> Any:
        return jax.lax.scan(lambda h, row: (jnp.tanh(h @ w + row), None), jnp.zeros((1, 64)), x)[0]

    return run


def _matrix(rows: int, columns: int) -> np.ndarray:
    return _numbers(rows * columns).reshape(rows, columns)


def _softmax_torch(torch: Any) -> Callable[..., Any]:
    return lambda x: torch.softmax(x, 1)


def _softmax_cupy(cupy: Any) -> Callable[..., Any]:
    def softmax(x: Any) -> Any:
        powers = cupy.exp(x - x.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)

    return softmax


def _columns_of(rows: int, columns: int, small: int) -> Workload:
    return Workload(
        f"the sums of {columns} columns, rows", (rows, small),
        {
            "autograph": lambda n: _ours(lambda x: ag.reduce_sum(x, 0), _matrix(n, columns)),
            "JAX": lambda n: _jax(lambda jax, jnp: lambda x: jnp.sum(x, 0), _matrix(n, columns)),
            "torch.compile": lambda n: _torch(lambda torch: lambda x: torch.sum(x, 0), _matrix(n, columns)),
            "CuPy": lambda n: _cupy(lambda cupy: lambda x: x.sum(0), _matrix(n, columns)),
        },
        lambda n: 4.0 * n * columns,
    )  # fmt: skip


_CHANNELS = 64


def _images(batch: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images, filters, and a cotangent of the convolution."""
    images = _numbers(batch * 32 * 32 * _CHANNELS).reshape(batch, 32, 32, _CHANNELS)
    return images, _numbers(9 * _CHANNELS**2).reshape(3, 3, _CHANNELS, _CHANNELS) / 500, images / 1000


def _convolution(x: Any, w: Any, dy: Any) -> Any:
    return ag.nn.conv2d(x, w, 1, "SAME")


def _convolution_jax(jax: Any, jnp: Any) -> Callable[..., Any]:
    numbers = ("NHWC", "HWIO", "NHWC")
    return lambda x, w, dy: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers)


def _convolution_torch(torch: Any) -> Callable[..., Any]:
    def run(x: Any, w: Any, dy: Any) -> Any:  # these are views of arrays whose channels are last
        found = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), padding="same")
        return found.permute(0, 2, 3, 1)

    return run


def _gradients(x: Any, w: Any, dy: Any) -> Any:
    with ag.GradientTape() as tape:
        tape.watch((x, w))
        y = _convolution(x, w, dy)
    return tuple(tape.gradient(y, (x, w), dy))


def _gradients_jax(jax: Any, jnp: Any) -> Callable[..., Any]:
    forward = _convolution_jax(jax, jnp)
    return lambda x, w, dy: jax.vjp(lambda x, w: forward(x, w, dy), x, w)[1](dy)


def _gradients_torch(torch: Any) -> Callable[..., Any]:
    def run(x: Any, w: Any, dy: Any) -> Any:
        dy, x, w = dy.permute(0, 3, 1, 2), x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1)
        pair, wanted = (1, 1), (True, True, False)
        back = torch.ops.aten.convolution_backward
        dx, dw, _ = back(dy, x, w, None, pair, pair, pair, False, (0, 0), 1, wanted)
        return dx.permute(0, 2, 3, 1), dw.permute(2, 3, 1, 0)

    return run


def _training(name: str, network: Callable[[int], gpu_training.Network], small: int) -> Workload:
    makers = {"autograph": gpu_training.ours, "JAX": gpu_training.in_jax, "torch.compile": gpu_training.in_torch}

    def maker(make: Callable[[gpu_training.Network], Run]) -> Callable[[int], Run]:
        return lambda n: make(network(n))

    make = {library: maker(each) for library, each in makers.items()}
    return Workload(f"{gpu_training.STEPS} training steps of {name}, examples", (128, small), make)


_CALLS = 100


def _repeated(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Calls, each with the last one's result."""

    def run(x: Any) -> Any:
        for _ in range(_CALLS):
            x = function(x)
        return x

    return run


def _repeated_ours(n: int) -> Run:
    step = _repeated(ag.function(_half, jit_compile=True))
    x: Any = ag.constant(_numbers(n)).gpu()

    def run() -> Any:
        found = step(x)
        ag.test.experimental.sync_devices()
        return found

    return run


def _repeated_jax(n: int) -> Run:
    import jax

    step, x = _repeated(jax.jit(_half)), jax.device_put(_numbers(n))
    return lambda: jax.block_until_ready(step(x))


def _half(x: Any) -> Any:
    return x * 0.5 + 1.0


def _chain_of(size: int, small: int, target: dict[str, float]) -> Workload:
    return Workload(
        f"a chain of 8 operations over {size:.0e} numbers",
        (size, small),
        {
            "autograph": lambda n: _ours(_chain(ag), _numbers(n)),
            "JAX": lambda n: _jax(lambda jax, jnp: _chain(jnp), _numbers(n)),
            "torch.compile": lambda n: _torch(_chain, _numbers(n)),
            "CuPy": lambda n: _cupy(_chain, _numbers(n)),
        },
        lambda n: 8.0 * n,
        target,
    )


WORKLOADS = [
    Workload(
        "a call with few numbers", (1000, 100),
        {
            "autograph": lambda n: _ours(_half, _numbers(n)),
            "JAX": lambda n: _jax(lambda jax, jnp: _half, _numbers(n)),
            "torch.compile": lambda n: _torch(lambda torch: _half, _numbers(n)),
            "CuPy": lambda n: _cupy(lambda cupy: _half, _numbers(n)),
        },
    ),
    Workload(
        f"{_CALLS} calls with few numbers, each with the last one's result", (1000, 100),
        {
            "autograph": _repeated_ours,
            "JAX": _repeated_jax,
            "torch.compile": lambda n: _torch(lambda torch: _repeated(torch.compile(_half)), _numbers(n), whole=False),
            "CuPy": lambda n: _cupy(lambda cupy: _repeated(_half), _numbers(n)),
        },
    ),
    _chain_of(10**6, 1000, {"JAX": 0.35}),
    _chain_of(10**8, 2000, {"copy": 1.1, "torch.compile": 1.0}),
    Workload(
        "the sum of 1e8 numbers", (10**8, 3000),
        {
            "autograph": lambda n: _ours(ag.reduce_sum, _numbers(n)),
            "JAX": lambda n: _jax(lambda jax, jnp: jnp.sum, _numbers(n)),
            "torch.compile": lambda n: _torch(lambda torch: torch.sum, _numbers(n)),
            "CuPy": lambda n: _cupy(lambda cupy: cupy.sum, _numbers(n)),
        },
        lambda n: 4.0 * n, {"copy": 1 / 0.85},
    ),
    Workload(
        "softmax of rows of 1,024, rows", (8192, 8),
        {
            "autograph": lambda n: _ours(ag.nn.softmax, _matrix(n, 1024)),
            "JAX": lambda n: _jax(lambda jax, jnp: jax.nn.softmax, _matrix(n, 1024)),
            "torch.compile": lambda n: _torch(_softmax_torch, _matrix(n, 1024)),
            "CuPy": lambda n: _cupy(_softmax_cupy, _matrix(n, 1024)),
        },
        lambda n: 8.0 * n * 1024,
    ),
    Workload(
        "products of square matrices, rows", (4096, 12),
        {
            "autograph": lambda n: _ours(lambda x, y: x @ y, _matrix(n, n), _matrix(n, n)),
            "JAX": lambda n: _jax(lambda jax, jnp: lambda x, y: x @ y, _matrix(n, n), _matrix(n, n)),
            "torch.compile": lambda n: _torch(lambda torch: lambda x, y: x @ y, _matrix(n, n), _matrix(n, n)),
            "CuPy": lambda n: _cupy(lambda cupy: lambda x, y: x @ y, _matrix(n, n), _matrix(n, n)),
        },
    ),
    Workload(
        f"convolutions 3 x 3 of {_CHANNELS} channels, images of 32 x 32", (64, 1),
        {
            "autograph": lambda n: _ours(_convolution, *_images(n)),
            "JAX": lambda n: _jax(_convolution_jax, *_images(n)),
            "torch.compile": lambda n: _torch(_convolution_torch, *_images(n)),
        },
    ),
    Workload(
        "both gradients of these convolutions, images", (64, 1),
        {
            "autograph": lambda n: _ours(_gradients, *_images(n)),
            "JAX": lambda n: _jax(_gradients_jax, *_images(n)),
            "torch.compile": lambda n: _torch(_gradients_torch, *_images(n)),
        },
    ),
    _training("an MLP (784, 512, 512, 10; Adam)", gpu_training.mlp, 8),
    _training("a CNN (2 convolutions 3 x 3 of 28 x 28; momentum)", gpu_training.cnn, 2),
    _columns_of(1_000_000, 16, 50),
    _columns_of(4096, 1024, 50),
    Workload(
        "2,000 trips over 1e6 numbers, with a test for convergence", (10**6, 20),
        {
            "autograph": lambda n: _ours(_newton, _numbers(n)),
            "JAX": lambda n: _jax(_newton_jax, _numbers(n)),
            # As a whole, its trips would be compiled one inside the other.
            "torch.compile": lambda n: _torch(_newton_torch, _numbers(n), whole=False),
        },
        None, {"JAX": 0.4},
    ),
    Workload(
        "2,000 trips over one number", (1, 1),
        {
            "autograph": lambda n: _ours(_scalar_loop, np.float32(0.5)),  # type: ignore[arg-type]
            "JAX": lambda n: _jax(_scalar_jax, np.float32(0.5)),  # type: ignore[arg-type]
        },
        None, {"JAX": 0.01},
    ),
    Workload(
        "Mandelbrot by vectorized_map of a while, side", (4096, 12),
        {
            "autograph": lambda n: _ours(_mandelbrot, *_plane(n)),
            "JAX": lambda n: _jax(_mandelbrot_jax, *_plane(n)),
        },
        None, {"JAX": 0.2},
    ),
    Workload(
        "an RNN of 64 numbers, steps", (1000, 8),
        {"autograph": lambda n: _ours(_rnn, *_rnn_data(n)), "JAX": lambda n: _jax(_rnn_jax, *_rnn_data(n))},
        None, {"JAX": 0.5},
    ),
]  # fmt: skip


_LIBRARIES = list(dict.fromkeys(name for workload in WORKLOADS for name in workload.make))

# --- measuring -------------------------------------------------------------------------------------------------------


def _best(run: Run, seconds: float) -> float:
    """The best time of runs that take so long together."""
    start = time.perf_counter()
    best = float("inf")
    for _ in range(_REPETITIONS):
        before = time.perf_counter()
        run()
        now = time.perf_counter()
        best = min(best, now - before)
        if now - start > seconds:
            break
    return best


def copy_rate(size: int, seconds: float) -> float:
    """Bytes a second that a copy within the GPU's memory reads and writes."""
    place = device.logical_gpus()[0]
    with place.lock:
        source, target = (place.allocate(size, "the copy that is measured") for _ in range(2))

        def run() -> None:
            place.backend.copy(target.address, source.address, size)
            place.backend.synchronize()

        return 2 * size / _best(run, seconds)


def measure(workload: Workload, library: str, result: Result, samples: dict[str, np.ndarray], seconds: float) -> None:
    """Measures one library. samples: of each workload's values, by its name; the first library's are kept there."""
    try:
        run = workload.make[library](result.size)
        with _parts(result.parts):
            start = time.perf_counter()
            value = run()
            first = time.perf_counter() - start
    except ImportError:
        result.notes.append(f"{library} isn't installed")
        return
    except Exception as error:  # one that fails must not end the run: the page says so
        traceback.print_exc()
        result.notes.append(f"{library}: {type(error).__name__}: {str(error).splitlines()[0][:200]}")
        return
    result.first[library] = first
    found = _on_host(value)
    expected = samples.setdefault(workload.name, found)
    if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-3, atol=1e-3):
        result.notes.append(f"{library}'s result differs")
    result.seconds[library] = _best(run, seconds)


@contextlib.contextmanager
def _parts(found: dict[str, float]) -> Iterator[None]:
    """Adds up the spans of a block; other libraries have none."""
    profile = profiling.start(level=1)
    try:
        yield
    finally:
        profiling.stop(profile)
        for event in profile.events:
            part = f"{event.category}: {event.name}"
            found[part] = found.get(part, 0.0) + event.duration / 1e9


def _on_host(value: Any) -> np.ndarray:
    if isinstance(value, (tuple, list)):
        return np.concatenate([_on_host(each) for each in value])
    for name in ("cpu", "get"):  # of torch and CuPy
        if type(value).__module__.split(".")[0] in ("torch", "cupy") and hasattr(value, name):
            value = getattr(value, name)()
    found = np.asarray(value).reshape(-1)
    return found[:: max(1, found.size // _COMPARED)].astype(np.float64)


# --- the page --------------------------------------------------------------------------------------------------------


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def _reached(result: Result, other: str, most: float) -> str:
    """How long ours takes beside another library, or a copy, and how long it is to take."""
    ours, theirs = result.seconds.get("autograph"), result.floor if other == "copy" else result.seconds.get(other)
    found = f"{ours / theirs:.3g}" if ours and theirs else "?"
    missed = " (missed)" if ours and theirs and ours / theirs > most else ""
    return f"{found} / {most:.3g} of {other}{missed}"


def page(results: list[Result], facts: dict[str, Any]) -> str:
    """The results in Markdown."""
    targets = {workload.name: workload.target for workload in WORKLOADS}
    lines = [
        "# Benchmarks on a GPU",
        "",
        f"{facts['gpu']}, compute capability {facts['capability']}, driver for CUDA {facts['driver']}; "
        f"{facts['date']}. A copy within its memory moves {facts['copy_rate'] / 1e12:.2f} TB/s. Best times of calls on "
        "arrays that are on the GPU; in brackets the first call, with compilation. The floor is the time of a copy of "
        'as many bytes as have to be moved. All libraries compute in float32 (JAX with precision "highest", '
        "PyTorch without TF32). Written by `python -m tests.cuda`.",
        "",
        f"| program | size | {' | '.join(_LIBRARIES)} | floor | ours / target |",
        f"| --- | --- |{' --- |' * len(_LIBRARIES)} --- | --- |",
    ]
    for result in results:
        cells = [
            f"{_time(result.seconds.get(name))} ({_time(result.first.get(name))})" if name in result.seconds else ""
            for name in _LIBRARIES
        ]
        reached = "<br>".join(_reached(result, other, most) for other, most in targets.get(result.name, {}).items())
        row = [result.name, f"{result.size:,}", *cells, _time(result.floor), reached]
        lines.append(f"| {' | '.join(row)} |")
    notes = [f"- {result.name}: {note}" for result in results for note in result.notes]
    notes += [
        f"- {result.name}: {name} wasn't finished"
        for result in results
        for name in result.begun
        if name not in result.seconds and not any(name in note for note in result.notes)
    ]
    return "\n".join([*lines, *(["", *notes] if notes else [])]) + "\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--emulated", action="store_true", help="small sizes on an emulated GPU, no other libraries")
    kinds.add_argument("--pretended", action="store_true", help="the same with a stand-in for the driver")
    parser.add_argument("--out", type=Path, help="the folder of the page and the results (docs)")
    parser.add_argument("--resume", action="store_true", help="go on behind what is there")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each program and library")
    chosen = parser.parse_args(arguments)
    small = chosen.emulated or chosen.pretended
    if small and chosen.out is None:
        parser.error("--emulated and --pretended need --out: what they measure is no result")
    folder: Path = chosen.out or Path(__file__).resolve().parents[1] / "docs"
    with contextlib.ExitStack() as stack:
        if chosen.pretended:
            stack.enter_context(Pretended().installed())
        elif chosen.emulated:
            ag.config.emulate_gpus(1)
        gpus = ag.config.list_physical_devices("GPU")
        if not gpus:
            print(f"there is no GPU here: {cuda.why_none()}; --emulated shows that the programs run", file=sys.stderr)
            return 2
        _measure_all(gpus[0], folder, small, chosen.resume, chosen.seconds)
    return 0


def _measure_all(gpu: Any, folder: Path, small: bool, resume: bool, seconds: float) -> None:
    details = ag.config.experimental.get_device_details(gpu)
    rate = copy_rate(1 << 16 if small else 1 << 28, seconds / 4)
    driver = cuda_driver.driver()
    facts = {
        "gpu": details["device_name"], "capability": ".".join(map(str, details["compute_capability"])),
        "driver": "none" if driver is None else driver.version_text(),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(), "copy_rate": rate,
    }  # fmt: skip
    path = folder / "benchmarks_gpu.json"
    kept = json.loads(path.read_text(encoding="utf-8"))["results"] if resume and path.exists() else []
    before = {each["name"]: Result(**each) for each in kept}
    results = [before.get(each.name) or Result(each.name, each.sizes[small]) for each in WORKLOADS]
    samples: dict[str, np.ndarray] = {}
    for library in _LIBRARIES[:1] if small else _LIBRARIES:
        for workload, result in zip(WORKLOADS, results):
            if workload.moved is not None:
                result.floor = workload.moved(result.size) / rate
            if library not in workload.make or library in result.begun:
                continue
            result.begun.append(library)
            _write(folder, results, facts)  # before and after: what is begun and not there has crashed
            measure(workload, library, result, samples, seconds)
            print(f"{workload.name}: {library} {_time(result.seconds.get(library)) or result.notes[-1:]}", flush=True)
            _write(folder, results, facts)


def _write(folder: Path, results: list[Result], facts: dict[str, Any]) -> None:
    (folder / "benchmarks_gpu.md").write_text(page(results, facts), encoding="utf-8")
    content = {**facts, "results": [vars(each) for each in results]}
    new = folder / "benchmarks_gpu.json.new"
    new.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    new.replace(folder / "benchmarks_gpu.json")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
