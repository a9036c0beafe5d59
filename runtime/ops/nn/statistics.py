"""Sums that statistics are made of, and the places of the largest elements of windows."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from runtime import dtypes, errors
from runtime.dtypes import DTypeLike
from runtime.ops.arrays import creation
from runtime.ops.arrays.reduce import argmax, reduce_sum
from runtime.ops.convert import convert_to_tensor
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import call
from runtime.ops.nn.convolution import max_pool, per_dimension, read_padding
from runtime.ops.rules import brackets, dims, product, shape_attr
from runtime.tensor import Tensor, TensorLike


@deferrable
def sufficient_statistics(
    x: TensorLike, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The number of elements over `axes`, their sum, the sum of their squares, and `shift` (subtracted first) or None.

    `normalize_moments` computes mean and variance from them. For chunks of data, add up the first three.
    """
    tensor = convert_to_tensor(x)
    along = [axes] if isinstance(axes, int) else list(axes)
    count = call("cast", convert_to_tensor(product([dims(tensor)[axis] for axis in along])), dtype=tensor.dtype)
    offset = None if shift is None else convert_to_tensor(shift, tensor.dtype)
    moved = tensor if offset is None else tensor - offset
    return count, reduce_sum(moved, along, keepdims), reduce_sum(moved * moved, along, keepdims), offset


@deferrable
def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance from `sufficient_statistics`: count, sum, sum of squares, shift (or None)."""
    total, squares = convert_to_tensor(mean_ss), convert_to_tensor(variance_ss)
    share = 1.0 / convert_to_tensor(counts, total.dtype)
    moved = total * share
    variance = squares * share - moved * moved
    return (moved if shift is None else moved + convert_to_tensor(shift, total.dtype)), variance


class MaxPoolWithArgmax(NamedTuple):
    """The pair of `max_pool_with_argmax`."""

    output: Tensor
    argmax: Tensor


@deferrable
def max_pool_with_argmax(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC",
    output_dtype: DTypeLike = dtypes.int64, include_batch_in_index: bool = False, name: str | None = None,
) -> MaxPoolWithArgmax:  # fmt: skip
    """`max_pool` of images (batch, rows, columns, channels), and the position of each largest element.

    The place is (y * columns + x) * channels + c, with `include_batch_in_index` plus b * rows * columns * channels.
    Raises InvalidArgumentError for tensors of another rank, NotImplementedError for another `data_format`.
    """
    x = convert_to_tensor(input)
    if x._shape is not None and len(x._shape) != 4:
        raise errors.InvalidArgumentError(
            f"tensor_in must be 4-dimensional, got shape {brackets(x._shape)} [Op:MaxPoolWithArgmax]"
        )
    if data_format != "NHWC":
        raise NotImplementedError("max_pool_with_argmax takes data_format NHWC")
    batch, *image = dims(x)
    images = batch if include_batch_in_index else 1
    shape, extra = shape_attr([images, *image])
    places = call("reshape", creation.range(product([images, *image])), *extra, shape=shape)
    sizes, steps = per_dimension(ksize, 2, "ksize"), per_dimension(strides, 2, "strides")
    attrs = {"sizes": sizes, "strides": steps, "rates": (1, 1), "padding": read_padding(padding, 2)}
    lowest = -math.inf if x.dtype.kind == "f" else int(x.dtype.min)
    windows = call("patches", x, fill=lowest, **attrs)
    best = call("expand_dims", argmax(windows, 3, output_type=dtypes.int32), axis=(3,))
    numbers = call("broadcast_like", call("patches", places, fill=-1, **attrs), windows)
    found = call("squeeze", call("take_along", numbers, best, axis=3), axis=(3,))
    numbers = call("cast", found, dtype=dtypes.as_dtype(output_dtype))
    return MaxPoolWithArgmax(max_pool(x, ksize, strides, padding), numbers)
