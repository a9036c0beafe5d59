"""Ten steps of k-means: 4,000 points in 8 dimensions, 16 centres, float32: distances, the nearest centre, sums by
centre."""

from typing import Any

import numpy as np

from benchmarks import build, peers
from benchmarks.harness import Case

STEPS = 10


def arguments(quick: bool) -> tuple[np.ndarray, np.ndarray]:
    """Points around centres that are far apart, so that rounding never decides which one is nearest."""
    points, dimensions, centres = (60, 3, 4) if quick else (4000, 8, 16)
    random = np.random.default_rng(0)
    middles = random.normal(size=(centres, dimensions)) * 20.0
    x = middles[np.arange(points) % centres] + random.normal(size=(points, dimensions))
    return x.astype(np.float32), x[:centres].astype(np.float32)


def clusters(m: Any, x: Any, centres: Any) -> Any:
    count = centres.shape[0]
    for _ in m.range(STEPS):
        gaps = x[:, None, :] - centres[None, :, :]
        nearest = m.argmin(m.reduce_sum(gaps * gaps, axis=2), axis=1)
        sums = m.math.unsorted_segment_sum(x, nearest, count)
        sizes = m.math.unsorted_segment_sum(m.ones_like(x[:, 0]), nearest, count)
        centres = sums / m.maximum(sizes, 1.0)[:, None]
    return centres


def machine_clusters(x, centres):
    points, dimensions = x.shape
    for _ in range(STEPS):
        sums, sizes = np.zeros_like(centres), np.zeros(len(centres), np.float32)
        for i in range(points):
            nearest, least = 0, np.float32(np.inf)
            for c in range(len(centres)):
                distance = np.float32(0.0)
                for k in range(dimensions):
                    gap = x[i, k] - centres[c, k]
                    distance += gap * gap
                if distance < least:
                    nearest, least = c, distance
            sizes[nearest] += np.float32(1.0)
            for k in range(dimensions):
                sums[nearest, k] += x[i, k]
        centres = sums / np.maximum(sizes, np.float32(1.0)).reshape(-1, 1)
    return centres


def make_jax(jax: Any) -> Any:
    jnp = jax.numpy

    def jax_clusters(x, centres):
        count = centres.shape[0]

        def step(_, centres):
            gaps = x[:, None, :] - centres[None, :, :]
            nearest = jnp.argmin(jnp.sum(gaps * gaps, axis=2), axis=1)
            sums = jax.ops.segment_sum(x, nearest, count)
            sizes = jax.ops.segment_sum(jnp.ones_like(x[:, 0]), nearest, count)
            return sums / jnp.maximum(sizes, 1.0)[:, None]

        return jax.lax.fori_loop(0, STEPS, step, centres)

    return jax_clusters


def make_torch(torch: Any) -> Any:
    def torch_clusters(x, centres):
        count = centres.shape[0]
        for _ in range(STEPS):
            nearest = torch.argmin(torch.cdist(x, centres), dim=1)
            sums = torch.zeros_like(centres).index_add_(0, nearest, x)
            sizes = torch.bincount(nearest, minlength=count).clamp(min=1)
            centres = sums / sizes[:, None]
        return centres

    return torch_clusters


CASES = [
    Case(
        "k-means",
        "Ten steps of k-means, 4,000 points in 8 dimensions, 16 centres, float32",
        {
            peers.AUTOGRAPH: build.ours(clusters, arguments),
            peers.NUMBA: build.numba(machine_clusters, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(clusters, arguments),
            peers.TF_XLA: build.tensorflow(clusters, arguments, xla=True),
            peers.TORCH: build.torch(make_torch, arguments),
        },
        rtol=1e-4,
        kind="array program",
    )
]
