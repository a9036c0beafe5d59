"""What a `StagedArray` holds, an array of NumPy's or a tensor: elements read and replaced at a key, by NumPy's rules.

And values as the tensors that are stored for them.

Python knows the elements of an array of NumPy's. With keys and values that it knows too, NumPy does the work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.ops.arrays.assignment import sliced_update
from runtime.ops.arrays.broadcasting import broadcast_to
from runtime.ops.arrays.creation import range as range_of
from runtime.ops.arrays.joining import concat, stack
from runtime.ops.arrays.shape_ops import reshape, shape, size
from runtime.ops.arrays.slicing import getitem
from runtime.ops.convert import convert_to_tensor, is_tensor_like
from runtime.ops.dispatch import call
from runtime.ops.elementwise.compare import where
from runtime.ops.elementwise.elementary import cast
from runtime.ops.host_array import HostArray
from runtime.ops.staged_number import StagedNumber
from runtime.tensor import EagerTensor, Tensor

Contents = Any  # an array of NumPy's, or a tensor
# What stands for an integer in the pattern of a key.
INTEGER = "integer"


# --- keys ------------------------------------------------------------------------------------------------------------


def normal_key(key: Any) -> tuple[Any, ...]:
    """A key as a tuple of parts that are known to be, or aren't, Python's or NumPy's."""
    return tuple([key_part(part) for part in (key if isinstance(key, tuple) else (key,))])


def key_part(part: Any) -> Any:
    """A part of a key: an int, slice, None or ellipsis, an array of NumPy's, or a tensor of the program."""
    if part is None or part is Ellipsis or type(part) in (int, bool):
        return part
    if isinstance(part, slice):
        return slice(*[None if each is None else key_part(each) for each in (part.start, part.stop, part.step)])
    if isinstance(part, list):
        return np.asarray(part) if known_value(part) is not None else as_tensor(part)
    known = known_value(part)
    if known is None:
        return as_tensor(part)
    return int(known) if np.ndim(known) == 0 and np.asarray(known).dtype.kind in "iu" else np.asarray(known)


def is_integer(part: Any) -> bool:
    """Whether a part of a key is one index."""
    return type(part) is int or (isinstance(part, Tensor) and part._shape == () and part.dtype.is_integer)


def is_basic(part: Any) -> bool:
    """Whether NumPy gives a view for a part of a key."""
    return part is None or part is Ellipsis or isinstance(part, slice) or is_integer(part)


def pattern_of(part: Any) -> Any:
    """A part of a key without its integers."""
    if isinstance(part, slice):
        return tuple([None if each is None else INTEGER for each in (part.start, part.stop, part.step)])
    return INTEGER if is_integer(part) else part


def parts_of(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The integers in a key."""
    found: list[Any] = []
    for part in key:
        bounds = (part.start, part.stop, part.step) if isinstance(part, slice) else (part,)
        found += [each for each in bounds if each is not None and each is not Ellipsis]
    return tuple(found)


def nones(values: Sequence[Any]) -> list[Any]:
    """For each value None if it is None, and something else if not: tensors can't be looked for in a list."""
    return [None if each is None else True for each in values]


def is_known_key(key: tuple[Any, ...]) -> bool:
    """Whether Python knows all of a key."""
    return not any(isinstance(part, Tensor) for part in (*key, *parts_of(key)))


def read(contents: Contents, key: tuple[Any, ...]) -> Contents:
    """The elements at a key."""
    if isinstance(contents, np.ndarray) and is_known_key(key):
        return contents[key]
    return getitem(convert_to_tensor(contents), key[0] if len(key) == 1 else key)


def written(contents: Contents, key: tuple[Any, ...], value: Any) -> Contents:
    """The contents with other elements at a key."""
    known = known_value(value)
    if isinstance(contents, np.ndarray) and is_known_key(key) and known is not None:
        made = contents.copy()
        made[key] = known
        return made
    x = convert_to_tensor(contents)
    new = cast_as_array(value, x.dtype)
    if all(map(is_basic, key)):
        return sliced_update(x, key, new)
    if len(key) == 1 and new._shape == ():
        mask = convert_to_tensor(key[0])
        if mask.dtype.is_bool:
            more = len(x._shape or ()) - len(mask._shape or ())
            return where(getitem(mask, (..., *[None] * more)) if more else mask, new, x)
    if len(key) == 1 and not convert_to_tensor(key[0]).dtype.is_bool:
        return _with_rows(x, convert_to_tensor(key[0]), new)
    places = places_of(x, key)
    values = call("broadcast_like", new, places)
    made = call("tensor_scatter_nd_update", flat(x), reshape(places, [-1, 1]), flat(values))
    return reshape(made, shape(x))


def _with_rows(x: Tensor, indices: Tensor, rows: Tensor) -> Tensor:
    """x with others in the place of its rows at some indices."""
    indices = where(indices < 0, indices + cast(call("dim", x, axis=0), indices.dtype), indices)
    like = getitem(call("zeros_like", x), 0)
    sizes = concat([shape(indices), shape(like)], 0)
    return call("tensor_scatter_nd_update", x, getitem(indices, (..., None)), broadcast_to(rows, sizes))


def places_of(x: Tensor, key: tuple[Any, ...]) -> Tensor:
    """Where in the order of `ravel` the elements at a key are."""
    sizes = x._shape or (None,)
    if None in sizes:
        every = reshape(range_of(size(x)), shape(x))
    else:  # a constant, which no loop makes anew
        every = convert_to_tensor(np.arange(math.prod(sizes), dtype=np.int32).reshape(sizes))  # type: ignore[arg-type]
    return getitem(every, key[0] if len(key) == 1 else key)


def flat(x: Any) -> Tensor:
    """A tensor in one dimension."""
    return reshape(x, [-1])


# --- values ----------------------------------------------------------------------------------------------------------


def numpy_dtype(dtype: Any) -> np.dtype:
    """A dtype as NumPy's."""
    return np.dtype(getattr(dtype, "np", dtype))


def known_value(value: Any) -> Any:
    """A value of NumPy's or Python's with what Python knows; None if it is known only when the program runs."""
    if hasattr(type(value), "contents"):
        contents = value.contents
        if not isinstance(contents, np.ndarray):
            return None
        contents = contents.view()
        contents.flags.writeable = False  # other arrays may have them too
        return contents
    if isinstance(value, (list, tuple)):
        found = [known_value(each) for each in value]
        return None if None in nones(found) else type(value)(found)
    if isinstance(value, EagerTensor):
        return value._array
    if isinstance(value, Tensor) or is_tensor_like(value):
        tensor = as_tensor(value)
        return tensor._array if isinstance(tensor, EagerTensor) else None
    return value


def as_tensor(value: Any) -> Any:
    """A number, array or list of the program as a tensor; anything else as it is."""
    if isinstance(value, (HostArray, StagedNumber)):
        return value.tensor
    if isinstance(value, (list, tuple)) and any(known_value(each) is None for each in value):
        return stack(alike(list(map(_row, value))))
    return convert_to_tensor(value) if is_tensor_like(value) else value


def _row(value: Any) -> Any:
    made = as_tensor(value) if isinstance(value, (list, tuple)) else value
    return HostArray(made) if made is not value and isinstance(made, Tensor) else made


def has_own_dtype(value: Any) -> bool:
    """Whether NumPy's arrays take the dtype of a value: a tensor or a variable."""
    return is_tensor_like(value) and not isinstance(value, (HostArray, StagedNumber))


def cast_as_array(value: Any, dtype: Any) -> Tensor:
    """A value as a tensor of a dtype, by NumPy's rules for assignments: all numbers become those of the array."""
    wanted = dtypes.as_dtype(dtype)
    known = known_value(value)
    if known is not None:
        return convert_to_tensor(np.asarray(known).astype(wanted.np))
    return cast(convert_to_tensor(as_tensor(value)), wanted)


def _numpy_operand(value: Any) -> Any:
    """What NumPy's promotion looks at: Python's numbers give way."""
    if type(value) in (bool, int, float, complex):
        return value
    if isinstance(value, StagedNumber):
        return value.kind(0)
    if hasattr(type(value), "contents") and isinstance(value.contents, np.ndarray):
        return value.contents.dtype
    return value.tensor.dtype.np if isinstance(value, HostArray) else np.asarray(value).dtype


def alike(values: Sequence[Any], is_division: bool = False) -> list[Any]:
    """Operands as tensors of one dtype: that of a tensor among them, else NumPy's."""
    deciding = [convert_to_tensor(each).dtype for each in values if has_own_dtype(each)]
    if deciding:
        return [each if has_own_dtype(each) else _beside(each, deciding[0]) for each in values]
    dtype = np.result_type(*map(_numpy_operand, values))
    if is_division and dtype.kind in "biu":
        dtype = np.dtype(np.float64)
    return [cast_as_array(each, dtypes.as_dtype(dtype)) for each in values]


def _beside(value: Any, dtype: Any) -> Any:
    if not isinstance(value, HostArray):
        return value
    try:
        return value.__tf_tensor__(dtype)
    except TypeError:
        return value.tensor
