"""Gradient of causal attention in queries, keys and values: batch 8, 64 positions, 4 heads of 16, float32."""

from typing import Any

import numpy as np

from benchmarks import build, peers
from benchmarks.harness import Case


def arguments(quick: bool) -> tuple[np.ndarray, ...]:
    """Queries, keys and values [batch, heads, positions, width]."""
    shape = (2, 2, 6, 4) if quick else (8, 4, 64, 16)
    random = np.random.default_rng(0)
    return tuple(random.normal(size=shape).astype(np.float32) for _ in range(3))


def attention(m: Any, queries: Any, keys: Any, values: Any) -> Any:
    width, positions = queries.shape[-1], queries.shape[-2]
    scores = m.linalg.matmul(queries, keys, transpose_b=True) / width**0.5
    later = m.range(positions)[:, None] < m.range(positions)[None, :]
    weights = m.nn.softmax(m.where(later, m.constant(-1e9), scores), axis=-1)
    mixed = m.linalg.matmul(weights, values)
    return m.reduce_sum(mixed * mixed)


def _loss(m: Any, softmax: Any, queries: Any, keys: Any, values: Any) -> Any:
    """The same for JAX and torch."""
    width, positions = queries.shape[-1], queries.shape[-2]
    scores = queries @ keys.swapaxes(-1, -2) / width**0.5
    later = m.arange(positions)[:, None] < m.arange(positions)[None, :]
    mixed = softmax(m.where(later, m.asarray(np.float32(-1e9)), scores), -1) @ values
    return (mixed * mixed).sum()


def make_jax(jax: Any) -> Any:
    return lambda *given: _loss(jax.numpy, jax.nn.softmax, *given)


def make_torch(torch: Any) -> Any:
    return lambda *given: _loss(torch, torch.softmax, *given)


def numpy_gradient(queries, keys, values):
    width, positions = queries.shape[-1], queries.shape[-2]
    scores = queries @ keys.swapaxes(-1, -2) / np.float32(width**0.5)
    later = np.arange(positions)[:, None] < np.arange(positions)[None, :]
    scores = np.where(later, np.float32(-1e9), scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    grown = 2 * (weights @ values)
    back = grown @ values.swapaxes(-1, -2)
    inner = weights * (back - (back * weights).sum(-1, keepdims=True)) / np.float32(width**0.5)
    return inner @ keys, inner.swapaxes(-1, -2) @ queries, weights.swapaxes(-1, -2) @ grown


CASES = [
    Case(
        "attention-gradient",
        "Gradient of causal attention, batch 8, 64 positions, 4 heads of 16, float32",
        {
            peers.AUTOGRAPH: build.ours(build.gradient(attention, 0, 1, 2), arguments),
            peers.NUMPY: build.plain(numpy_gradient, arguments),
            peers.JAX: build.jax(build.jax_gradient(make_jax, 0, 1, 2), arguments),
            peers.TF: build.tensorflow(build.gradient(attention, 0, 1, 2), arguments),
            peers.TF_XLA: build.tensorflow(build.gradient(attention, 0, 1, 2), arguments, xla=True),
            peers.TORCH: build.torch(build.torch_gradient(make_torch, 0, 1, 2), arguments),
        },
        rtol=1e-4,
        kind="layer",
    )
]
