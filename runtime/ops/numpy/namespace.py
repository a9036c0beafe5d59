"""`ag.experimental.numpy`: NumPy's functions under NumPy's names, whose results are tensors.

Where an op stands for a function with these arguments, the op runs: it is staged, differentiated and compiled like any
other. Otherwise NumPy computes on the values, and the result becomes a tensor; that is an error while tracing, and
where a tape would lose its gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.context import ctx
from runtime.dtypes import DType, as_dtype
from runtime.ops.convert import convert_to_tensor, is_tensor_like
from runtime.ops.deferred_calls import name_in_files, with_deferral
from runtime.ops.elementwise.elementary import cast
from runtime.ops.numpy import ufuncs
from runtime.ops.numpy.array_functions import FUNCTIONS
from runtime.ops.numpy.protocol import as_array, contains_symbolic, fits, is_watched, refuse, without_defaults
from runtime.shapes import SequenceShape
from runtime.tensor import Tensor

_NAMES = """
abs absolute add all allclose amax amin angle any append arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh
argmax argmin argsort around array array_equal asanyarray asarray ascontiguousarray atleast_1d atleast_2d atleast_3d
average bincount bitwise_and bitwise_or bitwise_xor broadcast_arrays broadcast_to cbrt ceil clip column_stack compress
concatenate conj conjugate copy cos cosh count_nonzero cross cumprod cumsum deg2rad diag diag_indices diagflat diagonal
diff divide divmod dot dsplit dstack einsum empty empty_like equal exp exp2 expand_dims expm1 eye fabs fix flip fliplr
flipud float_power floor floor_divide full full_like gcd geomspace greater greater_equal heaviside hsplit hstack hypot
identity imag inner interp isclose iscomplex isfinite isinf isnan isneginf isposinf isreal ix_ kron lcm less less_equal
linspace log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logspace matmul max
maximum mean median meshgrid min minimum mod moveaxis multiply nan_to_num nanmax nanmean nanmin nanprod nansum negative
nextafter nonzero not_equal ones ones_like outer pad percentile polyval positive power prod ptp quantile rad2deg ravel
real reciprocal remainder repeat reshape roll rot90 round searchsorted select sign signbit sin sinc sinh sort split sqrt
square squeeze stack std subtract sum swapaxes take take_along_axis tan tanh tensordot tile trace transpose trapezoid
tri tril triu true_divide trunc unique vander var vdot vsplit vstack where zeros zeros_like
"""
# What isn't a function, or gives no tensors: NumPy's own.
_PLAIN = """
e euler_gamma inf nan newaxis pi float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 complex64
complex128 bool_ inexact finfo iinfo isscalar issubdtype iscomplexobj isrealobj ndim promote_types result_type shape
size
"""


for _ufunc, _function_of in ufuncs.UFUNCS.items():
    name_in_files(f"numpy.ufunc.{_ufunc.__name__}", _function_of)


def _own(function: Any) -> Callable[..., Any] | None:
    return ufuncs.find(function, "__call__") if isinstance(function, np.ufunc) else FUNCTIONS.get(function)


def _plain(value: Any) -> Any:
    if isinstance(value, DType):
        return value.np
    if isinstance(value, (list, tuple)) and any(isinstance(v, DType) for v in value):
        return type(value)(_plain(v) for v in value)
    return as_array(value)


def _tensors(result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return (
            type(result)(*map(_tensors, result)) if hasattr(result, "_fields") else type(result)(map(_tensors, result))
        )
    if isinstance(result, (np.ndarray, np.generic, bool, int, float, complex)):
        # NumPy's dtypes: a Python float is float64.
        return convert_to_tensor(np.asarray(result))
    return result


def _function(name: str) -> Callable[..., Any]:
    target = getattr(np, name)
    own = _own(target)

    def function(*args: Any, **kwargs: Any) -> Any:
        options = without_defaults(kwargs)
        operands = (*args, *options.values())
        is_staged = contains_symbolic(operands)
        watched = not is_staged and any(map(is_watched, operands))
        if own is not None and _has_tensor(operands):
            run = own if ctx.builder is None else with_deferral(own)
            if fits(own, args, options):
                return run(*map(_plain_dtype, args), **options)
            dtype = options.pop("dtype", None)
            if dtype is not None and (is_staged or watched) and fits(own, args, options):
                return cast(run(*(_widened(v, dtype) for v in args), **options), dtype)
        if is_staged:
            raise refuse(target, "there is no op for it with these arguments")
        result = _tensors(target(*[_plain(v) for v in args], **{k: _plain(v) for k, v in kwargs.items()}))
        if watched and _is_differentiable(result):
            raise TypeError(
                f"np.{name} has no gradient with these arguments, and a tape watches one of them. Use a similar "
                "function of `ag`, or pass the argument's value, x.numpy(), if the gradient isn't wanted."
            )
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`numpy.{name}`: takes tensors, arrays and Python values, returns tensors."
    return function


def _plain_dtype(value: Any) -> Any:
    return value.np if isinstance(value, DType) else value


def _widened(value: Any, dtype: Any) -> Any:
    """An operand in the dtype to compute in, if that holds its numbers; another dtype is that of the result alone."""
    if isinstance(value, (list, tuple)):
        return type(value)(_widened(v, dtype) for v in value)
    if not is_tensor_like(value):
        return _plain_dtype(value)
    tensor = convert_to_tensor(value)
    wanted = as_dtype(dtype)
    return cast(tensor, wanted) if np.can_cast(tensor.dtype.np, wanted.np) else tensor


def _has_tensor(operands: Any) -> bool:
    return any(_has_tensor(v) if isinstance(v, (list, tuple)) else is_tensor_like(v) for v in operands)


def _is_differentiable(result: Any) -> bool:
    if isinstance(result, (list, tuple)):
        return any(map(_is_differentiable, result))
    return isinstance(result, Tensor) and result.dtype.is_differentiable


def experimental_enable_numpy_behavior(prefer_float32: bool = False, dtype_conversion_mode: str = "legacy") -> None:
    """Lets Python's operators promote tensors of different dtypes by NumPy's rules, and `@` take vectors.

    Shapes of tensors also become instances of `collections.abc.Sequence`, as libraries for the array API standard
    expect. Tensors have NumPy's methods, indexing and functions anyway.

    prefer_float32: accepted, without effect. dtype_conversion_mode: 'legacy', 'all' or 'safe' switch this on, 'off'
    switches it off again. Raises ValueError for another mode.
    """
    if dtype_conversion_mode not in ("off", "legacy", "safe", "all"):
        raise ValueError(f"dtype_conversion_mode={dtype_conversion_mode!r}: it is 'off', 'legacy', 'safe' or 'all'.")
    ufuncs.Promotion.enabled = SequenceShape.enabled = dtype_conversion_mode != "off"


def _finfo(dtype: Any) -> np.finfo:
    """`numpy.finfo`: the limits of a floating-point dtype, NumPy's or this package's. Raises ValueError for another
    dtype."""
    return np.finfo(_plain_dtype(dtype))


def _iinfo(type: Any) -> np.iinfo:
    """`numpy.iinfo`: the limits of an integer dtype, NumPy's or this package's. Raises ValueError for another dtype."""
    return np.iinfo(_plain_dtype(type))


for _limits, _name in ((_finfo, "finfo"), (_iinfo, "iinfo")):
    _limits.__name__ = _limits.__qualname__ = _name

functions: dict[str, Any] = {name: _function(name) for name in _NAMES.split() if hasattr(np, name)}
functions.update({name: getattr(np, name) for name in _PLAIN.split()})
functions.update({"finfo": _finfo, "iinfo": _iinfo})
functions.update({"ndarray": Tensor, "experimental_enable_numpy_behavior": experimental_enable_numpy_behavior})
