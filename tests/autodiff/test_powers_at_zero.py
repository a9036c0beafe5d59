"""Derivatives of powers at 0, to the order where they vanish and beyond it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autograph as ag

THREE = ag.constant(3.0, ag.float64)
FUNCTIONS = {
    "x ** 1": (lambda x: x**1, [0, 1, 0, 0]),
    "x ** 4": (lambda x: x**4, [0, 0, 0, 0, 24, 0, 0]),
    "polynomial": (lambda x: sum((x**k for k in range(1, 5)), x * 0.0), [0, 1, 2, 6, 24, 0]),
    "x ** tensor": (lambda x: ag.pow(x, THREE), [0, 0, 0, 6, 0, 0]),
    "x ** vector": (lambda x: ag.reduce_sum(x ** ag.constant([0.0, 1.0, 2.0], ag.float64)), [1, 1, 2, 0, 0]),
    "x ** (x - x + 2)": (lambda x: x ** (ag.stop_gradient(x - x) + 2.0), [0, 0, 2, 0, 0]),
}
MODES: dict[str, Callable[[Callable, int], Callable]] = {
    "eager": lambda f, order: lambda x: derivative(f, x, order),
    "interpreted": lambda f, order: ag.function(lambda x: derivative(f, x, order), jit_compile=False),
    "compiled": lambda f, order: ag.function(lambda x: derivative(f, x, order), jit_compile=True),
    "differentiated": lambda f, order: lambda x: derivative(ag.function(lambda t: f(t), jit_compile=True), x, order),
}


def derivative(f: Callable[[Any], Any], x: Any, order: int) -> Any:
    if order == 0:
        return f(x)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = derivative(f, x, order - 1)
    return tape.gradient(y, x, unconnected_gradients="zero")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_at_zero(name: str, mode: str) -> None:
    f, right = FUNCTIONS[name]
    found = [float(MODES[mode](f, order)(ag.constant(0.0, ag.float64))) for order in range(len(right))]
    assert found == right


def test_mixed_derivative_where_the_exponent_is_zero() -> None:
    """By x and y, x ** y has x ** (y - 1) (1 + y log(x)): 1 / x where y is 0."""
    x, y = ag.constant([0.5, 2.0], ag.float64), ag.constant([0.0, 0.0], ag.float64)
    with ag.GradientTape() as outer:
        outer.watch(y)
        with ag.GradientTape() as inner:
            inner.watch(x)
            z = x**y
        by_x = inner.gradient(z, x)
    np.testing.assert_array_equal(by_x, [0.0, 0.0])
    np.testing.assert_allclose(outer.gradient(by_x, y), [2.0, 0.5], rtol=1e-15)
