"""Elementwise functions of the array API standard. Operands of different dtypes are promoted to a common dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.ops.arrays import broadcasting as shapes
from runtime.ops.convert import convert_to_tensor, is_tensor_like
from runtime.ops.dispatch import call
from runtime.ops.elementwise import arithmetic, compare, complex_numbers, elementary
from runtime.ops.numpy.ufuncs import common, find
from runtime.tensor import Tensor

# The standard's name → NumPy's universal function, for which `numpy_ufuncs` has the op.
_UNARY = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "bitwise_invert": np.invert, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "exp": np.exp,
    "expm1": np.expm1, "floor": np.floor, "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
    "logical_not": np.logical_not, "positive": np.positive, "reciprocal": np.reciprocal, "signbit": np.signbit,
    "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "square": np.square, "tan": np.tan, "tanh": np.tanh,
    "trunc": np.trunc,
}  # fmt: skip
_BINARY = {
    "add": np.add, "atan2": np.arctan2, "bitwise_and": np.bitwise_and, "bitwise_left_shift": np.left_shift,
    "bitwise_or": np.bitwise_or, "bitwise_right_shift": np.right_shift, "bitwise_xor": np.bitwise_xor,
    "copysign": np.copysign, "divide": np.true_divide, "equal": np.equal, "floor_divide": np.floor_divide,
    "greater": np.greater, "greater_equal": np.greater_equal, "hypot": np.hypot, "less": np.less,
    "less_equal": np.less_equal, "logaddexp": np.logaddexp, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor, "maximum": np.maximum, "minimum": np.minimum,
    "multiply": np.multiply, "nextafter": np.nextafter, "not_equal": np.not_equal, "pow": np.power,
    "remainder": np.remainder, "subtract": np.subtract,
}  # fmt: skip


def _unary(name: str, ufunc: Any) -> Callable[..., Tensor]:
    op: Any = find(ufunc, "__call__")

    def function(x: Any, /) -> Tensor:
        return op(convert_to_tensor(x))

    return _named(function, name, f"The array API standard's `{name}` of each element.")


def _binary(name: str, ufunc: Any) -> Callable[..., Tensor]:
    op: Any = find(ufunc, "__call__")

    def function(x1: Any, x2: Any, /) -> Tensor:
        return op(x1, x2)

    return _named(function, name, f"The array API standard's `{name}` of the elements of two arrays, which broadcast.")


def _named(function: Callable[..., Tensor], name: str, doc: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


globals().update({name: _unary(name, ufunc) for name, ufunc in _UNARY.items()})
globals().update({name: _binary(name, ufunc) for name, ufunc in _BINARY.items()})


def abs(x: Any, /) -> Tensor:
    """The absolute value of each element, real for complex numbers."""
    tensor = convert_to_tensor(x)
    return tensor if tensor.dtype.is_unsigned else arithmetic.abs(tensor)


def negative(x: Any, /) -> Tensor:
    """The negative of each element; unsigned integers wrap around."""
    return -convert_to_tensor(x)


def _parts(test: Callable[[Tensor], Tensor], join: Callable[..., Tensor], x: Any) -> Tensor:
    """Applies a test of real numbers to both parts of complex numbers; integers and bools are finite."""
    tensor = convert_to_tensor(x)
    if tensor.dtype.is_complex:
        return join(test(complex_numbers.real(tensor)), test(complex_numbers.imag(tensor)))
    return test(elementary.cast(tensor, dtypes.float32) if tensor.dtype.kind in "biu" else tensor)


def isfinite(x: Any, /) -> Tensor:
    """Whether each element is neither infinite nor NaN."""
    return _parts(compare.is_finite, compare.logical_and, x)


def isinf(x: Any, /) -> Tensor:
    """Whether each element, or a part of it, is infinite."""
    return _parts(compare.is_inf, compare.logical_or, x)


def isnan(x: Any, /) -> Tensor:
    """Whether each element, or a part of it, is NaN."""
    return _parts(compare.is_nan, compare.logical_or, x)


def conj(x: Any, /) -> Tensor:
    """The complex conjugate of each element."""
    return complex_numbers.conj(convert_to_tensor(x))


def real(x: Any, /) -> Tensor:
    """The real part of each element."""
    return complex_numbers.real(convert_to_tensor(x))


def imag(x: Any, /) -> Tensor:
    """The imaginary part of each element; zeros for real numbers."""
    tensor = convert_to_tensor(x)
    return complex_numbers.imag(tensor) if tensor.dtype.is_complex else call("zeros_like", tensor)


def sign(x: Any, /) -> Tensor:
    """-1, 0 or 1 for each element, NaN for NaN; z / abs(z) for complex numbers."""
    tensor = convert_to_tensor(x)
    if tensor.dtype.is_unsigned:
        return elementary.cast(tensor > 0, tensor.dtype)
    return arithmetic.sign(tensor)


def round(x: Any, /) -> Tensor:
    """Each element rounded to the nearest integer, halves to even."""
    tensor = convert_to_tensor(x)
    if tensor.dtype.kind in "biu":
        return tensor
    if tensor.dtype.is_complex:
        return complex_numbers.complex(
            elementary.rint(complex_numbers.real(tensor)), elementary.rint(complex_numbers.imag(tensor))
        )
    return elementary.rint(tensor)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """Limits each element to [min, max]. `min` and `max` broadcast; the result has the dtype of `x`."""
    tensor = convert_to_tensor(x)

    def bound(value: Any) -> Tensor:
        given = value if is_tensor_like(value) else convert_to_tensor(value, tensor.dtype)
        return given if given.dtype is tensor.dtype else elementary.cast(given, tensor.dtype)

    if tensor.dtype is dtypes.bool_:
        raise TypeError("clip takes numbers, not bools.")
    if min is not None:
        tensor = arithmetic.maximum(tensor, bound(min))
    return tensor if max is None else arithmetic.minimum(tensor, bound(max))


def where(condition: Any, x1: Any, x2: Any, /) -> Tensor:
    """Elements of `x1` where the condition is True, else of `x2`; all three broadcast."""
    first, second = common(x1, x2)
    return compare.where(convert_to_tensor(condition), first, second)


def broadcast_arrays(*arrays: Any) -> tuple[Tensor, ...]:
    """Broadcasts the arrays to a common shape."""
    tensors = [convert_to_tensor(a) for a in arrays]
    shape = broadcast_shapes(*[t.shape for t in tensors])
    return tuple(shapes.broadcast_to(t, shape) for t in tensors)


def broadcast_shapes(*shapes: Any) -> tuple[int | None, ...]:
    """The shape that the shapes broadcast to. Raises ValueError if they don't."""
    return np.broadcast_shapes(*[tuple(s) for s in shapes])


def broadcast_to(x: Any, /, shape: Any) -> Tensor:
    """Broadcasts `x` to a shape: repeats it along dimensions of length 1 and along new leading dimensions."""
    return shapes.broadcast_to(convert_to_tensor(x), tuple(shape))


__all__ = [
    *_UNARY, *_BINARY, "abs", "isfinite", "isinf", "isnan", "negative", "conj", "real", "imag", "sign", "round", "clip",
    "where", "broadcast_arrays", "broadcast_shapes", "broadcast_to",
]  # fmt: skip
