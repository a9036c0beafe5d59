"""Turning Python and NumPy values into tensors, by TensorFlow 2's rules.

    Python float -> float32      int -> int32 (int64 where it doesn't fit)      bool -> bool      str, bytes -> string
    NumPy arrays and scalars keep their dtype; lists and tuples nest, and may hold tensors (they are packed)
    as an operand beside a tensor, a Python or NumPy value takes the tensor's dtype

While a function is traced the result is a constant of its graph. Tensors pass through unchanged.
Types of one's own convert by a method `__tf_tensor__(self, dtype=None, name=None)`, as variables do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.context import ctx
from runtime.dtypes import DType, DTypeLike
from runtime.ops.dispatch import call
from runtime.ops.table import OpDef
from runtime.shapes import TensorShape, as_shape
from runtime.tensor import EagerTensor, SymbolicTensor, Tensor

_INT32 = range(-(2**31), 2**31)
# Which Python scalars may become a tensor of a dtype whose kind is the key.
_ACCEPTS: dict[str, tuple[type, ...]] = {
    "f": (bool, int, float),
    "i": (bool, int),
    "u": (bool, int),
    "b": (bool,),
    "O": (str, bytes),
}


def convert_to_tensor(
    value: Any, dtype: DTypeLike = None, dtype_hint: DTypeLike = None, name: str | None = None
) -> Tensor:
    """The tensor that `value` stands for, of `dtype` if given, else of `dtype_hint` if it can be.

    Raises ValueError for a tensor of another dtype and for values that no tensor can hold, TypeError where a Python
    value doesn't fit the dtype (`1.5` as int32).
    """
    if isinstance(value, Tensor):
        if dtype is not None and value.dtype is not dtype and value.dtype is not dtypes.as_dtype(dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {dtypes.as_dtype(dtype).name} for Tensor with dtype "
                f"{value.dtype.name}: {value!r}"
            )
        return value
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    hook = getattr(type(value), "__tf_tensor__", None)
    if hook is not None:
        return hook(value, wanted)
    if wanted is None and dtype_hint is not None:
        try:
            return _convert(value, dtypes.as_dtype(dtype_hint))
        except (TypeError, ValueError):
            pass  # a hint may fail; the value's own dtype is next
    return _convert(value, wanted)


def constant(value: Any, dtype: DTypeLike = None, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor of `value`, which must hold no symbolic tensors; with `shape`, reshaped to it or filled with one value.

    Raises TypeError when the number of elements doesn't match `shape`.
    """
    if isinstance(value, EagerTensor) and dtype is not None and value.dtype is not dtypes.as_dtype(dtype):
        value = value._array
    tensor = convert_to_tensor(value, dtype)
    if shape is None:
        return tensor
    static = as_shape(shape)
    array = static_value(tensor)
    if array is None:
        raise TypeError(f"ag.constant needs a value, got the symbolic tensor {value!r}; use ag.reshape or ag.fill.")
    if static is None or None in static:
        raise TypeError(f"ag.constant needs a known shape, got {shape!r}")
    size = int(np.prod(static, dtype=np.int64))  # type: ignore[arg-type]
    if array.size == size:
        return _wrap(np.reshape(array, static), tensor.dtype)
    if array.size == 1:
        return _wrap(np.full(static, np.reshape(array, ())[()], array.dtype), tensor.dtype)
    raise TypeError(
        f"Eager execution of tf.constant with unsupported shape. Tensor {array} (converted from {value!r}) has "
        f"{array.size} elements, but got `shape` {static} with {size} elements)."
    )


def _wrap(array: Any, dtype: DType) -> Tensor:
    builder = ctx.builder
    return EagerTensor(array, dtype) if builder is None else builder.constant(array)


def _convert(value: Any, wanted: DType | None) -> Tensor:
    kind = type(value)
    if kind is float:
        dtype = dtypes.float32 if wanted is None else wanted
        if dtype.kind == "f":
            return _wrap(_quiet_cast(dtype, value), dtype)
    elif kind is int:
        dtype = _int_dtype(value) if wanted is None else wanted
        if dtype.kind in "iuf":
            return _wrap(_fit(value, dtype), dtype)
    elif kind is bool:
        dtype = dtypes.bool_ if wanted is None else wanted
        if dtype.kind != "O":
            return _wrap(dtype._np.type(value), dtype)
    elif kind is str or kind is bytes:
        if wanted is None or wanted is dtypes.string:
            return _wrap(_string_scalar(value), dtypes.string)
    elif isinstance(value, (np.ndarray, np.generic)):
        return _convert_array(value, wanted)
    elif isinstance(value, (list, tuple)):
        return _convert_sequence(value, wanted)
    else:
        return _convert_other(value, wanted)
    raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {wanted.label if wanted else 'unknown'}")


def quick_scalar(value: float | int, dtype: DType) -> EagerTensor | None:
    """The eager tensor of a Python number in `dtype`, or None where that takes the general way (and its errors)."""
    if value.__class__ is float:
        return EagerTensor(_quiet_cast(dtype, value), dtype) if dtype.kind == "f" else None
    try:
        return EagerTensor(dtype._np.type(value), dtype)
    except OverflowError:
        return None


def _quiet_cast(dtype: DType, value: Any) -> Any:
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
        if dtype.kind == "f":
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


def _convert_array(array: Any, wanted: DType | None) -> Tensor:
    kind = array.dtype.kind
    if kind in "SUO":
        if wanted is not None and wanted is not dtypes.string:
            raise TypeError(f"Cannot convert {array!r} to EagerTensor of dtype {wanted.label}")
        return _wrap(_encode_strings(array), dtypes.string)
    if kind not in "biuf":
        raise _unsupported(array)
    own = dtypes.as_dtype(array.dtype)
    if wanted is None or wanted is own:
        # A copy: the caller may write to its array later. NumPy scalars are immutable.
        if isinstance(array, np.ndarray):
            array = np.array(array, own._np, order="C") if array.ndim else array.astype(own._np)[()]
        return _wrap(array, own)
    if wanted is dtypes.string:
        raise TypeError(f"Cannot convert {array!r} to EagerTensor of dtype string")
    with np.errstate(all="ignore"):
        array = array.astype(wanted._np, order="C")
    return _wrap(array if array.ndim else array[()], wanted)


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


def _convert_sequence(value: Sequence[Any], wanted: DType | None) -> Tensor:
    kinds: set[type] = set()
    _collect_types(value, kinds)
    if any(issubclass(k, Tensor) or hasattr(k, "__tf_tensor__") for k in kinds):
        return _pack(value, wanted)
    text = {k for k in kinds if issubclass(k, (str, bytes))}
    if text and text != kinds:
        raise ValueError("Can't convert Python sequence with mixed types to Tensor.")
    if text:
        if wanted is not None and wanted is not dtypes.string:
            raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {wanted.label}")
        return _wrap(_encode_strings(_rectangular(value, object)), dtypes.string)
    numpy_like = [k for k in kinds if issubclass(k, (np.generic, np.ndarray)) or hasattr(k, "__array__")]
    plain = [k for k in kinds if k in (bool, int, float) or (issubclass(k, (int, float)) and k not in numpy_like)]
    if len(numpy_like) + len(plain) < len(kinds):
        odd = next(k for k in kinds if k not in numpy_like and k not in plain)
        if odd is not type(None) and len(kinds) == 1:
            raise _unsupported(value)
        raise ValueError("Can't convert Python sequence with mixed types to Tensor.")
    if numpy_like:
        return _convert_array(_rectangular(value, None), wanted)
    return _convert_plain(value, set(plain), wanted)


def _convert_plain(value: Sequence[Any], kinds: set[type], wanted: DType | None) -> Tensor:
    """Nested sequences of Python's own bool, int and float."""
    if bool in kinds and kinds != {bool} and wanted is None and isinstance(_first_leaf(value), bool):
        raise ValueError("Can't convert Python sequence with mixed types to Tensor.")
    if wanted is not None:
        for kind in kinds:
            if not issubclass(kind, _ACCEPTS[wanted.kind]) or (wanted.kind == "b" and kind is not bool):
                leaf = _first_leaf(value, kind)
                raise TypeError(f"Cannot convert {leaf!r} to EagerTensor of dtype {wanted.label}")
        dtype = wanted
    elif not kinds or float in kinds or any(issubclass(k, float) for k in kinds):
        dtype = dtypes.float32
    elif kinds == {bool}:
        dtype = dtypes.bool_
    else:
        dtype = dtypes.int32
    try:
        with np.errstate(over="ignore"):
            return _wrap(_rectangular(value, dtype._np), dtype)
    except OverflowError:
        pass
    if wanted is None and dtype is dtypes.int32:
        try:
            return _wrap(_rectangular(value, np.dtype(np.int64)), dtypes.int64)
        except OverflowError:
            raise ValueError("Can't convert Python sequence with out-of-range integer to Tensor.") from None
    raise ValueError(
        f"Cannot convert {value!r} to a tensor of dtype {dtype.name}: an element doesn't fit "
        f"({dtype.name} holds {dtype.min} to {dtype.max})."
    )


def _rectangular(value: Any, dtype: Any) -> np.ndarray:
    try:
        array = np.array(value, dtype)
    except ValueError as error:
        if "inhomogeneous" in str(error) or "sequence" in str(error):
            raise ValueError("Can't convert non-rectangular Python sequence to Tensor.") from None
        raise
    if array.dtype == object and any(isinstance(item, (list, tuple)) for item in array.flat):
        raise ValueError("Can't convert non-rectangular Python sequence to Tensor.")
    return array


def _collect_types(value: Sequence[Any], found: set[type]) -> None:
    """Adds the types of the leaves of a nested sequence."""
    kinds = set(map(type, value))
    nested = tuple(k for k in kinds if issubclass(k, (list, tuple)))
    found.update(kinds.difference(nested))
    if nested:
        for item in value:
            if isinstance(item, nested):
                _collect_types(item, found)


def _first_leaf(value: Any, kind: type | None = None) -> Any:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, (list, tuple)):
            stack.extend(reversed(item))
        elif kind is None or type(item) is kind:
            return item
    return None


def _pack(value: Sequence[Any], wanted: DType | None) -> Tensor:
    """Stacks a nested sequence with tensors in it; Python values take the dtype of the first tensor."""
    if wanted is None:
        stack: list[Any] = [value]
        while stack:
            item = stack.pop()
            if isinstance(item, (list, tuple)):
                stack.extend(reversed(item))
            elif isinstance(item, Tensor) or hasattr(item, "__tf_tensor__"):
                wanted = item.dtype
                break
    items = [convert_to_tensor(item, dtype_hint=wanted) for item in value]
    check_same_dtype("Pack", items)
    return call("stack", *items, axis=0)


def _convert_other(value: Any, wanted: DType | None) -> Tensor:
    if isinstance(value, TensorShape):
        if not value.is_fully_defined():
            raise ValueError(f"Cannot convert a partially known TensorShape {value} to a Tensor.")
        return _wrap(np.array(value.as_list(), (wanted or dtypes.int32)._np), wanted or dtypes.int32)
    if isinstance(value, (bool, int, float, str, bytes)):  # subclasses, such as IntEnum
        base: Any = next(t for t in (bool, int, float, str, bytes) if isinstance(value, t))
        return _convert(base(value), wanted)
    if isinstance(value, range):
        return _convert_sequence(list(value), wanted)
    if hasattr(value, "__array__"):
        return _convert_array(np.asarray(value), wanted)
    raise _unsupported(value)


# --- operands of an op ---------------------------------------------------------------------------------------------


def mismatch(label: str, index: int, expected: DType, found: DType) -> errors.DTypeError:
    """TensorFlow's error for tensors of different dtypes."""
    return errors.DTypeError(
        f"cannot compute {label} as input #{index}(zero-based) was expected to be a {expected.label} tensor but is a "
        f"{found.label} tensor [Op:{label}]",
        label,
    )


def check_same_dtype(label: str, tensors: Sequence[Tensor]) -> None:
    """Raises DTypeError when the tensors' dtypes differ."""
    for index, tensor in enumerate(tensors):
        if tensor.dtype is not tensors[0].dtype:
            raise mismatch(label, index, tensors[0].dtype, tensor.dtype)


def check_kind(op: OpDef, dtype: DType) -> None:
    """Raises DTypeError when the op doesn't take the dtype."""
    if dtype.kind not in op.kinds:
        if op.kinds == "b":
            raise mismatch(op.label, 0, dtypes.bool_, dtype)
        allowed = ", ".join(d.label for d in dtypes.ALL if d.kind in op.kinds)
        raise errors.DTypeError(
            f"Value for attr 'T' of {dtype.label} is not in the list of allowed values: {allowed} [Op:{op.label}]",
            op.name,
        )


def is_tensor_like(value: Any) -> bool:
    """Whether `value` has a dtype of its own as an operand: a tensor or a variable."""
    return isinstance(value, Tensor) or hasattr(type(value), "__tf_tensor__")


def operands(label: str, *values: Any) -> list[Tensor]:
    """The operands of an op that takes one dtype; Python and NumPy values take the dtype of the first tensor.

    Raises DTypeError where they can't, or where tensors differ.
    """
    anchor = None
    for value in values:
        if is_tensor_like(value):
            anchor = value.dtype
            break
    if anchor is None:
        first = convert_to_tensor(values[0])
        anchor = first.dtype
        result = [first, *[_beside(label, i + 1, v, anchor) for i, v in enumerate(values[1:])]]
    else:
        result = [_beside(label, i, v, anchor) for i, v in enumerate(values)]
    check_same_dtype(label, result)
    return result


def _beside(label: str, index: int, value: Any, dtype: DType) -> Tensor:
    if is_tensor_like(value):
        return convert_to_tensor(value)
    if dtype.kind in "iub" and isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind == "f":
        # TensorFlow would cut the fractions off here; a silent loss helps nobody.
        raise mismatch(label, index, dtype, dtypes.as_dtype(value.dtype))
    try:
        return convert_to_tensor(value, dtype)
    except TypeError as error:
        try:
            own = convert_to_tensor(value)
        except (TypeError, ValueError):
            raise error from None
        raise mismatch(label, index, dtype, own.dtype) from None


# --- values known while tracing ------------------------------------------------------------------------------------


def static_value(tensor: Any) -> Any:
    """The tensor's array when it is known now: of an eager tensor, or of a constant of the graph. Else None."""
    if isinstance(tensor, EagerTensor):
        return tensor._array
    if isinstance(tensor, SymbolicTensor):
        node = tensor.value.node
        if node is not None and node.op.name == "constant":
            return node.attrs["value"].array
    return None


def scalar_int(value: Any, what: str = "dimension") -> int | Tensor:
    """An int when known now, else a scalar int tensor. Raises TypeError for anything else."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{what} must be an integer, got {value!r}")
    if isinstance(value, (int, np.integer)):
        return int(value)
    if not is_tensor_like(value):
        if hasattr(value, "__index__"):
            return value.__index__()
        raise TypeError(f"{what} must be an integer or a scalar integer tensor, got {value!r} of type {type(value)}")
    tensor = convert_to_tensor(value)
    if tensor.dtype.kind not in "iu" or tensor._shape not in ((), None):
        raise TypeError(f"{what} must be a scalar integer tensor, got {tensor!r}")
    known = static_value(tensor)
    return tensor if known is None else int(known)


def int_list(value: Any, what: str = "shape") -> list[int | Tensor | None]:
    """The entries of a shape-like argument: ints where known now, scalar int tensors elsewhere, None as given.

    `value` may be an int, a sequence, a TensorShape, an array or an integer tensor of rank 0 or 1 and known length.
    """
    if isinstance(value, TensorShape):
        return list(value.as_list())
    if is_tensor_like(value):
        return _tensor_entries(convert_to_tensor(value), what)
    if isinstance(value, np.ndarray):
        return [int(v) for v in value.reshape(-1)]
    if isinstance(value, (list, tuple)):
        return [None if v is None else scalar_int(v, what) for v in value]
    return [scalar_int(value, what)]


def _tensor_entries(tensor: Tensor, what: str) -> list[int | Tensor | None]:
    if tensor.dtype.kind not in "iu":
        raise TypeError(f"{what} must be an integer tensor, got {tensor!r}")
    known = static_value(tensor)
    if known is not None:
        return [int(v) for v in np.reshape(known, -1)]
    shape = tensor._shape
    if shape == ():
        return [tensor]
    if shape is None or len(shape) != 1 or shape[0] is None:
        raise ValueError(f"{what} must be a vector whose length is known while tracing, got {tensor!r}")
    node = tensor.value.node  # type: ignore[attr-defined]
    builder = tensor.builder  # type: ignore[attr-defined]
    if node is not None and node.op.name == "shape":
        source = builder.tensor(node.inputs[0])
        return [d if d is not None else call("dim", source, axis=i) for i, d in enumerate(source._shape)]
    if node is not None and node.op.name == "stack":
        return [scalar_int(builder.tensor(v), what) for v in node.inputs]
    return [call("strided_slice", tensor, spec=(("index", i),)) for i in range(shape[0])]


def shape_args(shape: Any, what: str = "shape") -> tuple[tuple[int | None, ...], list[Tensor]]:
    """A shape-like argument as an op wants it: the attribute with None for each unknown entry, and their tensors."""
    entries = int_list(shape, what)
    if any(e is None for e in entries):
        raise ValueError(f"{what} must not have unknown entries, got {shape!r}")
    attr = tuple(e if isinstance(e, int) else None for e in entries)
    return attr, [e for e in entries if isinstance(e, Tensor)]


def fill_holes(shape: Sequence[int | None], values: Sequence[Any]) -> tuple[int, ...]:
    """Kernels' half of `shape_args`: the entries with None replaced by `values`, in order."""
    if not values:
        return tuple(shape)  # type: ignore[arg-type]
    rest = iter(values)
    return tuple(int(next(rest)) if d is None else d for d in shape)
