"""Frames, windows and short-time Fourier transforms of `ag.signal`, written with other ops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.dtypes import DTypeLike
from runtime.ops.arrays import creation
from runtime.ops.arrays.joining import concat
from runtime.ops.arrays.segments import unsorted_segment_sum
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import convert_to_tensor, scalar_int
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import call
from runtime.ops.rules import dims
from runtime.ops.signal.fourier import irfft, rfft
from runtime.tensor import Tensor

Window = Callable[..., Tensor]


def _known(value: Any, what: str) -> int:
    size = scalar_int(value, what)
    if not isinstance(size, int):
        raise TypeError(f"{what} must be known while tracing, got {value!r}")
    if size < 1:
        raise ValueError(f"{what} must be positive, got {size}")
    return size


def _larger(a: Any, b: Any) -> Any:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else call("maximum", *map(_size, (a, b)))


def _size(value: Any) -> Tensor:
    return convert_to_tensor(value, dtypes.int32)


@deferrable
def frame(
    signal: Any,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: int = -1,
    name: str | None = None,
) -> Tensor:
    """Windows of `frame_length` elements along an axis, `frame_step` apart: shape [..., frames, frame_length, ...].

    pad_end: keep windows that begin in the signal and extend beyond its end, padded with `pad_value`.
    """
    x = convert_to_tensor(signal)
    rank = known_rank(x, "frame")
    if not -rank <= axis < rank:
        raise ValueError(f"axis must be in [{-rank}, {rank}), got {axis}")
    axis %= rank
    length, step = _known(frame_length, "frame_length"), _known(frame_step, "frame_step")
    size = dims(x)[axis]
    if pad_end:
        count = -(-size // step) if isinstance(size, int) else (size + step - 1) // step
        missing = _larger((count - 1) * step + length - size, 0)
        border = creation.fill([missing if i == axis else d for i, d in enumerate(dims(x))],
                               convert_to_tensor(pad_value, x.dtype))  # fmt: skip
        x = concat([x, border], axis)
    else:
        count = _larger((size - length) // step + 1, 0)
    starts = call("expand_dims", creation.range(count), axis=(1,)) * step
    return call("gather", x, starts + creation.range(length), axis=axis)


@deferrable
def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """The sum of frames that begin `frame_step` apart: [..., n, length] gives [..., (n - 1) frame_step + length]."""
    x = convert_to_tensor(signal)
    rank = known_rank(x, "overlap_and_add")
    if rank < 2:
        raise ValueError(f"signal must have rank >= 2, got shape {x.shape}")
    step = _known(frame_step, "frame_step")
    count, length = dims(x)[-2:]
    places = call("expand_dims", creation.range(count), axis=(1,)) * step + creation.range(length)
    # Positions first, so that they are what the sum goes by.
    front = call("transpose", x, perm=(rank - 2, rank - 1, *range(rank - 2)))
    total = unsorted_segment_sum(front, places, (count - 1) * step + length)
    return call("transpose", total, perm=(*range(1, rank - 1), 0))


# --- windows -------------------------------------------------------------------------------------------------------


def _raised_cosine(a: float, b: float, window_length: Any, periodic: bool, dtype: DTypeLike) -> Tensor:
    wanted = dtypes.as_dtype(dtype)
    if not wanted.is_floating:
        raise ValueError(f"dtype must be a floating point type. Found {wanted!r}")
    length = scalar_int(window_length, "window_length")
    if length == 1:
        return creation.ones([1], wanted)
    # A periodic window of even length leaves its last point out.
    even = 1 - length % 2
    span = length + (even if periodic else 0) - 1
    place = call("cast", creation.range(length), dtype=wanted)
    angle = place * (2 * math.pi) / call("cast", convert_to_tensor(span), dtype=wanted)
    return a - b * call("cos", angle)


@deferrable
def hann_window(
    window_length: Any, periodic: bool = True, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """The Hann window: 0.5 - 0.5 cos(2 pi k / n)."""
    return _raised_cosine(0.5, 0.5, window_length, periodic, dtype)


@deferrable
def hamming_window(
    window_length: Any, periodic: bool = True, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """The Hamming window: 0.54 - 0.46 cos(2 pi k / n)."""
    return _raised_cosine(0.54, 0.46, window_length, periodic, dtype)


@deferrable
def kaiser_window(
    window_length: Any, beta: float = 12.0, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """The Kaiser window i0(beta sqrt(1 - t ** 2)) / i0(beta), t from -1 to 1."""
    length = _known(window_length, "window_length")
    return convert_to_tensor(np.kaiser(length, float(beta)).astype(dtypes.as_dtype(dtype).np))


@deferrable
def kaiser_bessel_derived_window(
    window_length: Any, beta: float = 12.0, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """The Kaiser-Bessel-derived window, whose squares half a window apart add up to 1."""
    half = _known(window_length, "window_length") // 2
    sums = np.cumsum(np.kaiser(half + 1, float(beta)))
    side = np.sqrt(sums[:-1] / sums[-1])
    return convert_to_tensor(np.concatenate([side, side[::-1]]).astype(dtypes.as_dtype(dtype).np))


@deferrable
def vorbis_window(window_length: Any, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """The power-complementary window of Vorbis: sin(pi / 2 sin(pi (k + 0.5) / n) ** 2)."""
    length = _known(window_length, "window_length")
    place = (np.arange(length) + 0.5) / length
    return convert_to_tensor(np.sin(np.pi / 2 * np.sin(np.pi * place) ** 2).astype(dtypes.as_dtype(dtype).np))


# --- short-time transforms -----------------------------------------------------------------------------------------


def _enclosing_power_of_two(value: int) -> int:
    return 1 << max(0, value - 1).bit_length()


@deferrable
def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Window | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """The Fourier transforms of windowed frames: [..., samples] gives complex [..., frames, fft_length // 2 + 1].

    fft_length: by default the next power of two. window_fn(frame_length, dtype=...) or None for no window.
    """
    x = convert_to_tensor(signals)
    length = _known(frame_length, "frame_length")
    points = _enclosing_power_of_two(length) if fft_length is None else _known(fft_length, "fft_length")
    frames = frame(x, length, frame_step, pad_end)
    if window_fn is not None:
        frames = frames * window_fn(length, dtype=frames.dtype)
    return rfft(frames, [points])


@deferrable
def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Window | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """The signal whose overlapping, windowed frames have these Fourier transforms.

    To get back the signal of `stft`, give `window_fn=inverse_stft_window_fn(frame_step)`.
    """
    z = convert_to_tensor(stfts)
    length = _known(frame_length, "frame_length")
    points = _enclosing_power_of_two(length) if fft_length is None else _known(fft_length, "fft_length")
    frames = irfft(z, [points])
    if points > length:
        frames = frames[..., :length]
    elif points < length:
        border = creation.zeros([*dims(frames)[:-1], length - points], frames.dtype)
        frames = concat([frames, border], -1)
    if window_fn is not None:
        frames = frames * window_fn(length, dtype=frames.dtype)
    return overlap_and_add(frames, frame_step)


def inverse_stft_window_fn(frame_step: Any, forward_window_fn: Window = hann_window, name: str | None = None) -> Window:
    """A window function for `inverse_stft` that undoes the window of `stft`.

    Griffin and Lim, "Signal estimation from modified short-time Fourier transform" (1984): the window divided by the
    sum of the squares of its copies, `frame_step` apart.
    """
    step = _known(frame_step, "frame_step")

    def inverse_window(frame_length: Any, dtype: DTypeLike = dtypes.float32) -> Tensor:
        length = _known(frame_length, "frame_length")
        window = forward_window_fn(length, dtype=dtype)
        overlaps = -(-length // step)
        squares = call("square", window)
        filled = concat([squares, creation.zeros([overlaps * step - length], window.dtype)], 0)
        total = call("reduce_sum", call("reshape", filled, shape=(overlaps, step)), axis=(0,), keepdims=True)
        spread = call("reshape", call("tile", total, multiples=(overlaps, 1)), shape=(overlaps * step,))
        return window / spread[:length]

    return inverse_window
