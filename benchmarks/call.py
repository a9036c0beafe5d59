"""What a call costs when there is nothing to compute: a compiled x + 1, and an eager one, on a float32 scalar."""

from typing import Any

import numpy as np

import autograph as ag
from benchmarks import peers
from benchmarks.harness import Call, Case


def increment(x: Any) -> Any:
    return x + 1.0


def ours(quick: bool) -> Call:
    compiled, x = ag.function(increment, jit_compile=True), ag.constant(1.0)
    return lambda: compiled(x)


def hand_written(quick: bool) -> Call:
    compiled, x = peers.load("numba").njit(increment), np.float32(1.0)
    return lambda: compiled(x)


def jax_(quick: bool) -> Call:
    jax = peers.load("jax")
    compiled, x = jax.jit(increment), jax.numpy.float32(1.0)
    return lambda: compiled(x).block_until_ready()


def tensorflow(xla: bool):
    def build(quick: bool) -> Call:
        compiled, x = peers.tf_function(xla)(increment), peers.load("tensorflow").constant(1.0)
        return lambda: compiled(x)

    return build


def eager_ours(quick: bool) -> Call:
    x = ag.constant(1.0)
    return lambda: increment(x)


def eager_numpy(quick: bool) -> Call:
    x = np.array(1.0, np.float32)
    return lambda: increment(x)


def eager_jax(quick: bool) -> Call:
    x = peers.load("jax").numpy.float32(1.0)
    return lambda: increment(x).block_until_ready()


def eager_tensorflow(quick: bool) -> Call:
    x = peers.load("tensorflow").constant(1.0)
    return lambda: increment(x)


def eager_torch(quick: bool) -> Call:
    x = peers.load("torch").tensor(1.0)
    return lambda: increment(x)


CASES = [
    Case(
        "call",
        "Call of a compiled function that adds 1 to a scalar",
        {
            peers.AUTOGRAPH: ours,
            peers.NUMBA: hand_written,
            peers.JAX: jax_,
            peers.TF: tensorflow(xla=False),
            peers.TF_XLA: tensorflow(xla=True),
        },
    ),
    Case(
        "eager",
        "Eager addition of 1 to a scalar",
        {
            peers.AUTOGRAPH: eager_ours,
            peers.NUMPY: eager_numpy,
            "jax, eager": eager_jax,
            "tensorflow, eager": eager_tensorflow,
            peers.TORCH: eager_torch,
        },
    ),
]
