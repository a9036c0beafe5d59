"""Parts of images, and images in larger ones."""

from __future__ import annotations

from typing import Any

from runtime import dtypes
from runtime.ops.arrays.rearrange import pad
from runtime.ops.arrays.shape_ops import ensure_shape
from runtime.ops.arrays.slicing import slice_
from runtime.ops.convert import convert_to_tensor, is_tensor_like, static_value
from runtime.ops.deferred_calls import deferrable
from runtime.ops.elementwise.elementary import cast
from runtime.ops.image.checks import at_least_3d, batch_of, need, unbatched
from runtime.ops.rules import dims
from runtime.tensor import Tensor, TensorLike


def _number(value: Any) -> Any:
    """An int where it is known, else a scalar int32 tensor."""
    if not is_tensor_like(value):
        return int(value)
    tensor = convert_to_tensor(value)
    known = static_value(tensor)
    return cast(tensor, dtypes.int32) if known is None else int(known)


def _at_least_zero(value: Any) -> Any:
    return value >= 0


def _positive(value: Any) -> Any:
    return value > 0


@deferrable
def pad_to_bounding_box(
    image: TensorLike, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """Places images in larger ones that are zero elsewhere.

    image: shape (batch, height, width, channels) or (height, width, channels). offset_height, offset_width: rows above
    and columns to the left. target_height, target_width: of the result.
    Raises ValueError for images of another rank, negative offsets, and images that don't fit (InvalidArgumentError if
    that is known only at run time).
    """
    x, single = batch_of(at_least_3d(convert_to_tensor(image)), "'image'")
    top, left, height, width = map(_number, (offset_height, offset_width, target_height, target_width))
    old = dims(x)[1:3]
    below, right = height - top - old[0], width - left - old[1]
    need(top, _at_least_zero, "offset_height must be >= 0")
    need(left, _at_least_zero, "offset_width must be >= 0")
    need(right, _at_least_zero, "width must be <= target - offset")
    need(below, _at_least_zero, "height must be <= target - offset")
    padded = pad(x, [[0, 0], [top, below], [left, right], [0, 0]])
    return unbatched(_of_size(padded, height, width, x), single)


def _of_size(result: Tensor, height: Any, width: Any, like: Tensor) -> Tensor:
    """With the static shape that follows from what is known of height and width."""
    if result._shape is not None and None not in result._shape:
        return result
    sides = [side if isinstance(side, int) else None for side in (height, width)]
    shape = like._shape or (None,) * 4
    return ensure_shape(result, [shape[0], *sides, shape[3]])


@deferrable
def crop_to_bounding_box(
    image: TensorLike, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """A part of images.

    image: shape (batch, height, width, channels) or (height, width, channels). offset_height, offset_width: its first
    row and column. target_height, target_width: its size.
    Raises ValueError for images of another rank, negative offsets, sizes that aren't positive, and parts that extend
    beyond the images (InvalidArgumentError if that is known only at run time).
    """
    x, single = batch_of(at_least_3d(convert_to_tensor(image)), "'image'")
    top, left, height, width = map(_number, (offset_height, offset_width, target_height, target_width))
    old = dims(x)[1:3]
    need(left, _at_least_zero, "offset_width must be >= 0.")
    need(top, _at_least_zero, "offset_height must be >= 0.")
    need(width, _positive, "target_width must be > 0.")
    need(height, _positive, "target_height must be > 0.")
    need(old[1] - (left + width), _at_least_zero, "width must be >= target + offset.")
    need(old[0] - (top + height), _at_least_zero, "height must be >= target + offset.")
    cropped = slice_(x, [0, top, left, 0], [-1, height, width, -1])
    return unbatched(_of_size(cropped, height, width, x), single)


@deferrable
def central_crop(image: TensorLike, central_fraction: Any) -> Tensor:
    """Crops the central part of images: a fraction of their height and width.

    image: shape (batch, height, width, channels) or (height, width, channels). central_fraction: in (0, 1], a number or
    a scalar tensor. Raises ValueError for another fraction and for images of another rank.
    """
    x = convert_to_tensor(image)
    known = static_value(central_fraction) if isinstance(central_fraction, Tensor) else central_fraction
    need(central_fraction, lambda f: (f > 0.0) & (f <= 1.0), "central_fraction must be within (0, 1]")
    if known is not None and known == 1.0:
        return x
    if x._shape is not None and len(x._shape) not in (3, 4):
        raise ValueError(f"`image` should either be a Tensor with rank = 3 or rank = 4. Had rank = {len(x._shape)}.")
    images, single = batch_of(at_least_3d(x), "'image'")
    starts, sizes = [], []
    for side in dims(images)[1:3]:
        if isinstance(side, int) and known is not None:
            start: Any = int((float(side) - float(side) * float(known)) / 2)
        else:
            whole = cast(convert_to_tensor(side), dtypes.float64)
            part = whole * cast(convert_to_tensor(central_fraction), dtypes.float64)
            start = cast((whole - part) / 2.0, dtypes.int32)
        starts.append(start)
        sizes.append(side - start * 2)
    return unbatched(slice_(images, [0, *starts, 0], [-1, *sizes, -1]), single)
