"""The creation functions of the array API standard; they return tensors.

`dtype` is a dtype of the namespace, `device` the CPU's name or None. Without a dtype, Python floats make float32, ints
int32 (int64 where they don't fit) and complex numbers complex64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.array_api.data_types import check_device, complex64, default_dtype
from runtime.dtypes import DType, as_dtype
from runtime.ops.arrays import broadcasting
from runtime.ops.arrays import creation as ops
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import convert_to_tensor, is_tensor_like
from runtime.ops.dispatch import call
from runtime.ops.elementwise import elementary
from runtime.ops.linalg import matrices
from runtime.ops.numpy.protocol import from_dlpack as _from_dlpack
from runtime.tensor import Tensor


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """Converts to an array: a tensor, NumPy array, Python scalar, nested sequence, or object with DLPack or a buffer.

    copy: False raises ValueError if the elements have to be copied, which all but tensors are.
    """
    check_device(device)
    wanted = None if dtype is None else as_dtype(dtype)
    if is_tensor_like(obj):
        tensor = convert_to_tensor(obj)
        if wanted is None or wanted is tensor.dtype:
            return tensor
        if copy is False:
            raise ValueError(f"asarray(copy=False) can't convert {tensor.dtype.name} to {wanted.name} without a copy.")
        return elementary.cast(tensor, wanted)
    if copy is False:
        raise ValueError(f"asarray(copy=False): an array can't share the memory of a {type(obj).__name__}.")
    if hasattr(obj, "__dlpack__") and not isinstance(obj, (np.ndarray, np.generic)):
        return asarray(_from_dlpack(obj), dtype=dtype)
    if isinstance(obj, (memoryview, bytearray)) or type(obj).__module__ == "array":
        obj = np.asarray(obj)
    if _holds_tensors(obj):
        tensor = convert_to_tensor(obj)
        return tensor if wanted in (None, tensor.dtype) else elementary.cast(tensor, wanted)
    if wanted is None and not isinstance(obj, (np.ndarray, np.generic)):
        wanted = _default(np.asarray(obj))
    if wanted is None:
        return convert_to_tensor(obj)
    # From the values themselves: by way of the default dtype they would lose digits.
    array = np.asarray(obj)
    if array.dtype.kind not in "biufc":
        return convert_to_tensor(obj, wanted)
    with np.errstate(all="ignore"):
        return convert_to_tensor(array.astype(wanted.np))


def _default(array: np.ndarray) -> DType | None:
    """The default dtype of an array that NumPy made from Python numbers."""
    if array.dtype.kind == "i":
        fits = not array.size or (array.min() >= dtypes.int32.min and array.max() <= dtypes.int32.max)
        return dtypes.int32 if fits else dtypes.int64
    return {"b": dtypes.bool_, "u": dtypes.uint64, "f": dtypes.float32, "c": complex64}.get(array.dtype.kind)


def _holds_tensors(obj: Any) -> bool:
    return is_tensor_like(obj) or (isinstance(obj, (list, tuple)) and any(map(_holds_tensors, obj)))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Converts an object with `__dlpack__` to an array. Raises BufferError for `copy=False`: it copies the elements."""
    check_device(device)
    if copy is False and not isinstance(x, Tensor):
        raise BufferError(
            "from_dlpack(copy=False): tensors are immutable, so they don't share another library's memory."
        )
    return x if isinstance(x, Tensor) else _from_dlpack(x)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Evenly spaced numbers in the half-open interval [start, stop); [0, start) if `stop` is None."""
    check_device(device)
    first, last = (0, start) if stop is None else (start, stop)
    given = (first, last, step)
    if dtype is not None:
        wanted = as_dtype(dtype)
    elif any(isinstance(v, float) for v in given):
        wanted = dtypes.float32
    else:
        wanted = dtypes.int64 if any(default_dtype(v) is dtypes.int64 for v in given) else dtypes.int32
    return convert_to_tensor(np.arange(first, last, step).astype(wanted.np))


def _shape(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of `shape` in which each element is `fill_value`."""
    check_device(device)
    return broadcasting.broadcast_to(asarray(fill_value, dtype=dtype), _shape(shape))


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of zeros; float32 by default."""
    check_device(device)
    return ops.zeros(_shape(shape), dtypes.float32 if dtype is None else dtype)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of ones; float32 by default."""
    check_device(device)
    return ops.ones(_shape(shape), dtypes.float32 if dtype is None else dtype)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array whose elements are unspecified by the standard: zeros, since tensors are immutable."""
    return zeros(shape, dtype=dtype, device=device)


def _like(x: Any, dtype: Any) -> tuple[Tensor, DType]:
    tensor = convert_to_tensor(x)
    return tensor, tensor.dtype if dtype is None else as_dtype(dtype)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of `x`'s shape in which each element is `fill_value`."""
    check_device(device)
    tensor, wanted = _like(x, dtype)
    return call("broadcast_like", asarray(fill_value, dtype=wanted), tensor)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros of `x`'s shape."""
    check_device(device)
    return ops.zeros_like(*_like(x, dtype))


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones of `x`'s shape."""
    check_device(device)
    return ops.ones_like(*_like(x, dtype))


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of `x`'s shape whose elements are unspecified by the standard: zeros."""
    return zeros_like(x, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """A matrix with ones on the k-th diagonal and zeros elsewhere."""
    check_device(device)
    wanted = dtypes.float32 if dtype is None else as_dtype(dtype)
    return convert_to_tensor(np.eye(n_rows, n_cols, k, dtype=wanted.np))


def linspace(
    start: complex, stop: complex, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`; includes `stop` if `endpoint`."""
    check_device(device)
    if dtype is None:
        dtype = complex64 if isinstance(start, complex) or isinstance(stop, complex) else dtypes.float32
    values = np.linspace(start, stop, num, endpoint=endpoint)
    wanted = as_dtype(dtype)
    return convert_to_tensor((values if wanted.kind in "fc" else np.floor(values)).astype(wanted.np))


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinate matrices of one-dimensional arrays; 'xy' swaps the first two axes."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid(indexing={indexing!r}): indexing must be 'xy' or 'ij'.")
    tensors = [convert_to_tensor(a) for a in arrays]
    count = len(tensors)
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[0], order[1] = 1, 0
    shape = [0] * count
    for tensor, axis in zip(tensors, order):
        shape[axis] = math.prod(tensor._shape or (1,))  # type: ignore[arg-type]
    made = []
    for tensor, axis in zip(tensors, order):
        column = call("reshape", tensor, shape=tuple(-1 if a == axis else 1 for a in range(count)))
        made.append(broadcasting.broadcast_to(column, shape))
    return tuple(made)


def tril(x: Any, /, *, k: int = 0) -> Tensor:
    """The lower triangle of matrices, up to the k-th diagonal."""
    return matrices.tril(_matrix(x, "tril"), k)


def triu(x: Any, /, *, k: int = 0) -> Tensor:
    """The upper triangle of matrices, from the k-th diagonal."""
    return matrices.triu(_matrix(x, "triu"), k)


def _matrix(x: Any, what: str) -> Tensor:
    tensor = convert_to_tensor(x)
    if known_rank(tensor, what) < 2:
        raise ValueError(f"{what} takes arrays of at least two dimensions, not of shape {tensor.shape}.")
    return tensor
