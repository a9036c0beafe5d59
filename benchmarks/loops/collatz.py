"""How many Collatz steps lead from each number up to 2,000 down to 1, in all: nested loops of int32 scalars.

tf.function without XLA, NumPy and torch run a loop over the whole array of numbers instead, their best way by far.
"""

from typing import Any

import numpy as np

import autograph as ag
from benchmarks import build, native, peers
from benchmarks.harness import Call, Case


def limit(quick: bool) -> int:
    return 100 if quick else 2_000


def collatz(n):
    total = 0
    for start in ag.range(1, n + 1):
        value = start
        while value != 1:
            if value % 2 == 0:
                value = value // 2
            else:
                value = 3 * value + 1
            total += 1
    return total


def ours(quick: bool) -> Call:
    compiled, n = build.compiled(collatz), ag.constant(limit(quick))
    return lambda: compiled(n)


def hand_written(quick: bool) -> Call:
    @peers.load("numba").njit
    def numba_collatz(n):
        total = np.int32(0)
        for start in range(1, n + 1):
            value = np.int32(start)
            while value != 1:
                value = np.int32(value // 2) if value % 2 == 0 else np.int32(3 * value + 1)
                total += np.int32(1)
        return total

    n = limit(quick)
    return lambda: numba_collatz(n)


C_COLLATZ = """
int32_t run(int32_t n) {
    int32_t total = 0;
    for (int32_t start = 1; start <= n; start++)
        for (int32_t value = start; value != 1; total++) value = value % 2 ? 3 * value + 1 : value / 2;
    return total;
}
"""


def plain_python(quick: bool) -> Call:
    n = limit(quick)

    def python_collatz() -> int:
        total = 0
        for start in range(1, n + 1):
            value = start
            while value != 1:
                value = value // 2 if value % 2 == 0 else 3 * value + 1
                total += 1
        return total

    return python_collatz


def numpy(quick: bool) -> Call:
    n = limit(quick)

    def numpy_collatz() -> int:
        values: np.ndarray = np.arange(2, n + 1, dtype=np.int32)
        total = 0
        while values.size:
            total += values.size
            values = np.where(values % 2 == 0, values // 2, 3 * values + 1)
            values = values[values != 1]
        return total

    return numpy_collatz


def jax_(quick: bool) -> Call:
    jax = peers.load("jax")
    lax, n = jax.lax, limit(quick)

    def steps_from(start, total):
        def step(state):
            value, count = state
            return jax.numpy.where(value % 2 == 0, value // 2, 3 * value + 1), count + 1

        return lax.while_loop(lambda state: state[0] != 1, step, (start, total))[1]

    compiled = jax.jit(lambda n: lax.fori_loop(1, n + 1, steps_from, jax.numpy.int32(0)))
    argument = jax.numpy.int32(n)
    return lambda: compiled(argument).block_until_ready()


def _tf_scalars(tf: Any, n: Any) -> Any:
    total = tf.constant(0)
    for start in tf.range(1, n + 1):
        value = start
        while value != 1:
            value = tf.where(value % 2 == 0, value // 2, 3 * value + 1)
            total += 1
    return total


def _tf_array(tf: Any, n: Any) -> Any:
    values, total = tf.range(2, n + 1), tf.constant(0)
    while tf.size(values) > 0:
        tf.autograph.experimental.set_loop_options(shape_invariants=[(values, tf.TensorShape([None]))])
        total += tf.size(values)
        values = tf.where(values % 2 == 0, values // 2, 3 * values + 1)
        values = tf.boolean_mask(values, values != 1)
    return total


def tensorflow(xla: bool):
    def build(quick: bool) -> Call:
        tf = peers.load("tensorflow")
        converted = tf.autograph.to_graph(_tf_scalars if xla else _tf_array)
        compiled, n = peers.tf_function(xla)(lambda n: converted(tf, n)), tf.constant(limit(quick))
        return lambda: compiled(n)

    return build


def torch(quick: bool) -> Call:
    library, n = peers.load("torch"), limit(quick)

    def torch_collatz() -> int:
        values, total = library.arange(2, n + 1, dtype=library.int32), 0
        while values.numel():
            total += values.numel()
            values = library.where(values % 2 == 0, values // 2, 3 * values + 1)
            values = values[values != 1]
        return total

    return torch_collatz


CASES = [
    Case(
        "collatz",
        "Collatz steps of all numbers to 2,000, int32",
        {
            peers.AUTOGRAPH: ours,
            peers.C: native.c(C_COLLATZ, lambda quick: (np.int32(limit(quick)),), lambda n: np.int32(0)),
            peers.NUMBA: hand_written,
            peers.PYTHON: plain_python,
            peers.NUMPY: numpy,
            peers.JAX: jax_,
            peers.TF: tensorflow(xla=False),
            peers.TF_XLA: tensorflow(xla=True),
            peers.TORCH: torch,
        },
        rtol=0.0,
        kind="scalar loop",
    )
]
