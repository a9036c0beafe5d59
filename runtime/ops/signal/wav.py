"""Sound as files of the form WAV (RIFF), with samples of 16 bits."""

from __future__ import annotations

import io
import struct
import wave
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime import dtypes, errors
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply
from runtime.ops.rules import brackets
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor
from runtime.types import TensorType

_LARGEST = 1 << 15


def _decode_kernel(contents: Any, desired_channels: int, desired_samples: int) -> tuple:
    data = bytes(np.asarray(contents)[()])
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise errors.InvalidArgumentError(f"Header mismatch: Expected RIFF and WAVE but found {data[:12]!r}")
    try:
        with wave.open(io.BytesIO(data)) as file:
            channels, width, rate, count = (
                file.getnchannels(),
                file.getsampwidth(),
                file.getframerate(),
                file.getnframes(),
            )
            if width != 2:
                raise errors.InvalidArgumentError(f"Can only read 16-bit WAV files, but received {8 * width}")
            frames = file.readframes(count)
    except (wave.Error, EOFError, struct.error) as error:
        raise errors.InvalidArgumentError(f"This is not a WAV file, or it is damaged: {error}") from None
    if len(frames) < 2 * channels * count:
        raise errors.InvalidArgumentError(f"Data too short when trying to read {count} samples")
    sound = np.frombuffer(frames, "<i2").reshape(-1, channels).astype(np.float32) / _LARGEST
    if desired_channels > 0:
        sound = sound[:, np.minimum(np.arange(desired_channels), channels - 1)]
    if desired_samples > 0:
        sound = np.pad(sound[:desired_samples], ((0, max(desired_samples - len(sound), 0)), (0, 0)))
    return np.ascontiguousarray(sound), np.int32(rate)


def wav_file(audio: np.ndarray, rate: int) -> bytes:
    """The contents of a file with the samples [samples, channels], numbers from -1 to 1. Raises InvalidArgumentError
    without channels, and for a rate below 1."""
    if audio.shape[1] < 1 or int(rate) < 1:
        raise errors.InvalidArgumentError(
            f"num_channels and sample_rate must be positive, got {audio.shape[1]}, {rate}"
        )
    scaled = audio.astype(np.float64) * _LARGEST
    rounded = np.trunc(scaled + np.copysign(0.5, scaled))  # halves away from zero
    samples = np.clip(np.nan_to_num(rounded), -_LARGEST, _LARGEST - 1).astype("<i2")
    target = io.BytesIO()
    with wave.open(target, "wb") as file:
        file.setnchannels(audio.shape[1])
        file.setsampwidth(2)
        file.setframerate(int(rate))
        file.writeframes(samples.tobytes())
    return target.getvalue()


def _encode_kernel(audio: Any, rate: Any) -> Any:
    result = np.empty((), np.dtype(object))
    result[()] = wav_file(audio, rate)
    return result


def _infer_decode(inputs: Sequence[Any], attrs: dict) -> tuple:
    if inputs[0].dtype is not dtypes.string or inputs[0].shape not in ((), None):
        raise ValueError(f"contents must be a scalar string, got {inputs[0]}")
    sizes = (attrs["desired_samples"], attrs["desired_channels"])
    shape = tuple([size if size > 0 else None for size in sizes])
    return TensorType(dtypes.float32, shape), TensorType(dtypes.int32, ())


def _infer_encode(inputs: Sequence[Any], attrs: dict) -> tuple:
    shape = inputs[0].shape
    if shape is not None and len(shape) != 2:
        raise ValueError(f"audio must be 2-dimensional, got shape {brackets(shape)}")
    return (TensorType(dtypes.string, ()),)


_SOUND = np.array([[0.0], [0.5], [-1.0]], np.float32)
DECODE = register(
    OpDef(
        "decode_wav", _infer_decode, _decode_kernel, multiple=True, kinds="O", doc="Decodes a WAV file into samples.",
        grad=lambda op, *dy: [None],
        samples=(
            Sample(((),), {"desired_channels": -1, "desired_samples": -1},
                   fixed={0: _encode_kernel(_SOUND, 8000)}, gradient=()),
        ),
    )
)  # fmt: skip
ENCODE = register(
    OpDef(
        "encode_wav", _infer_encode, _encode_kernel, kinds="fi", doc="Encodes samples as a WAV file.",
        grad=lambda op, dy: [None, None],
        samples=(Sample(((3, 1), ()), fixed={0: _SOUND, 1: np.int32(8000)}, gradient=()),),
    )
)  # fmt: skip


class DecodedSound(NamedTuple):
    """Samples in [-1, 1), shape (samples, channels), and how many there are in a second."""

    audio: Tensor
    sample_rate: Tensor


def decode_wav(
    contents: Any, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> DecodedSound:
    """The samples of a WAV file of 16 bits, float32 in [-1, 1), shape (samples, channels), and their rate, int32.

    contents: the bytes of the file, a scalar string. desired_channels: the number of channels; the last one is
    repeated, or channels are dropped. desired_samples: the number of samples; the end is padded with 0 or cut off.
    Raises InvalidArgumentError for other files.
    """
    attrs = {"desired_channels": int(desired_channels), "desired_samples": int(desired_samples)}
    audio, rate = apply(DECODE, (convert_to_tensor(contents, dtypes.string),), attrs)
    return DecodedSound(audio, rate)


def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Tensor:
    """A WAV file of 16 bits as a scalar string.

    audio: float32 in [-1, 1), shape (samples, channels); values outside are clipped. sample_rate: samples per second.
    Raises InvalidArgumentError for other shapes and rates.
    """
    operands = convert_to_tensor(audio, dtypes.float32), convert_to_tensor(sample_rate, dtypes.int32)
    found: Tensor = apply(ENCODE, operands)
    return found
