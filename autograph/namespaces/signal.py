"""`ag.signal`: Fourier and cosine transforms, frames and windows."""

from __future__ import annotations

from runtime.ops.signal.fourier import (
    dct,
    fft,
    fft2d,
    fft3d,
    fftshift,
    idct,
    ifft,
    ifft2d,
    ifft3d,
    ifftshift,
    irfft,
    irfft2d,
    irfft3d,
    rfft,
    rfft2d,
    rfft3d,
)
from runtime.ops.signal.mfcc import inverse_mdct, linear_to_mel_weight_matrix, mdct, mfccs_from_log_mel_spectrograms
from runtime.ops.signal.stft import (
    frame,
    hamming_window,
    hann_window,
    inverse_stft,
    inverse_stft_window_fn,
    kaiser_bessel_derived_window,
    kaiser_window,
    overlap_and_add,
    stft,
    vorbis_window,
)

__all__ = [
    "dct", "fft", "fft2d", "fft3d", "fftshift", "frame", "hamming_window", "hann_window", "idct", "ifft", "ifft2d",
    "ifft3d", "ifftshift", "inverse_mdct", "inverse_stft", "inverse_stft_window_fn", "irfft", "irfft2d", "irfft3d",
    "kaiser_bessel_derived_window", "kaiser_window", "linear_to_mel_weight_matrix", "mdct",
    "mfccs_from_log_mel_spectrograms", "overlap_and_add", "rfft", "rfft2d", "rfft3d", "stft", "vorbis_window",
]  # fmt: skip
