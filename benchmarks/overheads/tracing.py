"""What tracing costs: a new function of 1,000 operations, and of a staged loop with a branch, made into a graph.

A call traces anew and returns nothing that could be compared; tests say that the traces are right.
"""

from typing import Any

import numpy as np

import autograph as ag
from benchmarks import peers
from benchmarks.harness import Call, Case


def operations(quick: bool) -> int:
    return 50 if quick else 1_000


def straight(x: Any, count: int) -> Any:
    for _ in range(count // 2):
        x = (x + 1.5) * x
    return x


def ours(quick: bool) -> Call:
    count, spec = operations(quick), ag.TensorSpec([8], ag.float32)

    def trace() -> float:
        ag.function(lambda x: straight(x, count)).get_concrete_function(spec)
        return 0.0

    return trace


def jax(quick: bool) -> Call:
    library, count = peers.load("jax"), operations(quick)
    spec = library.ShapeDtypeStruct((8,), np.float32)

    def trace() -> float:
        library.jit(lambda x: straight(x, count)).trace(spec)
        return 0.0

    return trace


def tensorflow(quick: bool) -> Call:
    tf, count = peers.load("tensorflow"), operations(quick)
    spec = tf.TensorSpec([8], tf.float32)

    def trace() -> float:
        tf.function(lambda x: straight(x, count)).get_concrete_function(spec)
        return 0.0

    return trace


def torch(quick: bool) -> Call:
    library, count = peers.load("torch"), operations(quick)

    def trace() -> float:
        library.fx.symbolic_trace(lambda x: straight(x, count))
        return 0.0

    return trace


def layered(m: Any, x: Any, n: Any) -> Any:
    """A loop with a condition in it."""
    i = m.constant(0)
    while i < n:
        if m.reduce_sum(x) > 1.0:
            x = m.tanh(x) * 0.5
        else:
            x = x + m.cos(x)
        i += 1
    return x


def staged_ours(quick: bool) -> Call:
    specs = ag.TensorSpec([8], ag.float32), ag.TensorSpec([], ag.int32)

    def trace() -> float:
        ag.function(lambda x, n: layered(ag, x, n)).get_concrete_function(*specs)
        return 0.0

    return trace


def staged_tensorflow(quick: bool) -> Call:
    tf = peers.load("tensorflow")
    specs = tf.TensorSpec([8], tf.float32), tf.TensorSpec([], tf.int32)

    def trace() -> float:
        tf.function(lambda x, n: layered(tf, x, n)).get_concrete_function(*specs)
        return 0.0

    return trace


CASES = [
    Case(
        "tracing",
        "Tracing of 1,000 operations",
        {
            peers.AUTOGRAPH: ours,
            "jax.jit, trace": jax,
            "tf.function, get_concrete_function": tensorflow,
            "torch.fx, symbolic_trace": torch,
        },
        kind="tracing",
    ),
    Case(
        "tracing-staged",
        "Tracing of a loop with a branch in it",
        {peers.AUTOGRAPH: staged_ours, "tf.function, get_concrete_function": staged_tensorflow},
    ),
]
