"""NumPy's functions that make arrays: in a trace with arrays of the program (arrays.py), these.

They stand around what other overloads make of lists of tensors, and so are told after those.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autograph.operators.arrays import is_staged, note_made, stages_arrays
from autograph.operators.builtins import OVERLOADS
from autograph.operators.symbolic import symbolic
from runtime import dtypes
from runtime.array_contents import numpy_dtype
from runtime.context import ctx
from runtime.ops.arrays.creation import fill
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.elementary import cast
from runtime.staged_array import StagedArray, WritableArray, array_of, as_array
from runtime.tensor import SymbolicTensor


def _makes_array(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy's that makes an array of its own."""
    before = OVERLOADS.get(function, function)

    def make(*arguments: Any, **options: Any) -> Any:
        if ctx.builder is None:
            return function(*arguments, **options)
        if stages_arrays() and "dtype" in options and options["dtype"] is not None:
            options["dtype"] = numpy_dtype(options["dtype"])
        made = before(*arguments, **options)
        if stages_arrays() and not (arguments and made is arguments[0]):  # `np.asarray` of an array from outside
            return made if isinstance(made, WritableArray) else as_array(made)
        if type(made) is SymbolicTensor:
            note_made(made)
        return made

    return make


def _copies(function: Callable[..., Any]) -> Callable[..., Any]:
    """`np.array`, `np.asarray` and `np.copy`, which take an array of the program too."""
    make = _makes_array(function)
    is_view = function in (np.asarray, np.asanyarray)

    def copy(value: Any, *arguments: Any, **options: Any) -> Any:
        if ctx.builder is not None and stages_arrays() and isinstance(value, (list, tuple)) and is_staged(value):
            value, options["copy"] = array_of(value), None
        dtype = arguments[0] if arguments else options.get("dtype")
        tensor = None if isinstance(value, WritableArray) else symbolic(value)
        if tensor is not None and not set(options) - {"dtype", "copy", "order"}:
            made: Any = tensor if dtype is None else cast(tensor, dtypes.as_dtype(dtype))
            if stages_arrays():
                return as_array(made)
            note_made(made)
            return made
        if not isinstance(value, WritableArray):
            return make(value, *arguments, **options)
        same = is_view or options.get("copy", True) is not True
        if dtype is not None and numpy_dtype(dtype) != numpy_dtype(value.dtype):
            return value.astype(dtype)
        return value if same else value.copy()

    return copy


def _filled(function: Callable[..., Any], value: float) -> Callable[..., Any]:
    """`np.zeros` and its kin, whose shape may be known only when the program runs."""
    # What `np.empty` holds is no more than what happens to be in memory.
    make = _makes_array(np.zeros if function is np.empty else function)

    def filled(shape: Any, dtype: Any = float, *arguments: Any, **options: Any) -> Any:
        if ctx.builder is None:
            return function(shape, dtype, *arguments, **options)
        if is_staged(shape):
            return _of_staged_shape(shape, value, dtype)
        if not stages_arrays():
            return function(shape, dtype, *arguments, **options)
        return make(shape, numpy_dtype(dtype), *arguments, **options)

    return filled


def _fulls() -> Callable[..., Any]:
    """`np.full`, whose value may be one of the program, too."""
    make = _makes_array(np.full)

    def full(shape: Any, fill_value: Any, dtype: Any = None, *arguments: Any, **options: Any) -> Any:
        if ctx.builder is None:
            return np.full(shape, fill_value, dtype, *arguments, **options)
        if is_staged(shape) or (stages_arrays() and is_staged(fill_value)):
            return _of_staged_shape(shape, fill_value, _dtype_of(fill_value) if dtype is None else dtype)
        return make(shape, fill_value, dtype, *arguments, **options)

    return full


def _dtype_of(value: Any) -> Any:
    return convert_to_tensor(value).dtype if symbolic(value) is not None else np.asarray(value).dtype


def _of_staged_shape(shape: Any, value: Any, dtype: Any) -> StagedArray:
    sizes = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    number = convert_to_tensor(value) if symbolic(value) is not None else convert_to_tensor(np.asarray(value))
    return StagedArray(fill(sizes, cast(number, dtypes.as_dtype(numpy_dtype(dtype)))))


def _like(function: Callable[..., Any], fresh: Callable[..., Any]) -> Callable[..., Any]:
    """`np.zeros_like` and its kin."""
    make = _makes_array(function)

    def like(value: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(value, WritableArray):
            return make(value, *arguments, **options)
        given = arguments[1:] if function is np.full_like else arguments
        dtype = given[0] if given else options.get("dtype")
        dtype = value.dtype if dtype is None else dtype
        values = arguments[:1] if function is np.full_like else ()
        return fresh(value.shape, *values, dtype=numpy_dtype(dtype))

    return like


def _copy_of_array(owner: np.ndarray, *arguments: Any, **options: Any) -> Any:
    """``a.copy()`` of an array of NumPy's."""
    made = owner.copy(*arguments, **options)
    return as_array(made) if ctx.builder is not None and stages_arrays() else made


def install() -> None:
    """Puts these in the place of NumPy's functions, after other overloads of the same functions."""
    OVERLOADS.update({each: _copies(each) for each in (np.array, np.asarray, np.asanyarray, np.copy)})
    OVERLOADS.update({np.full: _fulls(), np.ndarray.copy: _copy_of_array})
    filled: tuple[tuple[Any, int], ...] = ((np.zeros, 0), (np.ones, 1), (np.empty, 0))
    for function, value in filled:
        OVERLOADS[function] = _filled(function, value)
    for function, fresh in (
        (np.zeros_like, np.zeros), (np.ones_like, np.ones), (np.empty_like, np.zeros), (np.full_like, np.full),
    ):  # fmt: skip
        OVERLOADS[function] = _like(function, OVERLOADS[fresh])
    for function in (
        np.arange, np.linspace, np.eye, np.identity, np.tile, np.repeat, np.concatenate, np.stack, np.vstack, np.hstack,
        np.dstack, np.column_stack, np.append,
    ):  # fmt: skip
        OVERLOADS[function] = _makes_array(function)
