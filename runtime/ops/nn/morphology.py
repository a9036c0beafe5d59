"""Greyscale dilation and erosion of images, and convolution with holes, written with other ops.

Haralick, Sternberg, Zhuang, "Image Analysis Using Mathematical Morphology" (1987).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.ops.arrays.rearrange import pad, reverse
from runtime.ops.convert import convert_to_tensor, operands
from runtime.ops.deferred_calls import deferrable
from runtime.ops.elementwise.arithmetic import maximum
from runtime.ops.nn.convolution import conv2d, conv2d_transpose
from runtime.tensor import Tensor, TensorLike


def _pair(value: Sequence[int], what: str) -> tuple[int, int]:
    if len(value) != 4 or value[0] != 1 or value[3] != 1:
        raise ValueError(f"{what} must be [1, height, width, 1], got {value!r}")
    return int(value[1]), int(value[2])


@deferrable
def dilation2d(
    input: TensorLike, filters: Any, strides: Sequence[int], padding: str, data_format: str, dilations: Sequence[int],
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The largest sum of image and filter in each window: max over (dy, dx) of input[y + dy, x + dx] + filters[dy, dx].

    input: shape [batch, height, width, depth]. filters: [height, width, depth]. strides, dilations: [1, h, w, 1].
    padding: "SAME" or "VALID"; values outside never count. If several sums are the largest, they share the gradient.
    Raises ValueError for other options.
    """
    if data_format != "NHWC":
        raise ValueError(f"Data formats other than NHWC are not yet supported. Received: data_format={data_format!r}")
    x, weights = operands("Dilation2D", input, filters)
    steps, rates = _pair(strides, "strides"), _pair(dilations, "dilations")
    sizes, taps = x.shape.as_list(), weights.shape.as_list()
    if len(sizes) != 4 or len(taps) != 3 or sizes[3] != taps[2]:
        raise ValueError(
            f"dilation2d needs [batch, height, width, depth] and [height, width, depth], got {sizes} and {taps}"
        )
    if None in sizes[1:3] or None in taps:  # then it is put off
        raise ValueError(f"dilation2d needs images of known size, got shape {x.shape}")
    margins, counts = [], []
    for size, tap, step, rate in zip(sizes[1:3], taps, steps, rates):
        reach = (tap - 1) * rate + 1  # type: ignore[operator]
        if padding == "SAME":
            count = -(-size // step)  # type: ignore[operator]
            missing = max(0, (count - 1) * step + reach - size)  # type: ignore[operator]
        elif padding == "VALID":
            count, missing = (size - reach) // step + 1, 0  # type: ignore[operator]
        else:
            raise ValueError(f"padding must be 'SAME' or 'VALID', got {padding!r}")
        margins.append([missing // 2, missing - missing // 2])
        counts.append(count)
    lowest = np.finfo(x.dtype.np).min if x.dtype.kind == "f" else np.iinfo(x.dtype.np).min
    if any(map(any, margins)):
        x = pad(x, [[0, 0], *margins, [0, 0]], constant_values=convert_to_tensor(lowest, x.dtype))
    result: Any = None
    for row in range(taps[0]):  # type: ignore[arg-type]
        for column in range(taps[1]):  # type: ignore[arg-type]
            places = [
                slice(tap * rate, tap * rate + (count - 1) * step + 1, step)
                for tap, rate, count, step in zip((row, column), rates, counts, steps)
            ]
            part = x[:, places[0], places[1]] + weights[row, column]
            result = part if result is None else maximum(result, part)
    return result


@deferrable
def erosion2d(
    value: TensorLike, filters: Any, strides: Sequence[int], padding: str, data_format: str, dilations: Sequence[int],
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The smallest difference of image and filter in each window: min over (dy, dx) of value[y + dy, x + dx] -
    filters[-dy, -dx]. Arguments and errors are those of `dilation2d`."""
    x, weights = operands("Dilation2D", value, filters)
    return -dilation2d(-x, reverse(weights, [0, 1]), strides, padding, data_format, dilations)


def atrous_conv2d(value: TensorLike, filters: Any, rate: int, padding: str, name: str | None = None) -> Tensor:
    """A convolution whose filter has `rate` - 1 holes between its elements. Raises ValueError for a rate below 1."""
    if rate < 1:
        raise ValueError(f"rate {rate} cannot be less than one")
    return conv2d(value, filters, 1, padding, dilations=rate)


@deferrable
def atrous_conv2d_transpose(
    value: TensorLike, filters: Any, output_shape: Any, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """The adjoint of `atrous_conv2d`: from (batch, height, width, channels out) to `output_shape`.

    filters: (height, width, channels of the result, channels of the value), `rate` - 1 holes between its elements.
    padding: "SAME" or "VALID". Raises ValueError for a rate below 1, another padding, and channels that don't fit.
    """
    if rate < 1:
        raise ValueError(f"`rate` cannot be less than one. Received: rate={rate}")
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"`padding` must be either 'VALID' or 'SAME'. Received: padding={padding}")
    x, weights = operands("Conv2DBackpropInput", value, filters)
    if x._shape is not None and weights._shape is not None and x.shape[3] != weights.shape[3]:
        raise ValueError(
            "`value` channel count must be compatible with `filters` input channel count. Received: "
            f"value.shape={x.shape} and filters.shape={weights.shape}."
        )
    return conv2d_transpose(x, weights, output_shape, 1, padding, dilations=rate)
