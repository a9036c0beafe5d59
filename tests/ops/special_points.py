"""First and second derivatives of elementwise rows at zeros, ones, tiny, far, huge and infinite numbers.

special_points.json holds them, from mpmath with up to 900 digits; where it is installed,
`python -m tests.ops.special_points` writes them anew (of some rows: `python -m tests.ops.special_points sin cos`).
Where a function isn't analytic (at an end of its domain, a pole, infinity), they are limits from the side that `SIDES`
says. Points outside a function's domain are left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

ANSWERS = Path(__file__).with_suffix(".json")
INFINITY = math.inf
POINTS = (0.0, 1.0, -1.0, 1e-200, -1e-200, 30.0, -30.0, 300.0, -300.0, 1e200, -1e200, INFINITY, -INFINITY)
PAIRS = tuple(product((0.0, 1.0, -2.0, 1e-200, -1e-200, 1e200, -1e200), repeat=2))
# Where limits are taken, and from which side.
SIDES: dict[str, dict[float, int]] = {
    "log": {0: 1}, "log1p": {-1: 1}, "sqrt": {0: 1}, "rsqrt": {0: 1}, "reciprocal": {0: 1}, "asin": {1: -1, -1: 1},
    "acos": {1: -1, -1: 1}, "acosh": {1: 1}, "atanh": {1: -1, -1: 1}, "lgamma": {0: 1}, "digamma": {0: 1},
    "spence": {0: 1}, "expint": {0: 1},
}  # fmt: skip
# Kinks, where there is a convention: awkward_points.py.
KINKS = {"abs": 0, "relu": 0, "bessel_i0e": 0}
# Without limits at infinity, and too fast for differences far out; or with values of SciPy's that have no digits there.
OSCILLATING = ("sin", "cos", "tan", "fresnel_sin", "fresnel_cos", "bessel_j0", "bessel_j1")
# Inverses, where mpmath searches for hours.
FAR_FROM_ZERO = {"ndtri": 1e-200, "erfcinv": 1e-200}
# Limits that mpmath's functions don't reach.
_VANISHING = {INFINITY: (0.0, 0.0), -INFINITY: (0.0, 0.0)}
LIMITS: dict[str, dict[float, tuple[float, float]]] = {
    **dict.fromkeys(("erf", "erfc", "dawsn", "bessel_i0e", "bessel_i1e"), _VANISHING),
    **dict.fromkeys(("digamma", "spence"), {INFINITY: (0.0, 0.0)}),
    "lgamma": {INFINITY: (INFINITY, 0.0)},
    "erfinv": {1: (INFINITY, INFINITY), -1: (INFINITY, -INFINITY)}, "erfcinv": {0: (-INFINITY, INFINITY)},
    "ndtri": {0: (INFINITY, -INFINITY), 1: (INFINITY, INFINITY)},
}  # fmt: skip
_OF_TWO = (
    "add", "subtract", "multiply", "divide", "pow", "atan2", "squared_difference", "multiply_no_nan", "xlogy",
    "xlog1py", "xdivy",
)  # fmt: skip


def functions(mp: Any) -> dict[str, Callable[..., Any]]:
    """Of one and two operands, by mpmath."""

    return {
        "abs": abs, "negative": lambda x: -x, "square": lambda x: x * x, "reciprocal": lambda x: 1 / x,
        "exp": mp.exp, "expm1": lambda x: mp.exp(x) - 1, "log": mp.log, "log1p": lambda x: mp.log(1 + x),
        "sqrt": mp.sqrt, "rsqrt": lambda x: 1 / mp.sqrt(x), "sin": mp.sin, "cos": mp.cos, "tan": mp.tan,
        "asin": mp.asin, "acos": mp.acos, "atan": mp.atan, "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh,
        "sech": lambda x: 1 / mp.cosh(x), "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh, "erf": mp.erf,
        "erfc": mp.erfc, "sigmoid": lambda x: 1 / (1 + mp.exp(-x)), "softplus": lambda x: mp.log(1 + mp.exp(x)),
        "relu": lambda x: max(x, mp.mpf(0)), "lgamma": mp.loggamma, "digamma": mp.digamma, "erfinv": mp.erfinv,
        "erfcinv": lambda x: mp.erfinv(1 - x), "ndtri": lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1),
        "bessel_i0": lambda x: mp.besseli(0, x), "bessel_i1": lambda x: mp.besseli(1, x),
        "bessel_i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
        "bessel_i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
        "bessel_j0": lambda x: mp.besselj(0, x), "bessel_j1": lambda x: mp.besselj(1, x),
        "dawsn": lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), "expint": mp.ei,
        "spence": lambda x: mp.polylog(2, 1 - x), "fresnel_sin": mp.fresnels, "fresnel_cos": mp.fresnelc,
        "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y,
        "divide": lambda x, y: x / y, "pow": lambda x, y: x**y, "atan2": lambda y, x: mp.atan2(y, x),
        "squared_difference": lambda x, y: (x - y) ** 2, "multiply_no_nan": lambda x, y: x * y,
        "xlogy": lambda x, y: x * mp.log(y), "xlog1py": lambda x, y: x * mp.log(1 + y), "xdivy": lambda x, y: x / y,
    }  # fmt: skip


def _derivative(mp: Any, f: Callable[..., Any], point: Sequence[Any], orders: Sequence[int]) -> Any:
    """A partial derivative by central differences, whose steps are relative to the point."""

    def moved(*steps: Any) -> Any:
        return f(*(x * (1 + s) if x else s for x, s in zip(point, steps)))

    found = mp.diff(moved, (mp.mpf(0),) * len(point), tuple(orders), h=mp.mpf(10) ** -40)
    for x, order in zip(point, orders):
        found = found / x**order if x else found
    return found


def _limit(mp: Any, f: Callable[..., Any], point: float, side: int, order: int) -> float:
    """Of a derivative: infinite if it grows towards the point, 0 if it falls."""
    if math.isinf(point):
        places = [mp.mpf(10) ** n * (1 if point > 0 else -1) for n in (3, 6)]
    else:
        places = [mp.mpf(point) + side * mp.mpf(10) ** -n for n in (100, 200)]
    if any(abs(mp.im(f(place))) > 0 for place in places):
        raise ValueError("outside of the domain")
    first, second = (_derivative(mp, f, (place,), (order,)) for place in places)
    if abs(second) > 1.5 * abs(first) and abs(second) > 100:
        return math.copysign(INFINITY, second)
    if abs(second) < abs(first) / 1.5 and abs(second) < 1e-3:
        return 0.0
    return _number(mp, second)


def _is_left_out(name: str, x: float, y: float = 1.0) -> bool:
    if x in (KINKS.get(name), FAR_FROM_ZERO.get(name)):
        return True
    if name == "atan2":
        return not (x and y)  # beside its cut
    return (abs(x) > 300 and name in OSCILLATING) or (abs(y) > 300 and name == "pow")


def _number(mp: Any, x: Any) -> float:
    """The nearest double; 0 for what vanishes but for the error of the differences."""
    if abs(mp.im(x)) > mp.mpf(10) ** -30 * abs(mp.re(x)):
        raise ValueError("outside of the domain")
    return float(mp.re(x))


def answers(names: Iterable[str], mp: Any) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {}
    for name in names:
        f = functions(mp)[name]
        pairs = name in _OF_TWO
        own = found[name] = {}
        for point in PAIRS if pairs else ((x,) for x in POINTS):
            orders = [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2)] if pairs else [(1,), (2,)]
            # 1 + 1e-200 and 1 - exp(-600) are told from 1, and so are their differences.
            mp.mp.dps = 900 if any(0 < abs(x) < 1 for x in point) else 450
            try:
                if point[0] in LIMITS.get(name, {}):
                    values = list(LIMITS[name][point[0]])
                elif math.isinf(point[0]) or point[0] in SIDES.get(name, {}):
                    values = [_limit(mp, f, point[0], SIDES.get(name, {}).get(point[0], 1), n) for (n,) in orders]
                else:
                    exact = [mp.mpf(x) for x in point]
                    if abs(mp.im(f(*exact))) > 0:
                        continue
                    values = [_number(mp, _derivative(mp, f, exact, order)) for order in orders]
            except (ArithmeticError, ValueError, TypeError, NotImplementedError, mp.libmp.NoConvergence):
                continue
            own[" ".join(map(repr, point))] = values
    return found


if __name__ == "__main__":
    import sys

    import mpmath

    stored = json.loads(ANSWERS.read_text(encoding="utf-8")) if ANSWERS.exists() else {}
    stored |= answers(sys.argv[1:] or functions(mpmath), mpmath)
    lines = [f"{json.dumps(name)}: {json.dumps(stored[name])}" for name in functions(mpmath) if name in stored]
    ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
