"""Values and slopes of elementwise functions are right to second order where formulas overflow, cancel or divide 0 by
0: against mpmath, eager, interpreted and compiled."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.ops.dispatch import call
from runtime.ops.table import OPS
from tests.ops import pointwise
from tests.ops.special_points import ANSWERS, BY, HUGE, TINY, TUPLES

RIGHT = json.loads(ANSWERS.read_text(encoding="utf-8"))
ENDS_OF_DENSITIES = [
    f"{name} {point}"
    for name in ("igamma", "igammac", "betainc")
    for point in RIGHT[name]
    if float(point.split()[-1]) in (0, 1)
]
# Functions over several rows.
COMPOSED: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in "logaddexp logaddexp2 cbrt exp2 log2 log10 sinc".split()},
    **{name: getattr(ag.nn, name) for name in "silu gelu elu selu leaky_relu relu6".split()},
    "gelu_by_tanh": lambda x: ag.nn.gelu(x, approximate=True), "divide_no_nan": ag.math.divide_no_nan,
    "reciprocal_no_nan": ag.math.reciprocal_no_nan,
    "sigmoid_cross_entropy": lambda z, x: ag.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x),
    "log_sigmoid": ag.math.log_sigmoid, "truncatemod": ag.truncatemod,
}  # fmt: skip
# Rows whose derivatives aren't in the file, with the reason.
ELSEWHERE = {
    "select": "one operand or the other: awkward_points.py",
    **dict.fromkeys(("sign", "floor", "ceil", "rint", "trunc", "floordiv", "truncatediv"), "steps"),
    **dict.fromkeys(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"), "of truth values"),
    **dict.fromkeys(("is_nan", "is_inf", "is_finite"), "of truth values"),
    **dict.fromkeys(("complex", "complex_abs", "real", "imag", "angle", "conj"), "of complex numbers: test_complex.py"),
    "hypot_slope": "the slope of hypot, whose second is in the file", "expint_derivative": "that of expint",
    **dict.fromkeys(("cast", "nextafter", "bitcast"), "without a slope of interest"),
}  # fmt: skip
# Points with other values, and why.
_BESIDE_A_POLE = "SciPy's reflection has no digits there, as the next double has twice the value"
EXCEPT: dict[str, str] = {
    "pow 1e-200 1e-200": "the factors of the second slope, x ** (y - 2) and y, overflow before their product",
    "pow 1e-200 -1e-200": "the same",
    **{f"{name} -0.9999999999999999": _BESIDE_A_POLE for name in ("lgamma", "digamma")},
}
_INFINITE = "infinity times 0, or by itself, as in TensorFlow and NumPy"
_AN_END = "the density's second slope is 0 times infinity"
# Points where values or slopes may be NaN too, and why.
UNKNOWN: dict[str, str] = {
    **{f"{name} {x}": _INFINITE for name in ("silu", "gelu", "softsign", "sinc") for x in ("inf", "-inf")},
    **{f"gelu_by_tanh {x}": "the cube is infinite" for x in (HUGE, -HUGE, 1e200, -1e200, np.inf, -np.inf)},
    "bessel_y1 0.0": "of the parts of the second slope, Y0 and Y1 / x, both are infinite",
    **{point: _AN_END for point in ENDS_OF_DENSITIES},
}
# Of values without more digits: of a phase of 1e5, beside a zero, of a sum (1 + erf, as in TensorFlow) that vanishes.
ABSOLUTE = {
    "fresnel_sin": 1e-8,
    "fresnel_cos": 1e-8,
    "lgamma": 1e-15,
    "sinc": 1e-13,
    "gelu": 1e-14,
    "sigmoid_cross_entropy": 1e-17,
}


_AS_TENSORFLOW = "TensorFlow's slope at a kink"
_SIGN_OF_ZERO = "the sign of zero says from which side, as in TensorFlow"
_OUTSIDE = "the formula, as in TensorFlow: the value is NaN already"
_POLE = "the sides differ"
NAN, INF = np.nan, np.inf
# Points where there is no derivative by mathematics alone: the value, the slopes, and why they are so.
CONVENTIONS: dict[str, tuple[tuple[float, float, float], str]] = {
    "abs 0.0": ((0, 0, 0), _AS_TENSORFLOW),
    "relu 0.0": ((0, 0, 0), _AS_TENSORFLOW),
    "relu6 0.0": ((0, 0, 0), _AS_TENSORFLOW),
    "relu6 6.0": ((6, 0, 0), _AS_TENSORFLOW),
    "leaky_relu 0.0": ((0, 0.2, 0), _AS_TENSORFLOW),
    "elu 0.0": ((0, 1, 1), "twice differentiable from the left"),
    "selu 0.0": ((0, 1.0507009873554805, 0), _AS_TENSORFLOW),
    "softsign 0.0": ((0, 1, 0), "the mean of both sides"),
    "bessel_i0e 0.0": ((1, 0, 1.5), "the mean of both sides"),
    "reciprocal_no_nan 0.0": ((0, 0, 0), "0 by definition"),
    "lgamma -2.0": ((INF, NAN, INF), _POLE),
    "digamma -2.0": ((NAN, INF, NAN), _POLE),
    "log -0.0": ((-INF, -INF, -INF), _SIGN_OF_ZERO),
    "sqrt -0.0": ((0, -INF, INF), _SIGN_OF_ZERO),
    "rsqrt -0.0": ((-INF, INF, -INF), _SIGN_OF_ZERO),
    "cbrt -0.0": ((0, INF, -INF), "from the right"),
    "log -1.0": ((NAN, -1, -1), _OUTSIDE),
    "log1p -2.0": ((NAN, -1, -1), _OUTSIDE),
    "atanh 2.0": ((NAN, -1 / 3, 4 / 9), _OUTSIDE),
}
# In float32: rows that need more digits or a wider range on the way, with the reason.
NARROW_EXCEPT = {
    **dict.fromkeys(("fresnel_sin", "fresnel_cos"), "the phase, the square of an operand, has no digits left"),
    **dict.fromkeys(("igamma", "igammac", "betainc"), "the density's powers underflow before their product"),
    f"pow {TINY} {TINY}": "as 1e-200 in float64",
}


def points(name: str) -> list[str]:
    return [point for point in RIGHT[name] if f"{name} {point}" not in EXCEPT and name not in EXCEPT]


def function(name: str) -> Callable[..., Any]:
    return COMPOSED.get(name) or (lambda *operands: call(name, *operands))


def derivatives(f: Callable[..., Any], by: tuple[int, ...], *operands: Any) -> list[Any]:
    """The value, the first and the second derivatives: of two operands by x, y, x x, x y, y y."""
    sources = [operands[i] for i in by or range(len(operands))]
    with ag.GradientTape(persistent=True) as outer:
        outer.watch(sources)
        with ag.GradientTape() as inner:
            inner.watch(sources)
            y = f(*operands)
        first = inner.gradient(y, sources, unconnected_gradients="zero")
    second = [outer.gradient(d, x, unconnected_gradients="zero") for n, d in enumerate(first) for x in sources[n:]]
    return [y, *first, *second]


MODES: dict[str, Callable[..., Any]] = {
    "eager": derivatives,
    "interpreted": ag.function(derivatives, jit_compile=False),
    "compiled": ag.function(derivatives, jit_compile=True),
}


def check(name: str, mode: str, own: list[str], dtype: Any, relative: float, absolute: float) -> None:
    """At these points, all of a mode's values and slopes against those of the file."""
    columns = np.array([[float(x) for x in point.split()] for point in own], dtype).T
    operands = [ag.constant(column) for column in columns]
    found = np.stack(MODES[mode](function(name), BY.get(name, ()), *operands), -1)
    with np.errstate(over="ignore"):
        right = np.array([RIGHT[name][point] for point in own]).astype(dtype)
    unknown = np.array([f"{name} {point}" in UNKNOWN for point in own])
    right = np.where(unknown[:, None] & np.isnan(found), found, right)
    np.testing.assert_allclose(found, right, rtol=relative, atol=absolute, err_msg=f"{name} at {own}")


@pytest.mark.filterwarnings("ignore")  # NumPy's, about overflow and divisions by zero
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", RIGHT)
def test_derivatives(name: str, mode: str) -> None:
    # What a double can't hold with all of its digits may be 0.
    check(name, mode, points(name), np.float64, 1e-9, ABSOLUTE.get(name, 1e-290))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize("name", sorted({*RIGHT} - {*NARROW_EXCEPT}))
def test_derivatives_in_single_precision(name: str, mode: str) -> None:
    own = [point for point in points(name) if f"{name} {point}" not in NARROW_EXCEPT]
    exact = [point for point in own if all(float(np.float32(float(x))) == float(x) for x in point.split())]
    check(name, mode, exact, np.float32, 2e-4, max(1e8 * ABSOLUTE.get(name, 0.0), 1e-36))


@pytest.mark.parametrize("mode", MODES)
def test_remainders_of_rounded_quotients(mode: str) -> None:
    """1 / 0.1 is rounded to 10, but 0.1 is a little more, and 1 has it 9 times; 1e20 / 3 has no digits behind the
    point."""
    x, y = (ag.constant(each, ag.float64) for each in ([1.0, -1.0, 1e20], [0.1, 0.1, 3.0]))
    for name, remainder, quotients in (
        ("floormod", np.mod, [9.0, -10.0, 1e20 // 3]),
        ("truncatemod", np.fmod, [9.0, -9.0, 1e20 // 3]),
    ):
        value, by_x, by_y = MODES[mode](function(name), (), x, y)[:3]
        np.testing.assert_array_equal(value, remainder(x.numpy(), y.numpy()))
        np.testing.assert_array_equal(by_x, np.ones(3))
        np.testing.assert_allclose(by_y, np.negative(quotients), rtol=1e-15)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CONVENTIONS)
def test_conventions(case: str, mode: str) -> None:
    (name, x), (right, reason) = case.split(), CONVENTIONS[case]
    found = np.stack(MODES[mode](function(name), (), ag.constant([float(x)], ag.float64)), -1)
    np.testing.assert_allclose(found, [right], rtol=1e-15, err_msg=f"{case}: {reason}")
    assert x not in RIGHT[name]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
def test_what_is_not_a_number_stays_so(mode: str) -> None:
    """The value, and the slope: but not where that is a constant, or a comparison chooses it, as in TensorFlow."""
    straight = {"negative", "relu", "relu6", "leaky_relu", "elu", "selu"}
    for name in RIGHT:
        if name not in TUPLES:
            value, slope, _ = MODES[mode](function(name), (), ag.constant(np.array([np.nan])))
            assert np.isnan(value).all(), name
            assert np.isnan(slope).all() or name in straight, name


def test_every_row_with_a_gradient_is_looked_at() -> None:
    rows = {row.name for row in pointwise.rows() if row.grad is not None and "f" in row.kinds}
    assert rows - set(RIGHT) - set(ELSEWHERE) == set()
    assert set(RIGHT) | set(ELSEWHERE) <= set(OPS) | set(COMPOSED)
    assert not set(RIGHT) & set(ELSEWHERE)
