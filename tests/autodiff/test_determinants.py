"""Derivatives of the determinant, of matrices of each rank: it is a polynomial, so they exist everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autograph as ag

RANDOM = np.random.default_rng(5)
WEIGHTS = RANDOM.normal(size=(4, 4))


def matrix(rank: int, size: int = 4) -> np.ndarray:
    return RANDOM.normal(size=(size, rank)) @ RANDOM.normal(size=(rank, size))


def slope(x: Any) -> Any:
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = ag.linalg.det(x)
    return tape.gradient(y, x)


def second(x: Any) -> Any:
    with ag.GradientTape() as tape:
        tape.watch(x)
        along = ag.reduce_sum(slope(x) * WEIGHTS)
    return tape.gradient(along, x)


def minors(x: np.ndarray) -> np.ndarray:
    """Of real or complex matrices."""
    signs = (-1.0) ** np.add.outer(range(4), range(4))
    parts = [[np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) for j in range(4)] for i in range(4)]
    return signs * np.array(parts)


def differences(f: Callable[[np.ndarray], Any], x: np.ndarray) -> np.ndarray:
    found = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-4
        found[place] = (f(x + step) - f(x - step)) / 2e-4
    return found


@pytest.mark.parametrize("mode", ["eager", "interpreted", "compiled"])
@pytest.mark.parametrize("rank", range(5))
def test_first_and_second_derivatives(rank: int, mode: str) -> None:
    x = matrix(rank)
    functions = (slope, second)
    if mode != "eager":
        functions = tuple(ag.function(f, jit_compile=mode == "compiled") for f in functions)
    np.testing.assert_allclose(functions[0](ag.constant(x)), minors(x), atol=1e-12, rtol=1e-10)
    expected = differences(lambda z: np.sum(minors(z) * WEIGHTS), x)
    np.testing.assert_allclose(functions[1](ag.constant(x)), expected, atol=1e-6, rtol=1e-6)


def test_third_derivatives_of_invertible_matrices() -> None:
    ag.test.check_gradients(lambda x: ag.reduce_sum(second(x) * WEIGHTS[::-1]), [matrix(4)], order=2)


def test_a_batch_with_singular_and_almost_singular_matrices() -> None:
    regular, singular = matrix(4), matrix(3)
    near = singular + 1e-13 * matrix(4)
    x = np.stack([regular, singular, near, np.zeros((4, 4))])
    np.testing.assert_allclose(slope(ag.constant(x)), [minors(m) for m in x], atol=1e-11)


def test_complex_matrices() -> None:
    """det is holomorphic: the gradient of its real part is the conjugate of the slope."""
    x = matrix(3) + 1j * 0
    x[:, 0] = 1j * x[:, 1]
    t = ag.constant(x)
    with ag.GradientTape() as tape:
        tape.watch(t)
        y = ag.math.real(ag.linalg.det(t))
    np.testing.assert_allclose(tape.gradient(y, t), np.conj(minors(x)), atol=1e-12)


def test_single_precision_and_no_rows() -> None:
    x = matrix(3).astype(np.float32)
    np.testing.assert_allclose(slope(ag.constant(x)), minors(x.astype(np.float64)), atol=1e-5)
    assert slope(ag.zeros((0, 0))).shape == (0, 0)
