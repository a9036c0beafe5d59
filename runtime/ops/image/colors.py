"""Colours of images: other spaces, other dtypes, and adjustments. Channels are the last dimension.

Smith, "Color Gamut Transform Pairs" (1978), is where hue, saturation and value come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.dtypes import DTypeLike
from runtime.ops.arrays.joining import concat, stack
from runtime.ops.arrays.miscellaneous import saturate_cast
from runtime.ops.arrays.reduce import reduce_mean, reduce_std
from runtime.ops.arrays.shape_ops import expand_dims, identity
from runtime.ops.convert import convert_to_tensor
from runtime.ops.deferred_calls import deferrable
from runtime.ops.elementwise.arithmetic import abs as abs_
from runtime.ops.elementwise.arithmetic import clip_by_value, divide_no_nan, floordiv, floormod, maximum, pow
from runtime.ops.elementwise.compare import greater, greater_equal, less, less_equal, logical_and, where
from runtime.ops.elementwise.elementary import cast, rsqrt
from runtime.ops.image.checks import at_least_3d, need
from runtime.ops.image.contrast import contrasted
from runtime.ops.linalg.matrix_products import tensordot
from runtime.ops.rules import dims, product
from runtime.tensor import Tensor, TensorLike

_FLOAT = dtypes.float32


def _channels(x: Tensor, label: str, error: type[errors.OpError] = errors.InvalidArgumentError) -> list[Tensor]:
    """Red, green and blue, or what else there are three of. Raises `error` for other numbers of channels, DTypeError
    for tensors that aren't floats."""
    if x.dtype.kind != "f":
        raise errors.DTypeError(f"{label} takes floats, got {x.dtype.name} [Op:{label}]", label)
    shape = x._shape
    if shape is None:
        raise ValueError(f"{label} needs images of known rank")
    if not shape or shape[-1] not in (3, None):
        raise error(f"input must have 3 channels but instead has shape {x.shape} [Op:{label}]")
    return [x[..., i] for i in range(3)]


# --- dtypes ----------------------------------------------------------------------------------------------------------


@deferrable
def convert_image_dtype(image: TensorLike, dtype: DTypeLike, saturate: bool = False, name: str | None = None) -> Tensor:
    """Converts images to another dtype and its range: integers from 0 to the largest, floats from 0 to 1.

    saturate: clip numbers outside the range; otherwise they are undefined. Floats are scaled, then truncated to
    integers. Raises AttributeError for dtypes that aren't numbers.
    """
    x, wanted = convert_to_tensor(image), dtypes.as_dtype(dtype)
    for what, kind in (("dtype", wanted.kind), ("image dtype", x.dtype.kind)):
        if kind not in "iuf":
            raise AttributeError(f"{what} must be either floating point or integer")
    if wanted is x.dtype:
        return identity(x)
    change = saturate_cast if saturate else cast
    if x.dtype.kind == "f":
        if wanted.kind == "f":
            return cast(x, wanted)
        return change(x * x.dtype.np.type(float(wanted.max) + 0.5), wanted)
    largest = int(x.dtype.max)
    if wanted.kind == "f":
        return cast(x, wanted) * wanted.np.type(1.0 / largest)
    top = int(wanted.max)
    if largest > top:
        return change(floordiv(x, x.dtype.np.type((largest + 1) // (top + 1))), wanted)
    return change(x, wanted) * wanted.np.type((top + 1) // (largest + 1))


def _as_floats(image: Any) -> tuple[Tensor, dtypes.DType]:
    """Images as floats in which colours are computed, and their own dtype."""
    x = convert_to_tensor(image)
    return (x if x.dtype in (dtypes.float16, _FLOAT) else convert_image_dtype(x, _FLOAT)), x.dtype


# --- spaces ----------------------------------------------------------------------------------------------------------


def _hue(red: Tensor, green: Tensor, blue: Tensor, value: Tensor, spread: Tensor) -> Tensor:
    """In [0, 1)."""
    share = divide_no_nan(convert_to_tensor(1.0, value.dtype), 6.0 * spread)
    hue = where(
        logical_and(greater_equal(red, green), greater_equal(red, blue)),
        share * (green - blue),
        where(greater_equal(green, blue), share * (blue - red) + 2.0 / 6.0, share * (red - green) + 4.0 / 6.0),
    )
    hue = where(greater(spread, 0.0), hue, hue * 0.0)
    return where(less(hue, 0.0), hue + 1.0, hue)


def _extremes(red: Tensor, green: Tensor, blue: Tensor) -> tuple[Tensor, Tensor]:
    """The largest and the smallest channel. Of equal ones the first is the largest and the last the smallest, so that
    gradients are TensorFlow's."""
    largest = where(
        logical_and(greater_equal(red, green), greater_equal(red, blue)), red,
        where(greater_equal(green, blue), green, blue),
    )  # fmt: skip
    smallest = where(
        logical_and(less_equal(blue, red), less_equal(blue, green)), blue, where(less_equal(green, red), green, red)
    )
    return largest, smallest


@deferrable
def rgb_to_hsv(images: TensorLike, name: str | None = None) -> Tensor:
    """Hue, saturation and value, in [0, 1], of red, green and blue.

    images: floats in [0, 1], shape (..., 3). Raises InvalidArgumentError for other dtypes,
    FailedPreconditionError for other numbers of channels.
    """
    red, green, blue = _channels(convert_to_tensor(images), "RGBToHSV", errors.FailedPreconditionError)
    value, smallest = _extremes(red, green, blue)
    spread = value - smallest
    saturation = where(greater(value, 0.0), divide_no_nan(spread, value), value * 0.0)
    return stack([_hue(red, green, blue, value, spread), saturation, value], axis=-1)


def _of_hue(hue: Tensor) -> list[Tensor]:
    """How much of red, green and blue a full colour has."""
    sixth = hue * 6.0
    distances = abs_(sixth - 3.0) - 1.0, 2.0 - abs_(sixth - 2.0), 2.0 - abs_(sixth - 4.0)
    return [clip_by_value(each, 0.0, 1.0) for each in distances]


@deferrable
def hsv_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Red, green and blue of hue, saturation and value.

    images: floats in [0, 1], shape (..., 3). Raises InvalidArgumentError for other dtypes,
    FailedPreconditionError for other numbers of channels.
    """
    hue, saturation, value = _channels(convert_to_tensor(images), "HSVToRGB", errors.FailedPreconditionError)
    return stack([((1.0 - saturation) + saturation * part) * value for part in _of_hue(hue)], axis=-1)


def _linear(images: Any, kernel: Sequence[Sequence[float]]) -> Tensor:
    x = convert_to_tensor(images)
    return tensordot(x, convert_to_tensor(kernel, x.dtype), [-1, 0])


_YIQ = [
    [0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955],
]  # fmt: skip
_FROM_YIQ = [[1.0, 1.0, 1.0], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]]
_YUV = [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]]
_FROM_YUV = [[1.0, 1.0, 1.0], [0.0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0.0]]


@deferrable
def rgb_to_yiq(images: TensorLike) -> Tensor:
    """Luma and two chroma channels, as in NTSC, of red, green and blue. images: floats in [0, 1], shape (..., 3)."""
    return _linear(images, _YIQ)


@deferrable
def yiq_to_rgb(images: TensorLike) -> Tensor:
    """The inverse of `rgb_to_yiq`. images: floats, shape (..., 3)."""
    return _linear(images, _FROM_YIQ)


@deferrable
def rgb_to_yuv(images: TensorLike) -> Tensor:
    """Luma and two chroma channels, as in PAL, of red, green and blue. images: floats in [0, 1], shape (..., 3)."""
    return _linear(images, _YUV)


@deferrable
def yuv_to_rgb(images: TensorLike) -> Tensor:
    """The inverse of `rgb_to_yuv`. images: floats, shape (..., 3)."""
    return _linear(images, _FROM_YUV)


@deferrable
def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Tensor:
    """Luma (Rec. 601) of red, green and blue, as one channel. images: numbers, shape (..., 3)."""
    x = convert_to_tensor(images)
    weights = np.array([0.2989, 0.5870, 0.1140], np.float32)
    gray = tensordot(convert_image_dtype(x, _FLOAT), weights, [-1, -1])
    return convert_image_dtype(expand_dims(gray, -1), x.dtype)


@deferrable
def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Repeats the grey channel three times. images: shape (..., 1). Raises ValueError for another number of
    channels."""
    x = convert_to_tensor(images)
    if not x._shape or x._shape[-1] not in (1, None):
        raise ValueError("Last dimension of a grayscale image should be size 1.")
    return concat([x, x, x], -1)


# --- adjustments -----------------------------------------------------------------------------------------------------


@deferrable
def adjust_brightness(image: TensorLike, delta: TensorLike) -> Tensor:
    """Adds `delta` to images, scaled to floats in [0, 1]; integers stay within their range.

    image: numbers of any dtype. delta: a number, usually in (-1, 1).
    """
    x, own = _as_floats(image)
    return convert_image_dtype(x + cast(convert_to_tensor(delta), x.dtype), own, saturate=True)


@deferrable
def adjust_contrast(images: TensorLike, contrast_factor: Any) -> Tensor:
    """(x - mean) * contrast_factor + mean, with the mean over each channel of each image.

    images: numbers, shape (..., height, width, channels); integers are scaled to floats in [0, 1], and stay within
    their range. Raises InvalidArgumentError for a lower rank. No gradient is registered, as in TensorFlow: asking for
    one raises LookupError; write the formula with other ops to differentiate it.
    """
    x, own = _as_floats(images)
    return convert_image_dtype(contrasted(x, contrast_factor), own, saturate=True)


@deferrable
def adjust_gamma(image: TensorLike, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """gain * x ** gamma for images, scaled to floats in [0, 1]; integers stay within their range.

    Raises ValueError for a negative gamma.
    """
    x, own = _as_floats(image)
    need(gamma, lambda g: g >= 0, "Gamma should be a non-negative real number.")
    return convert_image_dtype(gain * pow(x, gamma), own, saturate=True)


@deferrable
def adjust_hue(image: TensorLike, delta: TensorLike, name: str | None = None) -> Tensor:
    """Rotates the hue of colours by `delta`, in [-1, 1].

    image: red, green and blue, shape (..., 3); integers are scaled to floats in [0, 1]. Raises ValueError for another
    delta, InvalidArgumentError for another number of channels.
    """
    need(delta, lambda d: (d >= -1) & (d <= 1), "delta must be in the interval [-1, 1]")
    x, own = _as_floats(image)
    red, green, blue = _channels(x, "AdjustHue")
    largest, smallest = _extremes(red, green, blue)
    spread = largest - smallest
    hue = floormod(_hue(red, green, blue, largest, spread) + cast(convert_to_tensor(delta), x.dtype), 1.0)
    return convert_image_dtype(stack([smallest + spread * part for part in _of_hue(hue)], axis=-1), own)


@deferrable
def adjust_saturation(image: TensorLike, saturation_factor: Any, name: str | None = None) -> Tensor:
    """Multiplies the saturation of colours by a factor; the result is at most 1.

    image: red, green and blue, shape (..., 3); integers are scaled to floats in [0, 1]. Raises InvalidArgumentError for
    another number of channels.
    """
    x, own = _as_floats(image)
    _channels(x, "AdjustSaturation")
    hue, saturation, value = (rgb_to_hsv(x)[..., i] for i in range(3))
    factor = cast(convert_to_tensor(saturation_factor), x.dtype)
    changed = clip_by_value(saturation * factor, 0.0, 1.0)
    return convert_image_dtype(hsv_to_rgb(stack([hue, changed, value], axis=-1)), own)


@deferrable
def per_image_standardization(image: TensorLike) -> Tensor:
    """Scales each image to mean 0 and variance 1, float32.

    image: numbers, shape (..., height, width, channels). The deviation counts as at least 1 / sqrt(elements), for
    images of one colour. Raises ValueError for a rank below 3 and for images without pixels.
    """
    x = cast(at_least_3d(convert_to_tensor(image)), _FLOAT)
    count = cast(convert_to_tensor(product(dims(x)[-3:])), _FLOAT)
    axes = [-1, -2, -3]
    deviation = maximum(reduce_std(x, axes, keepdims=True), rsqrt(count))
    return (x - reduce_mean(x, axes, keepdims=True)) / deviation
