"""NumPy's universal functions on tensors: which op each of them is.

The rules of NumPy hold where they differ from TensorFlow's: integers become float64 for `np.sin` and friends, two
tensors of different dtypes meet at NumPy's common one. An array or number beside one tensor takes the tensor's dtype,
as it does with the operators of tensors, which NumPy sends here too (`array * tensor` is `np.multiply`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.ops.arrays import reduce, scan
from runtime.ops.arrays.miscellaneous import bitcast
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import convert_to_tensor, has_dtype, operands
from runtime.ops.dispatch import call
from runtime.ops.elementwise import arithmetic, compare, elementary, special
from runtime.ops.linalg import matrix_products
from runtime.tensor import Tensor


class Promotion:
    """Whether Python's operators promote tensors of different dtypes by NumPy's rules, or refuse as TensorFlow does.

    `experimental_enable_numpy_behavior` switches it, for the whole process.
    """

    enabled = False


UFUNCS: dict[Any, Callable[..., Any]] = {}
# Methods of ufuncs: (ufunc, "reduce") -> function(tensor, axis, keepdims).
METHODS: dict[tuple[Any, str], Callable[..., Any]] = {}


def floating(x: Any) -> Tensor:
    """x as a tensor of floats: integers and bools as NumPy widens them, to float64."""
    tensor = convert_to_tensor(x)
    return elementary.cast(tensor, dtypes.float64) if tensor.dtype.kind in "biu" else tensor


def common(*values: Any) -> list[Tensor]:
    """Operands at one dtype: NumPy's common dtype of the tensors; arrays and Python numbers take it."""
    found = {convert_to_tensor(v).dtype for v in values if has_dtype(v)}
    if len(found) > 1 and dtypes.string not in found:
        wanted = dtypes.as_dtype(np.result_type(*[d.np for d in found]))
        values = tuple(elementary.cast(v, wanted) if has_dtype(v) else v for v in values)
    elif found and next(iter(found)).kind in "biu" and any(isinstance(v, float) for v in values):
        # A Python float beside integers, as in np.maximum(ints, 0.5): NumPy widens.
        values = tuple(floating(v) if has_dtype(v) else v for v in values)
    return operands("numpy", *values)


def _unary(function: Callable[..., Tensor], numbers: bool = True) -> Callable[..., Tensor]:
    return lambda x: function(floating(x) if numbers else convert_to_tensor(x))


def _binary(function: Callable[..., Any], floats: bool = False) -> Callable[..., Tensor]:
    def apply_to(x: Any, y: Any) -> Tensor:
        a, b = common(x, y)
        return function(floating(a), floating(b)) if floats else function(a, b)

    return apply_to


def _logical(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda *values: function(*[truth(v) for v in values])


def truth(x: Any) -> Tensor:
    """x as bools: True where it isn't zero."""
    tensor = convert_to_tensor(x)
    return tensor if tensor.dtype is dtypes.bool_ else elementary.cast(tensor, dtypes.bool_)


def _bits(logical: Callable[..., Tensor], bitwise: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def apply_to(*values: Any) -> Tensor:
        parts = common(*values) if len(values) > 1 else [convert_to_tensor(values[0])]
        return (logical if parts[0].dtype is dtypes.bool_ else bitwise)(*parts)

    return apply_to


def _power(x: Any, y: Any) -> Tensor:
    if isinstance(y, int) and y == 2:
        return arithmetic.square(x)
    return arithmetic.pow(*common(x, y))


def _matmul(a: Any, b: Any) -> Tensor:
    """`np.matmul` and `array @ tensor`: vectors become rows or columns, and lose that dimension again."""
    x, y = common(a, b)
    left, right = known_rank(x, "matmul"), known_rank(y, "matmul")
    if left == 0 or right == 0:
        raise ValueError("matmul: Input operand does not have enough dimensions")
    if left == right == 1:
        return reduce.reduce_sum(x * y)
    if left == 1:
        return call("squeeze", matrix_products.matmul(call("expand_dims", x, axis=(0,)), y), axis=(right - 2,))
    return matrix_products.matvec(x, y) if right == 1 else matrix_products.matmul(x, y)


def _sign(x: Any) -> Tensor:
    return arithmetic.sign(convert_to_tensor(x))


def _divmod(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    a, b = common(x, y)
    return arithmetic.floordiv(a, b), arithmetic.floormod(a, b)


def _fmod(x: Any, y: Any) -> Tensor:
    a, b = common(x, y)
    return arithmetic.truncatemod(a, b)


def _modf(x: Any) -> tuple[Tensor, Tensor]:
    tensor = floating(x)
    whole = elementary.trunc(tensor)
    return tensor - whole, whole


def _ignoring_nan(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """fmax and fmin: the other operand where one is NaN."""

    def apply_to(x: Any, y: Any) -> Tensor:
        a, b = common(x, y)
        if a.dtype.kind != "f":
            return function(a, b)
        chosen = function(compare.where(compare.is_nan(a), b, a), compare.where(compare.is_nan(b), a, b))
        return chosen

    return apply_to


def _cbrt(x: Any) -> Tensor:
    tensor = floating(x)
    side = arithmetic.side(tensor)  # not the sign, which is 0 at 0, where the slope is infinite
    return side * arithmetic.pow(side * tensor, 1 / 3)


def _heaviside(x: Any, y: Any) -> Tensor:
    a, b = (floating(v) for v in common(x, y))
    step = compare.where(a > 0, call("ones_like", a), call("zeros_like", a))
    return compare.where(compare.is_nan(a), a, compare.where(compare.equal(a, 0), b, step))


def _signbit(x: Any) -> Tensor:
    tensor = convert_to_tensor(x)
    if tensor.dtype.kind != "f":
        return tensor < 0
    # The bit itself: -0.0 and NaN have one too.
    bits = dtypes.as_dtype(f"int{8 * tensor.dtype.size}")
    return bitcast(tensor, bits) < 0


def _copysign(x: Any, y: Any) -> Tensor:
    a, b = (floating(v) for v in common(x, y))
    size = arithmetic.abs(a)
    return compare.where(_signbit(b), -size, size)


def _scaled(factor: float) -> Callable[..., Tensor]:
    return lambda x: floating(x) * factor


def _logaddexp(unit: float) -> Callable[..., Tensor]:
    """The larger operand, plus what the smaller one adds. unit: the logarithm of the base."""

    def apply_to(x: Any, y: Any) -> Tensor:
        a, b = (floating(v) for v in common(x, y))
        is_first = compare.greater_equal(a, b)
        top, low = compare.where(is_first, a, b), compare.where(is_first, b, a)
        are_same = compare.logical_and(compare.equal(a, b), compare.is_inf(a))
        gap = compare.where(are_same, call("zeros_like", top), low - top)
        return top + elementary.softplus(gap * unit) * (1 / unit)

    return apply_to


def _number(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Rounding: integers stay as they are."""
    return lambda x: x if (x := convert_to_tensor(x)).dtype.kind in "biu" else function(x)


def _fill() -> None:
    e, a, c = elementary, arithmetic, compare
    for names, function in {
        "exp": e.exp, "expm1": e.expm1, "log": e.log, "log1p": e.log1p, "sqrt": e.sqrt, "sin": e.sin, "cos": e.cos,
        "tan": e.tan, "arcsin": e.asin, "arccos": e.acos, "arctan": e.atan, "sinh": e.sinh, "cosh": e.cosh,
        "tanh": e.tanh, "arcsinh": e.asinh, "arccosh": e.acosh, "arctanh": e.atanh, "reciprocal": a.reciprocal,
    }.items():  # fmt: skip
        UFUNCS[getattr(np, names)] = _unary(function)
    pairs: dict[str, Callable[..., Any]] = {
        "add": a.add, "subtract": a.subtract, "multiply": a.multiply, "floor_divide": a.floordiv,
        "remainder": a.floormod, "maximum": a.maximum, "minimum": a.minimum, "less": c.less,
        "less_equal": c.less_equal, "greater": c.greater, "greater_equal": c.greater_equal,
        "left_shift": c.left_shift, "right_shift": c.right_shift,
    }  # fmt: skip
    for name, pairwise in pairs.items():
        UFUNCS[getattr(np, name)] = _binary(pairwise)
    for name, function in {"floor": e.floor, "ceil": e.ceil, "trunc": e.trunc, "rint": e.rint}.items():
        UFUNCS[getattr(np, name)] = _number(function)
    UFUNCS.update(
        {
            np.true_divide: _binary(a.divide, floats=True), np.power: _power, np.float_power: _binary(a.pow, True),
            np.equal: lambda x, y: c.equal(*common(x, y)), np.not_equal: lambda x, y: c.not_equal(*common(x, y)),
            np.arctan2: _binary(a.atan2, floats=True), np.divmod: _divmod, np.fmod: _fmod, np.modf: _modf,
            np.hypot: _binary(a.hypot, floats=True),
            np.logaddexp: _logaddexp(1.0), np.logaddexp2: _logaddexp(math.log(2)), np.heaviside: _heaviside,
            np.copysign: _copysign, np.signbit: _signbit,
            np.nextafter: _binary(special.nextafter, floats=True), np.matmul: _matmul,
            np.fmax: _ignoring_nan(a.maximum), np.fmin: _ignoring_nan(a.minimum),
            np.negative: _unary(a.negative, False), np.positive: lambda x: convert_to_tensor(x),
            np.absolute: _unary(a.abs, False), np.fabs: _unary(a.abs), np.sign: _sign,
            np.square: _unary(a.square, False), np.conjugate: lambda x: convert_to_tensor(x),
            np.cbrt: _cbrt,
            np.exp2: lambda x: e.exp(floating(x) * 0.6931471805599453),
            np.log2: lambda x: e.log(floating(x)) * 1.4426950408889634,
            np.log10: lambda x: e.log(floating(x)) * 0.4342944819032518,
            np.deg2rad: _scaled(np.pi / 180), np.radians: _scaled(np.pi / 180),
            np.rad2deg: _scaled(180 / np.pi), np.degrees: _scaled(180 / np.pi),
            np.isnan: _unary(c.is_nan), np.isinf: _unary(c.is_inf), np.isfinite: _unary(c.is_finite),
            np.logical_and: _logical(c.logical_and), np.logical_or: _logical(c.logical_or),
            np.logical_xor: _logical(c.logical_xor), np.logical_not: _logical(c.logical_not),
            np.bitwise_and: _bits(c.logical_and, c.bitwise_and), np.bitwise_or: _bits(c.logical_or, c.bitwise_or),
            np.bitwise_xor: _bits(c.logical_xor, c.bitwise_xor), np.invert: _bits(c.logical_not, c.invert),
        }
    )  # fmt: skip


def _reduction(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def reduce_over(array: Any, axis: Any = 0, keepdims: bool = False) -> Tensor:
        return function(convert_to_tensor(array), axis, keepdims)

    return reduce_over


def _outer(function: Callable[..., Any]) -> Callable[..., Any]:
    def over_pairs(x: Any, y: Any) -> Any:
        a, b = common(x, y)
        extra = known_rank(b, "outer")
        rank = known_rank(a, "outer")
        return function(call("expand_dims", a, axis=tuple(range(rank, rank + extra))) if extra else a, b)

    return over_pairs


def _fill_methods() -> None:
    for ufunc, reduction in {
        np.add: reduce.reduce_sum, np.multiply: reduce.reduce_prod, np.maximum: reduce.reduce_max,
        np.minimum: reduce.reduce_min,
    }.items():  # fmt: skip
        METHODS[(ufunc, "reduce")] = _reduction(reduction)
    METHODS[(np.logical_and, "reduce")] = _reduction(lambda x, *rest: reduce.reduce_all(truth(x), *rest))
    METHODS[(np.logical_or, "reduce")] = _reduction(lambda x, *rest: reduce.reduce_any(truth(x), *rest))
    METHODS[(np.add, "accumulate")] = lambda array, axis=0: scan.cumsum(array, axis)
    METHODS[(np.multiply, "accumulate")] = lambda array, axis=0: scan.cumprod(array, axis)
    for ufunc in (np.add, np.subtract, np.multiply, np.true_divide, np.maximum, np.minimum, np.power):
        METHODS[(ufunc, "outer")] = _outer(UFUNCS[ufunc])


_fill()
_fill_methods()


def find(ufunc: Any, method: str) -> Callable[..., Any] | None:
    """The function over tensors for a ufunc or one of its methods, if there is one."""
    return UFUNCS.get(ufunc) if method == "__call__" else METHODS.get((ufunc, method))


def names() -> Sequence[str]:
    """The ufuncs that tensors know, for the documentation."""
    return sorted(ufunc.__name__ for ufunc in UFUNCS)
