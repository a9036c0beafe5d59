"""Images mirrored, cropped and recoloured at random, so that a model sees them differently in each epoch.

Each function has two kinds: of one the numbers follow from `ag.random.set_seed` and its own seed, and change from call
to call; of the other, `stateless_...`, they follow from `seed`, two integers, alone. The numbers are TensorFlow's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from runtime import dtypes
from runtime.dtypes import DType
from runtime.ops.arrays.reduce import reduce_all
from runtime.ops.arrays.shape_ops import reshape, shape
from runtime.ops.arrays.slicing import slice_
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor
from runtime.ops.deferred_calls import deferrable
from runtime.ops.elementwise.compare import greater, greater_equal, where
from runtime.ops.image.checks import at_least_3d, known_rank, need
from runtime.ops.image.codecs import adjust_jpeg_quality
from runtime.ops.image.colors import adjust_brightness, adjust_contrast, adjust_hue, adjust_saturation
from runtime.ops.image.geometry import flip_left_right, flip_up_down
from runtime.ops.random import stateful, stateless
from runtime.ops.rules import dims
from runtime.tensor import Tensor, TensorLike

# uniform(shape, low, high, dtype): numbers of one kind.
_Uniform = Callable[[Any, Any, Any, DType], Tensor]


def _drawn(seed: int | None) -> _Uniform:
    return functools.partial(stateful.uniform, seed=seed)


def _of_seed(seed: Any) -> _Uniform:
    return functools.partial(stateless.uniform, stateless.state_of(seed))


def _flipped(image: Any, flip: Callable[[Any], Tensor], uniform: _Uniform) -> Tensor:
    x = at_least_3d(convert_to_tensor(image))
    if known_rank(x, "'image'") == 3:
        return where(uniform([], 0.0, 1.0, dtypes.float32) < 0.5, flip(x), x)
    chance = uniform([dims(x)[0]], 0.0, 1.0, dtypes.float32)
    return where(greater(reshape(chance, [-1, 1, 1, 1]), 0.5), flip(x), x)


@deferrable
def random_flip_left_right(image: TensorLike, seed: int | None = None) -> Tensor:
    """Mirrors images left to right, each with a chance of 1/2. image: shape (batch, height, width, channels) or
    (height, width, channels).

    Raises ValueError for another rank.
    """
    return _flipped(image, flip_left_right, _drawn(seed))


@deferrable
def stateless_random_flip_left_right(image: TensorLike, seed: Any) -> Tensor:
    """`random_flip_left_right` by `seed`, two integers."""
    return _flipped(image, flip_left_right, _of_seed(seed))


@deferrable
def random_flip_up_down(image: TensorLike, seed: int | None = None) -> Tensor:
    """Flips images upside down, each with a chance of 1/2. image: shape (batch, height, width, channels) or
    (height, width, channels).

    Raises ValueError for another rank.
    """
    return _flipped(image, flip_up_down, _drawn(seed))


@deferrable
def stateless_random_flip_up_down(image: TensorLike, seed: Any) -> Tensor:
    """`random_flip_up_down` by `seed`, two integers."""
    return _flipped(image, flip_up_down, _of_seed(seed))


def _within(change: Callable[[Any, Any], Tensor], image: Any, low: Any, high: Any, uniform: _Uniform) -> Tensor:
    """A change by a number between two others."""
    return change(image, uniform([], low, high, dtypes.float32))


def _need_ordered(lower: Any, upper: Any) -> None:
    if upper <= lower:
        raise ValueError(f"upper must be > lower, got {upper} and {lower}")
    need(lower, lambda number: number >= 0, "lower must be non-negative.")


def _need_distance(max_delta: Any) -> None:
    need(max_delta, lambda number: number >= 0, "max_delta must be non-negative.")


@deferrable
def random_brightness(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """Adds a number between `-max_delta` and `max_delta` to images, as `adjust_brightness` does.

    Raises ValueError for a negative `max_delta`.
    """
    _need_distance(max_delta)
    return _within(adjust_brightness, image, -max_delta, max_delta, _drawn(seed))


@deferrable
def stateless_random_brightness(image: TensorLike, max_delta: float, seed: Any) -> Tensor:
    """`random_brightness` by `seed`, two integers."""
    _need_distance(max_delta)
    return _within(adjust_brightness, image, -max_delta, max_delta, _of_seed(seed))


@deferrable
def random_contrast(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Changes the contrast of images by a factor between `lower` and `upper`, as `adjust_contrast` does.

    Raises ValueError unless 0 <= lower < upper.
    """
    _need_ordered(lower, upper)
    return _within(adjust_contrast, image, lower, upper, _drawn(seed))


@deferrable
def stateless_random_contrast(image: TensorLike, lower: float, upper: float, seed: Any) -> Tensor:
    """`random_contrast` by `seed`, two integers."""
    _need_ordered(lower, upper)
    return _within(adjust_contrast, image, lower, upper, _of_seed(seed))


@deferrable
def random_saturation(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Multiplies the saturation of colours by a factor between `lower` and `upper`, as `adjust_saturation` does.

    Raises ValueError unless 0 <= lower < upper.
    """
    _need_ordered(lower, upper)
    return _within(adjust_saturation, image, lower, upper, _drawn(seed))


@deferrable
def stateless_random_saturation(image: TensorLike, lower: float, upper: float, seed: Any = None) -> Tensor:
    """`random_saturation` by `seed`, two integers."""
    _need_ordered(lower, upper)
    return _within(adjust_saturation, image, lower, upper, _of_seed(seed))


def _need_part_of_a_turn(max_delta: Any) -> None:
    need(max_delta, lambda number: number <= 0.5, "max_delta must be <= 0.5.")
    _need_distance(max_delta)


@deferrable
def random_hue(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """Rotates the hue of colours by a number between `-max_delta` and `max_delta`, as `adjust_hue` does.

    Raises ValueError unless 0 <= max_delta <= 0.5.
    """
    _need_part_of_a_turn(max_delta)
    return _within(adjust_hue, image, -max_delta, max_delta, _drawn(seed))


@deferrable
def stateless_random_hue(image: TensorLike, max_delta: float, seed: Any) -> Tensor:
    """`random_hue` by `seed`, two integers."""
    _need_part_of_a_turn(max_delta)
    return _within(adjust_hue, image, -max_delta, max_delta, _of_seed(seed))


def _of_quality(image: Any, low: int, high: int, uniform: _Uniform) -> Tensor:
    if not (0 <= low <= 100 and 0 <= high <= 100):
        raise ValueError(f"jpeg encoding range must be between 0 and 100, got {low} and {high}.")
    if low >= high:
        raise ValueError(f"`min_jpeg_quality` must be less than `max_jpeg_quality`, got {low} and {high}.")
    return adjust_jpeg_quality(image, uniform([], low, high, dtypes.int32))


@deferrable
def random_jpeg_quality(
    image: TensorLike, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Tensor:
    """An image with the faults of a JPEG file of a quality between two others, as `adjust_jpeg_quality` makes it.

    Raises ValueError unless 0 <= min_jpeg_quality < max_jpeg_quality <= 100.
    """
    return _of_quality(image, min_jpeg_quality, max_jpeg_quality, _drawn(seed))


@deferrable
def stateless_random_jpeg_quality(image: TensorLike, min_jpeg_quality: int, max_jpeg_quality: int, seed: Any) -> Tensor:
    """`random_jpeg_quality` by `seed`, two integers."""
    return _of_quality(image, min_jpeg_quality, max_jpeg_quality, _of_seed(seed))


def _cropped(value: Any, size: Any, uniform: _Uniform) -> Tensor:
    x, wanted = convert_to_tensor(value), convert_to_tensor(size, dtypes.int32)
    have = shape(x)
    assert_op(reduce_all(greater_equal(have, wanted)), "Need value.shape >= size, got ", data=[have, wanted])
    begin = uniform(shape(have), 0, int(dtypes.int32.max), dtypes.int32) % (have - wanted + 1)
    return slice_(x, begin, size)


@deferrable
def random_crop(value: TensorLike, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A part of a tensor, of shape `size`, from anywhere in it. value: any rank; `size`: a number for each dimension.

    Raises InvalidArgumentError if the part is larger than the tensor.
    """
    return _cropped(value, size, _drawn(seed))


@deferrable
def stateless_random_crop(value: TensorLike, size: Any, seed: Any, name: str | None = None) -> Tensor:
    """`random_crop` by `seed`, two integers."""
    return _cropped(value, size, _of_seed(seed))
