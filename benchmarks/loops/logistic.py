"""The logistic map x → r x (1 - x), 2,000 steps of float32 scalars: nothing but loop, and its derivative in r.

At r = 3.2 the map settles on a cycle of two, so that the derivative stays finite.
"""

from typing import Any

import numpy as np

import autograph as ag
from benchmarks import build, native, peers
from benchmarks.harness import Call, Case

START = 0.3
RATE = 3.2


def steps(quick: bool) -> int:
    return 200 if quick else 2_000


def arguments(quick: bool) -> tuple[np.float32, np.int32]:
    return np.float32(RATE), np.int32(steps(quick))


def orbit(r, n):
    x = ag.constant(START)
    for _ in ag.range(n):
        x = r * x * (1.0 - x)
    return x


def ours(quick: bool) -> Call:
    compiled = build.compiled(orbit)
    r, n = ag.constant(RATE), ag.constant(steps(quick))
    return lambda: compiled(r, n)


def ours_gradient(quick: bool) -> Call:
    @build.compiled
    def gradient(r, n):
        with ag.GradientTape() as tape:
            tape.watch(r)
            x = orbit(r, n)
        return tape.gradient(x, r)

    r, n = ag.constant(RATE), ag.constant(steps(quick))
    return lambda: gradient(r, n)


def hand_written(quick: bool) -> Call:
    @peers.load("numba").njit
    def numba_orbit(r, n):
        x, one = np.float32(START), np.float32(1.0)
        for _ in range(n):
            x = r * x * (one - x)
        return x

    r, n = np.float32(RATE), steps(quick)
    return lambda: numba_orbit(r, n)


def hand_written_gradient(quick: bool) -> Call:
    @peers.load("numba").njit
    def numba_gradient(r, n):
        one, two = np.float32(1.0), np.float32(2.0)
        path = np.empty(n, np.float32)
        x = np.float32(START)
        for i in range(n):
            path[i] = x
            x = r * x * (one - x)
        adjoint, total = one, np.float32(0.0)
        for i in range(n - 1, -1, -1):
            x = path[i]
            total += adjoint * x * (one - x)
            adjoint *= r * (one - two * x)
        return total

    r, n = np.float32(RATE), steps(quick)
    return lambda: numba_gradient(r, n)


C_ORBIT = """
float run(float r, int32_t n) {
    float x = 0.3f;
    for (int32_t i = 0; i < n; i++) x = r * x * (1 - x);
    return x;
}
"""
C_GRADIENT = """
float run(float r, int32_t n) {
    float *path = malloc(n * sizeof(float)), x = 0.3f, adjoint = 1, total = 0;
    for (int32_t i = 0; i < n; i++) { path[i] = x; x = r * x * (1 - x); }
    for (int32_t i = n - 1; i >= 0; i--) {
        total += adjoint * path[i] * (1 - path[i]);
        adjoint *= r * (1 - 2 * path[i]);
    }
    free(path);
    return total;
}
"""


def plain_python(quick: bool) -> Call:
    n = steps(quick)

    def python_orbit() -> float:
        x = START
        for _ in range(n):
            x = RATE * x * (1.0 - x)
        return x

    return python_orbit


def jax_orbit(jax: Any, n: int) -> Any:
    # A trip count known when compiling becomes a scan, the only loop that JAX differentiates in reverse.
    return lambda r: jax.lax.fori_loop(0, n, lambda _, x: r * x * (1.0 - x), jax.numpy.float32(START))


def jax_(quick: bool) -> Call:
    jax = peers.load("jax")
    compiled, r = jax.jit(jax_orbit(jax, steps(quick))), jax.numpy.float32(RATE)
    return lambda: compiled(r).block_until_ready()


def jax_gradient(quick: bool) -> Call:
    jax = peers.load("jax")
    compiled, r = jax.jit(jax.grad(jax_orbit(jax, steps(quick)))), jax.numpy.float32(RATE)
    return lambda: compiled(r).block_until_ready()


def _tf_orbit(tf: Any, r: Any, n: int) -> Any:
    x = tf.constant(START)
    for _ in tf.range(n):
        x = r * x * (1.0 - x)
    return x


def tensorflow(xla: bool):
    def build(quick: bool) -> Call:
        tf, n = peers.load("tensorflow"), steps(quick)
        compiled, r = peers.tf_function(xla)(lambda r: tf.autograph.to_graph(_tf_orbit)(tf, r, n)), tf.constant(RATE)
        return lambda: compiled(r)

    return build


def tensorflow_gradient(xla: bool):
    def build(quick: bool) -> Call:
        tf, n = peers.load("tensorflow"), steps(quick)

        @peers.tf_function(xla)
        def gradient(r):
            with tf.GradientTape() as tape:
                tape.watch(r)
                x = _tf_orbit(tf, r, n)
            return tape.gradient(x, r)

        r = tf.constant(RATE)
        return lambda: gradient(r)

    return build


def torch(quick: bool) -> Call:
    library, n = peers.load("torch"), steps(quick)
    r = library.tensor(RATE)

    def torch_orbit():
        x = library.tensor(START)
        for _ in range(n):
            x = r * x * (1.0 - x)
        return x

    return torch_orbit


def torch_gradient(quick: bool) -> Call:
    library, n = peers.load("torch"), steps(quick)
    r = library.tensor(RATE, requires_grad=True)

    def gradient():
        x = library.tensor(START)
        for _ in range(n):
            x = r * x * (1.0 - x)
        return library.autograd.grad(x, r)[0]

    return gradient


CASES = [
    Case(
        "logistic",
        "Logistic map, 2,000 steps, float32",
        {
            peers.AUTOGRAPH: ours,
            peers.C: native.c(C_ORBIT, arguments, lambda r, n: np.float32(0)),
            peers.NUMBA: hand_written,
            peers.PYTHON: plain_python,
            peers.JAX: jax_,
            peers.TF: tensorflow(xla=False),
            peers.TF_XLA: tensorflow(xla=True),
            peers.TORCH: torch,
        },
        rtol=1e-4,
        kind="scalar loop",
    ),
    Case(
        "logistic-gradient",
        "Gradient of the logistic map, 2,000 steps, float32",
        {
            peers.AUTOGRAPH: ours_gradient,
            peers.C: native.c(C_GRADIENT, arguments, lambda r, n: np.float32(0)),
            peers.NUMBA: hand_written_gradient,
            peers.JAX: jax_gradient,
            peers.TF: tensorflow_gradient(xla=False),
            peers.TF_XLA: tensorflow_gradient(xla=True),
            peers.TORCH: torch_gradient,
        },
        rtol=1e-3,
        kind="loop gradient",
    ),
]
