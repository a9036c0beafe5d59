"""Tensors as bytes: TensorFlow's protocol buffer `TensorProto`.

serialize_tensor(x)                  → a scalar string
parse_tensor(string; dtype)          → the tensor, of unknown shape
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.dtypes import DType, DTypeLike
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply
from runtime.ops.strings import wire
from runtime.ops.table import OpDef, register
from runtime.tensor import Tensor
from runtime.types import TensorType

# TensorFlow's numbers of dtypes (tensorflow/core/framework/types.proto).
NUMBERS = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "complex64": 8, "int64": 9,
    "bool": 10, "bfloat16": 14, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23,
}  # fmt: skip
_NAMES = {number: name for name, number in NUMBERS.items()}
_DTYPE, _SHAPE, _CONTENT, _STRINGS = 1, 2, 4, 8
# Fields with numbers one by one: how those of each are stored.
_FLOATS, _DOUBLES, _INTS, _LONGS, _BOOLS, _HALVES = 5, 6, 7, 10, 11, 13
_COMPLEX, _DOUBLE_COMPLEX, _UINTS, _ULONGS = 9, 12, 16, 17
_RAW = {_FLOATS: "<f4", _DOUBLES: "<f8", _COMPLEX: "<c8", _DOUBLE_COMPLEX: "<c16"}


def to_bytes(array: np.ndarray, dtype: DType) -> bytes:
    """A tensor as a message."""
    shape = b"".join(wire.field(2, wire.integer_field(1, size) if size else b"") for size in array.shape)
    head = wire.integer_field(_DTYPE, NUMBERS[dtype.name]) + wire.field(_SHAPE, shape)
    if dtype is dtypes.string:
        return head + b"".join(wire.field(_STRINGS, item) for item in array.reshape(-1).tolist())
    content = np.ascontiguousarray(array).tobytes()
    return head + (wire.field(_CONTENT, content) if content else b"")


def from_bytes(message: bytes) -> tuple[np.ndarray, DType]:
    """The tensor of a message. Raises WireError for bytes that are none, UnimplementedError for other dtypes."""
    number, shape, content = 0, [], b""
    parts: dict[int, list[Any]] = {}
    for name, kind, value in wire.fields(message):
        if name == _DTYPE and kind == wire.VARINT:
            number = value
        elif name == _SHAPE and kind == wire.BYTES:
            shape = _shape(value)
        elif name == _CONTENT and kind == wire.BYTES:
            content = value
        elif name > _CONTENT:
            parts.setdefault(name, []).append(value)
    if number not in _NAMES:
        raise (
            wire.WireError("it says no dtype")
            if not number
            else errors.UnimplementedError(f"Tensors of TensorFlow's dtype number {number} aren't supported")
        )
    dtype = dtypes.as_dtype(_NAMES[number])
    count = int(np.prod(shape, dtype=np.int64))
    if dtype is dtypes.string:
        found = np.empty(count, object)
        found[:] = _listed_strings(content, count) if content else _repeated(parts.get(_STRINGS, []), count, b"")
        return found.reshape(shape), dtype
    if content:
        if len(content) != count * dtype._np.itemsize:
            raise wire.WireError(f"it has {len(content)} bytes for {count} elements")
        return np.frombuffer(content, dtype._np).reshape(shape).copy(), dtype
    numbers = _numbers(parts, dtype)
    if len(numbers) > count:
        raise wire.WireError(f"it has {len(numbers)} elements for the shape {shape}")
    result = np.zeros(count, dtype._np)
    if len(numbers):  # the last one stands for those that follow
        result[: len(numbers)], result[len(numbers) :] = numbers, numbers[-1]
    return result.reshape(shape), dtype


def _shape(message: bytes) -> list[int]:
    shape = []
    for name, kind, value in wire.fields(message):
        if name == 2 and kind == wire.BYTES:
            shape.append(sum(wire.signed(size) for part, _, size in wire.fields(value) if part == 1))
    if any(size < 0 for size in shape):
        raise wire.WireError(f"it has the shape {shape}")
    return shape


def _listed_strings(content: bytes, count: int) -> list[bytes]:
    """Strings as their lengths and then their bytes."""
    place, lengths = 0, []
    for _ in range(count):
        length, place = wire.read_varint(content, place)
        lengths.append(length)
    if place + sum(lengths) != len(content):
        raise wire.WireError("its strings are cut off")
    found = []
    for length in lengths:
        found.append(content[place : place + length])
        place += length
    return found


def _repeated(items: list[Any], count: int, blank: Any) -> list[Any]:
    if len(items) > count:
        raise wire.WireError(f"it has {len(items)} elements, not {count}")
    return items + [items[-1] if items else blank] * (count - len(items))


def _numbers(parts: dict[int, list[Any]], dtype: DType) -> np.ndarray:
    """The elements that stand one by one in fields of their own."""
    found: list[np.ndarray] = []
    for name, values in parts.items():
        for value in values:
            if name in _RAW:
                found.append(np.frombuffer(value, _RAW[name]))
            elif name in (_INTS, _LONGS, _BOOLS, _HALVES, _UINTS, _ULONGS):
                packed = isinstance(value, bytes)
                numbers = wire.packed_integers(value) if packed else np.array([wire.signed(value)], np.int64)
                if name == _HALVES:
                    numbers = numbers.astype(np.uint16).view(dtype._np)
                found.append(numbers.view(np.uint64) if name == _ULONGS else numbers)
    return np.concatenate(found) if found else np.empty(0, dtype._np)


def _infer_serialize(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (TensorType(dtypes.string, ()),)


def _serialize_kernel(x: Any) -> Any:
    array = np.asarray(x)
    found = np.empty((), object)
    found[()] = to_bytes(array, dtypes.string if array.dtype == object else dtypes.as_dtype(array.dtype))
    return found


def _infer_parse(inputs: Sequence[Any], attrs: dict) -> tuple:
    if inputs[0].dtype is not dtypes.string or inputs[0].shape not in ((), None):
        raise TypeError(f"expected a scalar string, got {inputs[0]}")
    return (TensorType(attrs["dtype"], None),)


def _parse_kernel(x: Any, dtype: DType) -> Any:
    message: Any = np.asarray(x, object)[()]
    try:
        array, found = from_bytes(message)
    except (wire.WireError, ValueError) as error:
        raise errors.InvalidArgumentError(f"Could not parse a TensorProto: {error}") from None
    if found is not dtype:
        raise errors.InvalidArgumentError(
            f"Type mismatch between parsed tensor ({found.name}) and dtype ({dtype.name})"
        )
    return array


SERIALIZE = register(
    OpDef("serialize_tensor", _infer_serialize, _serialize_kernel, doc="Serializes a tensor to bytes.")
)
PARSE = register(OpDef("parse_tensor", _infer_parse, _parse_kernel, kinds="O", doc="Reads a tensor from bytes."))


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """A tensor as a scalar string: the bytes of the protocol buffer `TensorProto`, which TensorFlow reads."""
    found: Tensor = apply(SERIALIZE, (convert_to_tensor(tensor),))
    return found


def parse_tensor(serialized: Any, out_type: DTypeLike, name: str | None = None) -> Tensor:
    """The tensor that `serialize_tensor` has made into a scalar string, here or in TensorFlow.

    Raises InvalidArgumentError if it is no such message, or of another dtype.
    """
    found: Tensor = apply(PARSE, (convert_to_tensor(serialized),), {"dtype": dtypes.as_dtype(out_type)})
    return found
