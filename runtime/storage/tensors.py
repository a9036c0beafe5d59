"""Arrays in files of the format safetensors, which other libraries read too.

The format knows neither complex numbers nor strings, and its library no arrays of float8:

    complex64, complex128   pairs (real, imaginary) of float32 or float64: one more dimension, of size 2
    float8_e4m3fn, …_e5m2   their bits (uint8)
    string                  the bytes of all elements one after another (uint8), and beside it, under the name with
                            `/.LENGTHS` after it, how many bytes each element has (int64)

What an array really is, its entry in the document beside the file says: its dtype, its shape and a checksum.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.dtypes import DType
from runtime.errors import DataLossError, InvalidArgumentError, NotFoundError
from runtime.storage.files import write_atomically

_LENGTHS = "/.LENGTHS"
_PARTS = {"complex64": np.float32, "complex128": np.float64}
# What the format calls our dtypes.
_NAMES = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "bfloat16": "BF16", "float16": "F16", "float32": "F32", "float64": "F64",
}  # fmt: skip
_BY_NAME = {dtype.name: dtype for dtype in (*dtypes.ALL, *dtypes.STORED)}


def stored(name: str, array: Any, dtype: DType) -> dict[str, np.ndarray]:
    """The arrays of the file that stand for one array. Raises InvalidArgumentError for objects that aren't bytes."""
    if dtype is dtypes.string:
        values = np.asarray(array, object).ravel().tolist()
        strange = next((value for value in values if not isinstance(value, bytes)), None)
        if strange is not None:
            raise InvalidArgumentError(f"{name} can't be written: it holds a Python object, {type(strange).__name__}")
        lengths = np.array([len(value) for value in values], np.int64)
        return {name: np.frombuffer(b"".join(values), np.uint8), name + _LENGTHS: lengths}
    array = np.asarray(array)
    shape = array.shape  # `ascontiguousarray` gives scalars a dimension
    array = np.ascontiguousarray(array).reshape(shape)
    if dtype.is_complex:
        array = array.reshape(*shape, 1).view(_PARTS[dtype.name])
    if dtype in dtypes.STORED:
        array = array.view(np.uint8)
    return {name: array}


def described(arrays: Mapping[str, np.ndarray], shape: tuple[int, ...], dtype: DType) -> dict[str, Any]:
    """What a document says of the array that `arrays` (see `stored`) stand for."""
    return {"dtype": dtype.name, "shape": list(shape), "crc32": _checksum(arrays.values())}


def _checksum(arrays: Any) -> int:
    value = 0
    for array in arrays:
        value = zlib.crc32(array.reshape(-1).view(np.uint8), value)
    return value


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes a safetensors file. Raises OSError, PermissionError for instance."""
    from safetensors.numpy import save_file  # here: programs that read and write no files don't load it

    write_atomically(path, lambda name: save_file(dict(arrays), name))


def is_description(said: Any) -> bool:
    """Whether this is what a document may say of an array."""
    return (
        isinstance(said, dict)
        and isinstance(said.get("dtype"), str)
        and said["dtype"] in _BY_NAME
        and isinstance(said.get("shape"), list)
        and all(type(n) is int and 0 <= n < 1 << 48 for n in said["shape"])
        and len(said["shape"]) <= 32
        and type(said.get("crc32")) is int
    )


class ArrayFile:
    """An open safetensors file. Raises NotFoundError if there is none, DataLossError if it is damaged."""

    def __init__(self, path: Path) -> None:
        from safetensors import SafetensorError, safe_open

        self._path = path
        self._error = SafetensorError
        if not os.path.isfile(path):
            raise NotFoundError(f"There is no file {path}")
        try:
            self._file = safe_open(str(path), framework="np")
            self._names = set(self._file.keys())
        except (SafetensorError, OSError, ValueError) as error:
            raise DataLossError(f"{path} is not a safetensors file, or it is damaged: {error}") from None

    def read(self, name: str, said: Mapping[str, Any]) -> tuple[np.ndarray, DType]:
        """The array of a name, and its dtype; `said` is the document's description of it. Raises DataLossError."""
        dtype, shape = _BY_NAME[said["dtype"]], tuple(said["shape"])
        parts = [name, name + _LENGTHS] if dtype is dtypes.string else [name]
        arrays = [self._array(part) for part in parts]
        if _checksum(arrays) != said["crc32"]:
            raise DataLossError(f"{name} in {self._path} is damaged: its content doesn't match its checksum")
        if dtype is dtypes.string:
            return _strings(arrays[0], arrays[1], shape, f"{name} in {self._path}"), dtype
        (array,) = arrays
        if dtype.is_complex and array.dtype == _PARTS[dtype.name] and array.shape == (*shape, 2):
            return array.view(dtype.np).reshape(shape), dtype
        if dtype in dtypes.STORED and array.dtype == np.uint8:
            array = array.view(dtype.np)
        if array.dtype != dtype.np or array.shape != shape:
            raise DataLossError(
                f"{name} in {self._path} is {array.dtype.name}{list(array.shape)}, not {dtype.name}{list(shape)}"
            )
        return array, dtype

    def _array(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise DataLossError(f"{self._path} doesn't hold {name}")
        try:
            known = self._file.get_slice(name)
            if known.get_dtype() not in _NAMES.values():
                raise DataLossError(f"{name} in {self._path} has an unknown dtype, {known.get_dtype()}")
            return np.array(self._file.get_tensor(name))  # a copy: the file may change or go
        except (self._error, OSError, ValueError, TypeError, AttributeError) as error:
            raise DataLossError(f"{name} in {self._path} can't be read: {error}") from None


def _strings(content: np.ndarray, lengths: np.ndarray, shape: tuple[int, ...], what: str) -> np.ndarray:
    whole = lengths.dtype == np.int64 and content.dtype == np.uint8 and lengths.shape == (math.prod(shape),)
    outside = not whole or bool((lengths < 0).any() or (lengths > content.size).any())
    if outside or sum(lengths.tolist()) != content.size:
        raise DataLossError(f"{what} is not an array of strings of shape {list(shape)}")
    data, stops = content.tobytes(), np.cumsum(lengths).tolist()
    array = np.empty(len(stops), object)
    array[:] = [data[start:stop] for start, stop in zip([0, *stops], stops)]
    return array.reshape(shape)
