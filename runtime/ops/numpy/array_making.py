"""NumPy's functions that make arrays of numbers and tensors: `np.array([x, y])`, `np.full(3, x)`, `np.vander(x)`."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.dtypes import DTypeLike
from runtime.ops.arrays import broadcasting, creation, joining, shape_ops
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import convert_to_tensor, is_tensor_like
from runtime.ops.dispatch import call
from runtime.ops.elementwise import arithmetic, elementary
from runtime.ops.numpy.array_functions import diag, flat, implements, numbers
from runtime.ops.numpy.shape_functions import linspace
from runtime.ops.numpy.ufuncs import common, floating
from runtime.ops.rules import dims
from runtime.tensor import Tensor


def _dtypes_in(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [dtype for item in value for dtype in _dtypes_in(item)]
    # NumPy's dtypes: a Python float is float64.
    return [convert_to_tensor(value).dtype.np if is_tensor_like(value) else np.asarray(value).dtype]


def _stacked(value: Any, dtype: Any) -> Tensor:
    if isinstance(value, (list, tuple)):
        return joining.stack([_stacked(item, dtype) for item in value])
    return elementary.cast(value if is_tensor_like(value) else convert_to_tensor(np.asarray(value)), dtype)


def _array(value: Any, dtype: DTypeLike = None) -> Tensor:
    """A tensor; lists of tensors, to any depth, as one of their common dtype."""
    if isinstance(value, (list, tuple)):
        return _stacked(value, dtypes.as_dtype(np.result_type(*_dtypes_in(value)) if dtype is None else dtype))
    x = convert_to_tensor(value)
    return x if dtype is None else elementary.cast(x, dtype)


@implements("array")
def array(object: Any, dtype: DTypeLike = None, *, copy: Any = True, ndmin: int = 0) -> Tensor:
    x = _array(object, dtype)
    missing = ndmin - known_rank(x, "array") if ndmin else 0
    return call("expand_dims", x, axis=tuple(range(missing))) if missing > 0 else x


implements("asarray", "asanyarray")(lambda a, dtype=None, *, copy=None: _array(a, dtype))
implements("ascontiguousarray")(lambda a, dtype=None: array(a, dtype, ndmin=1))


@implements("full")
def full(shape: Any, fill_value: Any, dtype: DTypeLike = None) -> Tensor:
    value = _array(fill_value, dtype)
    return broadcasting.broadcast_to(value, [shape] if isinstance(shape, (int, np.integer)) else shape)


@implements("arange")
def arange(start: Any, stop: Any = None, step: Any = 1) -> Tensor:
    """`start + k * step`, so that both have gradients; `stop` decides how many numbers there are."""
    first, last, each = common(*((0, start) if stop is None else (start, stop)), step)
    count = shape_ops.size(creation.range(first, last, each))
    return first + elementary.cast(creation.range(count), first.dtype) * each


@implements("logspace")
def logspace(start: Any, stop: Any, num: Any = 50, *, base: Any = 10.0) -> Tensor:
    return arithmetic.pow(*common(base, linspace(start, stop, num)))


@implements("geomspace")
def geomspace(start: Any, stop: Any, num: Any = 50) -> Tensor:
    first, last = (floating(v) for v in common(start, stop))
    return first * arithmetic.pow(last / first, linspace(call("zeros_like", first), call("ones_like", last), num))


@implements("vander")
def vander(x: Any, N: Any = None, increasing: bool = False) -> Tensor:
    base = numbers(x)
    count = dims(base)[0] if N is None else N
    powers = elementary.cast(creation.range(count), base.dtype)
    exponents = powers if increasing else call("reverse", powers, axis=(0,))
    return arithmetic.pow(call("expand_dims", base, axis=(1,)), exponents)


@implements("diagflat")
def diagflat(v: Any, k: int = 0) -> Tensor:
    return diag(flat(_array(v)), k)


@implements("broadcast_arrays")
def broadcast_arrays(*args: Any) -> tuple[Tensor, ...]:
    tensors = [_array(a) for a in args]
    # The sum of zeros of all shapes has the shape that they broadcast to.
    zeros = [elementary.cast(call("zeros_like", x), dtypes.int32) for x in tensors]
    return tuple(call("broadcast_like", x, functools.reduce(operator.add, zeros)) for x in tensors)
