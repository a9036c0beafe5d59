"""Lowerings of elementwise ops.

Functions that ONNX Runtime only has in float32 are put together from those that it has in float64; what ONNX has no
word for is written out. Checks that end a program (a division of integers by zero, a number that a dtype can't hold)
can't be exported to ONNX.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.dtypes import DType
from runtime.graph.ir import Node
from runtime.onnx_export.emitter import Emitter, Ref, lowering

# Ops that are one node: op -> ONNX.
_SAME = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "maximum": "Max", "minimum": "Min", "negative": "Neg",
    "abs": "Abs", "sign": "Sign", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos",
    "tanh": "Tanh", "sigmoid": "Sigmoid", "floor": "Floor", "ceil": "Ceil", "rint": "Round",
    "bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor", "invert": "BitwiseNot",
    "reciprocal": "Reciprocal", "pow": "Pow", "divide": "Div",
}  # fmt: skip
_TO_BOOL = {
    "equal": "Equal", "less": "Less", "less_equal": "LessOrEqual", "greater": "Greater",
    "greater_equal": "GreaterOrEqual", "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor",
    "logical_not": "Not", "is_nan": "IsNaN", "is_inf": "IsInf",
}  # fmt: skip
# Ops whose kernels know float32 alone: float64 has a formula below.
_SINGLE = {"tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
           "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "erf": "Erf"}  # fmt: skip


@lowering(*_SAME)
def _same(e: Emitter, node: Node) -> Ref:
    return e.compute(_SAME[node.op.arithmetic], *e.inputs(node))


@lowering(*_TO_BOOL)
def _to_bool(e: Emitter, node: Node) -> Ref:
    return e.compute(_TO_BOOL[node.op.name], *e.inputs(node), dtype=dtypes.bool_)


@lowering("not_equal")
def _not_equal(e: Emitter, node: Node) -> Ref:
    return e.emit("Not", e.compute("Equal", *e.inputs(node), dtype=dtypes.bool_))


@lowering("is_finite")
def _is_finite(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    return _finite(e, x)


def _finite(e: Emitter, x: Ref) -> Ref:
    odd = [e.compute(op, x, dtype=dtypes.bool_) for op in ("IsNaN", "IsInf")]
    return e.emit("Not", e.emit("Or", *odd))


@lowering("identity", "unrecorded", "to_device", "stop_gradient", "ensure_shape", "check_numerics")
def _identity(e: Emitter, node: Node) -> Ref:
    return e.inputs(node)[0]


@lowering("square")
def _square(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    return e.compute("Mul", x, x)


@lowering("squared_difference")
def _squared_difference(e: Emitter, node: Node) -> Ref:
    difference = e.compute("Sub", *e.inputs(node))
    return e.compute("Mul", difference, difference)


@lowering("rsqrt")
def _rsqrt(e: Emitter, node: Node) -> Ref:
    return e.compute("Reciprocal", e.compute("Sqrt", *e.inputs(node)))


@lowering("relu")
def _relu(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    return e.compute("Max", x, e.number(0, x)) if x.dtype.kind != "f" else e.compute("Relu", x)


@lowering("trunc")
def _trunc(e: Emitter, node: Node) -> Ref:
    return _truncated(e, e.inputs(node)[0])


def _truncated(e: Emitter, x: Ref) -> Ref:
    below = e.compute("Less", x, e.number(0, x), dtype=dtypes.bool_)
    return e.where(below, e.compute("Ceil", x), e.compute("Floor", x))


@lowering("select")
def _select(e: Emitter, node: Node) -> Ref:
    return e.where(*e.inputs(node))


@lowering("cast")
def _cast(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    dtype: DType = node.attrs["dtype"]
    if dtype is dtypes.bool_ and x.dtype is not dtypes.bool_:
        return e.emit("Not", e.compute("Equal", x, e.number(0, x), dtype=dtypes.bool_))
    return e.cast(x, dtype)


@lowering("narrow")
def _narrow(e: Emitter, node: Node) -> Ref:
    return e.cast(e.inputs(node)[0], node.attrs["dtype"])


# --- quotients -------------------------------------------------------------------------------------------------------


@lowering("floormod")
def _floormod(e: Emitter, node: Node) -> Ref:
    x, y = e.inputs(node)
    return _float_division(e, x, y)[1] if x.dtype.is_floating else e.compute("Mod", x, y)


@lowering("floordiv")
def _floordiv(e: Emitter, node: Node) -> Ref:
    x, y = e.inputs(node)
    if x.dtype.is_floating:
        return _float_division(e, x, y)[0]
    if x.dtype.kind == "u":
        return e.compute("Div", x, y)
    return e.compute("Div", e.compute("Sub", x, e.compute("Mod", x, y)), y)


@lowering("truncatediv")
def _truncatediv(e: Emitter, node: Node) -> Ref:
    quotient = e.compute("Div", *e.inputs(node))
    return _truncated(e, quotient) if quotient.dtype.is_floating else quotient


def _float_division(e: Emitter, x: Ref, y: Ref) -> tuple[Ref, Ref]:
    """Quotient and remainder as Python has them, by C's `fmod`, as NumPy does it: 6 // 0.1 is 59."""
    own = x.dtype
    if own.size == 2:
        parts = _float_division(e, e.cast(x, dtypes.float32), e.cast(y, dtypes.float32))
        return e.cast(parts[0], own), e.cast(parts[1], own)
    zero, one = e.number(0, x), e.number(1, x)
    rest = e.emit("Mod", x, y, fmod=1)
    quotient = e.emit("Div", e.emit("Sub", x, rest), y)

    def is_negative(z: Ref) -> Ref:
        return e.emit("Less", z, zero, dtype=dtypes.bool_)

    differ = e.emit("Xor", is_negative(rest), is_negative(y))
    off = e.emit("And", differ, e.emit("Not", e.emit("Equal", rest, zero, dtype=dtypes.bool_)))
    rest = e.where(off, e.emit("Add", rest, y), rest)
    quotient = e.where(off, e.emit("Sub", quotient, one), quotient)
    whole = e.emit("Floor", quotient)
    more = e.emit("Greater", e.emit("Sub", quotient, whole), e.number(0.5, x), dtype=dtypes.bool_)
    whole = e.where(more, e.emit("Add", whole, one), whole)
    by_zero = e.emit("Equal", y, zero, dtype=dtypes.bool_)
    return e.where(by_zero, e.emit("Div", x, y), whole), rest


def _where_zero(e: Emitter, condition_on: Ref, value: Ref) -> Ref:
    """0 where an operand is 0, whatever the value is there."""
    is_zero = e.compute("Equal", condition_on, e.number(0, condition_on), dtype=dtypes.bool_)
    return e.where(is_zero, e.number(0, value), value)


@lowering("multiply_no_nan")
def _multiply_no_nan(e: Emitter, node: Node) -> Ref:
    x, y = e.inputs(node)
    return _where_zero(e, y, e.compute("Mul", x, y))


@lowering("xlogy")
def _xlogy(e: Emitter, node: Node) -> Ref:
    x, y = e.inputs(node)
    return _where_zero(e, x, e.compute("Mul", x, e.compute("Log", y)))


@lowering("xlog1py")
def _xlog1py(e: Emitter, node: Node) -> Ref:
    x, y = e.inputs(node)
    return _where_zero(e, x, e.compute("Mul", x, _log1p(e, y)))


@lowering("xdivy")
def _xdivy(e: Emitter, node: Node) -> Ref:
    x, y = e.inputs(node)
    return _where_zero(e, x, e.compute("Div", x, y))


# --- shifts ----------------------------------------------------------------------------------------------------------


@lowering("left_shift", "right_shift")
def _shift(e: Emitter, node: Node) -> Ref:
    x, count = e.inputs(node)
    direction = "LEFT" if node.op.arithmetic == "left_shift" else "RIGHT"
    own = x.dtype
    if own.kind == "u":
        return e.emit("BitShift", x, count, direction=direction)
    unsigned = dtypes.as_dtype(f"u{own.name}")

    def shifted(y: Ref) -> Ref:
        return e.cast(e.emit("BitShift", e.cast(y, unsigned), e.cast(count, unsigned), direction=direction), own)

    if direction == "LEFT":
        return shifted(x)
    # The sign's bits come in from the left: of ~x they are zeros.
    below = e.emit("Less", x, e.number(0, x), dtype=dtypes.bool_)
    return e.where(below, e.emit("BitwiseNot", shifted(e.emit("BitwiseNot", x))), shifted(x))


# --- elementary functions --------------------------------------------------------------------------------------------


def _in_float32(function: Callable[[Emitter, Ref], Ref]) -> Callable[[Emitter, Ref], Ref]:
    """A lowering that computes float16 and bfloat16 in float32, since ONNX Runtime's kernel doesn't take them."""

    @functools.wraps(function)
    def run(e: Emitter, x: Ref) -> Ref:
        if x.dtype in (dtypes.float32, dtypes.float64):
            return function(e, x)
        return e.cast(function(e, e.cast(x, dtypes.float32)), x.dtype)

    return run


@_in_float32
def _log1p(e: Emitter, x: Ref) -> Ref:
    """log(1 + x) * x / ((1 + x) - 1), in which the errors of 1 + x cancel."""
    one = e.number(1, x)
    sum_ = e.emit("Add", x, one)
    over = e.emit("Sub", sum_, one)
    ratio = e.emit("Div", e.emit("Mul", e.emit("Log", sum_), x), over)
    tiny = e.emit("Equal", over, e.number(0, x), dtype=dtypes.bool_)
    large = e.compute("IsInf", sum_, dtype=dtypes.bool_)
    return e.where(tiny, x, e.where(large, sum_, ratio))


@_in_float32
def _expm1(e: Emitter, x: Ref) -> Ref:
    """(exp(x) - 1) * x / log(exp(x)), in which the errors of exp(x) cancel."""
    one = e.number(1, x)
    power = e.emit("Exp", x)
    over = e.emit("Sub", power, one)
    ratio = e.emit("Div", e.emit("Mul", over, x), e.emit("Log", power))
    near = e.emit("Less", e.emit("Abs", x), e.number(0.5, x), dtype=dtypes.bool_)
    tiny = e.emit("Equal", over, e.number(0, x), dtype=dtypes.bool_)
    return e.where(near, e.where(tiny, x, ratio), over)


@_in_float32
def _softplus(e: Emitter, x: Ref) -> Ref:
    """max(x, 0) + log1p(exp(-abs(x)))."""
    return e.emit("Add", e.emit("Max", x, e.number(0, x)), _log1p(e, e.emit("Exp", e.emit("Neg", e.emit("Abs", x)))))


@lowering("log1p", "expm1", "softplus")
def _composed(e: Emitter, node: Node) -> Ref:
    return {"log1p": _log1p, "expm1": _expm1, "softplus": _softplus}[node.op.name](e, e.inputs(node)[0])


@lowering(*_SINGLE)
def _single(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    if x.dtype is dtypes.float64:
        return _DOUBLE[node.op.arithmetic](e, x)
    return e.compute(_SINGLE[node.op.arithmetic], x)


@lowering("sech")
def _sech(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    return e.compute("Reciprocal", _cosh(e, x) if x.dtype is dtypes.float64 else e.compute("Cosh", x))


def _tan(e: Emitter, x: Ref) -> Ref:
    return e.emit("Div", e.emit("Sin", x), e.emit("Cos", x))


def _atan(e: Emitter, x: Ref) -> Ref:
    """float32's arc tangent y and one correction: atan(x) = y + atan((x - tan y) / (1 + x tan y)), whose last term is
    so small that it is its own tangent."""
    y = e.cast(e.emit("Atan", e.cast(x, dtypes.float32)), dtypes.float64)
    sin, cos = e.emit("Sin", y), e.emit("Cos", y)
    above = e.emit("Sub", e.emit("Mul", x, cos), sin)
    below = e.emit("Add", cos, e.emit("Mul", x, sin))
    refined = e.emit("Add", y, e.emit("Div", above, below))
    half = e.emit("Mul", e.emit("Sign", x), e.number(math.pi / 2, x))
    return e.where(e.emit("IsInf", x, dtype=dtypes.bool_), half, refined)


def _rest(e: Emitter, x: Ref) -> Ref:
    """sqrt(1 - x * x)."""
    one = e.number(1, x)
    return e.emit("Sqrt", e.emit("Mul", e.emit("Sub", one, x), e.emit("Add", one, x)))


def _asin(e: Emitter, x: Ref) -> Ref:
    return _atan(e, e.emit("Div", x, _rest(e, x)))


def _acos(e: Emitter, x: Ref) -> Ref:
    """2 atan(sqrt((1 - x) / (1 + x)))."""
    one = e.number(1, x)
    ratio = e.emit("Div", e.emit("Sub", one, x), e.emit("Add", one, x))
    return e.emit("Mul", e.number(2, x), _atan(e, e.emit("Sqrt", ratio)))


def _sinh(e: Emitter, x: Ref) -> Ref:
    """(u + u / (u + 1)) / 2 of u = expm1(abs(x)), with the sign of x."""
    size = e.emit("Abs", x)
    u = _expm1(e, size)
    small = e.emit("Add", u, e.emit("Div", u, e.emit("Add", u, e.number(1, x))))
    half = e.emit("Mul", e.number(0.5, x), small)
    # exp(abs(x)) / 2 where exp itself may be infinite.
    root = e.emit("Exp", e.emit("Mul", e.number(0.5, x), size))
    large = e.emit("Mul", e.emit("Mul", e.number(0.5, x), root), root)
    far = e.emit("Greater", size, e.number(20, x), dtype=dtypes.bool_)
    return e.emit("Mul", e.emit("Sign", x), e.where(far, large, half))


def _cosh(e: Emitter, x: Ref) -> Ref:
    half = e.emit("Exp", e.emit("Mul", e.number(0.5, x), e.emit("Abs", x)))
    power = e.emit("Mul", e.emit("Mul", e.number(0.5, x), half), half)
    return e.emit("Add", power, e.emit("Div", e.number(0.25, x), power))


def _asinh(e: Emitter, x: Ref) -> Ref:
    """log1p(a + a² / (1 + sqrt(1 + a²))) of a = abs(x), with the sign of x; log(2 a) for large a."""
    one, size = e.number(1, x), e.emit("Abs", x)
    square = e.emit("Mul", size, size)
    below = e.emit("Add", one, e.emit("Sqrt", e.emit("Add", one, square)))
    near = _log1p(e, e.emit("Add", size, e.emit("Div", square, below)))
    far = e.emit("Add", e.emit("Log", size), e.number(math.log(2), x))
    large = e.emit("Greater", size, e.number(1e8, x), dtype=dtypes.bool_)
    return e.emit("Mul", e.emit("Sign", x), e.where(large, far, near))


def _acosh(e: Emitter, x: Ref) -> Ref:
    """log1p(t + sqrt(2 t + t²)) of t = x - 1; log(2 x) for large x."""
    t = e.emit("Sub", x, e.number(1, x))
    root = e.emit("Sqrt", e.emit("Mul", t, e.emit("Add", t, e.number(2, x))))
    near = _log1p(e, e.emit("Add", t, root))
    far = e.emit("Add", e.emit("Log", x), e.number(math.log(2), x))
    return e.where(e.emit("Greater", x, e.number(1e8, x), dtype=dtypes.bool_), far, near)


def _atanh(e: Emitter, x: Ref) -> Ref:
    """log1p(2 x / (1 - x)) / 2, of abs(x)."""
    size = e.emit("Abs", x)
    ratio = e.emit("Div", e.emit("Mul", e.number(2, x), size), e.emit("Sub", e.number(1, x), size))
    return e.emit("Mul", e.emit("Sign", x), e.emit("Mul", e.number(0.5, x), _log1p(e, ratio)))


@functools.cache
def _erfc_series() -> tuple[float, ...]:
    """Chebyshev coefficients of exp(x²) erfc(x) / t over t = 2 / (2 + x) in (0, 1], which is for all x ≥ 0."""
    from scipy import special  # loads when a model needs it

    def scaled(places: Any) -> Any:
        t = (places + 1) / 2
        return special.erfcx(2 / t - 2) / t

    return tuple(np.polynomial.chebyshev.chebinterpolate(scaled, 40).tolist())


def erfc_of_positive(e: Emitter, x: Ref) -> Ref:
    """erfc(x) of float64 numbers x ≥ 0, by Clenshaw's recurrence."""
    one, two = e.number(1, x), e.number(2, x)
    t = e.emit("Div", two, e.emit("Add", two, x))
    place = e.emit("Sub", e.emit("Mul", two, t), one)
    double = e.emit("Mul", two, place)
    first, *rest = _erfc_series()
    last, before = e.number(0, x), e.number(0, x)
    for coefficient in reversed(rest):
        change = e.emit("Sub", e.emit("Mul", double, last), before)
        last, before = e.emit("Add", change, e.number(coefficient, x)), last
    series = e.emit("Add", e.emit("Sub", e.emit("Mul", place, last), before), e.number(first, x))
    falls = e.emit("Exp", e.emit("Neg", e.emit("Mul", x, x)))
    return e.emit("Mul", e.emit("Mul", falls, t), series)


def _erf(e: Emitter, x: Ref) -> Ref:
    """1 - erfc(abs(x)) with the sign of x; near 0, where that cancels, the first terms of its series."""
    one, size = e.number(1, x), e.emit("Abs", x)
    far = e.emit("Sub", one, erfc_of_positive(e, size))
    square = e.emit("Mul", x, x)
    terms = e.number(0, x)
    for k in range(12, -1, -1):
        coefficient = (-1) ** k / (math.factorial(k) * (2 * k + 1)) * 2 / math.sqrt(math.pi)
        terms = e.emit("Add", e.emit("Mul", terms, square), e.number(coefficient, x))
    near = e.emit("Less", size, e.number(0.5, x), dtype=dtypes.bool_)
    return e.where(near, e.emit("Mul", x, terms), e.emit("Mul", e.emit("Sign", x), far))


@lowering("erfc")
def _erfc(e: Emitter, node: Node) -> Ref:
    """In float64: 1 - erf(x) has no digits left for large x."""
    (own,) = e.inputs(node)
    x = e.cast(own, dtypes.float64)
    of_size = erfc_of_positive(e, e.emit("Abs", x))
    below = e.emit("Less", x, e.number(0, x), dtype=dtypes.bool_)
    return e.cast(e.where(below, e.emit("Sub", e.number(2, x), of_size), of_size), own.dtype)


_DOUBLE: dict[str, Callable[[Emitter, Ref], Ref]] = {
    "tan": _tan, "asin": _asin, "acos": _acos, "atan": _atan, "sinh": _sinh, "cosh": _cosh, "asinh": _asinh,
    "acosh": _acosh, "atanh": _atanh, "erf": _erf,
}  # fmt: skip


@lowering("atan2")
def _atan2(e: Emitter, node: Node) -> Ref:
    own = e.inputs(node)[0].dtype
    wide = own if own is dtypes.float64 else dtypes.float32
    y, x = [e.cast(each, wide) for each in e.inputs(node)]
    zero = e.number(0, x)

    def is_(op: str, *operands: Ref) -> Ref:
        return e.emit(op, *operands, dtype=dtypes.bool_)

    ratio = e.emit("Div", y, x)
    angle = _atan(e, ratio) if wide is dtypes.float64 else e.emit("Atan", ratio)
    # 1 / y tells -0.0 from 0.0.
    sign_of = e.where(is_("Equal", y, zero), e.emit("Reciprocal", y), y)
    half_turn = e.where(is_("Less", sign_of, zero), e.number(-math.pi, x), e.number(math.pi, x))
    left = is_("Less", e.where(is_("Equal", x, zero), e.emit("Reciprocal", x), x), zero)
    result = e.where(left, e.emit("Add", angle, half_turn), angle)
    # On the y axis, at the origin and where both are infinite, the ratio says nothing.
    upright = e.where(is_("Equal", y, zero), e.where(left, half_turn, y), e.emit("Div", half_turn, e.number(2, x)))
    result = e.where(is_("Equal", x, zero), upright, result)
    both = is_("And", is_("IsInf", x), is_("IsInf", y))
    eighth = e.emit("Div", half_turn, e.number(4, x))
    corner = e.where(left, e.emit("Mul", e.number(3, x), eighth), eighth)
    return e.cast(e.where(both, corner, result), own)


def _root_of_squares(e: Emitter, x: Ref, y: Ref) -> Ref:
    """l sqrt(1 + (s / l)²) of the larger and the smaller size: no square overflows."""
    first, second = e.emit("Abs", x), e.emit("Abs", y)
    large, small = e.emit("Max", first, second), e.emit("Min", first, second)
    is_zero = e.emit("Equal", large, e.number(0, x), dtype=dtypes.bool_)
    ratio = e.emit("Div", small, e.where(is_zero, e.number(1, x), large))
    root = e.emit("Sqrt", e.emit("Add", e.emit("Mul", ratio, ratio), e.number(1, x)))
    infinite = e.emit("Or", *(e.emit("IsInf", each, dtype=dtypes.bool_) for each in (x, y)), dtype=dtypes.bool_)
    return e.where(infinite, e.number(math.inf, x), e.emit("Mul", large, root))


@lowering("hypot", "hypot_slope")
def _hypot(e: Emitter, node: Node) -> Ref:
    own = e.inputs(node)[0].dtype
    wide = own if own is dtypes.float64 else dtypes.float32
    x, y = [e.cast(each, wide) for each in e.inputs(node)]
    if node.op.name == "hypot":
        return e.cast(_root_of_squares(e, x, y), own)
    # Of halves, as the root of the largest numbers is infinite.
    x, y = [e.emit("Mul", each, e.number(0.5, each)) for each in (x, y)]
    return e.cast(e.emit("Div", x, _root_of_squares(e, x, y)), own)


@lowering("softsign")
def _softsign(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    return e.emit("Div", x, e.emit("Add", e.emit("Abs", x), e.number(1, x)))
