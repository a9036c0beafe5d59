"""Slopes of elementwise rows are right to second order where formulas overflow, cancel or divide 0 by 0: against
mpmath, eager, interpreted and compiled."""

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
from tests.ops.special_points import ANSWERS

RIGHT = json.loads(ANSWERS.read_text(encoding="utf-8"))
# Rows whose derivatives aren't in the file, with the reason.
ELSEWHERE = {
    **dict.fromkeys(("maximum", "minimum", "floormod", "select"), "piecewise linear: awkward_points.py"),
    **dict.fromkeys(("sign", "floor", "ceil", "rint", "trunc", "floordiv", "truncatediv"), "steps"),
    **dict.fromkeys(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"), "of truth values"),
    **dict.fromkeys(("is_nan", "is_inf", "is_finite"), "of truth values"),
    **dict.fromkeys(("igamma", "igammac", "zeta", "betainc"), "of parameters: test_not_a_number.py, test_table.py"),
    **dict.fromkeys(("complex", "complex_abs", "real", "imag", "angle", "conj"), "of complex numbers: test_complex.py"),
    **{
        f"bessel_{kind}": "singular at 0, and smooth elsewhere: test_table.py" for kind in "k0 k0e k1 k1e y0 y1".split()
    },
    **dict.fromkeys(("cast", "nextafter", "bitcast"), "without a slope of interest"),
}
# Points with other values, and why.
EXCEPT: dict[str, str] = {
    **{f"{name} {x}": "SciPy has no value there" for name in ("bessel_i0", "bessel_i1") for x in ("inf", "-inf")},
    "pow 1e-200 1e-200": "the factors of the second slope, x ** (y - 2) and y, overflow before their product",
    "pow 1e-200 -1e-200": "the same",
    **{f"expint {x}": "the parts of the second slope are infinite" for x in ("0.0", "1e+200", "inf")},
}
# Of rows whose values have no more digits (a phase is 1e5), or whose references don't vanish exactly.
ABSOLUTE = {"fresnel_sin": 1e-8, "fresnel_cos": 1e-8, "expint": 1e-60}


def points(name: str) -> list[str]:
    return [point for point in RIGHT[name] if f"{name} {point}" not in EXCEPT and name not in EXCEPT]


def derivatives(f: Callable[..., Any], *operands: Any) -> list[Any]:
    """The first and second ones: of two operands by x, y, x x, x y, y y."""
    with ag.GradientTape(persistent=True) as outer:
        outer.watch(operands)
        with ag.GradientTape() as inner:
            inner.watch(operands)
            y = f(*operands)
        first = inner.gradient(y, operands, unconnected_gradients="zero")
    second = [outer.gradient(d, x, unconnected_gradients="zero") for n, d in enumerate(first) for x in operands[n:]]
    return [*first, *second]


MODES: dict[str, Callable[..., Any]] = {
    "eager": derivatives,
    "interpreted": ag.function(derivatives, jit_compile=False),
    "compiled": ag.function(derivatives, jit_compile=True),
}


@pytest.mark.filterwarnings("ignore")  # NumPy's, about overflow and divisions by zero
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", RIGHT)
def test_derivatives(name: str, mode: str) -> None:
    own = points(name)
    columns = np.array([[float(x) for x in point.split()] for point in own]).T
    found = MODES[mode](lambda *operands: call(name, *operands), *(ag.constant(column) for column in columns))
    right = np.array([RIGHT[name][point] for point in own])
    # What a double can't hold with all of its digits may be 0.
    least = ABSOLUTE.get(name, 1e-290)
    np.testing.assert_allclose(np.stack(found, -1), right, rtol=1e-9, atol=least, err_msg=f"{name} at {own}")


def test_every_row_with_a_gradient_is_looked_at() -> None:
    rows = {row.name for row in pointwise.rows() if row.grad is not None and "f" in row.kinds}
    assert rows - set(RIGHT) - set(ELSEWHERE) == set()
    assert set(RIGHT) | set(ELSEWHERE) <= set(OPS)
