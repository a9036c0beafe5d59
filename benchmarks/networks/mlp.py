"""A training step with Adam of a multilayer perceptron, 256-256-256-10, batch 128, float32: loss, gradients, update;
and of a wide one, 784-1024-1024-10.

Each call trains on: the first gives the loss that all are checked by, those that are timed go on from there.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import autograph as ag
from benchmarks import build, peers
from benchmarks.harness import Call, Case

RATE, FIRST, SECOND, EPSILON = 1e-3, 0.9, 0.999, 1e-7


Sizes = tuple[int, ...]
NARROW: Sizes = (256, 256, 256, 10)
WIDE: Sizes = (784, 1024, 1024, 10)


def data(quick: bool, sizes: Sizes) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Inputs [batch, sizes[0]], labels [batch], and weights and biases in turn."""
    batch, sizes = (8, (16, 16, 10)) if quick else (128, sizes)
    random = np.random.default_rng(0)
    weights: list[np.ndarray] = []
    for before, after in itertools.pairwise(sizes):
        weights.append((random.normal(size=(before, after)) / before**0.5).astype(np.float32))
        weights.append(np.zeros(after, np.float32))
    x = random.normal(size=(batch, sizes[0])).astype(np.float32)
    return x, random.integers(0, 10, batch).astype(np.int32), weights


def loss_of(m: Any, x: Any, labels: Any, weights: Any) -> Any:
    """Cross entropy, for ours and TensorFlow."""
    *hidden, last = zip(weights[::2], weights[1::2], strict=True)
    for weight, bias in hidden:
        x = m.nn.relu(m.linalg.matmul(x, weight) + bias)
    logits = m.linalg.matmul(x, last[0]) + last[1]
    return m.reduce_mean(m.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def make_step(m: Any, weights: Any, means: Any, squares: Any, count: Any) -> Callable[..., Any]:
    """A step for ours and TensorFlow, on variables."""

    def step(x, labels):
        with m.GradientTape() as tape:
            loss = loss_of(m, x, labels, weights)
        gradients = tape.gradient(loss, weights)
        count.assign_add(1.0)
        rate = RATE * m.sqrt(1.0 - SECOND**count) / (1.0 - FIRST**count)
        for weight, mean, square, gradient in zip(weights, means, squares, gradients, strict=True):
            mean.assign(FIRST * mean + (1.0 - FIRST) * gradient)
            square.assign(SECOND * square + (1.0 - SECOND) * gradient * gradient)
            weight.assign_sub(rate * mean / (m.sqrt(square) + EPSILON))
        return loss

    return step


def _variables(m: Any, weights: list[np.ndarray]) -> Any:
    zeros = [[m.Variable(np.zeros_like(value)) for value in weights] for _ in range(2)]
    return [m.Variable(value) for value in weights], *zeros, m.Variable(0.0)


def ours(sizes: Sizes) -> build.Build:
    def make(quick: bool) -> Call:
        x, labels, weights = data(quick, sizes)
        step = build.compiled(make_step(ag, *_variables(ag, weights)))
        given = ag.constant(x), ag.constant(labels)
        return lambda: step(*given)

    return make


def tensorflow(sizes: Sizes, xla: bool) -> build.Build:
    def make(quick: bool) -> Call:
        tf = peers.load("tensorflow")
        x, labels, weights = data(quick, sizes)
        step = peers.tf_function(xla)(make_step(tf, *_variables(tf, weights)))
        given = tf.constant(x), tf.constant(labels)
        return lambda: step(*given)

    return make


def jax(sizes: Sizes) -> build.Build:
    return lambda quick: _jax_step(*data(quick, sizes))


def _jax_step(x: np.ndarray, labels: np.ndarray, weights: list[np.ndarray]) -> Call:
    library = peers.load("jax")
    jnp = library.numpy

    def loss_of_weights(weights, x, labels):
        *hidden, last = zip(weights[::2], weights[1::2], strict=True)
        for weight, bias in hidden:
            x = library.nn.relu(x @ weight + bias)
        logarithms = library.nn.log_softmax(x @ last[0] + last[1])
        return -jnp.mean(jnp.take_along_axis(logarithms, labels[:, None], axis=1))

    def step(state, x, labels):
        weights, means, squares, count = state
        loss, gradients = library.value_and_grad(loss_of_weights)(weights, x, labels)
        count = count + 1.0
        rate = RATE * jnp.sqrt(1.0 - SECOND**count) / (1.0 - FIRST**count)
        means = [FIRST * mean + (1.0 - FIRST) * g for mean, g in zip(means, gradients, strict=True)]
        squares = [SECOND * square + (1.0 - SECOND) * g * g for square, g in zip(squares, gradients, strict=True)]
        moved = [rate * mean / (jnp.sqrt(square) + EPSILON) for mean, square in zip(means, squares, strict=True)]
        return ([w - change for w, change in zip(weights, moved, strict=True)], means, squares, count), loss

    compiled = library.jit(step, donate_argnums=0)
    zeros = [[jnp.zeros_like(value) for value in weights] for _ in range(2)]
    state = [([jnp.asarray(value) for value in weights], *zeros, jnp.float32(0.0))]
    given = jnp.asarray(x), jnp.asarray(labels)

    def call() -> Any:
        state[0], loss = compiled(state[0], *given)
        library.block_until_ready(state[0])
        return loss

    return call


def torch(sizes: Sizes, compile: bool) -> build.Build:
    def make(quick: bool) -> Call:
        library = peers.load("torch")
        x, labels, given = data(quick, sizes)
        weights = [library.from_numpy(value).requires_grad_() for value in given]
        optimizer = library.optim.Adam(weights, RATE, (FIRST, SECOND), EPSILON, fused=True)
        batch, classes = library.from_numpy(x), library.from_numpy(labels).long()

        def loss_of_batch(x, classes):
            *hidden, last = zip(weights[::2], weights[1::2], strict=True)
            for weight, bias in hidden:
                x = library.relu(x @ weight + bias)
            return library.nn.functional.cross_entropy(x @ last[0] + last[1], classes)

        measured = library.compile(loss_of_batch) if compile else loss_of_batch

        def call() -> Any:
            optimizer.zero_grad()
            loss = measured(batch, classes)
            loss.backward()
            optimizer.step()
            return loss

        return call

    return make


def _case(name: str, title: str, sizes: Sizes) -> Case:
    implementations = {
        peers.AUTOGRAPH: ours(sizes),
        peers.JAX: jax(sizes),
        peers.TF: tensorflow(sizes, xla=False),
        peers.TF_XLA: tensorflow(sizes, xla=True),
        peers.TORCH: torch(sizes, compile=False),
        peers.TORCH_COMPILED: torch(sizes, compile=True),
    }
    return Case(name, title, implementations, rtol=1e-4, kind="training")


CASES = [
    _case("mlp", "Training step of a multilayer perceptron with Adam, batch 128, float32", NARROW),
    _case("mlp-wide", "The same, with two layers of 1,024 units, 784 inputs", WIDE),
]
