"""NumPy's functions on lists of symbolic tensors, and its scalar types on one.

    np.sum(values)      np.array([x, 2 * x])      np.float64(x)

NumPy asks tensors among its arguments what a function means for them (runtime/ops/numpy/protocol.py), but not tensors
in lists, which it would take for objects of Python's. Converted code asks here first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from autograph.operators.builtins import OVERLOADS
from autograph.operators.symbolic import symbolic
from runtime import dtypes
from runtime.context import ctx
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.elementary import cast
from runtime.ops.host_array import HostArray
from runtime.ops.numpy.array_functions import FUNCTIONS
from runtime.ops.numpy.ufuncs import UFUNCS
from runtime.staged_list import StagedList, moved
from runtime.tensor import Tensor

_SCALARS = (
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16, np.float32,
    np.float64, np.complex64, np.complex128,
)  # fmt: skip


# NumPy doesn't ask their arguments.
_MAKING = frozenset({np.full, np.arange, np.linspace, np.logspace, np.geomspace})


def _call(function: Callable[..., Any], staged: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    given = (*arguments, *options.values())
    if ctx.builder is None or not (
        any(map(_is_staged, given)) or (function in _MAKING and any(symbolic(each) is not None for each in given))
    ):
        return function(*arguments, **options)
    return staged(*map(_as_tensor, arguments), **{name: _as_tensor(each) for name, each in options.items()})


def _is_staged(value: Any) -> bool:
    """Whether a list or tuple has become part of the program, or has an element that is."""
    if isinstance(value, StagedList):
        return True
    if not isinstance(value, (list, tuple)):
        return False
    return moved(value) is not None or any(_is_staged(each) or symbolic(each) is not None for each in value)


def _as_tensor(value: Any) -> Any:
    """A list that has become part of the program as a tensor, within other lists too."""
    if isinstance(value, (list, tuple)) and moved(value) is None:
        return type(value)(map(_as_tensor, value)) if type(value) in (list, tuple) else value
    return convert_to_tensor(value) if _is_staged(value) else value


def _ufunc(function: Any) -> Callable[..., Any]:
    def staged(*arguments: Any, **options: Any) -> Any:
        return function(*[convert_to_tensor(v) if _is_list(v) else v for v in arguments], **options)

    return staged


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple, StagedList))


def _array(function: Any) -> Callable[..., Any]:
    """`np.array`, `np.asarray` …: NumPy asks their argument nothing."""
    name = function.__name__

    def array(value: Any, dtype: Any = None, **options: Any) -> Any:
        tensor = symbolic(value)
        if tensor is None and not _is_staged(value):
            return function(value, dtype, **options) if dtype is not None else function(value, **options)
        unknown = [key for key, given in options.items() if key not in ("copy", "order") and given not in (None, 0)]
        if unknown:
            raise TypeError(f"np.{name}() of a symbolic tensor doesn't take the argument '{unknown[0]}'")
        made: Tensor = tensor if tensor is not None else convert_to_tensor(_as_tensor(value))
        return made if dtype is None else cast(made, dtypes.as_dtype(dtype))

    return array


def _scalar(kind: Any) -> Callable[..., Any]:
    """A scalar type: like NumPy's scalars, what it makes takes the dtype of a tensor that it meets."""

    def scalar(*arguments: Any) -> Any:
        tensor = symbolic(arguments[0]) if len(arguments) == 1 else None
        return kind(*arguments) if tensor is None else HostArray(cast(tensor, dtypes.as_dtype(kind)))

    return scalar


for _function, _staged in FUNCTIONS.items():
    OVERLOADS.setdefault(_function, partial(_call, _function, _staged))
for _each in UFUNCS:
    OVERLOADS.setdefault(_each, partial(_call, _each, _ufunc(_each)))
OVERLOADS.update({each: _array(each) for each in (np.array, np.asarray, np.asanyarray, np.ascontiguousarray)})
OVERLOADS.update({each: _scalar(each) for each in _SCALARS})
