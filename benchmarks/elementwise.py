"""An elementwise chain, tanh(x) exp(-x²) + sqrt(1 + x²), over 1e6 float32 values: fusion and vector math."""

import math
from typing import Any

import numpy as np

import autograph as ag
from benchmarks import peers
from benchmarks.harness import Call, Case


def values(quick: bool) -> np.ndarray:
    return np.random.default_rng(0).normal(size=10_000 if quick else 1_000_000).astype(np.float32)


def chain(m: Any, x: Any) -> Any:
    """The chain in the words of any of the libraries."""
    return m.tanh(x) * m.exp(-x * x) + m.sqrt(1.0 + x * x)


def ours(quick: bool) -> Call:
    compiled, x = ag.function(lambda x: chain(ag, x), jit_compile=True), ag.constant(values(quick))
    return lambda: compiled(x)


def hand_written(parallel: bool):
    def build(quick: bool) -> Call:
        numba = peers.load("numba")

        @numba.njit(parallel=parallel)
        def numba_chain(x):
            out = np.empty_like(x)
            one = np.float32(1.0)
            for i in numba.prange(x.shape[0]):
                v = x[i]
                out[i] = math.tanh(v) * math.exp(-v * v) + math.sqrt(one + v * v)
            return out

        x = values(quick)
        return lambda: numba_chain(x)

    return build


def numpy(quick: bool) -> Call:
    x = values(quick)
    return lambda: chain(np, x)


def jax_(quick: bool) -> Call:
    jax = peers.load("jax")
    compiled, x = jax.jit(lambda x: chain(jax.numpy, x)), jax.numpy.asarray(values(quick))
    return lambda: compiled(x).block_until_ready()


def tensorflow(xla: bool):
    def build(quick: bool) -> Call:
        tf = peers.load("tensorflow")
        compiled, x = peers.tf_function(xla)(lambda x: chain(tf, x)), tf.constant(values(quick))
        return lambda: compiled(x)

    return build


def torch(quick: bool) -> Call:
    library = peers.load("torch")
    x = library.from_numpy(values(quick))
    return lambda: chain(library, x)


CASES = [
    Case(
        "elementwise",
        "Elementwise chain over 1e6 values, float32",
        {
            peers.AUTOGRAPH: ours,
            peers.NUMBA: hand_written(parallel=False),
            peers.NUMBA_THREADS: hand_written(parallel=True),
            peers.NUMPY: numpy,
            peers.JAX: jax_,
            peers.TF: tensorflow(xla=False),
            peers.TF_XLA: tensorflow(xla=True),
            peers.TORCH: torch,
        },
    )
]
