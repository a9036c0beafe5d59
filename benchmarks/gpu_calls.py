"""`python -m benchmarks.gpu_calls`: the processor time of calls on a GPU, without what the driver and the GPU take.

A stand-in for the driver (`tests/device/driver.c`) does nothing when it is asked for launches, so no GPU is needed.
What a call with a GPU takes is a row of `benchmarks/gpu.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import autograph as ag
from tests.device.pretended import Pretended

_CALLS, _REPETITIONS = 1000, 9


def calls() -> dict[str, Callable[[], Any]]:
    """What is measured, compiled."""
    x = ag.constant(np.ones(1000, np.float32)).gpu()
    weights = ag.Variable(x)

    @ag.function(jit_compile=True)
    def chain(x: Any) -> Any:
        return ag.tanh(ag.exp(-x * x) * 2.0 + ag.sin(x)) * x + 1.0

    @ag.function(jit_compile=True)
    def total(x: Any) -> Any:
        return ag.reduce_sum(x)

    @ag.function(input_signature=[ag.TensorSpec([None], ag.float32)])
    def differences(x: Any) -> Any:
        return x[1:] - x[:-1]

    @ag.function(jit_compile=True)
    def step(x: Any) -> Any:
        with ag.GradientTape() as tape:
            loss = ag.reduce_sum((weights - x) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    found: dict[str, Callable[[], Any]] = {
        "a function that returns an array": lambda: chain(x),
        "a function that returns a number": lambda: total(x),
        "a function of arrays of any size": lambda: differences(x),
        "a step of training": lambda: step(x),
        "an operation": lambda: x + x,
        "an assignment": lambda: weights.assign_add(x),
    }
    for call in found.values():
        call().numpy()
    return found


def microseconds(call: Callable[[], Any]) -> float:
    """Processor time, the best of several."""
    best = float("inf")
    for _ in range(_REPETITIONS):
        start = time.process_time()
        for _ in range(_CALLS):
            call()
        best = min(best, time.process_time() - start)
    return best / _CALLS * 1e6


def main() -> None:
    with Pretended().installed() as driver:
        for name, call in calls().items():
            driver["idle"] = 1
            print(f"{name}: {microseconds(call):.1f} us", flush=True)
            driver["idle"] = 0


if __name__ == "__main__":
    main()
