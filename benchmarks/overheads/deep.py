"""A training step of a 60-layer perceptron at the default settings: how long until it is native, and how many kernels.

`python -m benchmarks.overheads.deep [--quick]` prints a line of JSON; `measure` runs it in a process of its own,
with an empty cache of kernels.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import autograph as ag
from benchmarks import peers

LAYERS, WIDTH, BATCH = 60, 64, 32


def measure(quick: bool = False) -> dict[str, float]:
    """first (seconds to the first result), native (until all is compiled), kernels, and kernels that a new batch size
    adds."""
    with tempfile.TemporaryDirectory(prefix="autograph-benchmarks-", ignore_cleanup_errors=True) as cache:
        command = [sys.executable, "-m", "benchmarks.overheads.deep", *(["--quick"] if quick else [])]
        environment = peers.environment(cache)
        root = Path(__file__).resolve().parent.parent.parent
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=root, timeout=300)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def make_step(layers: int) -> Callable[..., Any]:
    """A step of gradient descent on random weights."""
    random = np.random.default_rng(0)
    weights = []
    for _ in range(layers):
        weights.append(ag.Variable((random.normal(size=(WIDTH, WIDTH)) / WIDTH**0.5).astype(np.float32)))
        weights.append(ag.Variable(np.zeros(WIDTH, np.float32)))

    @ag.function
    def step(x, wanted):
        with ag.GradientTape() as tape:
            y = x
            for weight, bias in zip(weights[::2], weights[1::2], strict=True):
                y = ag.tanh(ag.linalg.matmul(y, weight) + bias)
            loss = ag.reduce_mean((y - wanted) ** 2)
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.01 * gradient)
        return loss

    return step


def batch(size: int) -> tuple[Any, Any]:
    """Inputs and wanted outputs."""
    values = np.random.default_rng(1).normal(size=(2, size, WIDTH)).astype(np.float32)
    return ag.constant(values[0]), ag.constant(values[1])


def _main(quick: bool) -> None:
    from runtime.engine import kernel_counters, wait_for_background

    step = make_step(6 if quick else LAYERS)
    given = batch(BATCH)
    began = time.perf_counter()
    step(*given)
    first = time.perf_counter() - began
    wait_for_background(120)
    native = time.perf_counter() - began
    kernels = kernel_counters().compiled
    step(*batch(BATCH + 8))
    wait_for_background(120)
    more = kernel_counters().compiled - kernels
    print(json.dumps({"first": first, "native": native, "kernels": kernels, "more": more}))


if __name__ == "__main__":
    _main("--quick" in sys.argv)
