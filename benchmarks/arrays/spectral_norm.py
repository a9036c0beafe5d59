"""The largest singular value of a 256 × 256 matrix by 20 steps of power iteration, and its gradient, float32."""

from typing import Any

import numpy as np

from benchmarks import build, peers
from benchmarks.harness import Case

STEPS = 20


def arguments(quick: bool) -> tuple[np.ndarray, np.ndarray]:
    size = 16 if quick else 256
    random = np.random.default_rng(0)
    # A gap below the first singular value, so that the steps converge.
    matrix = random.normal(size=(size, size)) / size**0.5 + 3.0 * np.ones((size, size)) / size
    return matrix.astype(np.float32), np.ones(size, np.float32)


def norm(m: Any, matrix: Any, v: Any) -> Any:
    u = m.linalg.matvec(matrix, v)
    for _ in m.range(STEPS):
        u = m.linalg.matvec(matrix, v)
        u = u / m.sqrt(m.reduce_sum(u * u))
        v = m.linalg.matvec(matrix, u, transpose_a=True)
        v = v / m.sqrt(m.reduce_sum(v * v))
    return m.reduce_sum(u * m.linalg.matvec(matrix, v))


def make_jax(jax: Any) -> Any:
    jnp = jax.numpy

    def jax_norm(matrix, v):
        def step(_, carry):
            _, v = carry
            u = matrix @ v
            u = u / jnp.sqrt(jnp.sum(u * u))
            v = matrix.T @ u
            return u, v / jnp.sqrt(jnp.sum(v * v))

        u, v = jax.lax.fori_loop(0, STEPS, step, (matrix @ v, v))
        return jnp.sum(u * (matrix @ v))

    return jax_norm


def numpy_gradient(matrix, v):
    """From NumPy's singular vectors, to which the steps have come close: u v'."""
    u, _, v = np.linalg.svd(matrix.astype(np.float64))
    return np.outer(u[:, 0], v[0])


def make_torch(torch: Any) -> Any:
    def torch_norm(matrix, v):
        for _ in range(STEPS):
            u = matrix @ v
            u = u / torch.sqrt(torch.sum(u * u))
            v = matrix.T @ u
            v = v / torch.sqrt(torch.sum(v * v))
        return torch.sum(u * (matrix @ v))

    return torch_norm


CASES = [
    Case(
        "spectral-norm-gradient",
        "Gradient of a spectral norm by power iteration, 256 × 256, 20 steps, float32",
        {
            peers.AUTOGRAPH: build.ours(build.gradient(norm, 0), arguments),
            peers.NUMPY: build.plain(numpy_gradient, arguments),
            peers.JAX: build.jax(build.jax_gradient(make_jax, 0), arguments),
            peers.TF: build.tensorflow(build.gradient(norm, 0), arguments),
            peers.TF_XLA: build.tensorflow(build.gradient(norm, 0), arguments, xla=True),
            peers.TORCH: build.torch(build.torch_gradient(make_torch, 0), arguments),
        },
        rtol=1e-3,
        kind="array program",
    )
]
