"""Training steps for `benchmarks/gpu.py`: the same networks in each library, from the same parameters.

A run takes STEPS steps, each with the parameters that the last one left, and gives the last loss. Parameters and data
are on the GPU. A step is one function in our library and in JAX, whose parameters are donated; in PyTorch the loss and
its gradient are compiled, and the optimizer is its fused one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

import autograph as ag

Run = Callable[[], Any]  # runs once, and waits for the end
STEPS = 10
_RATE, _MOMENTUM, _BETAS, _EPSILON = 1e-4, 0.9, (0.9, 0.999), 1e-8


@dataclass(frozen=True)
class Network:
    """logits: of the library's operations, the parameters and the data. Images have their channels last, filters are of
    shape [height, width, channels, depth]; in PyTorch both have its shapes. optimizer: "Adam" or "momentum"."""

    logits: Callable[[Any, Sequence[Any], Any], Any]
    parameters: list[np.ndarray]
    data: np.ndarray
    labels: np.ndarray
    optimizer: str


def _drawn(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Parameters with which numbers neither grow nor vanish from layer to layer; vectors are zero."""
    random = np.random.default_rng(3)
    scales = [(2 / np.prod(shape[:-1])) ** 0.5 if len(shape) > 1 else 0.0 for shape in shapes]
    return [(random.normal(size=shape) * scale).astype(np.float32) for shape, scale in zip(shapes, scales)]


def _examples(batch: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(4)
    return random.normal(size=(batch, *shape)).astype(np.float32), random.integers(0, 10, batch).astype(np.int32)


def mlp(batch: int, width: int = 512) -> Network:
    def logits(m: Any, parameters: Sequence[Any], x: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = parameters
        return m.relu(m.relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3

    shapes = (784, width), (width,), (width, width), (width,), (width, 10), (10,)
    return Network(logits, _drawn(*shapes), *_examples(batch, (784,)), "Adam")


def cnn(batch: int, side: int = 28) -> Network:
    def logits(m: Any, parameters: Sequence[Any], x: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = parameters
        for w, b in ((w1, b1), (w2, b2)):
            x = m.max_pool(m.relu(m.convolution(x, w, b)))
        return m.mean(x) @ w3 + b3

    shapes = (3, 3, 1, 32), (32,), (3, 3, 32, 64), (64,), (64, 10), (10,)
    return Network(logits, _drawn(*shapes), *_examples(batch, (side, side, 1)), "momentum")


def _adam(m: Any, count: Any, value: Any, gradient: Any, slots: Sequence[Any]) -> tuple[Any, list[Any]]:
    one, two = _BETAS
    first, second = one * slots[0] + (1 - one) * gradient, two * slots[1] + (1 - two) * gradient * gradient
    rate = _RATE / (1 - one**count)
    return value - rate * first / (m.sqrt(second) / m.sqrt(1 - two**count) + _EPSILON), [first, second]


def _momentum(m: Any, count: Any, value: Any, gradient: Any, slots: Sequence[Any]) -> tuple[Any, list[Any]]:
    velocity = _MOMENTUM * slots[0] + gradient
    return value - _RATE * velocity, [velocity]


# Of each optimizer the number of arrays beside each parameter, and the update.
_OPTIMIZERS: dict[str, tuple[int, Callable[..., Any]]] = {"Adam": (2, _adam), "momentum": (1, _momentum)}


def _slots(network: Network) -> list[list[np.ndarray]]:
    return [[np.zeros_like(each) for _ in range(_OPTIMIZERS[network.optimizer][0])] for each in network.parameters]


def ours(network: Network) -> Run:
    operations = SimpleNamespace(
        relu=ag.nn.relu, sqrt=ag.sqrt,
        convolution=lambda x, w, b: ag.nn.conv2d(x, w, 1, "SAME") + b,
        max_pool=lambda x: ag.nn.max_pool2d(x, 2, 2, "VALID"), mean=lambda x: ag.reduce_mean(x, (1, 2)),
    )  # fmt: skip
    update = _OPTIMIZERS[network.optimizer][1]
    with ag.device("/GPU:0"):
        parameters: list[Any] = [ag.Variable(each) for each in network.parameters]
        slots = [[ag.Variable(each) for each in group] for group in _slots(network)]
        count: Any = ag.Variable(np.float32(0.0))
        x, y = ag.constant(network.data), ag.constant(network.labels)

    @ag.function(jit_compile=True)
    def step(x: Any, y: Any) -> Any:
        with ag.GradientTape() as tape:
            logits = network.logits(operations, parameters, x)
            loss = ag.reduce_mean(ag.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        gradients = tape.gradient(loss, parameters)
        count.assign_add(1.0)
        for variable, gradient, group in zip(parameters, gradients, slots):
            value, new = update(operations, count, variable, gradient, group)
            variable.assign(value)
            for slot, other in zip(group, new):
                slot.assign(other)
        return loss

    def run() -> Any:
        for _ in range(STEPS):
            loss = step(x, y)
        ag.test.experimental.sync_devices()
        return loss

    return run


def in_jax(network: Network) -> Run:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_default_matmul_precision", "highest")
    numbers = ("NHWC", "HWIO", "NHWC")
    operations = SimpleNamespace(
        relu=jax.nn.relu, sqrt=jnp.sqrt, mean=lambda x: jnp.mean(x, (1, 2)),
        convolution=lambda x, w, b: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers) + b,
        max_pool=lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
    )  # fmt: skip
    update = _OPTIMIZERS[network.optimizer][1]

    def loss_of(parameters: Any, x: Any, y: Any) -> Any:
        found = jax.nn.log_softmax(network.logits(operations, parameters, x))
        return -jnp.mean(jnp.take_along_axis(found, y[:, None], 1))

    def step(state: Any, x: Any, y: Any) -> Any:
        parameters, slots, count = state
        loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
        made = [update(operations, count + 1, *each) for each in zip(parameters, gradients, slots)]
        return ([value for value, _ in made], [new for _, new in made], count + 1), loss

    step = jax.jit(step, donate_argnums=0)
    state = jax.device_put((network.parameters, _slots(network), np.float32(0.0)))
    x, y = jax.device_put(network.data), jax.device_put(network.labels)

    def run() -> Any:
        nonlocal state
        for _ in range(STEPS):
            state, loss = step(state, x, y)
        return jax.block_until_ready(loss)

    return run


def in_torch(network: Network) -> Run:
    import torch
    import torch.nn.functional as nn

    torch.backends.cudnn.allow_tf32 = False
    is_gpu = torch.cuda.is_available()
    operations = SimpleNamespace(
        relu=nn.relu, mean=lambda x: x.mean((2, 3)), convolution=lambda x, w, b: nn.conv2d(x, w, b, padding="same"),
        max_pool=lambda x: nn.max_pool2d(x, 2),
    )  # fmt: skip

    def placed(value: np.ndarray, *order: int) -> Any:
        given = torch.from_numpy(value.copy()).to("cuda" if is_gpu else "cpu")
        return given.permute(order).contiguous(memory_format=torch.channels_last) if value.ndim == 4 else given

    parameters = [torch.nn.Parameter(placed(each, 3, 2, 0, 1)) for each in network.parameters]
    x, y = placed(network.data, 0, 3, 1, 2), placed(network.labels.astype(np.int64))
    if network.optimizer == "Adam":
        optimizer: Any = torch.optim.Adam(parameters, _RATE, _BETAS, _EPSILON, fused=is_gpu)
    else:
        optimizer = torch.optim.SGD(parameters, _RATE, _MOMENTUM, fused=is_gpu)

    def loss_of(x: Any, y: Any) -> Any:
        return nn.cross_entropy(network.logits(operations, parameters, x), y)

    compiled = torch.compile(loss_of) if is_gpu else loss_of

    def run() -> Any:
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = compiled(x, y)
            loss.backward()
            optimizer.step()
        if is_gpu:
            torch.cuda.synchronize()
        return loss.detach()

    return run
