"""Elementwise arithmetic: sums, products, divisions, powers, extremes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.dtypes import DType
from runtime.ops.convert import convert_to_tensor, is_tensor_like, operands, static_value
from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise.define import BinaryFunction, UnaryFunction, binary, unary
from runtime.ops.elementwise.powers import power, power_text
from runtime.ops.rules import binary_samples, brackets, typed, unbroadcast
from runtime.ops.table import OPS, OpDef, Sample, register
from runtime.shapes import merge
from runtime.tensor import Tensor, TensorLike


def _grad_add(op: Any, dy: Any) -> Sequence[Any]:
    x, y = op.inputs
    return unbroadcast(dy, x, y) if op.wants(0) else None, unbroadcast(dy, y, x) if op.wants(1) else None


def _grad_subtract(op: Any, dy: Any) -> Sequence[Any]:
    x, y = op.inputs
    return unbroadcast(dy, x, y) if op.wants(0) else None, unbroadcast(-dy, y, x) if op.wants(1) else None


def _grad_multiply(op: Any, dy: Any) -> Sequence[Any]:
    x, y = op.inputs
    dx = unbroadcast(apply(_MULTIPLY, (dy, y)), x, y) if op.wants(0) else None
    return dx, unbroadcast(apply(_MULTIPLY, (dy, x)), y, x) if op.wants(1) else None


def _grad_divide(op: Any, dy: Any) -> Sequence[Any]:
    x, y = op.inputs
    dx = unbroadcast(dy / y, x, y) if op.wants(0) else None
    return dx, unbroadcast(-dy * op.outputs[0] / y, y, x) if op.wants(1) else None


def _grad_pow(op: Any, dy: Any) -> Sequence[Any]:
    x, y = op.inputs
    dx = unbroadcast(_grad_base(x, y, dy), x, y) if op.wants(0) else None
    if not op.wants(1):
        return dx, None
    # The logarithm only counts where x > 0 (of complex numbers: where x != 0); elsewhere the derivative
    # by the exponent is taken as 0.
    positive = call("not_equal", x, _zeros(x)) if x.dtype.is_complex else x > 0
    log_x = call("select", positive, call("log", call("select", positive, x, _ones(x))), _zeros(x))
    return dx, unbroadcast(multiply_no_nan(op.outputs[0] * log_x, dy), y, x)


def _grad_base(x: Any, y: Any, dy: Any) -> Any:
    """dy y x ** (y - 1); 0 where no cotangent arrives, as that of `sqrt` is: the slope at 0 may be infinite, and a
    later trip of a loop may overwrite the result. It is also 0 where y is 0, as x ** 0 is 1 for all x."""
    known = static_value(y)
    if known is not None and known.dtype.kind == "f" and np.all(known >= 1):
        return dy * y * x ** (y - 1)
    return multiply_no_nan(multiply_no_nan(x ** (y - 1), y), dy)


def _ones(x: Any) -> Any:
    return convert_to_tensor(1, x.dtype)


def side(x: Any) -> Any:
    """-1 where x is below 0, else 1: the sign, save at 0."""
    return call("select", x < 0, -_ones(x), _ones(x))


def _zeros(x: Any) -> Any:
    return convert_to_tensor(0, x.dtype)


def _number(value: Any, x: Any) -> Any:
    return convert_to_tensor(value, x.dtype)


def _grad_floormod(op: Any, dy: Any) -> Sequence[Any]:
    x, y = op.inputs
    # floor(x / y) may be one more or less: x / y is rounded before, up to the next integer or to 0.
    quotient = call("rint", (x - op.outputs[0]) / y) if x.dtype.kind == "f" else floordiv(x, y)
    return unbroadcast(dy, x, y), unbroadcast(-dy * quotient, y, x)


def _grad_extreme(wins: Any) -> Any:
    """Gradient of maximum and minimum: all of it to the operand that won, to x where they tie."""

    def grad(op: Any, dy: Any) -> Sequence[Any]:
        x, y = op.inputs
        first = wins(x, y)
        zero = _zeros(dy)
        return (
            unbroadcast(call("select", first, dy, zero), x, y) if op.wants(0) else None,
            unbroadcast(call("select", first, zero, dy), y, x) if op.wants(1) else None,
        )

    return grad


def _grad_multiply_no_nan(op: Any, dy: Any) -> Sequence[Any]:
    x, y = op.inputs
    return unbroadcast(multiply_no_nan(dy, y), x, y), unbroadcast(multiply_no_nan(x, dy), y, x)


def _grad_squared_difference(op: Any, dy: Any) -> Sequence[Any]:
    x, y = op.inputs
    scaled = dy * (x - y) * 2
    return unbroadcast(scaled, x, y) if op.wants(0) else None, unbroadcast(-scaled, y, x) if op.wants(1) else None


def _need_divisor(x: Any, y: Any) -> None:
    if y.dtype.kind in "iu" and not (y.all() if y.ndim else y) and x.size:  # no elements: nothing is divided
        raise errors.DivisionByZeroError("Integer division by zero")


def _floordiv(x: Any, y: Any) -> Any:
    _need_divisor(x, y)
    # floor(x / y) rather than NumPy's floor_divide, which rounds differently: TensorFlow's definition for floats.
    return np.floor(x / y) if x.dtype.kind == "f" else np.floor_divide(x, y)


def _floormod(x: Any, y: Any) -> Any:
    _need_divisor(x, y)
    return np.mod(x, y)


def _truncatediv(x: Any, y: Any) -> Any:
    _need_divisor(x, y)
    if x.dtype.kind == "f":
        return np.trunc(x / y)
    quotient = np.floor_divide(x, y)
    if x.dtype.kind == "u":
        return quotient
    inexact = (quotient * y != x) & ((x < 0) != (y < 0))
    return (quotient + inexact).astype(x.dtype)


def _pow(x: Any, y: Any) -> Any:
    if y.dtype.kind == "i" and np.any(y < 0):
        raise errors.InvalidArgumentError("Integers to negative integer powers are not allowed [Op:Pow]")
    return power(x, y)


def _by_kind(for_floats: Any, for_integers: Any) -> Any:
    """A scalar rule with one text for floats and one for integers."""

    def text(arguments: Sequence[str], inputs: Sequence[DType], output: DType) -> str:
        template = for_floats if output.kind == "f" else for_integers
        return template.format(*arguments, T=f"np.{output.name}")

    return text


def _quotient(for_floats: str, for_integers: str) -> Any:
    """The text of a quotient, by the kind of the output. The least int64 divided by -1 overflows (processors trap,
    numba gives 0), so that case is written separately."""
    by_kind = _by_kind(for_floats, for_integers)

    def text(arguments: Sequence[str], inputs: Sequence[DType], output: DType) -> str:
        quotient: str = by_kind(arguments, inputs, output)
        x, y = arguments
        if output.name != "int64" or (y.isdecimal() and y != "0"):
            return quotient
        return f"(-{x} if {y} == -1 else {quotient})"

    return text


_NONZERO = (
    *binary_samples(0.5, 4.0),
    Sample(((2, 3), (3,)), low=-4.0, high=-0.5),
    Sample(((3,), (3,)), fixed={1: np.array([-2.0, 3.0, -1.0])}, gradient=()),
)

_add_numbers = binary(
    "add", operator.add, "({0} + {1})", "x + y.", _grad_add, kinds="iufc", cheap=True, complex_rule=True, label="AddV2",
    by_parts=True, by_low_bits=(0, 1),
    is_light=True,
)  # fmt: skip
subtract = binary(
    "subtract",
    operator.sub,
    "({0} - {1})",
    "x - y.",
    _grad_subtract,
    kinds="iufc",
    cheap=True,
    complex_rule=True,
    label="Sub",
    by_low_bits=(0, 1),
    by_parts=True,
    is_light=True,
)
multiply = binary(
    "multiply",
    operator.mul,
    "({0} * {1})",
    "x * y.",
    _grad_multiply,
    kinds="iufc",
    cheap=True,
    label="Mul",
    by_low_bits=(0, 1),
    is_light=True,
)
_MULTIPLY = OPS["multiply"]
_divide = binary(
    "divide", operator.truediv, "({0} / {1})", "x / y of floats.", _grad_divide, kinds="fc",
    samples=_NONZERO, cheap=True, label="RealDiv",
)  # fmt: skip
floordiv = binary(
    "floordiv", _floordiv, _quotient("np.floor({0} / {1})", "({0} // {1})"),
    "x / y rounded to the next integer below. Raises InvalidArgumentError, which is a ZeroDivisionError too, for an"
    " integer division by zero.",
    lambda op, dy: (None, None), samples=_NONZERO, cheap=True, label="FloorDiv", divisor=1,
)  # fmt: skip
floormod = binary(
    "floormod", _floormod, "({0} % {1})",
    "x - floordiv(x, y) * y: the remainder with the divisor's sign. Raises InvalidArgumentError for an integer "
    "division by zero.",
    _grad_floormod, samples=_NONZERO, cheap=True, label="FloorMod", divisor=1,
)  # fmt: skip
truncatediv = binary(
    "truncatediv", _truncatediv,
    _quotient("np.trunc({0} / {1})", "({T}({0} // {1}) + {T}(({0} % {1} != 0) and (({0} < 0) != ({1} < 0))))"),
    "x / y rounded towards zero. Raises InvalidArgumentError, which is a ZeroDivisionError too, for an"
    " integer division by zero.",
    lambda op, dy: (None, None), samples=_NONZERO, cheap=True, label="TruncateDiv", divisor=1,
)  # fmt: skip
pow = binary(
    "pow", _pow, power_text,
    "x to the power y. Raises InvalidArgumentError for an integer to a negative integer power.",
    _grad_pow, kinds="iufc", samples=binary_samples(0.3, 2.5), label="Pow", exponent=1, cost=10,
    by_low_bits=(0,),
)  # fmt: skip
maximum = binary(
    "maximum", np.maximum,
    _by_kind("({0} if {0} >= {1} or {0} != {0} else {1})", "max({0}, {1})"),
    "The larger of x and y; NaN if either is.",
    _grad_extreme(lambda x, y: x >= y), cheap=True,
)  # fmt: skip
minimum = binary(
    "minimum", np.minimum,
    _by_kind("({0} if {0} <= {1} or {0} != {0} else {1})", "min({0}, {1})"),
    "The smaller of x and y; NaN if either is.",
    _grad_extreme(lambda x, y: x <= y), cheap=True,
)  # fmt: skip
multiply_no_nan: BinaryFunction = binary(
    "multiply_no_nan", lambda x, y: np.where(y == 0, x.dtype.type(0), x * y),
    typed("(({0} * {1}) if {1} != {T}(0) else {T}(0))"), "x * y, and 0 where y is 0 even if x is infinite or NaN.",
    _grad_multiply_no_nan, kinds="iufc", cheap=True, label="MulNoNan",
)  # fmt: skip
_squared_difference_real = binary(
    "squared_difference", lambda x, y: np.square(x - y), "(({0} - {1}) * ({0} - {1}))", "(x - y) squared.",
    _grad_squared_difference, cheap=True,
)  # fmt: skip


def bounded(x: Any) -> Any:
    """x with the largest finite numbers for infinities, which times 0 are NaN. Complex numbers are left as they are."""
    return x if x.dtype.is_complex else maximum(minimum(x, _number(x.dtype.max, x)), _number(x.dtype.min, x))


def absolute_scale(x: Any, y: Any) -> Any:
    """The larger of abs(x) and abs(y). No cotangent passes it: what it scales must not depend on the scale."""
    return call("stop_gradient", maximum(abs(x), abs(y)))


def _grad_atan2(op: Any, dy: Any) -> Sequence[Any]:
    y, x = op.inputs
    near_y, near_x = bounded(y), bounded(x)
    # The squares of the numbers themselves may overflow, or underflow to 0.
    scale = absolute_scale(near_x, near_y)
    near_x, near_y = near_x / scale, near_y / scale
    scaled = dy / scale / (near_x * near_x + near_y * near_y)
    return unbroadcast(near_x * scaled, y, x), unbroadcast(-near_y * scaled, x, y)


atan2 = binary(
    "atan2", np.arctan2, "math.atan2({0}, {1})", "The angle of the point (y, x): atan2(y, x).",
    _grad_atan2, kinds="f", samples=binary_samples(0.5, 3.0), cost=10,
)  # fmt: skip


def _grad_hypot(op: Any, dy: Any) -> Sequence[Any]:
    x, y = op.inputs
    return unbroadcast(dy * _hypot_slope(x, y), x, y), unbroadcast(dy * _hypot_slope(y, x), y, x)


def _grad_hypot_slope(op: Any, dy: Any) -> Sequence[Any]:
    """y ** 2 / h ** 3 and -x y / h ** 3. As a quotient's, the first would be 1 / h - x ** 2 / h ** 3, which cancels."""
    x, y = op.inputs
    other = _hypot_slope(y, x)
    scaled = dy * other / hypot(x, y)
    return unbroadcast(scaled * other, x, y), unbroadcast(-scaled * op.outputs[0], y, x)


hypot = binary(
    "hypot", np.hypot, "math.hypot({0}, {1})", "sqrt(x * x + y * y), without overflow.",
    _grad_hypot, kinds="f", samples=binary_samples(0.5, 3.0), cost=10,
)  # fmt: skip
_hypot_slope: BinaryFunction = binary(
    # Of halves, as the root of the largest numbers is infinite.
    "hypot_slope", lambda x, y: (h := x * x.dtype.type(0.5)) / np.hypot(h, y * y.dtype.type(0.5)),
    typed("({0} * {T}(0.5) / math.hypot({0} * {T}(0.5), {1} * {T}(0.5)))"),
    "x / sqrt(x * x + y * y), the derivative of `hypot` by x.",
    _grad_hypot_slope, kinds="f", samples=binary_samples(0.5, 3.0), cost=10,
)  # fmt: skip

negative = unary(
    "negative",
    operator.neg,
    "(-{0})",
    "-x.",
    lambda op, dy: (-dy,),
    kinds="ifc",
    cheap=True,
    label="Neg",
    by_low_bits=(0,),
    complex_rule=True,
    by_parts=True,
)
_abs_real = unary(
    "abs", np.abs, "abs({0})", "The absolute value.", lambda op, dy: (dy * sign(op.inputs[0]),), kinds="if", cheap=True
)  # fmt: skip
_sign_real: UnaryFunction = unary(
    "sign", np.sign,
    typed("({0} if {0} != {0} else ({T}(1) if {0} > 0 else ({T}(-1) if {0} < 0 else {T}(0))))"),
    "-1, 0 or 1; NaN for NaN.", lambda op, dy: (call("zeros_like", dy),), kinds="if", cheap=True,
)  # fmt: skip
square = unary(
    "square", np.square, "({0} * {0})", "x * x.", lambda op, dy: (dy * op.inputs[0] * 2,), kinds="iufc", cheap=True
)
reciprocal = unary(
    "reciprocal", lambda x: (1 / x).astype(x.dtype), typed("({T}(1) / {0})"), "1 / x.",
    lambda op, dy: (multiply_no_nan(-square(op.outputs[0]), dy),), kinds="fc", cheap=True,
    samples=(Sample(((2, 3),), low=0.5), Sample(((),), low=1.0)),
)  # fmt: skip


def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """1 / x, and 0 where x is 0. Floats and complex numbers."""
    tensor = convert_to_tensor(x)
    if tensor.dtype.kind not in "fc":
        raise TypeError(f"reciprocal_no_nan needs floats or complex numbers, got {tensor.dtype.name}")
    return divide_no_nan(convert_to_tensor(1, tensor.dtype), tensor)


# --- public functions over several rows ----------------------------------------------------------------------------


def abs(x: TensorLike, name: str | None = None) -> Tensor:
    """The absolute value; a float for complex numbers. Unsigned integers aren't accepted, as in TensorFlow."""
    x = convert_to_tensor(x)
    return call("complex_abs", x) if x.dtype.is_complex else _abs_real(x)


def sign(x: TensorLike, name: str | None = None) -> Tensor:
    """-1, 0 or 1; NaN for NaN. Of complex numbers z / |z|, and 0 for 0."""
    x = convert_to_tensor(x)
    if not x.dtype.is_complex:
        return _sign_real(x)
    zero = call("equal", x, _zeros(x))
    size = call("cast", call("complex_abs", x), dtype=x.dtype)
    return call("select", zero, _zeros(x), x / call("select", zero, _ones(x), size))


def squared_difference(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """(x - y) squared; of complex numbers (x - y) times its conjugate. Broadcasts."""
    x, y = operands("SquaredDifference", x, y)
    if not x.dtype.is_complex:
        return _squared_difference_real(x, y)
    difference = subtract(x, y)
    return difference * call("conj", difference)


def add(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x + y; strings are joined. Broadcasts.

    Raises InvalidArgumentError for operands of different dtypes, for bool and for shapes that don't broadcast.
    """
    x, y = operands("AddV2", x, y)
    return apply(_JOIN, (x, y)) if x.dtype is dtypes.string else _add_numbers(x, y)


def divide(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x / y, as Python 3 divides: integers become float64 (float32 for 8 and 16 bits) first. Broadcasts.

    Raises InvalidArgumentError for operands of different dtypes and for shapes that don't broadcast.
    """
    if isinstance(x, int) and isinstance(y, float) and not is_tensor_like(y):
        x = float(x)
    x, y = operands("RealDiv", x, y)
    dtype = x.dtype
    if dtype.kind in "iu":
        wide = dtypes.float32 if dtype.size <= 2 else dtypes.float64
        x, y = call("cast", x, dtype=wide), call("cast", y, dtype=wide)
    return _divide(x, y)


truediv = divide


def divide_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x / y, and 0 where y is 0 (also in the gradient)."""
    x, y = operands("DivNoNan", x, y)
    if x.dtype.kind in "iu":  # as `divide` does
        wide = dtypes.float32 if x.dtype.size <= 2 else dtypes.float64
        x, y = call("cast", x, dtype=wide), call("cast", y, dtype=wide)
    zero = call("equal", y, _zeros(y))
    safe = call("select", zero, _ones(y), y)
    return call("select", zero, _zeros(x), divide(x, safe))


def add_n(inputs: Sequence[Any], name: str | None = None) -> Tensor:
    """The sum of tensors of one shape and dtype: a list of them, or the rows of a tensor.

    Raises ValueError for an empty list, InvalidArgumentError for different shapes.
    """
    if is_tensor_like(inputs):
        rows: Any = convert_to_tensor(inputs)
        if rows._shape is None or rows._shape[:1] == (None,):  # also a list whose length is known only at run time
            return call("reduce_sum", rows, axis=(0,), keepdims=False)
        inputs = list(rows)
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise ValueError("inputs must be a non-empty list of tensors")
    terms = operands("AddN", *inputs)
    total = terms[0]
    for index, term in enumerate(terms[1:], 1):
        try:
            merge(total._shape, term._shape)
        except ValueError:
            raise errors.InvalidArgumentError(
                "Inputs to operation AddN must have the same size and shape. Input 0: "
                f"{brackets(total._shape)} != input {index}: {brackets(term._shape)} [Op:AddN]"
            ) from None
        total = _add_numbers(total, term)
    return total


def accumulate_n(inputs: Sequence[Any], shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Tensor:
    """The sum of a list of tensors of one shape and dtype. Raises ValueError for an empty list."""
    return add_n(inputs)


def scalar_mul(scalar: Any, x: TensorLike, name: str | None = None) -> Tensor:
    """A number times a tensor. Raises ValueError when the first operand has dimensions."""
    tensor = convert_to_tensor(x)
    factor = convert_to_tensor(scalar, tensor.dtype)
    if factor._shape not in ((), None):
        raise ValueError(f"The input scalar must be a 0-D value. Received shape {factor.shape}.")
    return multiply(factor, tensor)


def truncatemod(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x - truncatediv(x, y) * y: the remainder with the sign of x."""
    a, b = operands("TruncateMod", x, y)
    if a.dtype.kind != "f":
        return a - truncatediv(a, b) * b
    # The quotient of floats is rounded, and the remainder of that isn't the remainder.
    sign_of_a = side(a)
    return sign_of_a * floormod(sign_of_a * a, abs(b))


def clip_by_value(
    t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike, name: str | None = None
) -> Tensor:
    """min(max(t, clip_value_min), clip_value_max), elementwise. The bounds broadcast to t."""
    return minimum(maximum(t, clip_value_min), clip_value_max)


# --- strings -------------------------------------------------------------------------------------------------------


def _join_kernel(x: Any, y: Any) -> Any:
    result: Any = np.empty(np.broadcast_shapes(x.shape, y.shape), np.dtype(object))
    result[...] = x + y
    return result


_JOIN = register(
    OpDef(
        "string_add", OPS["add"].infer, _join_kernel, kinds="O", label="AddV2",
        doc="The strings of x followed by those of y.",
    )
)  # fmt: skip


def strings_join(inputs: Sequence[Any], separator: str = "", name: str | None = None) -> Tensor:
    """Joins the strings of the inputs, with `separator` between them. Broadcasts."""
    tensors = operands("StringJoin", *inputs)
    total = tensors[0]
    for term in tensors[1:]:
        total = add(add(total, separator), term) if separator else add(total, term)
    return total
