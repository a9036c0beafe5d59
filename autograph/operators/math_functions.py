"""Functions of Python's ``math`` module on tensors: existing numeric code stages unchanged.

``math.sin(t)`` in converted code is `ag.sin` where ``t`` is a tensor of a trace; on anything else it is Python's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

from autograph.operators.symbolic import symbolic
from runtime import dtypes
from runtime.ops import api
from runtime.ops.elementwise import cast


def _whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """Functions that give a Python int of a float: the tensor is int32."""
    return lambda x: x if x.dtype.is_integer else cast(function(x), dtypes.int32)


def _float(x: Any) -> Any:
    return x if x.dtype.is_floating else cast(x, dtypes.float32)


def _log(x: Any, base: Any = None) -> Any:
    return api.log(_float(x)) if base is None else api.log(_float(x)) / math.log(base)


_OF_FLOATS: dict[Callable[..., Any], Any] = {
    math.acos: api.acos, math.acosh: api.acosh, math.asin: api.asin, math.asinh: api.asinh, math.atan: api.atan,
    math.atanh: api.atanh, math.cos: api.cos, math.cosh: api.cosh, math.exp: api.exp, math.sin: api.sin,
    math.sinh: api.sinh, math.sqrt: api.sqrt, math.tan: api.tan, math.tanh: api.tanh, math.fabs: api.abs,
    math.degrees: lambda x: x * (180 / math.pi), math.radians: lambda x: x * (math.pi / 180),
    math.atan2: api.atan2, math.pow: api.pow, math.hypot: lambda x, y: api.sqrt(x * x + y * y),
    math.copysign: lambda x, y: api.where(y < 0, -api.abs(x), api.abs(x)),
    math.isnan: lambda x: api.not_equal(x, x), math.isinf: lambda x: api.equal(api.abs(x), math.inf),
    math.isfinite: lambda x: api.less(api.abs(x), math.inf),
}  # fmt: skip
_OF_NUMBERS: dict[Callable[..., Any], Any] = {
    math.ceil: _whole(lambda x: -api.floor(-x)),
    math.floor: _whole(api.floor),
    math.log: _log,
    math.trunc: _whole(lambda x: x),
}


def _overload(python: Callable[..., Any], tensor: Callable[..., Any], floats: bool) -> Callable[..., Any]:
    @wraps(python, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def function(*arguments: Any, **options: Any) -> Any:
        if options or not any(symbolic(each) is not None for each in arguments):
            return python(*arguments, **options)
        operands = [symbolic(each) if symbolic(each) is not None else each for each in arguments]
        if floats:
            operands = [_float(each) if hasattr(each, "dtype") else each for each in operands]
        return tensor(*operands)

    return function


MATH: dict[Any, Callable[..., Any]] = {
    **{python: _overload(python, tensor, True) for python, tensor in _OF_FLOATS.items()},
    **{python: _overload(python, tensor, False) for python, tensor in _OF_NUMBERS.items()},
}
