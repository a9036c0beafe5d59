"""Summaries: what is written, under what tag, at what step.

    scalar("loss", x, step=n)   →   host_call(int64(n), float32(x); function=_Record(writer, "loss", ...))

In a traced function the call is an effect, so that summaries come in the program's order. What costs time, as sorting
values into buckets, is done when a summary is written and not by the program.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from autograph.operators.functional_control import cond
from autograph.summaries import png
from autograph.summaries.event_files import EventFile, metadata_of, protos
from autograph.summaries.writers import FileWriter, run, should_record_summaries, state
from runtime import dtypes
from runtime.context import ctx, name_scope
from runtime.dataclass import dataclass
from runtime.errors import InvalidArgumentError
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.elementary import cast
from runtime.ops.facts import get_static_value
from runtime.ops.image.colors import convert_image_dtype
from runtime.ops.signal.wav import wav_file
from runtime.tensor import Tensor

_BUCKETS = 30
_NOT_IN_SCOPES = re.compile(r"[^-_/.A-Za-z0-9]")


@dataclass(frozen=True, eq=False)
class _Record:
    """Adds a summary to a writer's file. encode: makes what is written of the tensor's array."""

    writer: FileWriter
    tag: str
    metadata: Any
    encode: Callable[[np.ndarray], np.ndarray] | None = None

    def __call__(self, step: np.ndarray, value: np.ndarray) -> None:
        file: EventFile = self.writer.file
        encoded = value if self.encode is None else self.encode(value)
        file.add_summary(self.tag, encoded, int(step.item()), self.metadata)


@contextlib.contextmanager
def summary_scope(name: str, default_name: str = "summary", values: Any = None) -> Iterator[tuple[str, str]]:
    """A block for your own kind of summary: returns its tag and the scope of its operations.

    The tag is `name`, or `default_name` if that is empty, after the open `name_scope`s. In a traced function, scopes
    around the call don't count, since later calls may have others.
    """
    name = name or default_name
    tag = ctx.scope.removeprefix(_scope_around_function()) + name
    with name_scope(_NOT_IN_SCOPES.sub("", name) or default_name) as scope:
        yield tag, scope


def _scope_around_function() -> str:
    builder = ctx.builder
    while builder is not None and builder.parent is not None:
        builder = builder.parent
    return getattr(builder, "outer_scope", "")


def write(tag: str, tensor: Any, step: Any = None, metadata: Any = None, name: str | None = None) -> Tensor:
    """Writes a tensor to the default writer, if there is one and `record_if` allows it; returns whether it did.

    tensor: the tensor, or a function without arguments that returns it, called only if it is written. step: an
    integer, by default that of `as_default` or `set_step`. metadata: TensorBoard's `SummaryMetadata`, or its bytes.

    Raises ValueError for a step that isn't a scalar, and for a summary without a step; TypeError for
    a step that isn't an integer.
    """
    return _write(tag, tensor if callable(tensor) else lambda: tensor, step, metadata)


def _write(
    tag: str,
    tensor: Callable[[], Any],
    step: Any,
    metadata: Any,
    encode: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Tensor:
    if step is not None:
        step = _checked_step(step)
    writer = state.writer
    if not isinstance(writer, FileWriter):
        return convert_to_tensor(False)
    if step is None:
        step = state.step
    if isinstance(metadata, bytes):
        metadata = protos().summary_pb2.SummaryMetadata.FromString(metadata)

    def record() -> Tensor:
        if step is None:
            raise ValueError(
                "No step set. Please specify one either through the `step` argument or through "
                "summary.experimental.set_step()"
            )
        run(_Record(writer, tag, metadata, encode), _checked_step(step), convert_to_tensor(tensor()))
        return convert_to_tensor(True)

    should = should_record_summaries()
    known = get_static_value(should)
    if known is not None:
        return record() if known else convert_to_tensor(False)
    return cond(should, record, lambda: convert_to_tensor(False))


def _checked_step(step: Any) -> Tensor:
    tensor = convert_to_tensor(step, dtype_hint=dtypes.int64)
    if not tensor.dtype.is_integer:
        raise TypeError(f"Argument `step` must be an integer. Received a step of dtype {tensor.dtype.name}.")
    if tensor.shape.num_elements() not in (None, 1):
        raise ValueError(f"Argument `step` must be a scalar. Received step with shape {tensor.shape}.")
    return cast(tensor, dtypes.int64)


def _write_kind(
    plugin: str,
    name: str,
    tensor: Callable[[], Any],
    step: Any,
    description: str | None,
    encode: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Tensor:
    with summary_scope(name, f"{plugin.rstrip('s')}_summary") as (tag, _):
        metadata = None if state.writer is None else metadata_of(plugin, description)
        return _write(tag, tensor, step, metadata, encode)


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Writes a number, as float32, for TensorBoard's time series; returns whether it did.

    name: the tag, after the open `name_scope`s. step: an integer, by default that of `as_default` or `set_step`.
    description: TensorBoard's description of the tag, in Markdown.

    Raises ValueError for data that isn't a scalar, and otherwise what `write` does.
    """
    tensor = convert_to_tensor(data)
    if tensor.shape.rank not in (None, 0):
        raise ValueError(f"Expected scalar shape, saw shape: {tensor.shape}.")
    return _write_kind("scalars", name, lambda: cast(tensor, dtypes.float32), step, description)


def histogram(
    name: str, data: Any, step: Any = None, buckets: int | None = None, description: str | None = None
) -> Tensor:
    """Writes the distribution of the values in a tensor of any shape; returns whether it did.

    buckets: into how many intervals of one width, from the least value to the greatest, the values are sorted; 30 by
    default. What is written has shape [buckets, 3]: left edge, right edge and count of each. Where all values are
    equal, the last one counts them. The other arguments are those of `scalar`. Raises what `write` does, TypeError for
    a number of buckets that isn't an integer.
    """
    wanted = _BUCKETS if buckets is None else buckets
    count = wanted if isinstance(wanted, int) else get_static_value(wanted)
    if count is None or isinstance(count, float):
        raise TypeError(f"buckets must be an integer that is known while tracing, got {buckets!r}")
    count = max(0, int(count))

    def values() -> Tensor:
        return cast(convert_to_tensor(data), dtypes.float64)

    return _write_kind("histograms", name, values, step, description, lambda array: bucketed(array, count))


def bucketed(values: np.ndarray, count: int) -> np.ndarray:
    """Left edges, right edges and counts of `count` buckets over the values, of shape [count, 3], float64."""
    values = values.ravel()
    found = np.zeros((count, 3))
    if not count or not values.size:
        return found
    low, high = values.min(), values.max()
    if low == high:
        found[:, :2] = high
        found[-1, 2] = values.size
        return found
    width = (high - low) / count
    places = np.minimum(np.floor((values - low) / width), count - 1)
    edges = np.linspace(low, high, count + 1)
    found[:, 0], found[:, 1] = edges[:-1], edges[1:]
    # What isn't a number is in no bucket.
    found[:, 2] = np.bincount(places[places >= 0].astype(np.int64), minlength=count)
    return found


def image(name: str, data: Any, step: Any = None, max_outputs: Any = 3, description: str | None = None) -> Tensor:
    """Writes images, as PNG; returns whether it did.

    data: of shape [images, height, width, channels]: grey, grey with alpha, RGB or RGBA. Floating-point numbers are
    from 0 to 1, others are scaled as `image.convert_image_dtype` does. max_outputs: how many images are written at
    most. The other arguments are those of `scalar`.

    Raises ValueError for data of another rank, InvalidArgumentError for other numbers of channels and a negative
    `max_outputs`, and otherwise what `write` does.
    """

    def pixels() -> Tensor:
        images = convert_to_tensor(data)
        if images.shape.rank not in (None, 4):
            raise ValueError(f"Images must have rank 4. Received rank {images.shape.rank}, shape {images.shape}")
        return convert_image_dtype(images[: _checked_limit(max_outputs)], dtypes.uint8, saturate=True)

    return _write_kind("images", name, pixels, step, description, _encoded)


def _encoded(images: np.ndarray) -> np.ndarray:
    """Width, height and a PNG file for each image."""
    if images.ndim != 4 or images.shape[3] not in (1, 2, 3, 4):
        raise InvalidArgumentError(f"An image must have 1, 2, 3, or 4 channels, got images of shape {images.shape}")
    _, height, width, _ = images.shape
    found = [str(width).encode(), str(height).encode(), *(png.encode(each) for each in images)]
    return np.array(found, object)


def audio(
    name: str,
    data: Any,
    sample_rate: Any,
    step: Any = None,
    max_outputs: Any = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> Tensor:
    """Writes sounds, as WAV with samples of 16 bits; returns whether it did.

    data: of shape [sounds, samples, channels], floating-point numbers from -1 to 1. sample_rate: samples in a second.
    max_outputs: how many sounds are written at most. encoding: None or "wav". The other arguments are those of
    `scalar`.

    Raises ValueError for data of another rank and another encoding, TypeError for a rate that isn't known while
    tracing, InvalidArgumentError for a negative `max_outputs`, and otherwise what `write` does.
    """
    if encoding not in (None, "wav"):
        raise ValueError(f"Unknown encoding: {encoding!r}")
    rate = get_static_value(convert_to_tensor(sample_rate))
    if rate is None:
        raise TypeError(f"sample_rate must be an integer that is known while tracing, got {sample_rate!r}")

    def sounds() -> Tensor:
        tensor = convert_to_tensor(data)
        if tensor.shape.rank not in (None, 3):
            raise ValueError(f"Sounds must have rank 3. Received rank {tensor.shape.rank}, shape {tensor.shape}")
        return cast(tensor[: _checked_limit(max_outputs)], dtypes.float32)

    return _write_kind("audio", name, sounds, step, description, lambda array: _wav_files(array, int(rate)))


def _wav_files(sounds: np.ndarray, rate: int) -> np.ndarray:
    """A WAV file for each sound, beside its label, which is empty."""
    found = np.full((len(sounds), 2), b"", object)
    for row, sound in zip(found, sounds):
        row[0] = wav_file(sound, rate)
    return found


def _checked_limit(max_outputs: Any) -> Any:
    limit = get_static_value(max_outputs) if isinstance(max_outputs, Tensor) else max_outputs
    if limit is not None and limit < 0:
        raise InvalidArgumentError(f"max_outputs must not be negative, got {limit}")
    return max_outputs


def text(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Writes a string, or a tensor of them, which TensorBoard shows as Markdown; returns whether it did.

    data: a tensor of strings; TensorBoard shows those of rank 1 and 2 as tables. The other arguments are those of
    `scalar`. Raises TypeError for data that aren't strings, and otherwise what `write` does.
    """
    tensor = convert_to_tensor(data)
    if tensor.dtype is not dtypes.string:
        raise TypeError(f"tensor must be of type string; got {tensor.dtype.name}")
    return _write_kind("text", name, lambda: tensor, step, description)
