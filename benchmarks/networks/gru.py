"""Gradient of a GRU in its weights: 32 time steps, batch 64, 64 units, float32."""

from typing import Any

import numpy as np

from benchmarks import build, peers
from benchmarks.harness import Case


def arguments(quick: bool) -> tuple[np.ndarray, ...]:
    """signals [time, batch, units], weights of the gates [2 units, 2 units], of the candidate [2 units, units]"""
    batch, time, units = (4, 4, 8) if quick else (64, 32, 64)
    random = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return (random.normal(size=shape) / units**0.5).astype(np.float32)

    return normal(time, batch, units), normal(2 * units, 2 * units), normal(2 * units, units)


def gru(m: Any, signals: Any, gates: Any, candidate: Any) -> Any:
    state = m.zeros_like(signals[0])
    for i in m.range(m.shape(signals)[0]):
        both = m.sigmoid(m.linalg.matmul(m.concat([signals[i], state], axis=1), gates))
        reset, update = m.split(both, 2, axis=1)
        new = m.tanh(m.linalg.matmul(m.concat([signals[i], reset * state], axis=1), candidate))
        state = update * state + (1.0 - update) * new
    return m.reduce_sum(state * state)


def make_jax(jax: Any) -> Any:
    jnp = jax.numpy

    def jax_gru(signals, gates, candidate):
        def step(state, signal):
            both = jax.nn.sigmoid(jnp.concatenate([signal, state], axis=1) @ gates)
            reset, update = jnp.split(both, 2, axis=1)
            new = jnp.tanh(jnp.concatenate([signal, reset * state], axis=1) @ candidate)
            return update * state + (1.0 - update) * new, None

        state, _ = jax.lax.scan(step, jnp.zeros_like(signals[0]), signals)
        return jnp.sum(state * state)

    return jax_gru


def make_torch(torch: Any) -> Any:
    def torch_gru(signals, gates, candidate):
        state = torch.zeros_like(signals[0])
        for signal in signals:
            both = torch.sigmoid(torch.cat([signal, state], dim=1) @ gates)
            reset, update = torch.chunk(both, 2, dim=1)
            new = torch.tanh(torch.cat([signal, reset * state], dim=1) @ candidate)
            state = update * state + (1.0 - update) * new
        return torch.sum(state * state)

    return torch_gru


def numpy_gru(signals, gates, candidate):
    """The value alone, for tests: gradients are compared with its differences."""
    state = np.zeros_like(signals[0])
    for signal in signals:
        both = 1.0 / (1.0 + np.exp(-(np.concatenate([signal, state], axis=1) @ gates)))
        reset, update = np.split(both, 2, axis=1)
        new = np.tanh(np.concatenate([signal, reset * state], axis=1) @ candidate)
        state = update * state + (1.0 - update) * new
    return np.sum(state * state)


CASES = [
    Case(
        "gru-gradient",
        "GRU gradient in its weights, batch 64, time 32, units 64, float32",
        {
            peers.AUTOGRAPH: build.ours(build.gradient(gru, 1, 2), arguments),
            peers.JAX: build.jax(build.jax_gradient(make_jax, 1, 2), arguments),
            peers.TF: build.tensorflow(build.gradient(gru, 1, 2), arguments),
            peers.TF_XLA: build.tensorflow(build.gradient(gru, 1, 2), arguments, xla=True),
            peers.TORCH: build.torch(build.torch_gradient(make_torch, 1, 2), arguments),
        },
        rtol=1e-4,
        kind="layer",
    )
]
