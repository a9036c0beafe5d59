"""A tanh RNN over 32 time steps, batch 128, 64 units, float32: matrix products in a loop; forward and gradient."""

from typing import Any, NamedTuple

import numpy as np

import autograph as ag
from benchmarks import build, peers
from benchmarks.harness import Call, Case


class Inputs(NamedTuple):
    """signals [time, batch, units], w_x and w_h [units, units], b [units]"""

    signals: Any
    w_x: Any
    w_h: Any
    b: Any


def inputs(quick: bool) -> Inputs:
    batch, time, units = (8, 5, 16) if quick else (128, 32, 64)
    random = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return (random.normal(size=shape) / shape[-1] ** 0.5).astype(np.float32)

    return Inputs(normal(time, batch, units), normal(units, units), normal(units, units), normal(units))


def ours_rnn(signals, w_x, w_h, b):
    state = ag.zeros_like(signals[0])
    for i in ag.range(ag.shape(signals)[0]):
        state = ag.tanh(ag.matmul(signals[i], w_x) + ag.matmul(state, w_h) + b)
    return ag.reduce_sum(state * state)


def ours(quick: bool) -> Call:
    compiled, given = build.compiled(ours_rnn), Inputs(*map(ag.constant, inputs(quick)))
    return lambda: compiled(*given)


def ours_gradient(quick: bool) -> Call:
    @build.compiled
    def gradient(signals, w_x, w_h, b):
        with ag.GradientTape() as tape:
            tape.watch([w_x, w_h, b])
            energy = ours_rnn(signals, w_x, w_h, b)
        return tape.gradient(energy, [w_x, w_h, b])

    given = Inputs(*map(ag.constant, inputs(quick)))
    return lambda: gradient(*given)


def hand_written(quick: bool) -> Call:
    @peers.load("numba").njit
    def numba_rnn(signals, w_x, w_h, b):
        state = np.zeros_like(signals[0])
        for i in range(signals.shape[0]):
            state = np.tanh(np.dot(signals[i], w_x) + np.dot(state, w_h) + b)
        return np.sum(state * state)

    given = inputs(quick)
    return lambda: numba_rnn(*given)


def numpy(quick: bool) -> Call:
    signals, w_x, w_h, b = inputs(quick)

    def numpy_rnn() -> np.ndarray:
        state = np.zeros_like(signals[0])
        for signal in signals:
            state = np.tanh(signal @ w_x + state @ w_h + b)
        return np.sum(state * state)

    return numpy_rnn


def _jax_rnn(jax: Any) -> Any:
    def rnn(signals, w_x, w_h, b):
        def step(state, signal):
            return jax.numpy.tanh(signal @ w_x + state @ w_h + b), None

        state, _ = jax.lax.scan(step, jax.numpy.zeros_like(signals[0]), signals)
        return jax.numpy.sum(state * state)

    return rnn


def jax_(quick: bool) -> Call:
    jax = peers.load("jax")
    compiled, given = jax.jit(_jax_rnn(jax)), [*map(jax.numpy.asarray, inputs(quick))]
    return lambda: compiled(*given).block_until_ready()


def jax_gradient(quick: bool) -> Call:
    jax = peers.load("jax")
    compiled = jax.jit(jax.grad(_jax_rnn(jax), argnums=(1, 2, 3)))
    given = [*map(jax.numpy.asarray, inputs(quick))]
    return lambda: jax.block_until_ready(compiled(*given))


def _tf_rnn(tf: Any, signals: Any, w_x: Any, w_h: Any, b: Any) -> Any:
    state = tf.zeros_like(signals[0])
    for i in tf.range(signals.shape[0]):
        state = tf.tanh(tf.matmul(signals[i], w_x) + tf.matmul(state, w_h) + b)
    return tf.reduce_sum(state * state)


def tensorflow(xla: bool):
    def build(quick: bool) -> Call:
        tf = peers.load("tensorflow")
        rnn = tf.autograph.to_graph(_tf_rnn)
        compiled = peers.tf_function(xla)(lambda *given: rnn(tf, *given))
        given = [*map(tf.constant, inputs(quick))]
        return lambda: compiled(*given)

    return build


def tensorflow_gradient(xla: bool):
    def build(quick: bool) -> Call:
        tf = peers.load("tensorflow")

        @peers.tf_function(xla)
        def gradient(signals, w_x, w_h, b):
            with tf.GradientTape() as tape:
                tape.watch([w_x, w_h, b])
                energy = _tf_rnn(tf, signals, w_x, w_h, b)
            return tape.gradient(energy, [w_x, w_h, b])

        given = [*map(tf.constant, inputs(quick))]
        return lambda: gradient(*given)

    return build


def _torch_rnn(library: Any, signals: Any, w_x: Any, w_h: Any, b: Any) -> Any:
    state = library.zeros_like(signals[0])
    for signal in signals:
        state = library.tanh(signal @ w_x + state @ w_h + b)
    return library.sum(state * state)


def torch(quick: bool) -> Call:
    library = peers.load("torch")
    given = [*map(library.from_numpy, inputs(quick))]
    return lambda: _torch_rnn(library, *given)


def torch_gradient(quick: bool) -> Call:
    library = peers.load("torch")
    signals, *weights = map(library.from_numpy, inputs(quick))
    for weight in weights:
        weight.requires_grad_()
    return lambda: library.autograd.grad(_torch_rnn(library, signals, *weights), weights)


CASES = [
    Case(
        "rnn",
        "RNN forward, batch 128, time 32, units 64, float32",
        {
            peers.AUTOGRAPH: ours,
            peers.NUMBA: hand_written,
            peers.NUMPY: numpy,
            peers.JAX: jax_,
            peers.TF: tensorflow(xla=False),
            peers.TF_XLA: tensorflow(xla=True),
            peers.TORCH: torch,
        },
        rtol=1e-4,
        kind="network",
    ),
    Case(
        "rnn-gradient",
        "RNN gradient in its weights, batch 128, time 32, units 64, float32",
        {
            peers.AUTOGRAPH: ours_gradient,
            peers.JAX: jax_gradient,
            peers.TF: tensorflow_gradient(xla=False),
            peers.TF_XLA: tensorflow_gradient(xla=True),
            peers.TORCH: torch_gradient,
        },
        rtol=1e-4,
        kind="network",
    ),
]
