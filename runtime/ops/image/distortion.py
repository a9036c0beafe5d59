"""Parts of images drawn at random that show the objects in them: for augmentation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime import dtypes, errors
from runtime.ops.convert import convert_to_tensor
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply
from runtime.ops.random import philox, stateful, stateless
from runtime.ops.rules import brackets
from runtime.ops.table import OpDef, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType

_FLOAT = dtypes.float32
# y1, x1, y2, x2, in pixels.
_Box = tuple[int, int, int, int]


def _crop(height: int, width: int, area: Sequence[Any], ratio: Any, words: philox.Words) -> _Box | None:
    """A random part of an image, whose width is `ratio` times its height; None if none has an area in the range."""
    one = np.float32
    least, most = one(area[0]) * one(width) * one(height), one(area[1]) * one(width) * one(height)

    def across(rows: int) -> int:
        return int(np.rint(one(rows) * ratio))

    tall, highest = int(np.rint(np.sqrt(least / ratio))), int(np.rint(np.sqrt(most / ratio)))
    if across(highest) > width:
        highest = int(one(width + 0.5 - 0.0000001) / ratio)
        highest -= across(highest) > width
    highest = min(highest, height)
    tall = min(tall, highest)
    if tall < highest:
        tall += words.below(highest - tall + 1)
    if tall * across(tall) < least:
        tall += 1
    if tall * across(tall) > most:
        tall -= 1
    wide = across(tall)
    if not least <= tall * wide <= most or not 0 < wide <= width or not 0 < tall <= height:
        return None
    y = words.below(height - tall) if tall < height else 0
    x = words.below(width - wide) if wide < width else 0
    return y, x, y + tall, x + wide


def _area(box: _Box) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])


def _covers(crop: _Box, boxes: list[_Box], part: Any) -> bool:
    """Whether a crop shows at least this part of one of the boxes."""
    for box in boxes:
        y1, x1, y2, x2 = (*map(max, crop[:2], box[:2]), *map(min, crop[2:], box[2:]))
        common = _area((y1, x1, y2, x2)) if y1 <= y2 and x1 <= x2 else 0
        if _area(box) >= 1 and np.float32(common) / np.float32(_area(box)) >= part:
            return True
    return False


def _kernel(
    state: Any, size: Any, boxes: Any, part: Any, ratios: tuple, area: tuple, attempts: int, whole: bool
) -> tuple:  # fmt: skip
    if size.shape != (3,) or boxes.ndim != 3 or boxes.shape[-1] != 4:
        raise ValueError("image_size must have 3 elements, bounding_boxes shape [batch, boxes, 4]")
    if part < 0:
        raise errors.InvalidArgumentError(f"Min object covered must be non-negative: {part}")
    if not np.all((boxes >= 0) & (boxes <= 1)):
        raise errors.InvalidArgumentError("All bounding box coordinates must be in [0.0, 1.0]")
    height, width = int(size[0]), int(size[1])
    sides = np.array([height, width, height, width], np.float32)
    objects: list[_Box] = [tuple(box) for box in (boxes.reshape(-1, 4) * sides).astype(np.int64).tolist()]
    if not objects and not whole:
        raise errors.InvalidArgumentError(
            "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish to not "
            "provide any bounding boxes."
        )
    everything = (0, 0, height, width)
    words, chosen = philox.Words(*stateless.stream_of(state)), everything
    first, last = np.float32(ratios[0]), np.float32(ratios[1])
    for _ in range(attempts):
        ratio = np.float32((next(words) & 0x7FFFFF) / (1 << 23)) * (last - first) + first
        found = _crop(height, width, area, ratio, words) if height > 0 and width > 0 and area[0] <= area[1] else None
        if found is not None and _covers(found, objects or [everything], part):
            chosen = found
            break
    y1, x1, y2, x2 = chosen
    begin, extent = np.array([y1, x1, 0], size.dtype), np.array([y2 - y1, x2 - x1, -1]).astype(size.dtype)
    return begin, extent, (np.array(chosen, np.float32) / sides).reshape(1, 1, 4)


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    _, size, boxes, _ = inputs
    if not size.dtype.is_integer or size.shape not in ((3,), (None,), None):
        raise ValueError(f"image_size must be 3 integers, got {size}")
    if boxes.shape is not None and (len(boxes.shape) != 3 or boxes.shape[2] not in (4, None)):
        raise ValueError(f"bounding_boxes must have shape [batch, boxes, 4], got {brackets(boxes.shape)}")
    return TensorType(size.dtype, (3,)), TensorType(size.dtype, (3,)), TensorType(_FLOAT, (1, 1, 4))


DISTORT = register(
    OpDef(
        "distorted_box", _infer, _kernel, multiple=True, kinds="iuf", label="StatelessSampleDistortedBoundingBox",
        cuts_gradient="a part of an image drawn at random has no gradient",
        doc="A part of an image, drawn from a state, that shows enough of one of its boxes.",
    )
)  # fmt: skip


class SampleDistortedBoundingBox(NamedTuple):
    """The results of `sample_distorted_bounding_box`."""

    begin: Tensor
    size: Tensor
    bboxes: Tensor


def _drawn(
    state: Callable[[int], Tensor], image_size: Any, boxes: Any, covered: Any, ratios: Any, area: Any, attempts: Any,
    whole: Any,
) -> SampleDistortedBoundingBox:  # fmt: skip
    ratios, area = tuple(map(float, ratios or (0.75, 1.33))), tuple(map(float, area or (0.05, 1.0)))
    attempts = 100 if attempts is None else int(attempts)
    for numbers, what in ((ratios, "Aspect ratio range"), (area, "Area range")):
        if len(numbers) != 2:
            raise errors.InvalidArgumentError(f"{what} field must specify 2 dimensions, got {numbers}")
        if min(numbers) <= 0:
            raise errors.InvalidArgumentError(f"{what} must be non-negative: {numbers}")
    if max(area) > 1:
        raise errors.InvalidArgumentError(f"Area range must be less then or equal to 1.0: {area}")
    if attempts <= 0:
        raise errors.InvalidArgumentError(f"Max attempts must be non-negative: {attempts}")
    operands = (
        state(attempts), convert_to_tensor(image_size), convert_to_tensor(boxes, _FLOAT),
        convert_to_tensor(covered, _FLOAT),
    )  # fmt: skip
    attrs = {"ratios": ratios, "area": area, "attempts": attempts, "whole": bool(whole)}
    return SampleDistortedBoundingBox(*apply(DISTORT, operands, attrs))


@deferrable
def sample_distorted_bounding_box(
    image_size: TensorLike, bounding_boxes: TensorLike, seed: int = 0, min_object_covered: Any = 0.1,
    aspect_ratio_range: Sequence[float] | None = None, area_range: Sequence[float] | None = None,
    max_attempts: int | None = None, use_image_if_no_bounding_boxes: bool | None = None, name: str | None = None,
) -> SampleDistortedBoundingBox:  # fmt: skip
    """Draws a part of an image that shows enough of an object in it. What to crop: `begin` and `size` for `ag.slice`,
    and the same as a box, `bboxes`, float32, shape (1, 1, 4).

    image_size: height, width and channels, integers. bounding_boxes: the objects, float32, shape (batch, boxes, 4):
    y1, x1, y2, x2, from 0 to 1. seed: see `ag.random.set_seed`; 0 for none. min_object_covered: the part of one of the
    boxes that must be seen. aspect_ratio_range: of width to height, by default 0.75 to 1.33. area_range: parts of the
    image, by default 0.05 to 1. max_attempts: after as many, by default 100, it is the whole image.
    use_image_if_no_bounding_boxes: whether the image is the object where there are no boxes.
    Raises InvalidArgumentError for other shapes and ranges, and without boxes.
    """
    return _drawn(
        lambda count: stateful.state_for(count, "distorted_box", seed or None), image_size, bounding_boxes,
        min_object_covered, aspect_ratio_range, area_range, max_attempts, use_image_if_no_bounding_boxes,
    )  # fmt: skip


@deferrable
def stateless_sample_distorted_bounding_box(
    image_size: TensorLike, bounding_boxes: TensorLike, seed: Any, min_object_covered: Any = 0.1,
    aspect_ratio_range: Sequence[float] | None = None, area_range: Sequence[float] | None = None,
    max_attempts: int | None = None, use_image_if_no_bounding_boxes: bool | None = None, name: str | None = None,
) -> SampleDistortedBoundingBox:  # fmt: skip
    """`sample_distorted_bounding_box` by `seed`, two integers: TensorFlow's numbers."""
    return _drawn(
        lambda count: stateless.state_of(seed), image_size, bounding_boxes, min_object_covered, aspect_ratio_range,
        area_range, max_attempts, use_image_if_no_bounding_boxes,
    )  # fmt: skip
