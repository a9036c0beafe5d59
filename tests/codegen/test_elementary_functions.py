"""Our own functions in kernels: accuracy in units in the last place, special values, vector code, the same bits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

import runtime.codegen.kernel_library.functions as lib
from runtime.codegen.backends.numba_backend import math_intrinsics
from runtime.codegen.math import function_table, vector_builder, vector_functions, vector_intrinsics
from runtime.dtypes import float32, float64
from runtime.llvm import processor
from tests.elementary_functions import FUNCTIONS, native, slice_of, worst_of

TYPES = {"float32": float32, "float64": float64}
LIMITS = {"erfc": 4.0}  # in units in the last place; 2 for the others


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32(name: str) -> None:
    """`python -m tests.elementary_functions` does this with all 2**32 numbers."""
    error, place = worst_of(name, slice_of())
    assert error <= LIMITS.get(name, 2.0), place


# --- float64, against a wider type where the machine has one ---------------------------------------------------------


def _erf(x: Any) -> Any:
    """All terms of this series have x's sign: 2 / sqrt(pi) exp(-x**2) sum of 2**n x**(2n+1) / (2n+1)!!"""
    bounded = np.clip(x, -7, 7)
    term = total = bounded
    for n in range(1, 250):
        term = term * (2 * bounded * bounded) / (2 * n + 1)
        total = total + term
    root_pi = np.sqrt(4 * np.arctan(np.longdouble(1)))
    return np.where(np.abs(x) > 7, np.sign(x), 2 / root_pi * np.exp(-bounded * bounded) * total)


def _erfc(x: Any) -> Any:
    """Below 2 what erf leaves; above it C. Gauss's continued fraction, from its end, with the square in two parts."""
    size = np.clip(x, 2, 30)
    fraction = size
    for n in range(120, 0, -1):
        fraction = size + (n / np.longdouble(2)) / fraction
    first = size.astype(np.float32).astype(np.longdouble)
    square = (size * size).astype(np.float64).astype(np.longdouble)
    lost = (first * first - square) + 2 * first * (size - first) + (size - first) ** 2
    root_pi = np.sqrt(4 * np.arctan(np.longdouble(1)))
    return np.where(x < 2, 1 - _erf(x), np.exp(-square) * np.exp(-lost) / (root_pi * fraction))


WIDE: dict[str, Callable[[Any], Any]] = {
    **FUNCTIONS, "erf": _erf, "erfc": _erfc, "sigmoid": lambda x: 1 / (1 + np.exp(-x))
}  # fmt: skip
wide_only = pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="no floats wider than float64 here")


def spread() -> np.ndarray:
    """Numbers of all sizes, near the interesting ones more of them."""
    random = np.random.default_rng(5)
    normal, n = random.normal(size=4000), 4000
    parts = [
        random.uniform(-1.2, 1.2, n), random.uniform(-12, 12, n), random.uniform(-750, 712, n),
        normal * 10.0 ** random.uniform(-300, 300, n), normal * 10.0 ** random.uniform(-18, 2, n),
        1 + normal * 10.0 ** random.uniform(-16, -1, n), random.integers(-(10**6), 10**6, n) * (np.pi / 2),
        random.uniform(-1e12, 1e12, n), [5e-324, 2.2e-308, 1.7e308, 709.78, 710.47, -708.4, -745.1],
    ]  # fmt: skip
    return np.concatenate(parts)


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        right = exact.astype(np.float64)
        error = np.abs(got.astype(np.longdouble) - exact) / np.spacing(np.abs(right))
    agree = (got == right) | (np.isnan(got) & np.isnan(right))
    return np.where(agree, 0.0, np.where(np.isnan(error), np.inf, error)).astype(np.float64)


@wide_only
@pytest.mark.parametrize("name", WIDE)
def test_float64(name: str) -> None:
    x = spread()
    with np.errstate(all="ignore"):
        exact = WIDE[name](x.astype(np.longdouble))
    error = ulps(native(name, float64)(x), exact)
    worst = int(np.argmax(error))
    assert error[worst] <= LIMITS.get(name, 2.0), x[worst]


def _powers(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(6)
    n, most = 20000, 36 if dtype is np.float32 else 300
    pairs = [
        (random.uniform(0, 4, n), random.uniform(-20, 20, n)),
        (1 + random.normal(size=n) * 10.0 ** random.uniform(-12, -1, n), random.normal(size=n) * 1e3),
        (10.0 ** random.uniform(-most, most, n), random.uniform(-1.2, 1.2, n)),
        (random.uniform(0, 1000, n), random.uniform(-110, 110, n)),
        (-random.uniform(0, 9, n), random.integers(-40, 40, n).astype(np.float64)),
    ]
    x, y = (np.concatenate(side).astype(dtype) for side in zip(*pairs))
    return x, y


def test_pow_float32() -> None:
    x, y = _powers(np.float32)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
        right = exact.astype(np.float32)
        got = native("pow", float32, 2)(x, y)
        error = np.where(got == right, 0.0, np.abs(got - exact) / np.spacing(np.abs(right)))
    assert error.max() <= 1.0, (x[error.argmax()], y[error.argmax()])


@wide_only
def test_pow_float64() -> None:
    x, y = _powers(np.float64)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    error = ulps(native("pow", float64, 2)(x, y), exact)
    assert error.max() <= 2.0, (x[error.argmax()], y[error.argmax()])


def _points(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Of all angles and sizes, near the diagonals and the borders of pi / 8 more of them."""
    random = np.random.default_rng(7)
    n, most = 20000, 37 if dtype is np.float32 else 307
    turn = random.integers(0, 8, n) * (np.pi / 8) + random.normal(size=n) * 10.0 ** random.uniform(-8, -1, n)
    pairs = [
        (random.normal(size=n), random.normal(size=n)),
        (random.normal(size=n), random.normal(size=n) * 10.0 ** random.uniform(-8, 8, n)),
        (np.sin(turn) * 2.0, np.cos(turn) * 2.0),
        tuple(random.normal(size=(2, n)) * 10.0 ** random.uniform(-most, most - 1, (2, n))),
        tuple(random.normal(size=(2, n)) * 10.0 ** random.choice([-most - 1, most], n)),
    ]
    y, x = (np.concatenate(side).astype(dtype) for side in zip(*pairs))
    return y, x


# Where products and sums are rounded each, on processors without FMA, an angle is 2.17 units off.
MOST_OF_TWO = 2.0 if processor.features().get("fma") else 2.25


def test_atan2_float32() -> None:
    y, x = _points(np.float32)
    with np.errstate(all="ignore"):
        exact = np.arctan2(y.astype(np.float64), x.astype(np.float64))
        right = exact.astype(np.float32)
        got = native("atan2", float32, 2)(y, x)
        error = np.where(got == right, 0.0, np.abs(got - exact) / np.spacing(np.abs(right)))
    assert error.max() <= MOST_OF_TWO, (y[error.argmax()], x[error.argmax()])


@wide_only
def test_atan2_float64() -> None:
    y, x = _points(np.float64)
    error = ulps(native("atan2", float64, 2)(y, x), np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble)))
    assert error.max() <= MOST_OF_TWO, (y[error.argmax()], x[error.argmax()])


def test_hypot() -> None:
    """In float32 against float64, and in float64 against C's, which is off by 1 itself."""
    x, y = _points(np.float32)
    with np.errstate(all="ignore"):
        exact = np.hypot(x.astype(np.float64), y.astype(np.float64))
        right = exact.astype(np.float32)
        found = native("hypot", float32, 2)(x, y)
        error = np.where(found == right, 0.0, np.abs(found - exact) / np.spacing(np.abs(right)))
    assert error.max() <= MOST_OF_TWO, (x[error.argmax()], y[error.argmax()])
    x, y = np.random.default_rng(3).uniform(-3.0, 3.0, (2, 100_000))
    np.testing.assert_array_max_ulp(native("hypot", float64, 2)(x, y), np.hypot(x, y), 3)


# --- special values --------------------------------------------------------------------------------------------------

SPECIAL = [0.0, 1.0, 2.0, 0.5, 3.0, 2.5, 1e30, 1e17, 7.0, np.inf, 1e-45]


def same(got: np.ndarray, wanted: np.ndarray, rounding: float) -> np.ndarray:
    equal = (got == wanted) & (np.signbit(got) == np.signbit(wanted)) | (np.isnan(got) & np.isnan(wanted))
    with np.errstate(all="ignore"):
        return equal | (np.isfinite(wanted) & (wanted != 0) & (np.abs(got - wanted) <= rounding * np.abs(wanted)))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name: str, dtype: str) -> None:
    """NaN, infinities, both zeros and the smallest numbers, as NumPy has them."""
    x = np.array([*SPECIAL, np.nan, *(-np.array(SPECIAL))], dtype)
    with np.errstate(all="ignore"):
        wanted = FUNCTIONS[name](x)
    got = native(name, TYPES[dtype])(x)
    assert same(got, wanted, 1e-6 if dtype == "float32" else 1e-14).all(), list(zip(x, got, wanted))


@pytest.mark.parametrize("dtype", TYPES)
def test_special_powers(dtype: str) -> None:
    numbers = [*SPECIAL, np.nan, *(-np.array(SPECIAL)), 2.0**24, 2.0**53 - 1, 2.0**53]
    x, y = (side.ravel().astype(dtype) for side in np.meshgrid(numbers, numbers))
    with np.errstate(all="ignore"):
        wanted = np.power(x, y)
    got = native("pow", TYPES[dtype], 2)(x, y)
    wrong = ~same(got, wanted, 1e-6 if dtype == "float32" else 1e-14)
    assert not wrong.any(), list(zip(x[wrong], y[wrong], got[wrong], wanted[wrong]))


@pytest.mark.parametrize("dtype", TYPES)
def test_special_angles_and_roots(dtype: str) -> None:
    numbers = [*SPECIAL, np.nan, np.finfo(dtype).max, np.finfo(dtype).tiny, np.finfo(dtype).smallest_subnormal]
    y, x = (side.ravel().astype(dtype) for side in np.meshgrid([*numbers, *np.negative(numbers)], numbers))
    for x in (x, -x):
        for name, reference in (("atan2", np.arctan2), ("hypot", np.hypot)):
            with np.errstate(over="ignore"):
                wanted = reference(y, x)
            got = native(name, TYPES[dtype], 2)(y, x)
            wrong = ~same(got, wanted, 1e-6 if dtype == "float32" else 1e-14)
            assert not wrong.any(), (name, list(zip(y[wrong], x[wrong], got[wrong], wanted[wrong])))


# --- code ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
def test_same_bits_in_vectors_and_alone(dtype: str) -> None:
    """Also where a huge argument among them takes the slow path."""
    random = np.random.default_rng(8)
    x = random.uniform(-3, 3, 67).astype(dtype)
    x[[5, 40]] = 1e30, -3e20
    for name in ("exp", "log1p", "tanh", "erf", "sin", "cos", "tan"):
        function = native(name, TYPES[dtype])
        with np.errstate(all="ignore"):
            alone = np.concatenate([function(x[i : i + 1].copy()) for i in range(x.size)])
        np.testing.assert_array_equal(function(x), alone, err_msg=name)


def _scaled(m: vector_builder.FormulaBuilder, x: vector_builder.SimdValue) -> vector_builder.SimdValue:
    """1.2345678 times 2 to the power of the integer x."""
    return m.ldexp(m.number(1.2345678), m.nearest(x, 1.0)[1] - m.bits_of(1.5 * 2.0**m.mantissa))


@pytest.mark.parametrize("in_one", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
def test_powers_of_two_are_rounded_once(dtype: str, in_one: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the processor's instruction, if it has one, and in two steps."""
    if not in_one:
        monkeypatch.setattr(vector_builder, "_has_ldexp", lambda: False)
    monkeypatch.setattr(vector_functions, "FORMULAS", {})
    function = math_intrinsics._intrinsic(vector_functions.Function("scaled", _scaled))

    def kernel(x: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = function(x[i])

    most = 2 * (127 if dtype == "float32" else 1023)
    powers = np.arange(-most + 1, most, dtype=np.int32)
    out = np.empty(powers.size, dtype)
    njit(f"void({dtype}[::1], {dtype}[::1])", error_model="numpy")(kernel)(powers.astype(dtype), out)
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_array_equal(out, np.ldexp(np.array(1.2345678, dtype), powers))


def _over(function: Any) -> Callable[[Any, Any], None]:
    def kernel(x: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = function(x[i])

    return kernel


@pytest.mark.parametrize("features", [(), ("avx2",), ("avx2", "avx512f"), ("avx2", "avx512f", "avx512vl")])
@pytest.mark.parametrize("dtype", TYPES)
def test_tables_are_the_same_without_instructions(
    dtype: str, features: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one instruction looks up or multiplies here, several do on older processors, to the same bits."""
    if not set(features) <= vector_intrinsics._features():
        pytest.skip("instructions that this processor lacks")
    with np.errstate(all="ignore"):
        x = np.concatenate([np.linspace(-120, 120, 1003), spread()]).astype(dtype)
        wanted = {name: native(name, TYPES[dtype])(x) for name in ("exp", "tanh", "sigmoid")}
    monkeypatch.setattr(vector_intrinsics, "_features", lambda: frozenset(features))
    for name, right in wanted.items():
        monkeypatch.setattr(vector_functions, "FORMULAS", {})
        function = math_intrinsics._intrinsic(vector_functions.Function(name, function_table.FORMULAS[name].formula))

        out = np.empty(x.size, dtype)
        njit(f"void({dtype}[::1], {dtype}[::1])", error_model="numpy")(_over(function))(x, out)
        np.testing.assert_array_equal(out, right, err_msg=name)


@pytest.mark.skipif(
    processor.family() != "x86-64" or not processor.features().get("avx2"),
    reason="looks for vector registers of x86 with AVX2",
)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", [*FUNCTIONS, "pow", "atan2", "hypot"])
def test_loops_become_vector_code(name: str, dtype: str) -> None:
    function = getattr(lib, name)
    if name in ("pow", "atan2", "hypot"):

        def kernel(x: Any, out: Any) -> None:
            for i in range(x.size):
                out[i] = function(x[i], x[i])

    else:

        def kernel(x: Any, out: Any) -> None:
            for i in range(x.size):
                out[i] = function(x[i])

    compiled = njit(f"void({dtype}[::1], {dtype}[::1])", error_model="numpy")(kernel)
    (text,) = compiled.inspect_asm().values()
    letter = "s" if dtype == "float32" and name != "pow" else "d"
    assert re.search(rf"\bvf\w*madd\w*p{letter}\s.*%[yz]mm", text), "no products and sums of vectors"
