"""NumPy arrays whose elements converted code sets to tensors, at tensors, or in branches and loops on tensors.

    best = np.zeros(5)
    best[c] = 3.0               # `c` is a tensor

A function is traced with arrays of NumPy's, until it comes to such a write. Then it is traced once more, and what NumPy
makes in it are arrays of the program (`StagedArray`). So nothing changes for functions without such writes. An array
from outside of the function stays NumPy's, and can't be written to in this way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from autograph.errors import StagingError, StagingTypeError, user_location
from autograph.operators.builtins import OVERLOADS
from autograph.operators.symbolic import symbolic
from runtime import dtypes
from runtime.context import ctx
from runtime.ops.arrays.creation import fill
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.elementary import cast
from runtime.ops.host_array import HostArray
from runtime.staged_array import ArrayView, StagedArray, WritableArray, array_of, as_array, numpy_dtype
from runtime.tensor import SymbolicTensor


class NeedsStagedArrays(BaseException):
    """The trace writes to an array of NumPy's what exists only in the program: it is void, and starts again with arrays
    of the program. No handler of the user's is to catch it."""


# The root builders of traces with arrays of the program.
_staging: WeakSet[Any] = WeakSet()
# By root builder and id the arrays of NumPy's of which the program has chosen one, and that may be another.
_chosen: WeakKeyDictionary[Any, dict[int, np.ndarray]] = WeakKeyDictionary()
# By root builder and id the tensors that functions of NumPy's have made in place of arrays.
_made: WeakKeyDictionary[Any, dict[int, SymbolicTensor]] = WeakKeyDictionary()


def stage_arrays(builder: Any) -> None:
    """Lets what NumPy makes in the trace of a builder be arrays of the program."""
    _staging.add(builder)


def stages_arrays() -> bool:
    """Whether what NumPy makes in the current trace are arrays of the program."""
    return _root() in _staging


def _root() -> Any:
    root = ctx.builder
    while root.parent is not None:
        root = root.parent
    return root


def note_chosen(*values: Any) -> None:
    """Notes values with equal contents of which the program uses one: a write to one isn't one to the other."""
    arrays = {id(each): each for each in values if type(each) is np.ndarray}
    if len(arrays) > 1:
        _chosen.setdefault(_root(), {}).update(arrays)


def made_by_numpy(value: Any) -> Any:
    """What NumPy gives in a trace, as an array of the program if the trace has such."""
    return as_array(value.tensor) if type(value) is HostArray and stages_arrays() else value


# --- writes ----------------------------------------------------------------------------------------------------------


def is_array(owner: Any) -> bool:
    """Whether an object is an array of NumPy's, or a tensor that stands for one, whose elements the program may set."""
    kind = type(owner)
    if kind is SymbolicTensor:
        return id(owner) in _made.get(_root(), ())
    return kind is np.ndarray or (kind is HostArray and owner.tensor._shape != ())


class ArrayItems:
    """The elements of an array of NumPy's in a trace."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __getitem__(self, key: Any) -> Any:
        return element(self.owner, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        owner = self.owner
        is_plain = type(owner) is np.ndarray and (owner.flags.writeable or ctx.builder.parent is None)
        is_plain = is_plain and id(owner) not in _chosen.get(_root(), ())
        if is_plain and (owner.dtype.kind == "O" or not (_is_staged(key) or _is_staged(value))):
            owner[key] = value
        elif stages_arrays():
            raise _refused()
        else:
            raise NeedsStagedArrays


def element(owner: Any, key: Any) -> Any:
    """``owner[key]`` of an array of NumPy's, at tensors of the program too."""
    if type(owner) is not np.ndarray or not _is_staged(key):
        return owner[key]
    if not stages_arrays():
        raise NeedsStagedArrays  # what it selects may be written to
    return HostArray(convert_to_tensor(owner))[key]


def _is_staged(value: Any) -> bool:
    """Whether a value, or a part of it, is known only when the program runs."""
    if isinstance(value, (tuple, list)):
        return any(map(_is_staged, value))
    if isinstance(value, slice):
        return _is_staged((value.start, value.stop, value.step))
    return symbolic(value) is not None


def _refused() -> StagingError:
    return StagingError(
        "a NumPy array is written to at an index that is a tensor, or the value is a tensor, or a branch or loop on "
        "tensors does it",
        location=user_location(),
        cause="what it holds then is known only when the program runs, and the array was made outside of the function, "
        "or by code that isn't converted, and stays one of Python's",
        fix="make it in the function: `a = np.array(a)` copies it there, np.zeros and np.full make new ones; for state "
        "that remains after the call, use an ag.Variable: `v[i].assign(x)`",
    )


def view_error(label: str, *values: Any) -> StagingTypeError | None:
    """The error for a variable that may be a view of an array or something else; None if neither is a view."""
    if not any(type(each) is ArrayView for each in values):
        return None
    return StagingTypeError(
        f"{label} is a view of an array, or something else, depending on a tensor",
        location=user_location(),
        cause="a view (what an index, a slice or reshape gives) reads and sets the elements of its array; which array, "
        "and how, must be known while the function is traced: only the numbers in its index may depend on tensors",
        fix="take a copy: `row = a[i].copy()`",
    )


# --- arrays that are made --------------------------------------------------------------------------------------------


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
            _made.setdefault(_root(), {})[id(made)] = made
        return made

    return make


def _copies(function: Callable[..., Any]) -> Callable[..., Any]:
    """`np.array`, `np.asarray` and `np.copy`, which take an array of the program too."""
    make = _makes_array(function)
    is_view = function in (np.asarray, np.asanyarray)

    def copy(value: Any, *arguments: Any, **options: Any) -> Any:
        if ctx.builder is not None and stages_arrays() and isinstance(value, (list, tuple)) and _is_staged(value):
            value, options["copy"] = array_of(value), None
        if not isinstance(value, WritableArray):
            return make(value, *arguments, **options)
        dtype = arguments[0] if arguments else options.get("dtype")
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
        if _is_staged(shape):
            return _of_staged_shape(shape, value, dtype)
        if not stages_arrays():
            return function(shape, dtype, *arguments, **options)
        return make(shape, numpy_dtype(dtype), *arguments, **options)

    return filled


def _full(shape: Any, fill_value: Any, dtype: Any = None, *arguments: Any, **options: Any) -> Any:
    """`np.full`"""
    if ctx.builder is None or not _is_staged(shape):
        if ctx.builder is not None and stages_arrays() and _is_staged(fill_value):
            made = StagedArray(np.zeros(shape, numpy_dtype(_dtype_of(fill_value) if dtype is None else dtype)))
            made[...] = fill_value
            return made
        return _plain_full(shape, fill_value, dtype, *arguments, **options)
    return _of_staged_shape(shape, fill_value, _dtype_of(fill_value) if dtype is None else dtype)


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


_plain_full = _makes_array(np.full)
OVERLOADS.update({each: _copies(each) for each in (np.array, np.asarray, np.asanyarray, np.copy)})
OVERLOADS.update({np.full: _full, np.ndarray.copy: _copy_of_array})
_FILLED: tuple[tuple[Any, int], ...] = ((np.zeros, 0), (np.ones, 1), (np.empty, 0))
for _function, _value in _FILLED:
    OVERLOADS[_function] = _filled(_function, _value)
for _function, _fresh in (
    (np.zeros_like, np.zeros), (np.ones_like, np.ones), (np.empty_like, np.zeros), (np.full_like, np.full),
):  # fmt: skip
    OVERLOADS[_function] = _like(_function, OVERLOADS[_fresh])
for _function in (np.arange, np.linspace, np.eye, np.identity, np.tile, np.repeat, np.concatenate, np.stack):
    OVERLOADS[_function] = _makes_array(_function)
