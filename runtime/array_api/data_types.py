"""Data types of the array API standard, their promotion, and the inspection functions of the namespace."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

import numpy as np

from runtime import dtypes as _dtypes
from runtime.dtypes import DType, as_dtype
from runtime.ops.convert import convert_to_tensor, is_tensor_like
from runtime.ops.elementwise import elementary
from runtime.tensor import Tensor

bool = _dtypes.bool_
int8, int16, int32, int64 = _dtypes.int8, _dtypes.int16, _dtypes.int32, _dtypes.int64
uint8, uint16, uint32, uint64 = _dtypes.uint8, _dtypes.uint16, _dtypes.uint32, _dtypes.uint64
float32, float64 = _dtypes.float32, _dtypes.float64
complex64, complex128 = _dtypes.complex64, _dtypes.complex128

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"
_CPU_NAMES = {"cpu", "cpu:0", "/cpu:0", "/device:cpu:0", DEVICE.lower()}

_KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (bool,),
    "signed integer": (int8, int16, int32, int64),
    "unsigned integer": (uint8, uint16, uint32, uint64),
    "real floating": (float32, float64),
    "complex floating": (complex64, complex128),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


class finfo_object(NamedTuple):
    """Machine limits of a floating-point dtype; `eps`, `max`, `min`, `smallest_normal` are Python floats."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class iinfo_object(NamedTuple):
    """Machine limits of an integer dtype, as Python ints."""

    bits: int
    max: int
    min: int
    dtype: DType


def check_device(device: Any) -> None:
    """Raises ValueError for any device but the CPU, which holds all arrays."""
    if device is not None and str(device).lower() not in _CPU_NAMES:
        raise ValueError(f"Unsupported device {device!r}: arrays are on the CPU. Use device=None or '{DEVICE}'.")


def dtype_of(value: Any) -> DType:
    """The dtype of a tensor, or the dtype that `value` names."""
    return convert_to_tensor(value).dtype if is_tensor_like(value) else as_dtype(value)


def default_dtype(value: Any) -> DType:
    """The dtype of a Python scalar on its own: bool, int32 (int64 if it doesn't fit), float32, complex64."""
    if isinstance(value, complex):
        return complex64
    return convert_to_tensor(value).dtype


def astype(x: Any, dtype: Any, /, *, copy: builtins.bool = True, device: Any = None) -> Tensor:
    """`x` with its elements converted to `dtype`. `copy` has no effect, since tensors are immutable."""
    check_device(device)
    source, target = convert_to_tensor(x), as_dtype(dtype)
    if source.dtype.is_complex and target.is_floating:
        raise TypeError(f"astype from {source.dtype.name} to {target.name} loses the imaginary part; use real(x).")
    return source if source.dtype is target else elementary.cast(source, target)


def can_cast(from_: Any, to: Any, /) -> builtins.bool:
    """Whether the standard's promotion rules convert `from_` (a dtype or an array) to the dtype `to`."""
    return builtins.bool(np.can_cast(dtype_of(from_).np, as_dtype(to).np))


def finfo(type: Any, /) -> finfo_object:
    """Machine limits of a floating-point dtype or array; a complex dtype has the limits of its real part."""
    dtype = dtype_of(type).real_dtype
    if not dtype.is_floating:
        raise TypeError(f"finfo takes a floating-point dtype, not {dtype.name}; use iinfo for integers.")
    limits: Any = dtype._limits()
    return finfo_object(
        int(limits.bits), float(limits.eps), float(limits.max), float(limits.min), float(limits.smallest_normal), dtype
    )


def iinfo(type: Any, /) -> iinfo_object:
    """Machine limits of an integer dtype or array."""
    dtype = dtype_of(type)
    if not dtype.is_integer:
        raise TypeError(f"iinfo takes an integer dtype, not {dtype.name}; use finfo for floating-point numbers.")
    return iinfo_object(dtype.size * 8, int(dtype.max), int(dtype.min), dtype)


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """Whether `dtype` is of a kind: a dtype, a name such as 'integral' or 'real floating', or a tuple of these."""
    wanted = as_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(wanted, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"Unknown kind of dtypes {kind!r}; the kinds are {', '.join(map(repr, _KINDS))}.")
        return wanted in _KINDS[kind]
    return wanted is as_dtype(kind)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype that arrays, dtypes and Python scalars are promoted to together.

    Raises ValueError without arguments.
    """
    if not arrays_and_dtypes:
        raise ValueError("result_type needs at least one array, dtype or Python scalar.")
    scalars = [v for v in arrays_and_dtypes if isinstance(v, (builtins.bool, int, float, complex))]
    typed = [dtype_of(v) for v in arrays_and_dtypes if not isinstance(v, (builtins.bool, int, float, complex))]
    if not typed:
        return as_dtype(np.result_type(*[default_dtype(v).np for v in scalars]))
    result = as_dtype(np.result_type(*[d.np for d in typed]))
    for scalar in scalars:
        if isinstance(scalar, complex) and not result.is_complex:
            result = complex128 if result is float64 else complex64
        elif isinstance(scalar, float) and result.kind in "biu":
            result = float32
        elif isinstance(scalar, int) and not isinstance(scalar, builtins.bool) and result is bool:
            result = int32
    return result


class Info:
    """The capabilities of the namespace: the object that `__array_namespace_info__()` returns."""

    @staticmethod
    def capabilities() -> dict[str, Any]:
        """Boolean indexing and shapes that depend on data are supported; arrays have at most 64 dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    @staticmethod
    def default_device() -> str:
        """The name of the CPU."""
        return DEVICE

    @staticmethod
    def default_dtypes(*, device: Any = None) -> dict[str, DType]:
        """The dtypes of arrays made from Python scalars: float32, complex64, int32. Indices are int64."""
        check_device(device)
        return {"real floating": float32, "complex floating": complex64, "integral": int32, "indexing": int64}

    @staticmethod
    def dtypes(*, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The standard's dtypes by name: those of one kind, of a tuple of kinds, or all."""
        check_device(device)
        kinds = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        every = _KINDS["bool"] + _KINDS["numeric"]
        return {d.name: d for d in every if isdtype(d, kinds)}

    @staticmethod
    def devices() -> tuple[str, ...]:
        """The devices that hold arrays."""
        return (DEVICE,)


def __array_namespace_info__() -> Info:
    """An object with the namespace's capabilities, devices and dtypes."""
    return Info()
