"""Insertion sort of 300 numbers, float32: an array of which a step of a loop within a loop changes one element."""

from typing import Any

import numpy as np

from benchmarks import build, native, peers
from benchmarks.harness import Case


def arguments(quick: bool) -> tuple[np.ndarray]:
    return (np.random.default_rng(0).normal(size=20 if quick else 300).astype(np.float32),)


def insertion_sort(m: Any, x: Any) -> Any:
    for i in m.range(1, m.shape(x)[0]):
        value, j = x[i], i - 1
        while j >= 0 and x[m.maximum(j, 0)] > value:
            x = m.tensor_scatter_nd_update(x, [[j + 1]], [x[j]])
            j -= 1
        x = m.tensor_scatter_nd_update(x, [[j + 1]], [value])
    return x


def machine_sort(x):
    x = x.copy()
    for i in range(1, len(x)):
        value, j = x[i], i - 1
        while j >= 0 and x[j] > value:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = value
    return x


C_SORT = """
void run(float *x, const float *given) {
    for (int i = 0; i < COUNT; i++) x[i] = given[i];
    for (int i = 1; i < COUNT; i++) {
        float value = x[i];
        int j = i - 1;
        for (; j >= 0 && x[j] > value; j--) x[j + 1] = x[j];
        x[j + 1] = value;
    }
}
"""


def in_c(quick: bool) -> Any:
    text = f"#define COUNT {arguments(quick)[0].size}\n{C_SORT}"
    return native.c(text, arguments, lambda x: np.zeros_like(x))(quick)


def make_jax(jax: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax

    def jax_sort(x):
        def insert(i, x):
            value = x[i]

            def move(carry):
                x, j = carry
                return x.at[j + 1].set(x[j]), j - 1

            test = lambda carry: (carry[1] >= 0) & (carry[0][jnp.maximum(carry[1], 0)] > value)  # noqa: E731
            x, j = lax.while_loop(test, move, (x, i - 1))
            return x.at[j + 1].set(value)

        return lax.fori_loop(1, x.shape[0], insert, x)

    return jax_sort


CASES = [
    Case(
        "insertion-sort",
        "Insertion sort of 300 numbers, one element changed at a time, float32",
        {
            peers.AUTOGRAPH: build.ours(insertion_sort, arguments),
            peers.C: in_c,
            peers.NUMBA: build.numba(machine_sort, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(insertion_sort, arguments),
            peers.TF_XLA: build.tensorflow(insertion_sort, arguments, xla=True),
        },
        kind="array loop",
    )
]
