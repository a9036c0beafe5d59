"""Arrays of GPUs in the exchange format of arrays (DLPack), in and out, without copies.

A capsule holds the address of a structure, which says where an array lies and has a function to be called when the
consumer no longer needs it. Version 1 says whether an array may be written to; ours may not.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from runtime.dtypes import bfloat16
from runtime.gpu.memory import Buffer, DeviceArray, LogicalGPU

_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_BFLOAT = 4
_READ_ONLY = 1


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )  # fmt: skip


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", _Deleter),
        ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    )  # fmt: skip


_FORMS: dict[bytes, Any] = {b"dltensor": _Managed, b"dltensor_versioned": _Versioned}
_USED = {name: b"used_" + name for name in _FORMS}  # capsules keep the address of a name
_held: dict[int, Any] = {}  # what consumers have not given back, by address of the structure
_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
for _function in (_api.PyCapsule_GetPointer, _api.PyCapsule_GetName, _api.PyCapsule_SetName):
    _function.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetName.argtypes, _api.PyCapsule_GetName.restype = [ctypes.py_object], ctypes.c_char_p


@_Deleter
def _given_back(address: int) -> None:
    _held.pop(address, None)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _dropped(capsule: int) -> None:
    """Called when a capsule is destroyed: releases its array if no consumer has taken it."""
    for name in _FORMS:
        if _is_valid(capsule, name):
            _held.pop(_pointer(capsule, name), None)


# The same functions for the address of a capsule: while it goes, nothing may refer to it.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))


def capsule(array: DeviceArray, versioned: bool) -> Any:
    """An array as a capsule. versioned: of version 1, which says that it is read-only."""
    array.place.backend.synchronize()
    backend = array.place.backend
    shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    bits = 8 * array.dtype.itemsize
    code = _BFLOAT if array.dtype == bfloat16.np else _CODES[array.dtype.kind]
    tensor = _Tensor(
        array.address(), backend.dlpack_type, backend.ordinal, array.ndim, code, bits, 1, shape, None, 0,
    )  # fmt: skip
    name = b"dltensor_versioned" if versioned else b"dltensor"
    made = _Versioned(1, 0, None, _given_back, _READ_ONLY, tensor) if versioned else _Managed(tensor, None, _given_back)
    address = ctypes.addressof(made)
    _held[address] = made, shape, array.buffer()
    return _api.PyCapsule_New(address, name, ctypes.cast(_dropped, ctypes.c_void_p))


class _Foreign(Buffer):
    """Memory of another library, released when the last reference to this object goes."""

    __slots__ = ("structure",)
    note = "an array of another library's"

    def __init__(self, place: LogicalGPU, address: int, size: int, structure: Any) -> None:
        self.place, self.address, self.size, self.structure = place, address, size, structure

    def __del__(self) -> None:
        if self.structure.deleter:
            self.place.backend.finish()  # its library doesn't know of kernels that still read it
            self.structure.deleter(ctypes.addressof(self.structure))


def taken(given: Any, place: LogicalGPU) -> DeviceArray:
    """The array of a capsule, in the memory where it is. Raises BufferError for one with gaps, or of a dtype that
    tensors of GPUs don't have, ValueError for a capsule that was taken already."""
    name = _api.PyCapsule_GetName(given)
    if name not in _FORMS:
        raise ValueError(f"the capsule {name!r} holds no array, or its array was already consumed")
    structure = _FORMS[name].from_address(_api.PyCapsule_GetPointer(given, name))
    tensor = structure.tensor
    shape = tuple(tensor.shape[: tensor.rank])
    kind = next((kind for kind, code in _CODES.items() if code == tensor.code), None)
    is_bfloat = tensor.code == _BFLOAT and tensor.bits == 16
    if (kind is None and not is_bfloat) or tensor.lanes != 1:
        raise BufferError(
            f"GPUs don't support tensors of DLPack's dtype ({tensor.code}, {tensor.bits}, {tensor.lanes})"
        )
    dtype = bfloat16.np if is_bfloat else np.dtype("bool" if kind == "b" else f"{kind}{tensor.bits // 8}")
    if tensor.strides:
        step = 1
        for size, stride in zip(reversed(shape), reversed(tensor.strides[: tensor.rank])):
            if size > 1 and stride != step:
                raise BufferError("its elements have gaps between them or another order: make it contiguous")
            step *= size
    _api.PyCapsule_SetName(given, _USED[name])
    address = (tensor.data or 0) + tensor.offset
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    buffer = _Foreign(place, address, size, structure)
    return DeviceArray(place, shape, dtype, None, buffer, address, buffer.note)
