"""Powers whose exponents are known: products and roots in kernels, with the values and special values of the others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.dtypes import float32, float64, int32
from runtime.ops.elementwise.powers import power_text

TYPES = {"float32": float32, "float64": float64}
SHORT = [1, 2, 3, 4, 5, 6, -1, -2, -3, 0.5, -0.5, 1.5, 2.5]


def compiled(exponent: Any) -> Any:
    return ag.function(lambda x: x**exponent, jit_compile=True)


@pytest.mark.parametrize("exponent", SHORT)
def test_no_call_is_left(exponent: float) -> None:
    for text in (repr(float(exponent)), f"({exponent!r})"):
        assert "pow" not in power_text(["x", text], [float64] * 2, float64), text
    assert "pow" not in power_text(["x", f"np.float32({float(exponent)!r})"], [float32] * 2, float32)


@pytest.mark.parametrize("text", ["y", "7.0", "-4.0", "0.3", "np.nan", "x_2", "np.float32(y)"])
def test_other_exponents_are_calls(text: str) -> None:
    assert power_text(["x", text], [float64] * 2, float64) == f"math.pow(x, {text})"
    assert power_text(["x", "y"], [int32] * 2, int32) == "(x ** y)"


@pytest.mark.parametrize("exponent", SHORT)
@pytest.mark.parametrize("dtype", TYPES)
def test_error(dtype: str, exponent: float) -> None:
    wide = np.float64 if dtype == "float32" else np.longdouble
    random = np.random.default_rng(1)
    x = np.concatenate([1 + random.random(20000), 10.0 ** random.uniform(-30, 30, 20000)]).astype(dtype)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(wide), wide(exponent))
        right = exact.astype(dtype)
    normal = np.isfinite(right) & (right >= np.finfo(dtype).tiny)
    got = compiled(exponent)(ag.constant(x)).numpy()
    error = np.abs(got[normal] - exact[normal]) / np.spacing(right[normal])
    assert error.max() <= 4.0, x[normal][error.argmax()]
    np.testing.assert_array_equal(np.isinf(got), np.isinf(right))


@pytest.mark.parametrize("exponent", SHORT)
@pytest.mark.parametrize("dtype", TYPES)
def test_the_same_bits_eager_interpreted_and_compiled(dtype: str, exponent: float) -> None:
    random = np.random.default_rng(2)
    x = np.concatenate([random.normal(size=500), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 1e30]]).astype(dtype)
    program = ag.function(lambda x: x**exponent, jit_compile=False)
    for given in (x, x[0], x[-4]):
        eager, native = (ag.constant(given) ** exponent).numpy(), compiled(exponent)(ag.constant(given)).numpy()
        np.testing.assert_array_equal(eager, native)
        np.testing.assert_array_equal(program(ag.constant(given)).numpy(), native)
        np.testing.assert_array_equal(np.signbit(eager) | np.isnan(eager), np.signbit(native) | np.isnan(native))


@pytest.mark.parametrize("exponent", SHORT)
@pytest.mark.parametrize("dtype", TYPES)
def test_special_values(dtype: str, exponent: float) -> None:
    """As C99's `pow` has them, of each number in an array, and of one number."""
    limits = np.finfo(dtype)
    x = np.array([0.0, math.inf, math.nan, 1.0, 2.0, limits.max, limits.tiny, limits.smallest_subnormal], dtype)
    x = np.concatenate([x, -x])
    power = compiled(exponent)
    together = power(ag.constant(x)).numpy()
    for number, got in zip(x, together):
        with np.errstate(all="ignore"):
            wanted = np.array(_c99(float(number), float(exponent))).astype(dtype)
        alone = power(ag.constant(number)).numpy()
        np.testing.assert_allclose(got, wanted, rtol=1e-6 if dtype == "float32" else 1e-14, err_msg=str(number))
        np.testing.assert_array_equal(alone, got)
        if not np.isnan(wanted):
            assert np.signbit(alone) == np.signbit(got) == np.signbit(wanted), number


def _c99(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except OverflowError:
        return math.copysign(math.inf, x) if y % 2 == 1 else math.inf
    except ValueError:  # a root of a negative number, or a negative power of 0
        return math.nan if x < 0 else math.copysign(math.inf, x) if y % 2 == 1 else math.inf


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64"])
@pytest.mark.parametrize("exponent", [2, 3, 5, 8, 9])
def test_integers_wrap_around(dtype: str, exponent: int) -> None:
    x = np.array([0, 1, 2, 3, 7, 100, 113], dtype)
    power = compiled(np.array(exponent, dtype))
    wanted = np.power(x, np.array(exponent, dtype))
    np.testing.assert_array_equal(power(ag.constant(x)).numpy(), wanted)
    np.testing.assert_array_equal([power(ag.constant(n)).numpy() for n in x], wanted)


def test_gradient() -> None:
    def slope(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = x**3 + x**-2 + x**1.5
        return tape.gradient(y, x)

    x = np.array([0.5, 1.0, 3.0])
    got = ag.function(slope, jit_compile=True)(ag.constant(x))
    np.testing.assert_allclose(got.numpy(), 3 * x**2 - 2 * x**-3 + 1.5 * x**0.5, rtol=1e-14)
