"""Time against size, as pictures: `python -m benchmarks --plots` writes docs/benchmarks_*.svg."""

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import build, peers
from benchmarks.arrays import elementwise
from benchmarks.harness import Build, Call
from benchmarks.loops import edit_distance, logistic

Curves = dict[str, list[tuple[int, float]]]  # label → size and seconds
# Colours that are told apart by those who see red and green alike (Okabe and Ito, 2008).
COLOURS = {
    peers.AUTOGRAPH: "#d55e00",
    peers.NUMBA: "#009e73",
    peers.NUMPY: "#999999",
    peers.JAX: "#0072b2",
    peers.TF: "#e69f00",
    peers.TF_XLA: "#cc79a7",
    peers.TORCH: "#56b4e9",
}
LONGEST = 0.3  # seconds: a library that takes longer for a size isn't asked for the next


def draw(folder: Path, quick: bool = False) -> None:
    """Measures and writes the pictures."""
    import matplotlib  # type: ignore[import-not-found,unused-ignore]

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "benchmarks"
    matplotlib.rcParams["svg.fonttype"] = "none"  # letters as text: small files
    step = 2 if quick else 1
    chain = curves(_chain(), [10**k for k in range(1, 8)][::step])
    _picture(folder / "benchmarks_chain.svg", {"tanh(x) exp(-x²) + √(1 + x²), float32": chain}, "values")
    sizes = [10**k for k in range(1, 7)][::step]
    loops = {"logistic map, float32": curves(_loop(), sizes), "its gradient": curves(_loop_gradient(), sizes[:5])}
    _picture(folder / "benchmarks_loop.svg", loops, "steps")
    edit = curves(_edit(), [10, 30, 100, 300, 1_000][::step])
    _picture(folder / "benchmarks_edit.svg", {"edit distance": edit}, "elements in each array")


def curves(implementations: dict[str, Any], sizes: Sequence[int]) -> Curves:
    """Seconds of a call of each implementation (made for a size) at each size."""
    found: Curves = {label: [] for label in implementations}
    for size in sizes:
        calls: dict[str, Call] = {}
        for label, make in implementations.items():
            if found[label] and found[label][-1][1] > LONGEST:
                continue
            try:
                calls[label] = make(size)(False)
                calls[label]()
            except peers.Absent:
                del calls[label]
        times: dict[str, list[float]] = {label: [] for label in calls}
        for _ in range(5):
            for label, call in calls.items():
                times[label].append(_block(call))
        for label, measured in times.items():
            found[label].append((size, statistics.median(measured)))
    return {label: points for label, points in found.items() if points}


def _block(call: Call) -> float:
    """Seconds of a call, of as many as last 10 ms."""
    call()
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < 0.01:
        call()
        count += 1
    return (time.perf_counter() - began) / count


def _chain() -> dict[str, Any]:
    def given(size: int) -> build.Arguments:
        return elementwise.arguments(size, np.float32)

    chain = elementwise.functions
    return {
        peers.AUTOGRAPH: lambda size: build.ours(chain, given(size)),
        peers.NUMBA: lambda size: elementwise.in_numba(elementwise.machine_functions, given(size), np.float32, False),
        peers.NUMPY: lambda size: build.plain(lambda x: chain(np, x), given(size)),
        peers.JAX: lambda size: build.jax(lambda jax: lambda x: chain(jax.numpy, x), given(size)),
        peers.TF: lambda size: build.tensorflow(chain, given(size)),
        peers.TF_XLA: lambda size: build.tensorflow(chain, given(size), xla=True),
        peers.TORCH: lambda size: build.torch(lambda torch: lambda x: chain(torch, x), given(size)),
    }


def _rate(quick: bool) -> tuple[np.float32]:
    return (np.float32(logistic.RATE),)


def _orbit(size: int) -> Any:
    def program(m: Any, r: Any) -> Any:
        x = m.constant(logistic.START)
        for _ in m.range(size):
            x = r * x * (1.0 - x)
        return x

    return program


def _numba_orbit(size: int) -> Build:
    def orbit(r):
        x, one = np.float32(0.3), np.float32(1.0)
        for _ in range(size):
            x = r * x * (one - x)
        return x

    return build.numba(orbit, _rate)


def _torch_orbit(size: int) -> Any:
    def make(torch: Any) -> Any:
        def orbit(r):
            x = torch.tensor(logistic.START)
            for _ in range(size):
                x = r * x * (1.0 - x)
            return x

        return orbit

    return make


def _loop() -> dict[str, Any]:
    return {
        peers.AUTOGRAPH: lambda size: build.ours(_orbit(size), _rate),
        peers.NUMBA: _numba_orbit,
        peers.JAX: lambda size: build.jax(lambda jax: logistic.jax_orbit(jax, size), _rate),
        peers.TF: lambda size: build.tensorflow(_orbit(size), _rate),
        peers.TF_XLA: lambda size: build.tensorflow(_orbit(size), _rate, xla=True),
        peers.TORCH: lambda size: build.torch(_torch_orbit(size), _rate),
    }


def _loop_gradient() -> dict[str, Any]:
    return {
        peers.AUTOGRAPH: lambda size: build.ours(build.gradient(_orbit(size), 0), _rate),
        peers.JAX: lambda size: build.jax(build.jax_gradient(lambda jax: logistic.jax_orbit(jax, size), 0), _rate),
        peers.TF: lambda size: build.tensorflow(build.gradient(_orbit(size), 0), _rate),
        peers.TF_XLA: lambda size: build.tensorflow(build.gradient(_orbit(size), 0), _rate, xla=True),
        peers.TORCH: lambda size: build.torch(build.torch_gradient(_torch_orbit(size), 0), _rate),
    }


def _edit() -> dict[str, Any]:
    def given(size: int) -> build.Arguments:
        return lambda quick: tuple(np.random.default_rng(0).integers(0, 4, (2, size)).astype(np.int32))

    return {
        peers.AUTOGRAPH: lambda size: build.ours(edit_distance.distance, given(size)),
        peers.NUMBA: lambda size: build.numba(edit_distance.machine_distance, given(size)),
        peers.NUMPY: lambda size: build.plain(edit_distance.numpy_distance, given(size)),
        peers.JAX: lambda size: build.jax(edit_distance.make_jax, given(size)),
        peers.TF: lambda size: build.tensorflow(edit_distance.tf_distance, given(size)),
        peers.TF_XLA: lambda size: build.tensorflow(edit_distance.tf_distance, given(size), xla=True),
        peers.TORCH: lambda size: build.torch(edit_distance.make_torch, given(size)),
    }


def _picture(path: Path, panels: dict[str, Curves], axis: str) -> None:
    from matplotlib import pyplot  # type: ignore[import-not-found,unused-ignore]

    figure, all_axes = pyplot.subplots(1, len(panels), figsize=(5.5 * len(panels), 4), squeeze=False)
    for axes, (title, found) in zip(all_axes[0], panels.items(), strict=True):
        for label, points in found.items():
            wide = 2.5 if label == peers.AUTOGRAPH else 1.2
            xs, ys = zip(*points, strict=True)
            axes.plot(xs, [1e6 * y for y in ys], "o-", markersize=3, linewidth=wide, color=COLOURS[label], label=label)
        axes.set(xscale="log", yscale="log", xlabel=axis, ylabel="time of a call, µs", title=title)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
