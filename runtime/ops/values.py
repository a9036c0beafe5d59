"""Python and NumPy values as arrays: the rules of `convert.py` for everything without a tensor in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.context import ctx
from runtime.dtypes import DType
from runtime.shapes import TensorShape

Converted = tuple[Any, DType]
_NARROW = tuple(dtype.np for dtype in (dtypes.bfloat16, *dtypes.STORED))
_INT32 = range(-(2**31), 2**31)
# Which Python scalars may become a tensor of a dtype whose kind is the key.
_ACCEPTS: dict[str, tuple[type, ...]] = {
    "f": (bool, int, float),
    "c": (int, float, complex),
    "i": (bool, int),
    "u": (bool, int),
    "b": (bool,),
    "O": (str, bytes),
}


def default_of(value: Any) -> DType:
    """The dtype of the tensor that a Python or staged number or string becomes by itself."""
    kind = type(value)
    if kind is bool:
        return dtypes.bool_
    if kind is float:
        return dtypes.float32
    if kind is int:
        return dtypes.int32 if value in _INT32 else dtypes.int64
    if kind is str:
        return dtypes.string
    return value.default


def common_default(*defaults: DType) -> DType:
    """The dtype of the tensor that several Python or staged numbers become together."""
    if dtypes.string in defaults:
        return dtypes.string
    floats = [each for each in defaults if each.is_floating]
    if floats:
        return max(floats, key=lambda each: each.size)
    if all(each.is_bool for each in defaults):
        return dtypes.bool_
    return dtypes.int64 if any(each.size == 8 for each in defaults) else dtypes.int32


def to_array(value: Any, wanted: DType | None) -> Converted:
    """The array (NumPy scalar for rank 0) that a value without tensors in it stands for, and its dtype.

    Raises TypeError if a Python value doesn't fit `wanted`, ValueError for values that no tensor can hold.
    """
    kind = type(value)
    if kind is float:
        dtype = dtypes.float32 if wanted is None else wanted
        if dtype.kind in "fc":
            return quiet_cast(dtype, value), dtype
    elif kind is int:
        dtype = _int_dtype(value) if wanted is None else wanted
        if dtype.kind in "iufc":
            return _fit(value, dtype), dtype
    elif kind is complex:
        dtype = dtypes.complex128 if wanted is None else wanted
        if dtype.kind == "c":
            return quiet_cast(dtype, value), dtype
    elif kind is bool:
        dtype = dtypes.bool_ if wanted is None else wanted
        if dtype.kind not in "Oc":
            return dtype._np.type(value), dtype
    elif kind is str or kind is bytes:
        if wanted is None or wanted is dtypes.string:
            return _string_scalar(value), dtypes.string
    elif isinstance(value, (np.ndarray, np.generic)):
        return _convert_array(value, wanted)
    elif isinstance(value, (list, tuple)):
        return _convert_sequence(value, wanted)
    else:
        return _convert_other(value, wanted)
    raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {wanted.label if wanted else 'unknown'}")


def quiet_cast(dtype: DType, value: Any) -> Any:
    """`value` as a NumPy scalar; a float too large for the dtype is infinity, without NumPy's warning."""
    try:
        return ctx.quiet(dtype._np.type, value)
    except RuntimeError:  # inside a kernel already, where warnings are off
        return dtype._np.type(value)


def _int_dtype(value: int) -> DType:
    if value in _INT32:
        return dtypes.int32
    if -(2**63) <= value < 2**63:
        return dtypes.int64
    raise ValueError("Can't convert Python sequence with out-of-range integer to Tensor.")


def _fit(value: int, dtype: DType) -> Any:
    try:
        return dtype._np.type(value)
    except OverflowError:
        if dtype.kind in "fc":
            return dtype._np.type(np.inf if value > 0 else -np.inf)
        raise ValueError(
            f"Cannot convert {value} to a tensor of dtype {dtype.name}: it doesn't fit "
            f"({dtype.name} holds {dtype.min} to {dtype.max})."
        ) from None


def _string_scalar(value: str | bytes) -> np.ndarray:
    array = np.empty((), object)
    array[()] = value.encode() if isinstance(value, str) else value
    return array


def _unsupported(value: Any) -> ValueError:
    return ValueError(f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a Tensor.")


def _convert_array(array: Any, wanted: DType | None) -> Converted:
    kind = array.dtype.kind
    if kind in "SUO":
        if wanted is not None and wanted is not dtypes.string:
            raise TypeError(f"Cannot convert {array!r} to EagerTensor of dtype {wanted.label}")
        return _encode_strings(array), dtypes.string
    if kind not in "biufc" and array.dtype not in _NARROW:
        raise _unsupported(array)
    own = dtypes.as_dtype(array.dtype)
    if wanted is None or wanted is own:
        # A copy: the caller may write to its array later. NumPy scalars are immutable.
        if isinstance(array, np.ndarray):
            array = np.array(array, own._np, order="C") if array.ndim else array.astype(own._np)[()]
        return array, own
    if wanted is dtypes.string:
        raise TypeError(f"Cannot convert {array!r} to EagerTensor of dtype string")
    if kind == "c" and wanted.kind != "c":
        raise TypeError(f"Cannot convert {array!r} to EagerTensor of dtype {wanted.label}")
    with np.errstate(all="ignore"):
        array = array.astype(wanted._np, order="C")
    return array if array.ndim else array[()], wanted


def returned_array(value: Any, dtype: DType) -> np.ndarray:
    """What a Python function returned for a tensor of a dtype. Text becomes bytes; other objects in strings stay."""
    if dtype is not dtypes.string:
        return np.asarray(value, dtype._np)
    array = np.asarray(value, None if isinstance(value, (np.ndarray, np.generic)) else object)
    if array.dtype.kind in "SU" or any(isinstance(item, str) for item in array.flat):
        return _encode_strings(array)
    return array


def _encode_strings(array: Any) -> np.ndarray:
    result = np.empty(array.shape, object)
    for index, item in np.ndenumerate(np.asarray(array)):
        if isinstance(item, str):
            item = item.encode()
        if not isinstance(item, bytes):
            raise _unsupported(item)
        # Plain bytes: NumPy hands out np.bytes_, whose repr differs.
        result[index] = bytes(item)
    return result


def _convert_sequence(value: Sequence[Any], wanted: DType | None) -> Converted:
    kinds: set[type] = set()
    collect_types(value, kinds)
    if len(kinds) == 1 and not kinds.isdisjoint(_PYTHON_NUMBERS):
        return _convert_plain(value, kinds, wanted)
    text = {k for k in kinds if issubclass(k, (str, bytes))}
    if text and text != kinds:
        raise ValueError("Can't convert Python sequence with mixed types to Tensor.")
    if text:
        if wanted is not None and wanted is not dtypes.string:
            raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {wanted.label}")
        return _encode_strings(_rectangular(value, object)), dtypes.string
    numpy_like = [k for k in kinds if issubclass(k, (np.generic, np.ndarray)) or hasattr(k, "__array__")]
    plain = [
        k
        for k in kinds
        if k in (bool, int, float, complex) or (issubclass(k, (int, float, complex)) and k not in numpy_like)
    ]
    if len(numpy_like) + len(plain) < len(kinds):
        odd = next(k for k in kinds if k not in numpy_like and k not in plain)
        if odd is not type(None) and len(kinds) == 1:
            raise _unsupported(value)
        raise ValueError("Can't convert Python sequence with mixed types to Tensor.")
    if numpy_like:
        array = _rectangular(value, None)
        return _convert_array(array, _dtype_beside(value, array) if wanted is None else wanted)
    return _convert_plain(value, set(plain), wanted)


def _dtype_beside(value: Sequence[Any], array: np.ndarray) -> DType | None:
    """The dtype of a sequence that holds NumPy values: in TensorFlow they count as Python numbers do.

    Integers become int32 (int64 where they don't fit), floats float32, save that a first float64 or float16 decides.
    """
    first = _first_leaf(value)
    leading = np.asarray(first).dtype
    if leading.kind == "b" and array.dtype.kind in "iufc":
        raise ValueError("Can't convert Python sequence with mixed types to Tensor.")
    if array.dtype.kind == "f":
        own = type(first) is not float and leading in (np.float64, np.float16)
        return dtypes.as_dtype(leading) if own else dtypes.float32
    if array.dtype.kind in "iu":
        small = array.size == 0 or (int(array.min()) in _INT32 and int(array.max()) in _INT32)
        return dtypes.int32 if small else (dtypes.int64 if array.dtype.kind == "i" else None)
    return dtypes.complex128 if array.dtype.kind == "c" else None


def _convert_plain(value: Sequence[Any], kinds: set[type], wanted: DType | None) -> Converted:
    """Nested sequences of Python's own bool, int and float."""
    if bool in kinds and kinds != {bool} and wanted is None and isinstance(_first_leaf(value), bool):
        raise ValueError("Can't convert Python sequence with mixed types to Tensor.")
    if wanted is not None:
        for kind in kinds:
            if not issubclass(kind, _ACCEPTS[wanted.kind]) or (wanted.kind == "b" and kind is not bool):
                leaf = _first_leaf(value, kind)
                raise TypeError(f"Cannot convert {leaf!r} to EagerTensor of dtype {wanted.label}")
        dtype = wanted
    elif any(issubclass(k, complex) for k in kinds):
        dtype = dtypes.complex128
    elif not kinds or float in kinds or any(issubclass(k, float) for k in kinds):
        dtype = dtypes.float32
    elif kinds == {bool}:
        dtype = dtypes.bool_
    else:
        dtype = dtypes.int32
    try:
        return ctx.quiet(_rectangular, value, dtype._np), dtype
    except RuntimeError:  # inside a kernel already, where warnings are off
        return _rectangular(value, dtype._np), dtype
    except OverflowError:
        pass
    if wanted is None and dtype is dtypes.int32:
        try:
            return _rectangular(value, np.dtype(np.int64)), dtypes.int64
        except OverflowError:
            raise ValueError("Can't convert Python sequence with out-of-range integer to Tensor.") from None
    raise ValueError(
        f"Cannot convert {value!r} to a tensor of dtype {dtype.name}: an element doesn't fit "
        f"({dtype.name} holds {dtype.min} to {dtype.max})."
    )


_PYTHON_NUMBERS = frozenset({bool, int, float, complex})


def _rectangular(value: Any, dtype: Any) -> np.ndarray:
    try:
        array = np.array(value, dtype)
    except ValueError as error:
        if "inhomogeneous" in str(error) or "sequence" in str(error):
            raise _uneven(value) from None
        raise
    if array.dtype.kind == "O" and any(isinstance(item, (list, tuple)) for item in array.flat):
        raise _uneven(value)
    return array


def _uneven(value: Any) -> ValueError:
    """The error for a list whose items differ in length; it says which do."""
    sizes: dict[int | None, int] = {}
    for index, item in enumerate(value if isinstance(value, (list, tuple)) else ()):
        sizes.setdefault(len(item) if isinstance(item, (list, tuple)) else None, index)
    said = " and ".join(
        [f"item {index} is {'no list' if size is None else f'of length {size}'}" for size, index in sizes.items()][:2]
    )
    return ValueError(
        "Can't convert non-rectangular Python sequence to Tensor."
        + (f" {said[0].upper()}{said[1:]}." if len(sizes) > 1 else "")
        + " Pad its rows to one length, or use ag.ragged.constant(x), whose rows may differ."
    )


def collect_types(value: Sequence[Any], found: set[type]) -> None:
    """Adds the types of the leaves of a nested sequence."""
    kinds = set(map(type, value))
    nested = tuple(k for k in kinds if issubclass(k, (list, tuple)))
    found.update(kinds.difference(nested))
    if nested:
        for item in value:
            if isinstance(item, nested):
                collect_types(item, found)


def _first_leaf(value: Any, kind: type | None = None) -> Any:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, (list, tuple)):
            stack.extend(reversed(item))
        elif kind is None or type(item) is kind:
            return item
    return None


def _convert_other(value: Any, wanted: DType | None) -> Converted:
    if isinstance(value, TensorShape):
        if not value.is_fully_defined():
            raise ValueError(f"Cannot convert a partially known TensorShape {value} to a Tensor.")
        dtype = wanted or dtypes.int32
        return np.array(value.as_list(), dtype._np), dtype
    if isinstance(value, (bool, int, float, complex, str, bytes)):  # subclasses, such as IntEnum
        base: Any = next(t for t in (bool, int, float, complex, str, bytes) if isinstance(value, t))
        return to_array(base(value), wanted)
    if isinstance(value, range):
        return _convert_sequence(list(value), wanted)
    if hasattr(value, "__array__"):
        return _convert_array(np.asarray(value), wanted)
    raise _unsupported(value)
