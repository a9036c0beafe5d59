"""The sum of gcd(a, b) over all pairs below 300, by Euclid's algorithm: nested loops of int32 scalars, all divisions.

tf.function without XLA, NumPy and torch work on all pairs at once, their best way by far.
"""

from typing import Any

import numpy as np

from benchmarks import build, native, peers
from benchmarks.harness import Case


def arguments(quick: bool) -> tuple[np.int32]:
    return (np.int32(40 if quick else 300),)


def gcd_sum(m: Any, n: Any) -> Any:
    total = m.constant(0)
    for first in m.range(1, n):
        for second in m.range(1, first):
            a, b = first, second
            while b != 0:
                a, b = b, a % b
            total += a
    return total


def gcd_sum_by_while(m: Any, n: Any) -> Any:
    """For XLA, whose ranges must have bounds known when it compiles."""
    total, first = m.constant(0), m.constant(1)
    while first < n:
        second = m.constant(1)
        while second < first:
            a, b = first, second
            while b != 0:
                a, b = b, a % b
            total += a
            second += 1
        first += 1
    return total


def machine_gcd_sum(n):
    total = np.int32(0)
    for first in range(1, n):
        for second in range(1, first):
            a, b = np.int32(first), np.int32(second)
            while b != 0:
                a, b = b, np.int32(a % b)
            total += a
    return total


def python_gcd_sum(n):
    total = 0
    for first in range(1, n):
        for second in range(1, first):
            a, b = first, second
            while b != 0:
                a, b = b, a % b
            total += a
    return total


C_GCD_SUM = """
int32_t run(int32_t n) {
    int32_t total = 0;
    for (int32_t first = 1; first < n; first++)
        for (int32_t second = 1; second < first; second++) {
            int32_t a = first, b = second;
            while (b) { int32_t rest = a % b; a = b; b = rest; }
            total += a;
        }
    return total;
}
"""


def numpy_gcd_sum(n):
    a, b = (side.astype(np.int32) for side in np.tril_indices(n, -1))
    a, b = a[b > 0], b[b > 0]
    total = 0
    while a.size:
        a, b = b, a % b
        total += a[b == 0].sum()
        a, b = a[b != 0], b[b != 0]
    return np.int32(total)


def make_jax(jax: Any) -> Any:
    lax, jnp = jax.lax, jax.numpy

    def gcd(a, b):
        return lax.while_loop(lambda pair: pair[1] != 0, lambda pair: (pair[1], pair[0] % pair[1]), (a, b))[0]

    def row(first, total):
        return lax.fori_loop(jnp.int32(1), first, lambda second, total: total + gcd(first, second), total)

    return lambda n: lax.fori_loop(jnp.int32(1), n, row, jnp.int32(0))


def tf_arrays(tf: Any, n: Any) -> Any:
    a, b = tf.meshgrid(tf.range(1, n), tf.range(1, n), indexing="ij")
    below = b < a
    a, b, total = tf.boolean_mask(a, below), tf.boolean_mask(b, below), tf.constant(0)
    while tf.size(a) > 0:
        shapes = [(a, tf.TensorShape([None])), (b, tf.TensorShape([None]))]
        tf.autograph.experimental.set_loop_options(shape_invariants=shapes)
        a, b = b, tf.math.floormod(a, b)
        more = b != 0
        total += tf.reduce_sum(tf.boolean_mask(a, tf.logical_not(more)))
        a, b = tf.boolean_mask(a, more), tf.boolean_mask(b, more)
    return total


def make_torch(torch: Any) -> Any:
    def torch_gcd_sum(n):
        a, b = torch.tril_indices(int(n), int(n), -1, dtype=torch.int32)
        return torch.gcd(a[b > 0], b[b > 0]).sum(dtype=torch.int32)

    return torch_gcd_sum


CASES = [
    Case(
        "gcd",
        "Sum of gcd(a, b) over pairs below 300, int32",
        {
            peers.AUTOGRAPH: build.ours(gcd_sum, arguments),
            peers.C: native.c(C_GCD_SUM, arguments, lambda n: np.int32(0)),
            peers.NUMBA: build.numba(machine_gcd_sum, arguments),
            peers.PYTHON: build.python(python_gcd_sum, arguments),
            peers.NUMPY: build.plain(numpy_gcd_sum, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(tf_arrays, arguments),
            peers.TF_XLA: build.tensorflow(gcd_sum_by_while, arguments, xla=True),
            peers.TORCH: build.torch(make_torch, arguments),
        },
        rtol=0.0,
        kind="scalar loop",
    )
]
