"""Sinkhorn's iteration between two histograms of 128 bins until the marginals agree, float32: products of a matrix and
a vector in a loop that ends by a test."""

from typing import Any

import numpy as np

from benchmarks import build, peers
from benchmarks.harness import Case

TOLERANCE, LIMIT, SMOOTHING = 1e-5, 500, 0.05


def arguments(quick: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    size = 12 if quick else 128
    random = np.random.default_rng(0)
    a, b = random.uniform(0.5, 1.5, size), random.uniform(0.5, 1.5, size)
    places = np.linspace(0.0, 1.0, size)
    cost = (places[:, None] - places[None, :]) ** 2
    return cost.astype(np.float32), (a / a.sum()).astype(np.float32), (b / b.sum()).astype(np.float32)


def transport(m: Any, cost: Any, a: Any, b: Any) -> Any:
    kernel = m.exp(cost / -SMOOTHING)
    u, v = m.ones_like(a), m.ones_like(b)
    error, count = m.constant(1.0), m.constant(0)
    while error > TOLERANCE and count < LIMIT:
        u = a / m.linalg.matvec(kernel, v)
        v = b / m.linalg.matvec(kernel, u, transpose_a=True)
        error = m.reduce_sum(m.abs(u * m.linalg.matvec(kernel, v) - a))
        count += 1
    return m.reduce_sum(u[:, None] * kernel * v[None, :] * cost)


def numpy_transport(cost, a, b):
    kernel = np.exp(cost / np.float32(-SMOOTHING))
    u, v = np.ones_like(a), np.ones_like(b)
    error, count = 1.0, 0
    while error > TOLERANCE and count < LIMIT:
        u = a / (kernel @ v)
        v = b / (kernel.T @ u)
        error = np.sum(np.abs(u * (kernel @ v) - a))
        count += 1
    return np.sum(u[:, None] * kernel * v[None, :] * cost)


def make_jax(jax: Any) -> Any:
    jnp = jax.numpy

    def jax_transport(cost, a, b):
        kernel = jnp.exp(cost / -SMOOTHING)

        def step(carry):
            _, v, _, count = carry
            u = a / (kernel @ v)
            v = b / (kernel.T @ u)
            return u, v, jnp.sum(jnp.abs(u * (kernel @ v) - a)), count + 1

        start = jnp.ones_like(a), jnp.ones_like(b), jnp.float32(1.0), 0
        u, v, _, _ = jax.lax.while_loop(lambda carry: (carry[2] > TOLERANCE) & (carry[3] < LIMIT), step, start)
        return jnp.sum(u[:, None] * kernel * v[None, :] * cost)

    return jax_transport


def make_torch(torch: Any) -> Any:
    def torch_transport(cost, a, b):
        kernel = torch.exp(cost / -SMOOTHING)
        u, v = torch.ones_like(a), torch.ones_like(b)
        error, count = 1.0, 0
        while error > TOLERANCE and count < LIMIT:
            u = a / (kernel @ v)
            v = b / (kernel.T @ u)
            error = torch.sum(torch.abs(u * (kernel @ v) - a))
            count += 1
        return torch.sum(u[:, None] * kernel * v[None, :] * cost)

    return torch_transport


CASES = [
    Case(
        "sinkhorn",
        "Sinkhorn's iteration, 128 bins, until it converges, float32",
        {
            peers.AUTOGRAPH: build.ours(transport, arguments),
            peers.NUMPY: build.plain(numpy_transport, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(transport, arguments),
            peers.TF_XLA: build.tensorflow(transport, arguments, xla=True),
            peers.TORCH: build.torch(make_torch, arguments),
        },
        rtol=1e-3,  # one step more or fewer
        kind="array program",
    )
]
