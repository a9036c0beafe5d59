"""Conjugate gradients on a symmetric system of 256 equations until the residual is small, float64: a product of a
matrix and a vector, and sums, in each step of a loop that ends by a test."""

from typing import Any

import numpy as np

from benchmarks import build, peers
from benchmarks.harness import Case

TOLERANCE = 1e-10


def arguments(quick: bool) -> tuple[np.ndarray, np.ndarray]:
    size = 24 if quick else 256
    random = np.random.default_rng(0)
    root = random.normal(size=(size, size)) / size**0.5
    return root @ root.T + 0.1 * np.eye(size), random.normal(size=size)


def solve(m: Any, matrix: Any, right: Any) -> Any:
    x, residual, direction = m.zeros_like(right), right, right
    square = m.reduce_sum(residual * residual)
    while square > TOLERANCE:
        image = m.linalg.matvec(matrix, direction)
        step = square / m.reduce_sum(direction * image)
        x = x + step * direction
        residual = residual - step * image
        before, square = square, m.reduce_sum(residual * residual)
        direction = residual + square / before * direction
    return x


def numpy_solve(matrix, right):
    x, residual, direction = np.zeros_like(right), right, right
    square = np.dot(residual, residual)
    while square > TOLERANCE:
        image = matrix @ direction
        step = square / np.dot(direction, image)
        x = x + step * direction
        residual = residual - step * image
        before, square = square, np.dot(residual, residual)
        direction = residual + square / before * direction
    return x


def make_jax(jax: Any) -> Any:
    jnp = jax.numpy

    def jax_solve(matrix, right):
        def step(carry):
            x, residual, direction, square = carry
            image = matrix @ direction
            step = square / jnp.dot(direction, image)
            residual = residual - step * image
            after = jnp.dot(residual, residual)
            return x + step * direction, residual, residual + after / square * direction, after

        start = jnp.zeros_like(right), right, right, jnp.dot(right, right)
        return jax.lax.while_loop(lambda carry: carry[3] > TOLERANCE, step, start)[0]

    return jax_solve


def make_torch(torch: Any) -> Any:
    def torch_solve(matrix, right):
        x, residual, direction = torch.zeros_like(right), right, right
        square = residual.dot(residual)
        while square > TOLERANCE:
            image = matrix @ direction
            step = square / direction.dot(image)
            x = x + step * direction
            residual = residual - step * image
            before, square = square, residual.dot(residual)
            direction = residual + square / before * direction
        return x

    return torch_solve


CASES = [
    Case(
        "conjugate-gradient",
        "Conjugate gradients, 256 equations, until they converge, float64",
        {
            peers.AUTOGRAPH: build.ours(solve, arguments),
            peers.NUMBA: build.numba(numpy_solve, arguments),
            peers.NUMPY: build.plain(numpy_solve, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(solve, arguments),
            peers.TF_XLA: build.tensorflow(solve, arguments, xla=True),
            peers.TORCH: build.torch(make_torch, arguments),
        },
        kind="array program",
    )
]
