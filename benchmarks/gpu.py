"""`python -m benchmarks.gpu [--emulated] [--out FOLDER] [--seconds N]`: programs on the first GPU, beside other
libraries.

Writes `benchmarks_gpu.md` and `benchmarks_gpu.json` to FOLDER (docs/). With --emulated everything is small and runs on
an emulated GPU, which only shows that it runs; then FOLDER must be given. `python -m tests.device cuda` calls it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import autograph as ag
from runtime import device

Run = Callable[[], Any]  # runs once, and waits for the end
_REPETITIONS = 200


@dataclass(frozen=True)
class Workload:
    """make: for a library and a size, what runs once and gives a number or array to compare; it raises ImportError
    where the library isn't installed, and KeyError where it has no version. moved: bytes that have to be moved."""

    name: str
    sizes: tuple[int, int]  # on a GPU, and on an emulated one
    make: dict[str, Callable[[int], Run]]
    moved: Callable[[int], float] | None = None
    target: str = ""


@dataclass
class Result:
    name: str
    size: int
    seconds: dict[str, float] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    floor: float | None = None


# --- programs --------------------------------------------------------------------------------------------------------


def _numbers(size: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(0.5, 2.0, size).astype(np.float32)


def _ours(function: Callable[..., Any], *arguments: np.ndarray) -> Run:
    compiled = ag.function(function, jit_compile=True)
    given = [ag.constant(each).gpu() for each in arguments]
    return lambda: compiled(*given)  # a call waits for its kernels


def _jax(make: Callable[[Any, Any], Callable[..., Any]], *arguments: np.ndarray) -> Run:
    import jax
    import jax.numpy as jnp

    function = jax.jit(make(jax, jnp))
    given = [jax.device_put(each) for each in arguments]
    return lambda: jax.block_until_ready(function(*given))


def _torch(make: Callable[[Any], Callable[..., Any]], *arguments: np.ndarray) -> Run:
    import torch

    where = "cuda" if torch.cuda.is_available() else "cpu"
    function = torch.compile(make(torch)) if where == "cuda" else make(torch)
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

    return torch.compiler.disable(run) if hasattr(torch, "compiler") else run


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


def _chain_of(size: int, small: int, target: str) -> Workload:
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
    _chain_of(10**6, 1000, "0.35 of JAX"),
    _chain_of(10**8, 2000, "1.1 of a copy's time, and torch.compile's"),
    Workload(
        "the sum of 1e8 numbers", (10**8, 3000),
        {
            "autograph": lambda n: _ours(ag.reduce_sum, _numbers(n)),
            "JAX": lambda n: _jax(lambda jax, jnp: jnp.sum, _numbers(n)),
            "torch.compile": lambda n: _torch(lambda torch: torch.sum, _numbers(n)),
            "CuPy": lambda n: _cupy(lambda cupy: cupy.sum, _numbers(n)),
        },
        lambda n: 4.0 * n, "85 % of the copy rate",
    ),
    Workload(
        "2,000 trips over 1e6 numbers, with a test for convergence", (10**6, 20),
        {
            "autograph": lambda n: _ours(_newton, _numbers(n)),
            "JAX": lambda n: _jax(_newton_jax, _numbers(n)),
            "torch.compile": lambda n: _torch(_newton_torch, _numbers(n)),
        },
        None, "0.4 of JAX",
    ),
    Workload(
        "2,000 trips over one number", (1, 1),
        {
            "autograph": lambda n: _ours(_scalar_loop, np.float32(0.5)),  # type: ignore[arg-type]
            "JAX": lambda n: _jax(_scalar_jax, np.float32(0.5)),  # type: ignore[arg-type]
        },
        None, "0.01 of JAX",
    ),
    Workload(
        "Mandelbrot by vectorized_map of a while, side", (4096, 12),
        {
            "autograph": lambda n: _ours(_mandelbrot, *_plane(n)),
            "JAX": lambda n: _jax(_mandelbrot_jax, *_plane(n)),
        },
        None, "0.2 of JAX's vmap",
    ),
    Workload(
        "an RNN of 64 numbers, steps", (1000, 8),
        {"autograph": lambda n: _ours(_rnn, *_rnn_data(n)), "JAX": lambda n: _jax(_rnn_jax, *_rnn_data(n))},
        None, "0.5 of JAX's scan",
    ),
]  # fmt: skip


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
    place = device.places()[0]
    with place.lock:
        source, target = (place.allocate(size, "the copy that is measured") for _ in range(2))

        def run() -> None:
            place.backend.copy(target.address, source.address, size)
            place.backend.synchronize()

        return 2 * size / _best(run, seconds)


def measure(workload: Workload, emulated: bool, rate: float, seconds: float) -> Result:
    """All libraries that are there, one after the other."""
    size = workload.sizes[emulated]
    result = Result(workload.name, size)
    if workload.moved is not None:
        result.floor = workload.moved(size) / rate
    expected: np.ndarray | None = None
    for library, make in workload.make.items():
        if emulated and library != "autograph":
            continue
        start = time.perf_counter()
        try:
            run = make(size)
            value = run()
        except ImportError:
            result.notes.append(f"{library} isn't installed")
            continue
        except Exception as error:  # a peer that fails must not end the run: the page says so
            if library == "autograph":
                raise
            result.notes.append(f"{library}: {type(error).__name__}: {str(error).splitlines()[0][:100]}")
            continue
        result.first[library] = time.perf_counter() - start
        found = _on_host(value)
        if expected is None:
            expected = found
        elif not np.allclose(found, expected, rtol=1e-3, atol=1e-3):
            result.notes.append(f"{library}'s result differs: {np.max(np.abs(found - expected)):.3g}")
        result.seconds[library] = _best(run, seconds)
    return result


def _on_host(value: Any) -> np.ndarray:
    for name in ("cpu", "get"):  # of torch and CuPy
        if type(value).__module__.split(".")[0] in ("torch", "cupy") and hasattr(value, name):
            value = getattr(value, name)()
    return np.asarray(value, np.float64)


# --- the page --------------------------------------------------------------------------------------------------------


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def page(results: list[Result], facts: dict[str, Any]) -> str:
    """The results in Markdown."""
    libraries = list(dict.fromkeys(name for workload in WORKLOADS for name in workload.make))
    targets = {workload.name: workload.target for workload in WORKLOADS}
    lines = [
        "# Benchmarks on a GPU",
        "",
        f"{facts['gpu']}, compute capability {facts['capability']}, {facts['date']}. A copy within its memory moves "
        f"{facts['copy_rate'] / 1e12:.2f} TB/s. Best times of calls on arrays that are on the GPU; in brackets the "
        "first call, with compilation. The floor is the time of a copy of as many bytes as must be moved at least. "
        "Written by `python -m benchmarks.gpu`.",
        "",
        f"| program | size | {' | '.join(libraries)} | floor | target for autograph |",
        f"| --- | --- |{' --- |' * len(libraries)} --- | --- |",
    ]
    for result in results:
        cells = [
            f"{_time(result.seconds.get(name))} ({_time(result.first.get(name))})" if name in result.seconds else ""
            for name in libraries
        ]
        row = [result.name, f"{result.size:,}", *cells, _time(result.floor), targets.get(result.name, "")]
        lines.append(f"| {' | '.join(row)} |")
    notes = [f"- {result.name}: {note}" for result in results for note in result.notes]
    return "\n".join([*lines, *(["", *notes] if notes else [])]) + "\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("--emulated", action="store_true", help="small sizes on an emulated GPU, no other libraries")
    parser.add_argument("--out", type=Path, help="the folder of the page and the results (docs)")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each program and library")
    chosen = parser.parse_args(arguments)
    if chosen.emulated:
        if chosen.out is None:
            parser.error("--emulated needs --out: what it measures is no result")
        ag.config.emulate_gpus(1)
    gpus = ag.config.list_physical_devices("GPU")
    if not gpus:
        print("there is no GPU here; --emulated shows that the programs run", file=sys.stderr)
        return 2
    details = ag.config.experimental.get_device_details(gpus[0])
    rate = copy_rate(1 << 16 if chosen.emulated else 1 << 28, chosen.seconds / 4)
    facts = {
        "gpu": details["device_name"], "capability": ".".join(map(str, details["compute_capability"])),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(), "copy_rate": rate,
    }  # fmt: skip
    folder = chosen.out or Path(__file__).resolve().parents[1] / "docs"
    results: list[Result] = []
    for workload in WORKLOADS:
        results.append(measure(workload, chosen.emulated, rate, chosen.seconds))
        print(f"{workload.name}: {', '.join(f'{k} {_time(v)}' for k, v in results[-1].seconds.items())}", flush=True)
        # After each one, so that what was measured stays when time is over.
        (folder / "benchmarks_gpu.md").write_text(page(results, facts), encoding="utf-8")
        content = {**facts, "results": [vars(each) for each in results]}
        (folder / "benchmarks_gpu.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
