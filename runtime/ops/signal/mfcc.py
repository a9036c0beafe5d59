"""Modified cosine transforms, mel filters and cepstral coefficients of `ag.signal`, written with other ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.dtypes import DTypeLike
from runtime.ops.arrays.joining import concat, split
from runtime.ops.arrays.rearrange import reverse
from runtime.ops.convert import convert_to_tensor
from runtime.ops.deferred_calls import deferrable
from runtime.ops.signal.fourier import dct
from runtime.ops.signal.stft import frame, overlap_and_add, vorbis_window
from runtime.tensor import Tensor

Window = Callable[..., Tensor]


def _windowed(frames: Tensor, length: int, window_fn: Window | None) -> Tensor:
    if window_fn is None:
        return frames * float(1.0 / np.sqrt(2.0))
    return frames * window_fn(length, dtype=frames.dtype)


@deferrable
def mdct(
    signals: Any, frame_length: int, window_fn: Window | None = vorbis_window, pad_end: bool = False,
    norm: str | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The modified discrete cosine transform: [..., frames, frame_length // 2] of signals of shape [..., samples].

    frame_length: a multiple of 4; frames overlap by half. window_fn: None for a flat window. norm: None or "ortho".
    Raises ValueError for another frame_length. Princen, Johnson, Bradley, "Subband/transform coding using filter bank
    designs based on time domain aliasing cancellation" (1987).
    """
    length = int(frame_length)
    if length % 4 or length < 4:
        raise ValueError(f"The frame length must be a multiple of 4, got {length}")
    frames = _windowed(frame(signals, length, length // 2, pad_end), length, window_fn)
    a, b, c, d = split(frames, 4, axis=-1)
    return dct(concat([-reverse(c, [-1]) - d, a - reverse(b, [-1])], -1), type=4, norm=norm)


@deferrable
def inverse_mdct(
    mdcts: Any, window_fn: Window | None = vorbis_window, norm: str | None = None, name: str | None = None
) -> Tensor:
    """The signals [..., samples] of modified cosine transforms [..., frames, frame_length // 2], but for the first and
    last half frame. Raises ValueError if the number of coefficients isn't known."""
    x = convert_to_tensor(mdcts)
    half = x.shape[-1]
    if half is None:
        raise ValueError(f"inverse_mdct needs to know the number of coefficients, got shape {x.shape}")
    folded = dct(x, type=4, norm=norm)
    if norm is None:
        folded = folded * float(0.5 / half)
    first, second = split(folded, 2, axis=-1)
    frames = concat([second, -reverse(second, [-1]), -reverse(first, [-1]), -first], -1)
    return overlap_and_add(_windowed(frames, 2 * half, window_fn), half)


def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0)


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20, num_spectrogram_bins: int = 129, sample_rate: float = 8000,
    lower_edge_hertz: float = 125.0, upper_edge_hertz: float = 3800.0, dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The matrix [num_spectrogram_bins, num_mel_bins] that turns linear spectrograms into mel ones: triangular filters.

    The mel scale is 1127 ln(1 + f / 700 Hz). Raises ValueError for edges that aren't 0 <= lower < upper <= sample_rate
    / 2, and for numbers of bins and rates that aren't positive.
    """
    if num_mel_bins <= 0 or num_spectrogram_bins <= 0 or sample_rate <= 0:
        raise ValueError(
            f"num_mel_bins, num_spectrogram_bins and sample_rate must be positive, got {num_mel_bins}, "
            f"{num_spectrogram_bins} and {sample_rate}"
        )
    if not 0 <= lower_edge_hertz < upper_edge_hertz <= sample_rate / 2:
        raise ValueError(
            f"need 0 <= lower_edge_hertz < upper_edge_hertz <= {sample_rate / 2}, got {lower_edge_hertz} and "
            f"{upper_edge_hertz}"
        )
    bins = _mel(np.linspace(0.0, sample_rate / 2, num_spectrogram_bins)[1:])[:, None]
    edges = np.linspace(_mel(lower_edge_hertz), _mel(upper_edge_hertz), num_mel_bins + 2)
    lower, centre, upper = edges[:-2], edges[1:-1], edges[2:]
    weights = np.minimum((bins - lower) / (centre - lower), (upper - bins) / (upper - centre))
    # The constant part, bin 0, belongs to no filter.
    return convert_to_tensor(np.pad(np.maximum(0.0, weights), [[1, 0], [0, 0]]).astype(dtypes.as_dtype(dtype).np))


@deferrable
def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """The cepstral coefficients of log mel spectrograms [..., bins]: their cosine transform over sqrt(2 bins).

    Raises ValueError if the number of bins isn't known, or is 0.
    """
    x = convert_to_tensor(log_mel_spectrograms)
    if not x.shape[-1]:
        raise ValueError(f"num_mel_bins must be a known positive number, got {x.shape[-1]}")
    return dct(x) * float(1.0 / np.sqrt(2.0 * x.shape[-1]))
