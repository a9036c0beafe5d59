"""How far images are from others that they should equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.ops.arrays.creation import ones
from runtime.ops.arrays.joining import stack
from runtime.ops.arrays.rearrange import pad
from runtime.ops.arrays.reduce import reduce_mean, reduce_prod
from runtime.ops.arrays.shape_ops import reshape
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor
from runtime.ops.deferred_calls import deferrable
from runtime.ops.elementwise.arithmetic import pow as pow_
from runtime.ops.elementwise.arithmetic import square, squared_difference
from runtime.ops.elementwise.elementary import cast, log, relu
from runtime.ops.image.checks import at_least_3d
from runtime.ops.image.colors import convert_image_dtype
from runtime.ops.nn.convolution import avg_pool, depthwise_conv2d
from runtime.ops.rules import dims
from runtime.tensor import Tensor, TensorLike


def _alike(first: Any, second: Any) -> tuple[Tensor, Tensor]:
    """Two tensors of images. Raises ValueError unless their last three dimensions are equal, InvalidArgumentError if
    that is found later."""
    x, y = at_least_3d(convert_to_tensor(first)), at_least_3d(convert_to_tensor(second))
    for one, other in zip(dims(x)[-3:], dims(y)[-3:]):
        if isinstance(one, int) and isinstance(other, int):
            if one != other:
                raise ValueError(f"Shapes {x.shape[-3:]} and {y.shape[-3:]} are incompatible")
        else:
            assert_op(one == other, "the two images have different sizes")
    return x, y


def _floats(x: Tensor, y: Tensor, max_val: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Two images and the range of their numbers, as floats."""
    most = cast(convert_to_tensor(max_val), x.dtype)
    x, y, most = (convert_image_dtype(each, dtypes.float32) for each in (x, y, most))
    return x, y, most


@deferrable
def psnr(a: TensorLike, b: TensorLike, max_val: Any, name: str | None = None) -> Tensor:
    """The peak signal-to-noise ratio of pairs of images, in decibels.

    a, b: numbers, shape (..., height, width, channels). max_val: the difference between the largest and the smallest
    possible number. Shape: (...). Raises ValueError for images of different sizes.
    """
    x, y, most = _floats(*_alike(a, b), max_val)
    error = reduce_mean(squared_difference(x, y), [-3, -2, -1])
    return 20 * log(most) / np.float32(np.log(10.0)) - np.float32(10 / np.log(10.0)) * log(error)


def _bell(size: int, sigma: float) -> np.ndarray:
    """The weights of a normal distribution at whole distances from its middle, which sum up to 1."""
    weights = np.exp(-0.5 * ((np.arange(size) - (size - 1) / 2) / sigma) ** 2)
    return (weights / weights.sum()).astype(np.float32)


def _blurred(x: Tensor, bell: np.ndarray) -> Tensor:
    """Means of the pixels around each one, where all of them are in the image."""
    *outer, height, width, channels = dims(x)
    rows = reshape(x, [-1, height, width, channels])
    for shape in ([-1, 1, 1, 1], [1, -1, 1, 1]):
        filters = reshape(convert_to_tensor(bell), shape) * ones([1, 1, channels, 1])
        rows = depthwise_conv2d(rows, filters, [1, 1, 1, 1], "VALID")
    return reshape(rows, [*outer, *dims(rows)[1:]])


@deferrable
def ssim(
    img1: TensorLike, img2: TensorLike, max_val: Any, filter_size: int = 11, filter_sigma: float = 1.5,
    k1: float = 0.01, k2: float = 0.03, return_index_map: bool = False,
) -> Tensor:  # fmt: skip
    """The structural similarity of pairs of images, at most 1 (Wang, Bovik, Sheikh and Simoncelli, 2004).

    img1, img2: numbers, not negative, shape (..., height, width, channels). max_val: the difference between the largest
    and the smallest possible number. filter_size, filter_sigma: of the normal distribution that weights the pixels
    around each one. return_index_map: a number for each such neighbourhood instead of their mean. Channels are
    averaged. Shape: (...), or (..., height - filter_size + 1, width - filter_size + 1). Raises ValueError for images of
    different sizes, InvalidArgumentError for images smaller than the filter.
    """
    x, y = _alike(img1, img2)
    x, y, most = _floats(x, y, max_val)
    light, rest = _maps(x, y, most, filter_size, filter_sigma, k1, k2)
    index = reduce_mean(light * rest, -1)
    return index if return_index_map else reduce_mean(index, [-2, -1])


def _maps(
    x: Tensor, y: Tensor, most: Tensor, filter_size: int, filter_sigma: float, k1: float, k2: float
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """How alike the neighbourhoods of pixels are in luminance, and in contrast and structure. Raises
    InvalidArgumentError for images smaller than the filter."""
    for size in dims(x)[-3:-1]:
        assert_op(size >= filter_size, f"images must be at least {filter_size} pixels high and wide")
    bell = _bell(filter_size, filter_sigma)
    first, second = square(k1 * most), square(k2 * most)
    mean_x, mean_y = _blurred(x, bell), _blurred(y, bell)
    products, squares = 2.0 * mean_x * mean_y, square(mean_x) + square(mean_y)
    covariance = 2.0 * _blurred(x * y, bell) - products
    variances = _blurred(square(x) + square(y), bell) - squares
    return (products + first) / (squares + first), (covariance + second) / (variances + second)


def _halved(x: Tensor) -> Tensor:
    """The means of squares of 2 by 2 pixels; an odd row or column at the end counts twice."""
    *outer, height, width, channels = dims(x)
    rows = reshape(x, [-1, height, width, channels])
    rows = pad(rows, [[0, 0], [0, height % 2], [0, width % 2], [0, 0]], "SYMMETRIC")
    rows = avg_pool(rows, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    return reshape(rows, [*outer, *dims(rows)[1:]])


@deferrable
def ssim_multiscale(
    img1: TensorLike, img2: TensorLike, max_val: Any,
    power_factors: Sequence[float] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333), filter_size: int = 11,
    filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03,
) -> Tensor:  # fmt: skip
    """The structural similarity of pairs of images at several scales, 0 to 1 (Wang, Simoncelli and Bovik, 2003).

    power_factors: the exponent for each scale; each has half the height and width of the one before. The others are as
    for `ssim`. Shape: (...). Raises ValueError for images of different sizes, InvalidArgumentError for images smaller
    than the filter at the last scale.
    """
    x, y = _alike(img1, img2)
    x, y, most = _floats(x, y, max_val)
    scales = []
    for number in range(len(power_factors)):
        if number:
            x, y = _halved(x), _halved(y)
        light, rest = _maps(x, y, most, filter_size, filter_sigma, k1, k2)
        is_last = number == len(power_factors) - 1
        scales.append(relu(reduce_mean(light * rest if is_last else rest, [-3, -2])))
    powers = pow_(stack(scales, -1), np.asarray(power_factors, np.float32))
    return reduce_mean(reduce_prod(powers, -1), -1)
