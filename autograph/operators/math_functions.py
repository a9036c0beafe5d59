"""Functions of Python's ``math`` module on tensors: existing numeric code stages unchanged.

``math.sin(t)`` in converted code is `ag.sin` where ``t`` is a tensor of a trace; on anything else it is Python's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

from autograph.errors import StagingTypeError, user_location
from autograph.operators.symbolic import symbolic
from runtime import dtypes
from runtime.ops import api
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor, is_tensor_like
from runtime.ops.elementwise.elementary import cast
from runtime.ops.elementwise.special import lgamma
from runtime.ops.staged_number import StagedNumber, as_storage, is_number, kind_of, whole_number
from runtime.ops.values import common_default, default_of
from runtime.tensor import Tensor


def _whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """Functions that give a Python int of a float: that of a tensor is int32."""

    def whole(x: Any) -> Any:
        if type(x) is StagedNumber:
            return x if x.kind is int else whole_number(function(x.wide()))
        return x if x.dtype.is_integer else cast(function(x), dtypes.int32)

    return whole


def _float(x: Any) -> Any:
    return x if x.dtype.is_floating else cast(x, dtypes.float32)


def _log(x: Any, base: Any = None) -> Any:
    logarithm = api.log(_float(x)) if symbolic(x) is not None else math.log(x)
    if base is None:
        return logarithm
    return logarithm / (api.log(_float(base)) if symbolic(base) is not None else math.log(base))


def _trunc(x: Any) -> Any:
    return api.where(x < 0, api.ceil(x), api.floor(x))


def _gamma(x: Any) -> Any:
    mirrored = math.pi / (api.sin(math.pi * x) * api.exp(lgamma(1 - x)))
    return api.where(x > 0, api.exp(lgamma(x)), mirrored)


def _fmod(x: Any, y: Any) -> Any:
    return x - _trunc(x / y) * y


def _remainder(x: Any, y: Any) -> Any:
    return x - api.round(x / y) * y


def _modf(x: Any) -> tuple[Any, Any]:
    return x - _trunc(x), _trunc(x)


def _isclose(a: Any, b: Any, *, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> Any:
    size = api.maximum(api.abs(a), api.abs(b))
    return api.logical_or(api.equal(a, b), api.abs(a - b) <= api.maximum(rel_tol * size, abs_tol))


def _hypot(*sides: Any) -> Any:
    return api.sqrt(sum(side * side for side in sides))


def _isqrt(x: Any) -> Any:
    x = x if x.dtype.is_integer else cast(x, dtypes.int32)
    assert_op(api.reduce_all(x >= 0), "isqrt() argument must be nonnegative", "ValueError")
    root = cast(api.sqrt(cast(x, dtypes.float64)), x.dtype)
    # Above 2**53 the float may be one more than a square that it stands for. The division doesn't leave the dtype.
    return root - cast(root > x // api.maximum(root, 1), root.dtype)


def _is_negative(x: Any) -> Any:
    """Whether the sign is a minus: also that of -0.0, which compares like 0.0."""
    return api.logical_or(x < 0, 1 / x < 0)


def _ldexp(x: Any, exponent: Any) -> Any:
    x = _float(convert_to_tensor(x))
    return x * api.pow(2.0, cast(exponent, x.dtype))


_OF_FLOATS: dict[str, Any] = {
    "acos": api.acos, "acosh": api.acosh, "asin": api.asin, "asinh": api.asinh, "atan": api.atan, "atanh": api.atanh,
    "cos": api.cos, "cosh": api.cosh, "exp": api.exp, "sin": api.sin, "sinh": api.sinh, "sqrt": api.sqrt,
    "tan": api.tan, "tanh": api.tanh, "fabs": api.abs, "erf": api.erf, "erfc": api.erfc, "expm1": api.expm1,
    "log1p": api.log1p, "lgamma": lgamma, "gamma": _gamma, "exp2": lambda x: api.exp(x * math.log(2)),
    "cbrt": lambda x: api.sign(x) * api.pow(api.abs(x), 1 / 3),
    "log2": lambda x: api.log(x) / math.log(2), "log10": lambda x: api.log(x) / math.log(10),
    "degrees": lambda x: x * (180 / math.pi), "radians": lambda x: x * (math.pi / 180),
    "atan2": api.atan2, "pow": api.pow, "hypot": _hypot, "fmod": _fmod, "remainder": _remainder, "modf": _modf,
    "copysign": lambda x, y: api.where(_is_negative(y), -api.abs(x), api.abs(x)), "isclose": _isclose,
    "fma": lambda x, y, z: x * y + z,
    "isnan": lambda x: api.not_equal(x, x), "isinf": lambda x: api.equal(api.abs(x), math.inf),
    "isfinite": lambda x: api.less(api.abs(x), math.inf),
}  # fmt: skip
_WHOLE: dict[str, Any] = {
    "ceil": _whole(lambda x: -api.floor(-x)),
    "floor": _whole(api.floor),
    "trunc": _whole(lambda x: x),
}
_OF_NUMBERS: dict[str, Any] = {
    **_WHOLE,
    "log": _log,
    "ldexp": _ldexp,
    "isqrt": _isqrt,
}
_MISSING = ("comb", "factorial", "frexp", "gcd", "lcm", "nextafter", "perm", "sumprod", "ulp")


def _overload(name: str, tensor: Callable[..., Any], floats: bool) -> Callable[..., Any]:
    python = getattr(math, name)

    @wraps(python, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def function(*arguments: Any, **options: Any) -> Any:
        if not any(symbolic(each) is not None for each in arguments):
            return python(*arguments, **options)
        if name in _WHOLE and type(arguments[0]) is StagedNumber:
            return tensor(*arguments, **options)
        if all(map(is_number, arguments)):
            return _of_numbers(tensor, floats, arguments, options)
        operands = [symbolic(each) if symbolic(each) is not None else each for each in arguments]
        if floats:
            operands = [_float(each) if is_tensor_like(each) else each for each in operands]
            dtype = next(each.dtype for each in operands if isinstance(each, Tensor))
            operands = [convert_to_tensor(each, dtype) if type(each) in (int, float) else each for each in operands]
        return tensor(*operands, **options)

    return function


def _of_numbers(tensor: Callable[..., Any], floats: bool, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What a function of ``math`` gives for Python and staged numbers: it computes in 64 bits."""
    is_float = floats or any(kind_of(each) is float for each in arguments)
    result = tensor(*[as_storage(each, dtypes.float64 if is_float else dtypes.int64) for each in arguments], **options)
    whole = dtypes.int32 if is_float else common_default(*map(default_of, arguments))
    return tuple([_number(each, whole) for each in result]) if isinstance(result, tuple) else _number(result, whole)


def _number(tensor: Any, whole: Any) -> Any:
    """A result as a number. whole: what an int has for its default."""
    if tensor.dtype.is_bool:
        return tensor
    return StagedNumber(tensor, dtypes.float32 if tensor.dtype.is_floating else whole)


def _missing(name: str) -> Callable[..., Any]:
    def refuse(*arguments: Any) -> Any:
        raise StagingTypeError(
            f"math.{name}() of a tensor",
            location=user_location(),
            cause=f"math.{name} works on Python numbers, and the value of a tensor is known only at run time",
            fix="compute it outside of the function, or with other functions of math or ag.math",
        )

    return _overload(name, refuse, False)


MATH: dict[Any, Callable[..., Any]] = {
    **{getattr(math, name): _overload(name, made, True) for name, made in _OF_FLOATS.items() if hasattr(math, name)},
    **{getattr(math, name): _overload(name, made, False) for name, made in _OF_NUMBERS.items()},
    **{getattr(math, name): _missing(name) for name in _MISSING if hasattr(math, name)},
}
