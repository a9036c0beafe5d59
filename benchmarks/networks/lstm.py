"""An LSTM over 32 time steps, batch 64, 64 units, float32: gates of one product in a loop; forward and gradient."""

from typing import Any

import numpy as np

from benchmarks import build, peers
from benchmarks.harness import Case


def arguments(quick: bool) -> tuple[np.ndarray, ...]:
    """signals [time, batch, units], weights [2 units, 4 units], bias [4 units]"""
    batch, time, units = (4, 4, 8) if quick else (64, 32, 64)
    random = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return (random.normal(size=shape) / units**0.5).astype(np.float32)

    return normal(time, batch, units), normal(2 * units, 4 * units), normal(4 * units)


def lstm(m: Any, signals: Any, weights: Any, bias: Any) -> Any:
    state, memory = m.zeros_like(signals[0]), m.zeros_like(signals[0])
    for i in m.range(m.shape(signals)[0]):
        gates = m.linalg.matmul(m.concat([signals[i], state], axis=1), weights) + bias
        enter, forget, leave, new = m.split(gates, 4, axis=1)
        memory = m.sigmoid(forget) * memory + m.sigmoid(enter) * m.tanh(new)
        state = m.sigmoid(leave) * m.tanh(memory)
    return m.reduce_sum(state * state)


def numpy_lstm(signals, weights, bias):
    sigmoid = lambda x: 1.0 / (1.0 + np.exp(-x))  # noqa: E731
    state, memory = np.zeros_like(signals[0]), np.zeros_like(signals[0])
    for signal in signals:
        gates = np.concatenate([signal, state], axis=1) @ weights + bias
        enter, forget, leave, new = np.split(gates, 4, axis=1)
        memory = sigmoid(forget) * memory + sigmoid(enter) * np.tanh(new)
        state = sigmoid(leave) * np.tanh(memory)
    return np.sum(state * state)


def make_jax(jax: Any) -> Any:
    jnp = jax.numpy

    def jax_lstm(signals, weights, bias):
        def step(carry, signal):
            state, memory = carry
            gates = jnp.concatenate([signal, state], axis=1) @ weights + bias
            enter, forget, leave, new = jnp.split(gates, 4, axis=1)
            memory = jax.nn.sigmoid(forget) * memory + jax.nn.sigmoid(enter) * jnp.tanh(new)
            return (jax.nn.sigmoid(leave) * jnp.tanh(memory), memory), None

        start = jnp.zeros_like(signals[0])
        (state, _), _ = jax.lax.scan(step, (start, start), signals)
        return jnp.sum(state * state)

    return jax_lstm


def make_torch(torch: Any) -> Any:
    def torch_lstm(signals, weights, bias):
        state, memory = torch.zeros_like(signals[0]), torch.zeros_like(signals[0])
        for signal in signals:
            gates = torch.addmm(bias, torch.cat([signal, state], dim=1), weights)
            enter, forget, leave, new = gates.chunk(4, dim=1)
            memory = torch.sigmoid(forget) * memory + torch.sigmoid(enter) * torch.tanh(new)
            state = torch.sigmoid(leave) * torch.tanh(memory)
        return torch.sum(state * state)

    return torch_lstm


CASES = [
    Case(
        "lstm",
        "LSTM forward, batch 64, time 32, units 64, float32",
        {
            peers.AUTOGRAPH: build.ours(lstm, arguments),
            peers.NUMPY: build.plain(numpy_lstm, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(lstm, arguments),
            peers.TF_XLA: build.tensorflow(lstm, arguments, xla=True),
            peers.TORCH: build.torch(make_torch, arguments),
        },
        rtol=1e-4,
        kind="network",
    ),
    Case(
        "lstm-gradient",
        "LSTM gradient in its weights, batch 64, time 32, units 64, float32",
        {
            peers.AUTOGRAPH: build.ours(build.gradient(lstm, 1, 2), arguments),
            peers.JAX: build.jax(build.jax_gradient(make_jax, 1, 2), arguments),
            peers.TF: build.tensorflow(build.gradient(lstm, 1, 2), arguments),
            peers.TF_XLA: build.tensorflow(build.gradient(lstm, 1, 2), arguments, xla=True),
            peers.TORCH: build.torch(build.torch_gradient(make_torch, 1, 2), arguments),
        },
        rtol=1e-4,
        kind="network",
    ),
]
