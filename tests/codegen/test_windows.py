"""Windows of images in generated code: the same bits as on the interpreter, whatever their sizes and borders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.engine.partition import parts
from runtime.ops.dispatch import call

# sizes of the space, channels, sizes, strides, rates, padding
CASES = [
    ((7,), 1, (3,), (1,), (1,), "VALID"),
    ((2,), 3, (3,), (1,), (1,), "VALID"),
    ((7,), 2, (3,), (2,), (2,), "SAME"),
    ((6, 5), 16, (2, 2), (2, 2), (1, 1), "VALID"),
    ((6, 5), 33, (3, 2), (1, 2), (1, 1), "SAME"),
    ((6, 5), 3, (3, 2), (2, 1), (2, 2), ((1, 2), (0, 3))),
    ((5, 4, 3), 2, (2, 3, 2), (1, 2, 1), (1, 1, 2), "SAME"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_same_bits(case: Any) -> None:
    space, channels, sizes, strides, rates, padding = case
    attrs = {"sizes": sizes, "strides": strides, "rates": rates, "padding": padding}
    rng = np.random.default_rng(5)
    x = rng.integers(-3, 4, size=(3, *space, channels)).astype(np.float32)  # has equal elements
    x[rng.random(x.shape) < 0.02] = np.nan

    def program(x: Any) -> Any:
        windows = call("patches", x, fill=2, **attrs)
        largest, number = call("max_pool", x, **attrs)
        back = call("max_pool_grad", ag.ones_like(largest) * 1.1, number, shape=(3, *space, channels), **attrs)
        return windows, largest, number, back, call("patches_grad", windows * 1.1, shape=x.shape, **attrs)

    compiled = ag.function(program, jit_compile=True)
    for one, other in zip(program(ag.constant(x)), compiled(ag.constant(x)), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_a_convolution_network_is_native_as_a_whole() -> None:
    def loss(x: Any, w: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(w)
            found = ag.reduce_sum(
                ag.nn.avg_pool(ag.nn.max_pool(ag.nn.conv2d(x, w, 1, "SAME"), 2, 2, "VALID"), 2, 1, "SAME")
            )
        return tape.gradient(found, w)

    step = ag.function(loss, jit_compile=True)
    x, w = ag.ones((2, 8, 8, 1)), ag.ones((3, 3, 1, 4))
    np.testing.assert_allclose(step(x, w), loss(x, w), rtol=1e-6)
    assert all(native for native, _ in parts(step.get_concrete_function(x, w).function.executable.graph))
