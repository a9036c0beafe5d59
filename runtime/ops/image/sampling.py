"""Images read between their pixels: boxes cut out and resized, and projective transformations.

Pixel (y, x) has its centre at the point (y, x).
"""

from __future__ import annotations

from typing import Any

from runtime import dtypes, errors
from runtime.ops.arrays.creation import range as range_
from runtime.ops.arrays.gather import gather
from runtime.ops.arrays.reduce import reduce_all
from runtime.ops.arrays.shape_ops import ensure_shape, expand_dims
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor, int_list
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import call
from runtime.ops.elementwise.arithmetic import abs as abs_
from runtime.ops.elementwise.arithmetic import clip_by_value
from runtime.ops.elementwise.compare import equal, greater, greater_equal, less, less_equal, logical_and, where
from runtime.ops.elementwise.elementary import cast, ceil, floor, trunc
from runtime.ops.image.checks import need_positive
from runtime.ops.rules import brackets, dims, product, shape_attr
from runtime.tensor import Tensor, TensorLike

_FLOAT, _INT = dtypes.float32, dtypes.int32


class _Pixels:
    """The pixels of a batch in one table, read at rows and columns within the images."""

    def __init__(self, images: Tensor) -> None:
        batch, self.height, self.width, channels = dims(images)
        shape, extra = shape_attr([product([batch, self.height, self.width]), channels])
        self.table = call("reshape", images, *extra, shape=shape)

    def at(self, image: Tensor, y: Tensor, x: Tensor) -> Tensor:
        """Shape (*places, channels). image, y, x: int32, of shapes that broadcast."""
        return gather(self.table, (image * self.height + y) * self.width + x)


def _last(side: Any) -> Tensor:
    """The place of the last of the rows or columns, as a float."""
    return cast(convert_to_tensor(side - 1), _FLOAT)


def _two_sizes(value: Any, what: str) -> list[Any]:
    entries = int_list(value, what)
    if len(entries) != 2:
        raise errors.InvalidArgumentError(f"{what} must have two elements, got {value!r}", "CropAndResize")
    for entry in entries:
        need_positive(entry, f"{what} must be positive")  # type: ignore[arg-type]
    return [cast(entry, _INT) if isinstance(entry, Tensor) else entry for entry in entries]


def _places_in_boxes(low: Tensor, high: Tensor, count: Any, last: Tensor) -> Tensor:
    """Points in each box, shape (boxes, count): evenly from one edge to the other, or one in the middle."""
    steps = expand_dims(cast(range_(count), _FLOAT), 0)
    low, high = expand_dims(low, 1) * last, expand_dims(high, 1) * last
    if isinstance(count, int):
        return low + steps * ((high - low) / float(count - 1)) if count > 1 else 0.5 * (low + high)
    spaces = cast(count - 1, _FLOAT)
    several = low + steps * ((high - low) / where(greater(spaces, 0.0), spaces, spaces + 1.0))
    return where(greater(count, 1), several, 0.5 * (low + high))


@deferrable
def crop_and_resize(
    image: TensorLike, boxes: Any, box_indices: Any, crop_size: Any, method: str = "bilinear",
    extrapolation_value: Any = 0.0, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Crops boxes from images, and resizes them to one size. Shape (boxes, *crop_size, channels), float32.

    image: numbers, shape (batch, height, width, channels). boxes: float32, shape (boxes, 4): y1, x1, y2, x2, of which 0
    is the centre of the first pixel and 1 that of the last. box_indices: the image of each box. crop_size: height and
    width. method: "bilinear" or "nearest". Pixels outside of an image are `extrapolation_value`.
    Differentiable with respect to images and (bilinear) boxes.
    Raises InvalidArgumentError for other shapes and methods and sizes that aren't positive, OutOfRangeError for an
    image index out of range.
    """
    if method not in ("bilinear", "nearest"):
        raise errors.InvalidArgumentError(
            f'Value for attr \'method\' of "{method}" is not in the list of allowed values: "bilinear", "nearest"'
        )
    x, corners, owners = convert_to_tensor(image), convert_to_tensor(boxes, _FLOAT), convert_to_tensor(box_indices)
    for what, tensor, rank in (("input image", x, 4), ("boxes", corners, 2), ("box_index", owners, 1)):
        if tensor._shape is None:
            raise ValueError(f"{what} must have a known rank")
        if len(tensor._shape) != rank:
            raise errors.InvalidArgumentError(f"{what} must be {rank}-D, got shape {brackets(tensor._shape)}")
    if corners._shape[1] not in (4, None):  # type: ignore[index]
        raise errors.InvalidArgumentError(f"boxes must have 4 columns, got shape {brackets(corners._shape)}")
    height, width = _two_sizes(crop_size, "crop_size")
    pixels = _Pixels(cast(x, _FLOAT))
    bottom, right = _last(pixels.height), _last(pixels.width)
    count = dims(x)[0]
    assert_op(
        reduce_all(logical_and(greater_equal(owners, 0), less(owners, count))),
        "box_index has values outside [0, batch_size)",
        "OutOfRangeError",
    )
    owner = expand_dims(expand_dims(cast(owners, _INT), 1), 2)
    y = _places_in_boxes(corners[:, 0], corners[:, 2], height, bottom)
    x_ = _places_in_boxes(corners[:, 1], corners[:, 3], width, right)
    inside = logical_and(expand_dims(_within(y, bottom), 2), expand_dims(_within(x_, right), 1))
    y = expand_dims(clip_by_value(y, 0.0, bottom), 2)
    x_ = expand_dims(clip_by_value(x_, 0.0, right), 1)
    if method == "nearest":
        found = pixels.at(owner, cast(floor(y + 0.5), _INT), cast(floor(x_ + 0.5), _INT))
    else:
        top, left = floor(y), floor(x_)
        below, beside = ceil(y), ceil(x_)
        down, across = expand_dims(y - top, -1), expand_dims(x_ - left, -1)
        rows = []
        for row in (top, below):
            pair = [pixels.at(owner, cast(row, _INT), cast(column, _INT)) for column in (left, beside)]
            rows.append(pair[0] + (pair[1] - pair[0]) * across)
        found = rows[0] + (rows[1] - rows[0]) * down
    return where(expand_dims(inside, -1), found, cast(convert_to_tensor(extrapolation_value), _FLOAT))


def _within(places: Tensor, last: Tensor) -> Tensor:
    return logical_and(greater_equal(places, 0.0), less_equal(places, last))


# --- projective transformations --------------------------------------------------------------------------------------


def _reflected(at: Tensor, length: Tensor) -> Tensor:
    """(d c b a | a b c d | d c b a)."""
    whole = 2.0 * length
    below = where(less(at, whole), whole * trunc(-at / whole) + at, at)
    below = where(less(below, -length), below + whole, -below - 1.0)
    above = at - whole * trunc(at / whole)
    above = where(greater_equal(above, length), whole - above - 1.0, above)
    return where(less(at, 0.0), below, where(greater(at, length - 1.0), above, at))


def _wrapped(at: Tensor, length: Tensor) -> Tensor:
    """(a b c d | a b c d | a b c d)."""
    last = length - 1.0
    divisor = where(greater(last, 0.0), last, last + 1.0)
    below = at + length * (trunc(-at / divisor) + 1.0)
    above = at - length * trunc(at / divisor)
    return where(less(at, 0.0), below, where(greater(at, last), above, at))


def _mapped(at: Tensor, side: Any, mode: str) -> Tensor:
    """Places of which those outside of an image are read elsewhere."""
    length = cast(convert_to_tensor(side), _FLOAT)
    if mode == "CONSTANT":
        return at
    if mode != "NEAREST":
        at = where(greater(length, 1.0), (_reflected if mode == "REFLECT" else _wrapped)(at, length), at * 0.0)
    return clip_by_value(at, 0.0, length - 1.0)


@deferrable
def projective_transform(
    images: TensorLike,
    transforms: Any,
    output_shape: Any = None,
    fill_value: Any = 0.0,
    interpolation: str = "BILINEAR",
    fill_mode: str = "CONSTANT",
    name: str | None = None,
) -> Tensor:
    """Transforms images by projective maps, as TensorFlow's ImageProjectiveTransformV3.

    The pixel (x, y) of the result is read at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with
    k = c0 x + c1 y + 1.
    images: numbers, shape (batch, height, width, channels). transforms: float32, shape (batch or 1, 8): rows
    [a0, a1, a2, b0, b1, b2, c0, c1]. output_shape: height and width of the result, by default those of the images.
    interpolation: "BILINEAR" or "NEAREST". fill_mode: the pixels outside of an image: "CONSTANT" `fill_value`,
    "NEAREST" the edge, "REFLECT" the mirrored image, "WRAP" the repeated image. Where k is 0, `fill_value` is used.
    The result has the images' dtype. Differentiable with respect to images and (bilinear) transforms.
    Raises InvalidArgumentError for other shapes, ValueError for other names.
    """
    mode, how = fill_mode.upper(), interpolation.upper()
    if mode not in ("CONSTANT", "NEAREST", "REFLECT", "WRAP"):
        raise ValueError(f"fill_mode must be CONSTANT, NEAREST, REFLECT or WRAP, got {fill_mode!r}")
    if how not in ("BILINEAR", "NEAREST"):
        raise ValueError(f"interpolation must be BILINEAR or NEAREST, got {interpolation!r}")
    x, maps = convert_to_tensor(images), convert_to_tensor(transforms, _FLOAT)
    if x._shape is None or maps._shape is None:
        raise ValueError("projective_transform needs images and transforms of known rank")
    if len(x._shape) != 4:
        raise errors.InvalidArgumentError(f"images must have rank 4, got shape {brackets(x._shape)}")
    if len(maps._shape) != 2 or maps._shape[1] not in (8, None):
        raise errors.InvalidArgumentError(f"transforms must have shape [batch or 1, 8], got {brackets(maps._shape)}")
    pixels = _Pixels(x)
    batch = dims(x)[0]
    if isinstance(batch, int) and maps._shape[0] not in (None, 1, batch):
        raise errors.InvalidArgumentError(f"there must be 1 or {batch} transforms, got {maps._shape[0]}")
    height, width = dims(x)[1:3] if output_shape is None else _two_sizes(output_shape, "output_shape")
    rows = _axis(height, (1, -1, 1))
    columns = _axis(width, (1, 1, -1))
    a0, a1, a2, b0, b1, b2, c0, c1 = (expand_dims(maps[:, i : i + 1], 2) for i in range(8))
    divisor = c0 * columns + c1 * rows + 1.0
    nowhere = equal(divisor, 0.0)
    divisor = where(nowhere, divisor + 1.0, divisor)
    at_x = _mapped((a0 * columns + a1 * rows + a2) / divisor, pixels.width, mode)
    at_y = _mapped((b0 * columns + b1 * rows + b2) / divisor, pixels.height, mode)
    owner = expand_dims(expand_dims(cast(range_(batch), _INT), 1), 2)
    fill = cast(convert_to_tensor(fill_value), x.dtype)
    reader = _Reader(pixels, owner, fill)
    if how == "NEAREST":
        found = reader.at(_rounded(at_y), _rounded(at_x))
    else:
        top, left = floor(at_y), floor(at_x)
        down, across = expand_dims(at_y - top, -1), expand_dims(at_x - left, -1)
        lines = []
        for row in (top, top + 1.0):
            first, second = (cast(reader.at(row, column), _FLOAT) for column in (left, left + 1.0))
            lines.append((1.0 - across) * first + across * second)
        found = cast((1.0 - down) * lines[0] + down * lines[1], x.dtype)
    result = where(expand_dims(nowhere, -1), fill, found)
    sides = [side if isinstance(side, int) else None for side in (height, width)]
    return ensure_shape(result, [x._shape[0], *sides, x._shape[3]])


def _axis(count: Any, shape: tuple[int, ...]) -> Tensor:
    numbers = cast(range_(count), _FLOAT)
    for axis, size in enumerate(shape):
        if size == 1:
            numbers = expand_dims(numbers, axis)
    return numbers


def _rounded(at: Tensor) -> Tensor:
    """To the nearest; halves away from zero."""
    return where(less(at, 0.0), -floor(abs_(at) + 0.5), floor(at + 0.5))


class _Reader:
    """Reads pixels at rows and columns, which are floats with integers in them, and a value outside of the images."""

    def __init__(self, pixels: _Pixels, owner: Tensor, fill: Tensor) -> None:
        self.pixels, self.owner, self.fill = pixels, owner, fill

    def at(self, y: Tensor, x: Tensor) -> Tensor:
        bottom, right = _last(self.pixels.height), _last(self.pixels.width)
        inside = logical_and(_within(y, bottom), _within(x, right))
        places = [cast(where(inside, at, at * 0.0), _INT) for at in (y, x)]
        found = self.pixels.at(self.owner, *places)
        return where(expand_dims(inside, -1), found, self.fill)
