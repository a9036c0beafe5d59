"""Cholesky factors, triangular equations and determinants of small matrices: native code has the interpreter's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag

SHAPES = [(1, 1), (2, 2), (5, 5), (40, 40), (2, 3, 3), (4, 2, 5, 5)]
TOLERANCE = {"float32": 1e-3, "float64": 1e-10}


def assert_same(program: Any, *arguments: Any, tolerance: float) -> None:
    compiled = ag.function(program, jit_compile=True)
    wanted = ag.nest.flatten(ag.function(program, jit_compile=False)(*arguments))
    for a, b in zip(wanted, ag.nest.flatten(compiled(*arguments))):
        assert a.dtype is b.dtype
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)
    assert "can't be compiled" not in compiled.explain(*arguments)


def matrices(shape: tuple[int, ...], dtype: str) -> tuple[Any, Any]:
    """Positive definite ones, and right sides."""
    random = np.random.default_rng(3)
    half = random.normal(size=shape)
    whole = half @ np.swapaxes(half, -1, -2) + shape[-1] * np.eye(shape[-1])
    return ag.constant(whole.astype(dtype)), ag.constant(random.normal(size=(*shape[:-1], 2)).astype(dtype))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors(shape: tuple[int, ...], dtype: str) -> None:
    a, b = matrices(shape, dtype)
    tolerance = TOLERANCE[dtype]
    assert_same(ag.linalg.cholesky, a, tolerance=tolerance)
    assert_same(lambda a, b: ag.linalg.cholesky_solve(ag.linalg.cholesky(a), b), a, b, tolerance=tolerance)
    assert_same(lambda a: (*ag.linalg.slogdet(-a), ag.linalg.logdet(a)), a, tolerance=tolerance)
    for lower in (True, False):
        for adjoint in (True, False):
            assert_same(
                lambda a, b, lower=lower, adjoint=adjoint: ag.linalg.triangular_solve(a, b, lower, adjoint),
                a, b, tolerance=tolerance,
            )  # fmt: skip


def test_gradient_in_a_loop() -> None:
    def slope(a: Any, b: Any, n: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(a)
            x, total = b, ag.constant(0.0, ag.float64)
            for _ in ag.range(n):
                factor = ag.linalg.cholesky(a + ag.matmul(x, x, transpose_b=True))
                x = ag.linalg.cholesky_solve(factor, x + b)
                total += ag.reduce_sum(x * b) + ag.linalg.slogdet(factor).log_abs_determinant
        return tape.gradient(total, a)

    assert_same(slope, *matrices((3, 3), "float64"), ag.constant(4), tolerance=1e-9)


@pytest.mark.parametrize("jit", [False, True])
def test_awkward_matrices(jit: bool) -> None:
    def run(program: Any, *arguments: Any) -> Any:
        return ag.function(program, jit_compile=jit)(*arguments)

    with pytest.raises(ag.errors.InvalidArgumentError, match="Cholesky decomposition was not successful"):
        run(ag.linalg.cholesky, ag.constant([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ag.errors.InvalidArgumentError, match="not invertible"):
        run(ag.linalg.triangular_solve, ag.constant([[0.0, 2.0], [2.0, 1.0]]), ag.ones([2, 1]))
    factor = run(ag.linalg.cholesky, ag.constant([[np.nan, 2.0], [2.0, 1.0]])).numpy()
    np.testing.assert_array_equal(np.isnan(factor), [[True, False], [True, True]])
    sign, size = run(lambda a: tuple(ag.linalg.slogdet(a)), ag.ones([2, 2]))
    assert (float(sign), float(size)) == (0.0, -np.inf)
    sign, size = run(lambda a: tuple(ag.linalg.slogdet(a)), ag.ones([0, 0]))
    assert (float(sign), float(size)) == (1.0, 0.0)
    assert run(ag.linalg.cholesky, ag.ones([0, 0])).shape == (0, 0)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_products_that_are_0_where_x_is(dtype: str) -> None:
    x = np.array([0, -0.0, 1, 2, -3, np.inf, np.nan, 0, 0, 5], dtype)
    y = np.array([0, 1, 2, 0, 0.5, 1, 1, np.nan, np.inf, -0.5], dtype)
    with np.errstate(all="ignore"):
        for program in (ag.math.xlogy, ag.math.xlog1py, ag.math.xdivy):
            assert_same(program, ag.constant(x), ag.constant(y), tolerance=1e-6)
            for a, b in zip(x, y):
                got = ag.function(program, jit_compile=True)(ag.constant(a), ag.constant(b)).numpy()
                wanted = program(ag.constant(a), ag.constant(b)).numpy()
                np.testing.assert_allclose(got, wanted, rtol=1e-6)
                assert np.isnan(wanted) or np.signbit(got) == np.signbit(wanted)
