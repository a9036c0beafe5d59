"""Convolutions in two dimensions, float32: one of 3 × 3, forward and backward, and a training step of a network of two.

Batch 32, 28 × 28 pixels. The step is plain gradient descent on a cross entropy: convolution, relu, max pooling, twice,
then a dense layer.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import build, peers
from benchmarks.harness import Case

RATE = 0.05


def arguments(quick: bool) -> tuple[np.ndarray, np.ndarray]:
    """Images [batch, height, width, channels], filters [3, 3, channels, channels after]."""
    batch, size, before, after = (2, 6, 2, 3) if quick else (32, 28, 16, 32)
    random = np.random.default_rng(0)
    images = random.normal(size=(batch, size, size, before))
    return images.astype(np.float32), (random.normal(size=(3, 3, before, after)) / (9 * before) ** 0.5).astype(
        np.float32
    )


def step_arguments(quick: bool) -> Sequence[np.ndarray]:
    """Images, labels, two filters, the dense layer's weights."""
    batch, size, first, second = (4, 8, 2, 3) if quick else (32, 28, 16, 32)
    random = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return (random.normal(size=shape) / np.prod(shape[:-1]) ** 0.5).astype(np.float32)

    images = random.normal(size=(batch, size, size, 1)).astype(np.float32)
    labels = random.integers(0, 10, batch).astype(np.int32)
    return images, labels, normal(3, 3, 1, first), normal(3, 3, first, second), normal((size // 4) ** 2 * second, 10)


def convolve(m: Any, images: Any, filters: Any) -> Any:
    return m.nn.conv2d(images, filters, strides=1, padding="SAME")


def square(m: Any, images: Any, filters: Any) -> Any:
    result = convolve(m, images, filters)
    return m.reduce_sum(result * result)


def loss(m: Any, images: Any, labels: Any, first: Any, second: Any, dense: Any) -> Any:
    x = m.nn.max_pool2d(m.nn.relu(convolve(m, images, first)), 2, 2, "VALID")
    x = m.nn.max_pool2d(m.nn.relu(convolve(m, x, second)), 2, 2, "VALID")
    logits = m.linalg.matmul(m.reshape(x, [x.shape[0], dense.shape[0]]), dense)
    return m.reduce_mean(m.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def train(m: Any, images: Any, labels: Any, *weights: Any) -> Any:
    """The weights after a step."""
    with m.GradientTape() as tape:
        tape.watch(weights)
        value = loss(m, images, labels, *weights)
    return [weight - RATE * change for weight, change in zip(weights, tape.gradient(value, weights), strict=True)]


def numpy_convolve(images, filters):
    _, height, width, _ = images.shape
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = [padded[:, i : i + height, j : j + width] @ filters[i, j] for i in range(3) for j in range(3)]
    return sum(windows[1:], windows[0])


def _jax_convolve(jax: Any, images: Any, filters: Any) -> Any:
    return jax.lax.conv_general_dilated(images, filters, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def make_jax(jax: Any) -> Any:
    return lambda images, filters: _jax_convolve(jax, images, filters)


def make_jax_square(jax: Any) -> Any:
    return lambda images, filters: jax.numpy.sum(_jax_convolve(jax, images, filters) ** 2)


def make_jax_step(jax: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax

    def pooled(x, filters):
        x = jax.nn.relu(_jax_convolve(jax, x, filters))
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def loss_of(weights, images, labels):
        x = pooled(pooled(images, weights[0]), weights[1])
        logits = jax.nn.log_softmax(x.reshape(x.shape[0], -1) @ weights[2])
        return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], axis=1))

    def jax_step(images, labels, *weights):
        changes = jax.grad(loss_of)(weights, images, labels)
        return [weight - RATE * change for weight, change in zip(weights, changes, strict=True)]

    return jax_step


def _torch_convolve(torch: Any, images: Any, filters: Any) -> Any:
    """With torch's order of axes; memory stays as it is."""
    result = torch.nn.functional.conv2d(images.permute(0, 3, 1, 2), filters.permute(3, 2, 0, 1), padding=1)
    return result.permute(0, 2, 3, 1)


def make_torch(torch: Any) -> Any:
    return lambda images, filters: _torch_convolve(torch, images, filters)


def make_torch_square(torch: Any) -> Any:
    return lambda images, filters: torch.sum(_torch_convolve(torch, images, filters) ** 2)


def make_torch_step(torch: Any) -> Any:
    functional = torch.nn.functional

    def pooled(x, filters):
        x = torch.relu(_torch_convolve(torch, x, filters)).permute(0, 3, 1, 2)
        return functional.max_pool2d(x, 2).permute(0, 2, 3, 1)

    def torch_step(images, labels, *weights):
        weights = [weight.detach().requires_grad_() for weight in weights]
        x = pooled(pooled(images, weights[0]), weights[1])
        loss_of_batch = functional.cross_entropy(x.reshape(x.shape[0], -1) @ weights[2], labels.long())
        changes = torch.autograd.grad(loss_of_batch, weights)
        return [weight.detach() - RATE * change for weight, change in zip(weights, changes, strict=True)]

    return torch_step


CASES = [
    Case(
        "convolution",
        "Convolution of 3 × 3, batch 32, 28 × 28 pixels, 16 channels to 32, float32",
        {
            peers.AUTOGRAPH: build.ours(convolve, arguments),
            peers.NUMPY: build.plain(numpy_convolve, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(convolve, arguments),
            peers.TF_XLA: build.tensorflow(convolve, arguments, xla=True),
            peers.TORCH: build.torch(make_torch, arguments),
        },
        rtol=1e-4,
        kind="layer",
    ),
    Case(
        "convolution-gradient",
        "Gradients of that convolution in images and filters, float32",
        {
            peers.AUTOGRAPH: build.ours(build.gradient(square, 0, 1), arguments),
            peers.JAX: build.jax(build.jax_gradient(make_jax_square, 0, 1), arguments),
            peers.TF: build.tensorflow(build.gradient(square, 0, 1), arguments),
            peers.TF_XLA: build.tensorflow(build.gradient(square, 0, 1), arguments, xla=True),
            peers.TORCH: build.torch(build.torch_gradient(make_torch_square, 0, 1), arguments),
        },
        rtol=1e-4,
        kind="layer",
    ),
    Case(
        "cnn",
        "Training step of a network of two convolutions, batch 32, 28 × 28 pixels, float32",
        {
            peers.AUTOGRAPH: build.ours(train, step_arguments),
            peers.JAX: build.jax(make_jax_step, step_arguments),
            peers.TF: build.tensorflow(train, step_arguments),
            peers.TF_XLA: build.tensorflow(train, step_arguments, xla=True),
            peers.TORCH: build.torch(make_torch_step, step_arguments),
        },
        rtol=1e-4,
        kind="layer",
    ),
]
