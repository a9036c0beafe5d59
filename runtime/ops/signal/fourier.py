"""Discrete Fourier and cosine transforms over the last dimensions (`ag.signal`), with kernels from NumPy and SciPy.

Rows: `fftn` and `ifftn` (complex to complex over the last `rank` dimensions), `rfftn` (real to the complex half that is
not redundant) and `irfftn` (back, to a length of its own), `dct`. All are linear: their adjoints are each other.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from runtime import dtypes
from runtime.ops.arrays import creation
from runtime.ops.arrays.joining import concat
from runtime.ops.arrays.rearrange import roll
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import check_kind, convert_to_tensor, int_list, scalar_int
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise.compare import equal, logical_or, where
from runtime.ops.rules import brackets, dims, product
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType

_COMPLEX = {"float32": dtypes.complex64, "float64": dtypes.complex128}


def _need_rank(shape: Any, rank: int) -> None:
    if shape is not None and len(shape) < rank:
        raise ValueError(f"Input must have rank of at least {rank} but got: {brackets(shape)}")


def _axes(rank: int) -> tuple[int, ...]:
    return tuple(range(-rank, 0))


def _count(x: Any, rank: int) -> Any:
    """The number of points of a transform, as a scalar of x's dtype."""
    return call("cast", convert_to_tensor(product(dims(x)[-rank:])), dtype=x.dtype)


# --- complex to complex --------------------------------------------------------------------------------------------


def _infer_complex(inputs: Sequence[Any], attrs: dict) -> tuple:
    _need_rank(inputs[0].shape, attrs["rank"])
    return (inputs[0],)


def _kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(x: Any, rank: int) -> Any:
        # NumPy before 2 computes in double precision. It refuses transforms of no points.
        return function(x, axes=_axes(rank)).astype(x.dtype) if x.size else x

    return kernel


_SHAPES = tuple(
    Sample((s,), {"rank": r}) for s, r in [((4,), 1), ((2, 3), 1), ((2, 3), 2), ((2, 2, 2, 3), 3), ((0, 3), 1)]
)
_FFT = register(
    OpDef(
        "fftn", _infer_complex, _kernel(np.fft.fftn), kinds="c", complex_rule=True, label="FFT",
        grad=lambda op, dy: (apply(_IFFT, (dy,), op.attrs) * _count(dy, op.attrs["rank"]),),
        doc="The Fourier transform over the last dimensions.", samples=_SHAPES,
    )
)  # fmt: skip
_IFFT: OpDef = register(
    OpDef(
        "ifftn", _infer_complex, _kernel(np.fft.ifftn), kinds="c", complex_rule=True, label="IFFT",
        grad=lambda op, dy: (apply(_FFT, (dy,), op.attrs) / _count(dy, op.attrs["rank"]),),
        doc="The inverse Fourier transform over the last dimensions.", samples=_SHAPES,
    )
)  # fmt: skip


class Transform(Protocol):
    """A public function of complex numbers."""

    def __call__(self, input: TensorLike, name: str | None = None) -> Tensor: ...


class RealTransform(Protocol):
    """A public function between real numbers and the half of their coefficients that isn't redundant."""

    def __call__(self, input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor: ...


def _transform(row: OpDef, name: str, rank: int, doc: str) -> Transform:
    def function(input: TensorLike, name: str | None = None) -> Tensor:
        x = convert_to_tensor(input)
        check_kind(row, x.dtype)
        _need_rank(x._shape, rank)
        return apply(row, (x,), {"rank": rank})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc} Complex numbers; raises InvalidArgumentError for others and for a smaller rank."
    return deferrable(function)


fft = _transform(_FFT, "fft", 1, "The Fourier transform over the last dimension.")
fft2d = _transform(_FFT, "fft2d", 2, "The Fourier transform over the last two dimensions.")
fft3d = _transform(_FFT, "fft3d", 3, "The Fourier transform over the last three dimensions.")
ifft = _transform(_IFFT, "ifft", 1, "The inverse Fourier transform over the last dimension.")
ifft2d = _transform(_IFFT, "ifft2d", 2, "The inverse Fourier transform over the last two dimensions.")
ifft3d = _transform(_IFFT, "ifft3d", 3, "The inverse Fourier transform over the last three dimensions.")


# --- real numbers --------------------------------------------------------------------------------------------------


def _half(length: int) -> int:
    """How many coefficients of real numbers aren't redundant."""
    return length // 2 + 1 if length else 0


def _infer_rfft(inputs: Sequence[Any], attrs: dict) -> tuple:
    (x,) = inputs
    _need_rank(x.shape, attrs["rank"])
    if x.dtype.name not in _COMPLEX:
        raise TypeError(f"RFFT needs float32 or float64, got {x.dtype.name}")
    if x.shape is None:
        return (TensorType(_COMPLEX[x.dtype.name], None),)
    last = None if x.shape[-1] is None else _half(x.shape[-1])
    return (TensorType(_COMPLEX[x.dtype.name], (*x.shape[:-1], last)),)


def _rfft_kernel(x: Any, rank: int) -> Any:
    wanted = np.result_type(x.dtype, np.complex64)
    if not x.size:
        return np.zeros((*x.shape[:-1], _half(x.shape[-1])), wanted)
    return np.fft.rfftn(x, axes=_axes(rank)).astype(wanted)


def _weights(half: Any, length: Any, dtype: Any) -> Any:
    """How often each coefficient of the half counts in the whole: once at both ends (of an even length), else twice."""
    k = creation.range(half)
    ends = logical_or(equal(k, 0), equal(k * 2, convert_to_tensor(length, dtypes.int32)))
    return where(ends, convert_to_tensor(1, dtype), convert_to_tensor(2, dtype))


def _grad_rfft(op: Any, dy: Any) -> Sequence[Any]:
    x, rank = op.inputs[0], op.attrs["rank"]
    length = dims(x)[-1]
    weighted = dy / _weights(dims(dy)[-1], length, dy.dtype)
    return (_inverse(weighted, length, rank) * _count(x, rank),)


_RFFT = register(
    OpDef(
        "rfftn", _infer_rfft, _rfft_kernel, grad=_grad_rfft, kinds="f", label="RFFT",
        doc="The Fourier transform of real numbers over the last dimensions, without its redundant half.",
        samples=tuple(Sample((s,), {"rank": r}) for s, r in [((4,), 1), ((2, 5), 1), ((3, 4), 2), ((2, 2, 3), 3)]),
    )
)  # fmt: skip


def _infer_irfft(inputs: Sequence[Any], attrs: dict) -> tuple:
    x = inputs[0]
    _need_rank(x.shape, attrs["rank"])
    return (TensorType(x.dtype.real_dtype, None if x.shape is None else (*x.shape[:-1], attrs["length"])),)


def _irfft_kernel(x: Any, *length_input: Any, rank: int, length: int | None) -> Any:
    size = int(length_input[0]) if length is None else length
    if not x.size or not size:
        return np.zeros((*x.shape[:-1], size), x.real.dtype)
    lengths = (*x.shape[x.ndim - rank : -1], size)
    return np.fft.irfftn(x, s=lengths, axes=_axes(rank)).astype(x.real.dtype)


def _inverse(x: Any, length: Any, rank: int) -> Any:
    if isinstance(length, int):
        return apply(_IRFFT, (x,), {"rank": rank, "length": length})
    return apply(_IRFFT, (x, convert_to_tensor(length)), {"rank": rank, "length": None})


def _grad_irfft(op: Any, dy: Any) -> Sequence[Any]:
    rank = op.attrs["rank"]
    back = apply(_RFFT, (dy,), {"rank": rank})
    weights = _weights(dims(back)[-1], dims(dy)[-1], back.dtype)
    scale = call("cast", _count(dy, rank), dtype=back.dtype)
    return (back * weights / scale, *[None] * (len(op.inputs) - 1))


_IRFFT = register(
    OpDef(
        "irfftn", _infer_irfft, _irfft_kernel, grad=_grad_irfft, kinds="c", label="IRFFT", complex_rule=True,
        doc="The inverse of rfftn, whose last dimension has `length` points.",
        samples=(
            *[Sample((s,), {"rank": r, "length": n}) for s, r, n in [((3,), 1, 4), ((2, 3), 1, 5), ((3, 3), 2, 4)]],
            Sample(((3,), ()), {"rank": 1, "length": None}, fixed={1: np.int32(4)}, gradient=(0,)),
        ),
    )
)  # fmt: skip


def fitted(x: Any, lengths: Sequence[Any]) -> Any:
    """The last dimensions cropped, or filled up with zeros, to `lengths`."""
    rank = known_rank(x, "fft_length")
    for axis, wanted in zip(range(rank - len(lengths), rank), lengths):
        size = dims(x)[axis]
        if isinstance(size, int) and isinstance(wanted, int) and size == wanted:
            continue
        x = x[(*[slice(None)] * axis, slice(None, wanted))]
        size = dims(x)[axis]
        if isinstance(size, int) and isinstance(wanted, int) and size == wanted:
            continue
        missing = [wanted - size if i == axis else d for i, d in enumerate(dims(x))]
        x = concat([x, creation.zeros(missing, x.dtype)], axis)
    return x


def _lengths(fft_length: Any, rank: int) -> list[Any]:
    lengths = int_list(fft_length, "fft_length")
    if len(lengths) != rank:
        raise ValueError(f"fft_length must have {rank} elements, got {fft_length!r}")
    return lengths


def _forward_real(rank: int, name: str) -> RealTransform:
    def function(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
        x = convert_to_tensor(input_tensor, dtype_hint=dtypes.float32)
        _need_rank(x._shape, rank)
        if fft_length is not None:
            x = fitted(x, _lengths(fft_length, rank))
        check_kind(_RFFT, x.dtype)
        return apply(_RFFT, (x,), {"rank": rank})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The Fourier transform of real numbers over the last {rank} dimension(s): n // 2 + 1 coefficients of the "
        "last one.\n\n    fft_length: the points of each dimension, which is cropped or zero-padded.\n "
    )
    return deferrable(function)


def _backward_real(rank: int, name: str) -> RealTransform:
    def function(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
        x = convert_to_tensor(input_tensor, dtype_hint=dtypes.complex64)
        check_kind(_IRFFT, x.dtype)
        _need_rank(x._shape, rank)
        if fft_length is None:
            # An even number of points, as nothing says that it was odd.
            length: Any = (dims(x)[-1] - 1) * 2
            return _inverse(x, max(length, 0) if isinstance(length, int) else length, rank)
        lengths = _lengths(fft_length, rank)
        return _inverse(fitted(x, [*lengths[:-1], lengths[-1] // 2 + 1]), lengths[-1], rank)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The inverse of the transform of real numbers over the last {rank} dimension(s).\n\n    fft_length: the "
        "points of each dimension; the default for the last one is 2 (n - 1) for n coefficients.\n    "
    )
    return deferrable(function)


rfft, rfft2d, rfft3d = _forward_real(1, "rfft"), _forward_real(2, "rfft2d"), _forward_real(3, "rfft3d")
irfft, irfft2d, irfft3d = _backward_real(1, "irfft"), _backward_real(2, "irfft2d"), _backward_real(3, "irfft3d")


@deferrable
def fftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Tensor:
    """Moves the zero frequency to the middle of the axes (all by default)."""
    return _shifted(x, axes, 1)


@deferrable
def ifftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, -1)


def _shifted(x: Any, axes: Any, direction: int) -> Tensor:
    tensor = convert_to_tensor(x)
    rank = known_rank(tensor, "fftshift")
    chosen = list(range(rank)) if axes is None else [int(a) % rank for a in np.reshape(np.asarray(axes), -1)]
    sizes = dims(tensor)
    for axis in chosen:
        half = sizes[axis] // 2
        tensor = roll(tensor, half if direction > 0 else -half, axis)
    return tensor


# --- cosine transforms ---------------------------------------------------------------------------------------------


def _infer_dct(inputs: Sequence[Any], attrs: dict) -> tuple:
    _need_rank(inputs[0].shape, 1)
    return (inputs[0],)


def _dct_kernel(x: Any, type: int, norm: str | None) -> Any:
    if not x.size:
        return x
    return importlib.import_module("scipy.fft").dct(x, type, norm=norm).astype(x.dtype)


def _grad_dct(op: Any, dy: Any) -> Sequence[Any]:
    """The transpose: I (but for its ends) and IV are symmetric, III is the transpose of II (but for the first)."""
    kind, norm = op.attrs["type"], op.attrs["norm"]
    k = creation.range(dims(dy)[-1])
    one, half = convert_to_tensor(1, dy.dtype), convert_to_tensor(0.5, dy.dtype)
    if kind == 1:
        weights = where(logical_or(equal(k, 0), equal(k, dims(dy)[-1] - 1)), half, one)
        return (weights * apply(_DCT, (dy / weights,), op.attrs),)
    if kind == 4 or norm == "ortho":
        return (apply(_DCT, (dy,), {"type": {2: 3, 3: 2, 4: 4}[kind], "norm": norm}),)
    first = where(equal(k, 0), half, one)
    if kind == 2:
        return (apply(_DCT, (dy / first,), {"type": 3, "norm": norm}),)
    return (first * apply(_DCT, (dy,), {"type": 2, "norm": norm}),)


_DCT = register(
    OpDef(
        "dct", _infer_dct, _dct_kernel, grad=_grad_dct, kinds="f", doc="The cosine transform over the last dimension.",
        samples=tuple(
            Sample((s,), {"type": t, "norm": norm})
            for s in [(4,), (2, 3)] for t in (1, 2, 3, 4) for norm in (None, "ortho") if (t, norm) != (1, "ortho")
        ),
    )
)  # fmt: skip


@deferrable
def dct(
    input: TensorLike, type: int = 2, n: Any = None, axis: int = -1, norm: str | None = None, name: Any = None
) -> Tensor:
    """The discrete cosine transform of type 1, 2, 3 or 4 over the last dimension, cropped or zero-padded to n points.

    norm: None or "ortho". Definitions and scales are SciPy's (and TensorFlow's). Raises ValueError for other options.
    """
    if axis != -1:
        raise NotImplementedError(f"axis must be -1. Got: {axis}")
    if type not in (1, 2, 3, 4):
        raise ValueError(f"Types I, II, III and IV (I)DCT are supported. Got: {type}")
    if norm not in (None, "ortho"):
        raise ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm}")
    if type == 1 and norm == "ortho":
        raise ValueError("Normalization is not supported for the Type-I DCT.")
    x = convert_to_tensor(input)
    check_kind(_DCT, x.dtype)
    if n is not None:
        x = fitted(x, [scalar_int(n, "n")])
    if type == 1 and x._shape and x._shape[-1] == 1:
        raise ValueError("Dimension must be > 1 for type-I DCT")
    return apply(_DCT, (x,), {"type": type, "norm": norm})


@deferrable
def idct(
    input: TensorLike, type: int = 2, n: Any = None, axis: int = -1, norm: str | None = None, name: Any = None
) -> Tensor:
    """The inverse of `dct`, with TensorFlow's scale: with norm=None it is 2n (type 1: 2 (n - 1)) times the inverse."""
    return dct(input, {1: 1, 2: 3, 3: 2, 4: 4}.get(type, type), n, axis, norm)
