"""Convolution and pooling (`ag.nn`), written with windows (`patches`) and their products with
filters (`window_products.py`).

Arguments are TensorFlow's: strides and dilations as one number, one per space dimension, or one per dimension; padding
"SAME", "VALID" or explicit pairs; data_format with channels last (the default) or second ("NCHW").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from runtime import errors
from runtime.ops.arrays.joining import concat, split
from runtime.ops.arrays.reduce import reduce_max, reduce_sum
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import check_kind, convert_to_tensor, operands, shape_args
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.nn.depthwise import DEPTHWISE
from runtime.ops.nn.patches import Padding
from runtime.ops.nn.window_products import CONVOLUTION, CONVOLUTION_INPUT_GRAD
from runtime.ops.rules import brackets, dims, product, shape_attr
from runtime.ops.table import OPS
from runtime.tensor import Tensor, TensorLike


def per_dimension(value: Any, count: int, what: str, channels_first: bool = False) -> tuple[int, ...]:
    """One number per space dimension. Raises ValueError for other lengths and for a stride over batch or channels."""
    if value is None:
        return (1,) * count
    entries = [int(v) for v in np.reshape(np.asarray(value), -1)]
    if any(entry < 1 for entry in entries):
        raise errors.InvalidArgumentError(f"{what} must be > 0, but got {entries}")
    if len(entries) == 1:
        return tuple(entries * count)
    if len(entries) == count:
        return tuple(entries)
    if len(entries) == count + 2:
        space = entries[2:] if channels_first else entries[1:-1]
        if sorted(entries)[:2] != [1, 1] or math.prod(space) != math.prod(entries):
            raise ValueError(f"{what} over batch or channels must be 1, got {entries}")
        return tuple(space)
    raise ValueError(f"{what} should be of length 1, {count} or {count + 2} but was {len(entries)}")


def read_padding(padding: Any, count: int, channels_first: bool = False) -> Padding:
    """The attribute of the rows. Raises ValueError for an unknown one."""
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise ValueError(
                f"Value for attr 'padding' of {padding!r} is not in the list of allowed values: SAME, VALID"
            )
        return padding.upper()
    pairs = [tuple(int(v) for v in pair) for pair in padding]
    if len(pairs) == count + 2:
        pairs = pairs[2:] if channels_first else pairs[1:-1]
    if len(pairs) != count or any(len(p) != 2 or min(p) < 0 for p in pairs):
        raise ValueError(f"padding should be 'SAME', 'VALID' or a pair for each of {count} dimensions, got {padding!r}")
    return tuple((a, b) for a, b in pairs)


def _is_first(data_format: Any) -> bool:
    return data_format is not None and str(data_format).startswith("NC")


def _to_last(x: Tensor, first: bool) -> Tensor:
    if not first:
        return x
    rank = known_rank(x, "convolution")
    return call("transpose", x, perm=(0, *range(2, rank), 1))


def _from_last(x: Tensor, first: bool) -> Tensor:
    if not first:
        return x
    rank = known_rank(x, "convolution")
    return call("transpose", x, perm=(0, rank - 1, *range(1, rank - 1)))


def _windows(x: Tensor, sizes: Any, strides: Any, rates: Any, padding: Padding, fill: Any = 0) -> Tensor:
    return call("patches", x, sizes=sizes, strides=strides, rates=rates, padding=padding, fill=fill)


def _kernel_sizes(filters: Tensor, count: int) -> tuple[int, ...]:
    shape = filters._shape
    if shape is None or len(shape) != count + 2 or None in shape[:count]:
        raise ValueError(f"filters must have rank {count + 2} and known sizes, got shape {filters.shape}")
    return shape[:count]  # type: ignore[return-value]


def _convolve(x: Tensor, filters: Tensor, strides: Any, rates: Any, padding: Padding) -> Tensor:
    """Channels last, one group."""
    sizes = _kernel_sizes(filters, len(strides))
    attrs = {"sizes": sizes, "strides": strides, "rates": rates, "padding": padding}
    return apply(CONVOLUTION, (x, filters), attrs)


@deferrable
def convolution(
    input: TensorLike, filters: Any, strides: Any = None, padding: Any = "VALID", data_format: str | None = None,
    dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Slides `filters` (*sizes, channels in, channels out) over `input` (batch, *space, channels).

    If the filters have fewer input channels, the channels are divided into groups. Raises InvalidArgumentError when
    they don't
    divide evenly.
    """
    x, w = operands("Conv2D", input, filters)
    check_kind(OPS["exp"], x.dtype)
    count = known_rank(w, "convolution") - 2
    if known_rank(x, "convolution") != count + 2:
        raise ValueError(f"input must be {count + 2}-dimensional for these filters, got shape {x.shape}")
    first = _is_first(data_format)
    x = _to_last(x, first)
    attrs = (
        per_dimension(strides, count, "strides", first), per_dimension(dilations, count, "dilations", first),
        read_padding(padding, count, first),
    )  # fmt: skip
    channels, expected = x._shape[-1], w._shape[-2]  # type: ignore[index]
    if channels is None or expected is None or channels == expected:
        return _from_last(_convolve(x, w, *attrs), first)
    if channels % expected or (w._shape[-1] or 0) % (channels // expected):  # type: ignore[index]
        raise errors.InvalidArgumentError(
            f"input depth must be evenly divisible by filter depth: {channels} vs {expected} [Op:Conv2D]", "convolution"
        )
    groups = channels // expected
    parts = zip(split(x, groups, axis=-1), split(w, groups, axis=-1))
    return _from_last(concat([_convolve(part, weights, *attrs) for part, weights in parts], -1), first)


@deferrable
def conv1d(
    input: TensorLike, filters: Any, stride: Any = None, padding: Any = "VALID", data_format: str | None = "NWC",
    dilations: Any = None, name: str | None = None, strides: Any = None,
) -> Tensor:  # fmt: skip
    """`convolution` over 1 space dimension. The step is called `stride`; `strides` is accepted, too."""
    if known_rank(convert_to_tensor(filters), "conv") != 3:
        raise ValueError("filters of conv1d must have rank 3")
    step = strides if stride is None else stride
    return convolution(input, filters, 1 if step is None else step, padding, data_format, dilations)


class Convolution(Protocol):
    """The public function of convolutions over a number of space dimensions."""

    def __call__(
        self, input: TensorLike, filters: TensorLike, strides: Any = 1, padding: Any = "VALID",
        data_format: str | None = None, dilations: Any = None, name: str | None = None,
    ) -> Tensor: ...  # fmt: skip


class TransposedConvolution(Protocol):
    """The public function of their adjoints."""

    def __call__(
        self, input: TensorLike, filters: TensorLike, output_shape: Any, strides: Any, padding: Any = "SAME",
        data_format: str | None = None, dilations: Any = None, name: str | None = None,
    ) -> Tensor: ...  # fmt: skip


def _public(count: int) -> Convolution:
    def conv(
        input: TensorLike,
        filters: TensorLike,
        strides: Any = 1,
        padding: Any = "VALID",
        data_format: str | None = None,
        dilations: Any = None,
        name: str | None = None,
    ) -> Tensor:
        if known_rank(convert_to_tensor(filters), "conv") != count + 2:
            raise ValueError(f"filters of conv{count}d must have rank {count + 2}")
        return convolution(input, filters, strides, padding, data_format, dilations)

    conv.__name__ = conv.__qualname__ = f"conv{count}d"
    conv.__doc__ = f"`convolution` over {count} space dimensions."
    return deferrable(conv)


conv2d, conv3d = _public(2), _public(3)


@deferrable
def conv_transpose(
    input: TensorLike,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The adjoint of `convolution` as a layer: from (batch, *space, channels out) to `output_shape`.

    filters: (*sizes, channels of the result, channels of the input).
    """
    x, w = operands("Conv2DBackpropInput", input, filters)
    count = known_rank(w, "conv_transpose") - 2
    first = _is_first(data_format)
    x = _to_last(x, first)
    sizes = _kernel_sizes(w, count)
    wide, holes = shape_args(output_shape)
    if len(wide) == count:
        # Only the space dimensions: batch and channels are those of the operands.
        wide, holes = shape_args([dims(x)[0], *output_shape, dims(w)[-2]])
        first_shape: Sequence[Any] = wide
    else:
        first_shape = (wide[0], *wide[2:], wide[1]) if first else wide
    attrs = {
        "shape": tuple(first_shape), "sizes": sizes, "strides": per_dimension(strides, count, "strides", first),
        "rates": per_dimension(dilations, count, "dilations", first), "padding": read_padding(padding, count, first),
    }  # fmt: skip
    result = apply(CONVOLUTION_INPUT_GRAD, (x, w, *holes), attrs)
    return _from_last(result, first)


def _public_transpose(count: int) -> TransposedConvolution:
    def transposed(
        input: TensorLike, filters: TensorLike, output_shape: Any, strides: Any, padding: Any = "SAME",
        data_format: str | None = None, dilations: Any = None, name: str | None = None,
    ) -> Tensor:  # fmt: skip
        return conv_transpose(input, filters, output_shape, strides, padding, data_format, dilations)

    transposed.__name__ = transposed.__qualname__ = f"conv{count}d_transpose"
    transposed.__doc__ = f"`conv_transpose` over {count} space dimension{'s' if count > 1 else ''}."
    return deferrable(transposed)


conv1d_transpose, conv2d_transpose, conv3d_transpose = (_public_transpose(n) for n in (1, 2, 3))


@deferrable
def depthwise_conv2d(
    input: TensorLike, filter: Any, strides: Any, padding: Any, data_format: str | None = None, dilations: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Each channel with its own filters: (rows, columns, channels, multiplier) gives channels * multiplier channels."""
    x, w = operands("DepthwiseConv2dNative", input, filter)
    check_kind(OPS["exp"], x.dtype)
    first = _is_first(data_format)
    x = _to_last(x, first)
    attrs = {
        "sizes": _kernel_sizes(w, 2), "strides": per_dimension(strides, 2, "strides", first),
        "rates": per_dimension(dilations, 2, "dilations", first), "padding": read_padding(padding, 2, first),
    }  # fmt: skip
    *sizes, channels, multiplier = dims(w)
    total = product([channels, multiplier])
    if not (isinstance(multiplier, int) and multiplier == 1):
        lead = dims(x)[:-1]
        repeated, extra = shape_attr([*lead, channels, multiplier])
        x = call("broadcast_to", call("expand_dims", x, axis=(len(lead) + 1,)), *extra, shape=repeated)
        x = _reshaped(x, *lead, total)
    return _from_last(apply(DEPTHWISE, (x, _reshaped(w, *sizes, total)), attrs), first)


def _reshaped(x: Tensor, *sizes: Any) -> Tensor:
    shape, extra = shape_attr(sizes)
    return call("reshape", x, *extra, shape=shape)


@deferrable
def separable_conv2d(
    input: TensorLike, depthwise_filter: Any, pointwise_filter: Any, strides: Any, padding: Any,
    data_format: str | None = None, dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """`depthwise_conv2d`, then a 1 x 1 convolution."""
    middle = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return conv2d(middle, pointwise_filter, 1, "VALID", data_format)


# --- pooling -------------------------------------------------------------------------------------------------------


def _pooled(
    x: Tensor, ksize: Any, strides: Any, padding: Any, data_format: Any, reduce: Callable[[Tensor, dict], Tensor],
    dilations: Any,
) -> Tensor:  # fmt: skip
    """reduce(x, attrs) makes a number of each window over x, whose channels are last."""
    count = known_rank(x, "pool") - 2
    first = _is_first(data_format)
    attrs = {
        "sizes": per_dimension(ksize, count, "ksize", first),
        "strides": per_dimension(strides, count, "strides", first),
        "rates": per_dimension(dilations, count, "dilations", first),
        "padding": read_padding(padding, count, first),
    }
    return _from_last(reduce(_to_last(x, first), attrs), first)


@deferrable
def max_pool(
    input: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None,
    dilations: Any = 1,
) -> Tensor:  # fmt: skip
    """The largest element of each window, NaN where it has one; its gradient goes to the first of equal ones, as
    TensorFlow's does. Shape (batch, *space, channels)."""
    x = convert_to_tensor(input)
    if x.dtype.kind == "f":
        reduce = lambda x, attrs: call("max_pool", x, **attrs)[0]  # noqa: E731
    else:
        lowest, axis = int(x.dtype.min), known_rank(x, "max_pool") - 1
        reduce = lambda x, attrs: reduce_max(call("patches", x, fill=lowest, **attrs), axis)  # noqa: E731
    return _pooled(x, ksize, strides, padding, data_format, reduce, dilations)


def _average(x: Tensor, attrs: dict) -> Tensor:
    axis = len(x._shape) - 1  # type: ignore[arg-type]
    ones = call("ones_like", x[:1, ..., :1])
    counts = reduce_sum(call("patches", ones, fill=0, **attrs), axis)
    return reduce_sum(call("patches", x, fill=0, **attrs), axis) / counts


@deferrable
def avg_pool(
    input: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None,
    dilations: Any = 1,
) -> Tensor:  # fmt: skip
    """The mean of each window; padding doesn't count."""
    x = convert_to_tensor(input)
    check_kind(OPS["exp"], x.dtype)
    return _pooled(x, ksize, strides, padding, data_format, _average, dilations)


@deferrable
def pool(
    input: TensorLike, window_shape: Any, pooling_type: str, strides: Any = None, padding: Any = "VALID",
    data_format: str | None = None, dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """`max_pool` or `avg_pool`, by `pooling_type` "MAX" or "AVG". Raises ValueError for another."""
    chosen = {"MAX": max_pool, "AVG": avg_pool}.get(str(pooling_type).upper())
    if chosen is None:
        raise ValueError(f"pooling_type must be 'MAX' or 'AVG', got {pooling_type!r}")
    return chosen(
        input, window_shape, 1 if strides is None else strides, padding, data_format,
        dilations=1 if dilations is None else dilations,
    )  # fmt: skip


max_pool1d = max_pool2d = max_pool3d = max_pool
avg_pool1d = avg_pool2d = avg_pool3d = avg_pool


@deferrable
def extract_patches(
    images: TensorLike, sizes: Any, strides: Any, rates: Any, padding: Any, name: str | None = None
) -> Tensor:
    """Windows of images, each flattened into the last dimension. Shape (batch, rows, columns, channels)."""
    x = convert_to_tensor(images)
    if known_rank(x, "extract_patches") != 4:
        raise ValueError(f"images must be 4-dimensional, got shape {brackets(x._shape)}")
    windows = _windows(
        x, per_dimension(sizes, 2, "sizes"), per_dimension(strides, 2, "strides"), per_dimension(rates, 2, "rates"),
        read_padding(padding, 2),
    )  # fmt: skip
    *lead, elements, channels = dims(windows)
    return _reshaped(windows, *lead, product([elements, channels]))
