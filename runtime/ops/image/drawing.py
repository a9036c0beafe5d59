"""Boxes drawn into images."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.ops.arrays.creation import range as range_
from runtime.ops.arrays.creation import zeros
from runtime.ops.arrays.gather import gather
from runtime.ops.arrays.joining import concat
from runtime.ops.arrays.scatter import tensor_scatter_nd_max
from runtime.ops.arrays.shape_ops import expand_dims, reshape
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.arithmetic import clip_by_value
from runtime.ops.elementwise.compare import equal, greater, greater_equal, less_equal, logical_and, where
from runtime.ops.elementwise.elementary import cast, trunc
from runtime.ops.image.checks import of_rank
from runtime.ops.rules import brackets, dims, product
from runtime.tensor import Tensor, TensorLike

_FLOAT, _INT = dtypes.float32, dtypes.int32
# TensorFlow's: yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia.
_COLORS = np.array(
    [
        [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1], [0.5, 0, 0, 1], [0, 0, 0.5, 1], [0, 1, 1, 1], [1, 0, 1, 1],
    ],
    np.float32,
)  # fmt: skip


def _table(colors: Any, depth: Any) -> tuple[Tensor, Any]:
    """The colours that boxes take in turn, and how many they are."""
    first = where(equal(depth, 1), np.ones_like(_COLORS[:, :1]), _COLORS[:, :1])
    usual = concat([first, _COLORS[:, 1:]], 1)[:, :depth]
    if colors is None:
        return usual, len(_COLORS)
    table = of_rank(convert_to_tensor(colors, _FLOAT), 2, "colors")
    count, channels = dims(table)
    assert_op(
        channels >= depth, f"colors must have equal or more channels than the image provided: {brackets(table._shape)}"
    )
    return concat([table[:, :depth], usual], 0), where(count > 0, count, len(_COLORS))


def _checked(images: Any, boxes: Any) -> tuple[Tensor, Tensor]:
    x, places = convert_to_tensor(images), convert_to_tensor(boxes, _FLOAT)
    if not x.dtype.is_floating or x.dtype is dtypes.float64:
        raise errors.InvalidArgumentError(f"images must be float32 or float16, got {x.dtype.name}: use ag.cast")
    x, places = of_rank(x, 4, "images"), of_rank(places, 3, "boxes")
    if places._shape[2] not in (4, None):  # type: ignore[index]
        raise errors.InvalidArgumentError(f"boxes must have shape [batch, boxes, 4], got {brackets(places._shape)}")
    if None not in (x._shape[0], places._shape[0]) and x._shape[0] != places._shape[0]:  # type: ignore[index]
        raise errors.InvalidArgumentError(
            f"The batch sizes should be the same, got {x._shape[0]} and {places._shape[0]}"  # type: ignore[index]
        )
    depth = dims(x)[3]
    assert_op(
        equal(depth, 1) | equal(depth, 3) | equal(depth, 4),
        f"Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), got shape {brackets(x._shape)}",
    )
    return x, places


def draw_bounding_boxes(images: TensorLike, boxes: TensorLike, colors: Any, name: str | None = None) -> Tensor:
    """Images with boxes drawn into them, one pixel wide; later ones over earlier ones.

    images: float32 or float16, shape (batch, height, width, channels) with 1, 3 or 4 channels. boxes: float32, shape
    (batch, boxes, 4): y1, x1, y2, x2, of which 0 is the first pixel and 1 the last. What is outside of an image isn't
    drawn, nor are boxes whose second corner lies before the first. colors: float32, shape (colors, channels or more),
    taken in turn; None or no rows for ten usual ones. Raises InvalidArgumentError for other shapes and dtypes.
    """
    x, places = _checked(images, boxes)
    batch, height, width, depth = dims(x)
    table, count = _table(colors, depth)
    bottom, right = cast(height - 1, _FLOAT), cast(width - 1, _FLOAT)
    y1, y2 = trunc(places[..., 0] * bottom), trunc(places[..., 2] * bottom)
    x1, x2 = trunc(places[..., 1] * right), trunc(places[..., 3] * right)
    seen = _meets(y1, y2, bottom) & _meets(x1, x2, right)
    # The number of the last box with a line through each pixel, from 1 on.
    numbers = cast(range_(1, dims(places)[1] + 1), _INT)
    first = expand_dims(expand_dims(range_(batch) * height * width, 1), 2)
    drawn = zeros([product([batch, height, width])], _INT)
    rows, columns = cast(range_(height), _INT), cast(range_(width), _INT)
    for at, low, high, last, along, step, stride in (
        (y1, x1, x2, bottom, columns, width, 1), (y2, x1, x2, bottom, columns, width, 1),
        (x1, y1, y2, right, rows, 1, width), (x2, y1, y2, right, rows, 1, width),
    ):  # fmt: skip
        inside = seen & greater_equal(at, 0.0) & less_equal(at, last)
        point = cast(along, _FLOAT)
        covered = greater_equal(point, expand_dims(low, -1)) & less_equal(point, expand_dims(high, -1))
        value = where(logical_and(expand_dims(inside, -1), covered), expand_dims(numbers, -1), 0)
        line = cast(clip_by_value(at, 0.0, last), _INT)
        index = first + expand_dims(line, -1) * step + along * stride
        drawn = tensor_scatter_nd_max(drawn, reshape(index, [-1, 1]), reshape(value, [-1]))
    drawn = reshape(drawn, [batch, height, width])
    painted = cast(gather(table, where(greater(drawn, 0), drawn - 1, 0) % count), x.dtype)
    return where(expand_dims(greater(drawn, 0), -1), painted, x)


def _meets(low: Tensor, high: Tensor, last: Tensor) -> Tensor:
    """Whether a span isn't empty and has a pixel in common with the image."""
    return less_equal(low, high) & less_equal(low, last) & greater_equal(high, 0.0)
