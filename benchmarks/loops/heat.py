"""The heat equation in one dimension: 1,000 explicit steps over 1,000 points, float32: slices of an array, added, in a
loop."""

from typing import Any

import numpy as np

from benchmarks import build, native, peers
from benchmarks.harness import Case

RATE = 0.25


def arguments(quick: bool) -> tuple[np.ndarray, np.int32]:
    points, steps = (30, 20) if quick else (1000, 1000)
    return np.random.default_rng(0).normal(size=points).astype(np.float32), np.int32(steps)


def heat(m: Any, x: Any, steps: Any) -> Any:
    for _ in m.range(steps):
        inner = x[1:-1] + RATE * (x[:-2] - 2.0 * x[1:-1] + x[2:])
        x = m.concat([x[:1], inner, x[-1:]], axis=0)
    return x


def machine_heat(x, steps):
    x, after = x.copy(), x.copy()
    rate, two = np.float32(RATE), np.float32(2.0)
    for _ in range(steps):
        for i in range(1, len(x) - 1):
            after[i] = x[i] + rate * (x[i - 1] - two * x[i] + x[i + 1])
        x, after = after, x
    return x


C_HEAT = """
void run(float *out, const float *given, int32_t steps) {
    static float two[2][COUNT];
    for (int i = 0; i < COUNT; i++) two[0][i] = two[1][i] = given[i];
    for (int step = 0; step < steps; step++) {
        const float *x = two[step % 2];
        float *after = two[1 - step % 2];
        for (int i = 1; i < COUNT - 1; i++) after[i] = x[i] + 0.25f * (x[i - 1] - 2.0f * x[i] + x[i + 1]);
    }
    for (int i = 0; i < COUNT; i++) out[i] = two[steps % 2][i];
}
"""


def in_c(quick: bool) -> Any:
    text = f"#define COUNT {arguments(quick)[0].size}\n{C_HEAT}"
    return native.c(text, arguments, lambda x, steps: np.zeros_like(x))(quick)


def numpy_heat(x, steps):
    rate, two = np.float32(RATE), np.float32(2.0)
    x = x.copy()
    for _ in range(steps):
        x[1:-1] = x[1:-1] + rate * (x[:-2] - two * x[1:-1] + x[2:])
    return x


def make_jax(jax: Any) -> Any:
    jnp = jax.numpy

    def jax_heat(x, steps):
        def step(_, x):
            inner = x[1:-1] + RATE * (x[:-2] - 2.0 * x[1:-1] + x[2:])
            return jnp.concatenate([x[:1], inner, x[-1:]])

        return jax.lax.fori_loop(0, steps, step, x)

    return jax_heat


def make_torch(torch: Any) -> Any:
    def torch_heat(x, steps):
        for _ in range(int(steps)):
            inner = x[1:-1] + RATE * (x[:-2] - 2.0 * x[1:-1] + x[2:])
            x = torch.cat([x[:1], inner, x[-1:]])
        return x

    return torch_heat


CASES = [
    Case(
        "heat",
        "Heat equation in one dimension, 1,000 steps over 1,000 points, float32",
        {
            peers.AUTOGRAPH: build.ours(heat, arguments),
            peers.C: in_c,
            peers.NUMBA: build.numba(machine_heat, arguments),
            peers.NUMPY: build.plain(numpy_heat, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(heat, arguments),
            peers.TF_XLA: build.tensorflow(heat, arguments, xla=True),
            peers.TORCH: build.torch(make_torch, arguments),
        },
        rtol=1e-4,
        kind="array loop",
    )
]
