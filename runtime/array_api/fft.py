"""Fourier transforms: the extension `fft` of the array API standard, each by transforms along one axis at a time.

norm: 'backward' divides by the number of points in inverse transforms, 'forward' in forward ones, 'ortho' by its root
in both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.array_api.data_types import check_device
from runtime.array_api.manipulation import _axes, moveaxis
from runtime.dtypes import as_dtype
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise import complex_numbers, elementary
from runtime.ops.signal import fourier
from runtime.tensor import Tensor

_COMPLEX = {"float32": dtypes.complex64, "float64": dtypes.complex128}


def _as_complex(x: Any) -> Tensor:
    tensor = convert_to_tensor(x)
    if tensor.dtype.is_complex:
        return tensor
    if tensor.dtype.name not in _COMPLEX:
        raise TypeError(f"Fourier transforms take floating-point numbers, not {tensor.dtype.name}; use astype.")
    return elementary.cast(tensor, _COMPLEX[tensor.dtype.name])


def _factor(points: int, norm: str, inverse: bool) -> float:
    """The factor to multiply an unscaled sum by; the inverse's sum is already divided by the number of points."""
    if norm not in ("backward", "ortho", "forward"):
        raise ValueError(f"Unknown norm {norm!r}: it must be 'backward', 'ortho' or 'forward'.")
    if norm == "backward" or not points:
        return 1.0
    scale = points if norm == "forward" else points**0.5
    return float(scale) if inverse else 1.0 / scale


def _along(transform: Callable[[Tensor, int], Tensor], x: Tensor, n: int | None, axis: int, norm: str, inverse: bool,
           points: Callable[[int], int] = lambda length: length) -> Tensor:  # fmt: skip
    """`transform(rows, points)` along one axis of `x`, scaled by `norm`.

    points: the default number of points for the length of the axis.
    """
    (at,) = _axes(axis, known_rank(x, "fft"), "fft")
    rows = moveaxis(x, at, -1)
    length = rows.shape[-1]
    count = n if n is not None else points(_known(length))
    if count < 1:
        raise ValueError(f"A Fourier transform needs at least one point, not {count}.")
    made = transform(rows, count)
    factor = _factor(count, norm, inverse)
    return moveaxis(made if factor == 1.0 else made * factor, -1, at)


def _known(length: int | None) -> int:
    if length is None:
        raise ValueError("The number of points isn't known while tracing; give n.")
    return length


def _forward(rows: Tensor, count: int) -> Tensor:
    return fourier.fft(fourier.fitted(rows, [count]))


def _backward(rows: Tensor, count: int) -> Tensor:
    return fourier.ifft(fourier.fitted(rows, [count]))


def _real_forward(rows: Tensor, count: int) -> Tensor:
    return fourier.rfft(rows, [count])


def _real_backward(rows: Tensor, count: int) -> Tensor:
    return fourier.irfft(rows, [count])


def fft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The Fourier transform along `axis`, cropped or zero-padded to `n` points."""
    return _along(_forward, _as_complex(x), n, axis, norm, False)


def ifft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `fft`."""
    return _along(_backward, _as_complex(x), n, axis, norm, True)


def _plan(x: Tensor, s: Sequence[int] | None, axes: Sequence[int] | None) -> list[tuple[int, int | None]]:
    rank = known_rank(x, "fft")
    if axes is None:
        axes = range(rank) if s is None else range(rank - len(s), rank)
    places = _axes(tuple(axes), rank, "fft")
    lengths = [None] * len(places) if s is None else list(s)
    if len(lengths) != len(places):
        raise ValueError(f"s has {len(lengths)} lengths for {len(places)} axes.")
    return list(zip(places, lengths))


def fftn(
    x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """The Fourier transform along several axes (by default all), cropped or zero-padded to the lengths `s`."""
    tensor = _as_complex(x)
    for axis, count in _plan(tensor, s, axes):
        tensor = fft(tensor, n=count, axis=axis, norm=norm)
    return tensor


def ifftn(
    x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """The inverse of `fftn`."""
    tensor = _as_complex(x)
    for axis, count in _plan(tensor, s, axes):
        tensor = ifft(tensor, n=count, axis=axis, norm=norm)
    return tensor


def rfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The Fourier transform of real numbers: n // 2 + 1 coefficients; the rest are their conjugates."""
    return _along(_real_forward, convert_to_tensor(x), n, axis, norm, False)


def irfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `rfft`, of `n` points, by default 2 (m - 1) for m coefficients."""
    return _along(_real_backward, _as_complex(x), n, axis, norm, True, lambda length: 2 * (length - 1))


def rfftn(
    x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """The Fourier transform of real numbers along several axes; the last axis keeps n // 2 + 1 coefficients."""
    tensor = convert_to_tensor(x)
    plan = _plan(tensor, s, axes)
    axis, count = plan[-1]
    tensor = rfft(tensor, n=count, axis=axis, norm=norm)
    for axis, count in reversed(plan[:-1]):
        tensor = fft(tensor, n=count, axis=axis, norm=norm)
    return tensor


def irfftn(
    x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """The inverse of `rfftn`."""
    tensor = _as_complex(x)
    plan = _plan(tensor, s, axes)
    for axis, count in plan[:-1]:
        tensor = ifft(tensor, n=count, axis=axis, norm=norm)
    axis, count = plan[-1]
    return irfft(tensor, n=count, axis=axis, norm=norm)


_SWAPPED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The Fourier transform, which is real, of a Hermitian signal given by its first half."""
    return irfft(complex_numbers.conj(_as_complex(x)), n=n, axis=axis, norm=_SWAPPED.get(norm, norm))


def ihfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `hfft`."""
    return complex_numbers.conj(rfft(x, n=n, axis=axis, norm=_SWAPPED.get(norm, norm)))


def _frequencies(values: np.ndarray, dtype: Any, device: Any) -> Tensor:
    check_device(device)
    return convert_to_tensor(values.astype((dtypes.float32 if dtype is None else as_dtype(dtype)).np))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of `fft`'s coefficients, for points `d` apart."""
    return _frequencies(np.fft.fftfreq(n, d), dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of `rfft`'s coefficients, for points `d` apart."""
    return _frequencies(np.fft.rfftfreq(n, d), dtype, device)


def fftshift(x: Any, /, *, axes: Any = None) -> Tensor:
    """Moves the zero frequency to the middle of `axes`."""
    return fourier.fftshift(convert_to_tensor(x), axes)


def ifftshift(x: Any, /, *, axes: Any = None) -> Tensor:
    """The inverse of `fftshift`."""
    return fourier.ifftshift(convert_to_tensor(x), axes)


__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
    "rfftfreq", "rfftn",
]  # fmt: skip
