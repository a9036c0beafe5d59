"""Operators of neural networks: convolutions, pooling, normalization, softmax. Channels are the second dimension."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autograph.onnx_models.operators.registry import Call, number, operator
from runtime import dtypes
from runtime.ops import api as ops
from runtime.ops.arrays.gather import gather
from runtime.ops.dispatch import call
from runtime.ops.nn import nn_ops
from runtime.ops.nn.convolution import conv_transpose, convolution

Pairs = list[tuple[int, int]]


def _channels_last(x: Any, rank: int) -> Any:
    return ops.transpose(x, [0, *range(2, rank), 1])


def _channels_second(x: Any, rank: int) -> Any:
    return ops.transpose(x, [0, rank - 1, *range(1, rank - 1)])


def _borders(node: Call, sizes: Sequence[int], kernel: Sequence[int], strides: Any, rates: Any) -> Pairs:
    """What is added before and after each space dimension."""
    auto, count = node.get("auto_pad", "NOTSET"), len(kernel)
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        pairs = []
        for size, k, stride, rate in zip(sizes, kernel, strides, rates):
            total = max((-(-size // stride) - 1) * stride + (k - 1) * rate + 1 - size, 0)
            small, large = total // 2, total - total // 2
            pairs.append((small, large) if auto == "SAME_UPPER" else (large, small))
        return pairs
    pads = node.get("pads") if auto == "NOTSET" else None
    pads = [0] * (2 * count) if pads is None else pads
    return [(int(pads[k]), int(pads[k + count])) for k in range(count)]


def _space(node: Call, x: Any) -> list[int]:
    return node.shape(x)[2:] if node.get("auto_pad", "NOTSET").startswith("SAME") else []


@operator("Conv")
def _conv(node: Call, x: Any, w: Any, b: Any = None) -> Any:
    rank = node.rank(x)
    kernel = node.shape(w)[2:]
    strides = node.get("strides") or [1] * len(kernel)
    rates = node.get("dilations") or [1] * len(kernel)
    pairs = _borders(node, _space(node, x), kernel, strides, rates)
    filters = ops.transpose(w, [*range(2, rank), 1, 0])
    result = convolution(_channels_last(x, rank), filters, strides, pairs, dilations=rates)
    return _channels_second(result if b is None else result + b, rank)


@operator("ConvInteger")
def _conv_integer(node: Call, x: Any, w: Any, x_zero: Any = None, w_zero: Any = None) -> Any:
    x, w = ops.cast(x, dtypes.float64), ops.cast(w, dtypes.float64)
    x = x if x_zero is None else x - ops.cast(x_zero, dtypes.float64)
    if w_zero is not None:
        w = w - ops.reshape(ops.cast(w_zero, dtypes.float64), [-1, *[1] * (node.rank(w) - 1)])
    return ops.cast(_conv(node, x, w), dtypes.int32)


@operator("ConvTranspose")
def _conv_transpose(node: Call, x: Any, w: Any, b: Any = None) -> Any:
    rank = node.rank(x)
    kernel, count, groups = node.shape(w)[2:], rank - 2, node.get("group", 1)
    strides = node.get("strides") or [1] * count
    rates = node.get("dilations") or [1] * count
    extra = node.get("output_padding") or [0] * count
    sizes = node.shape(x)[2:]
    full = [s * (n - 1) + (k - 1) * r + 1 for n, k, s, r in zip(sizes, kernel, strides, rates)]
    wanted, auto = node.get("output_shape"), node.get("auto_pad", "NOTSET")
    if auto.startswith("SAME") and wanted is None:
        wanted = [n * s for n, s in zip(sizes, strides)]
    if wanted is not None:
        wanted = list(wanted)[-count:]
        pairs = []
        for whole, more, size in zip(full, extra, wanted):
            total = max(whole + more - size, 0)
            small, large = total // 2, total - total // 2
            pairs.append((small, large) if auto == "SAME_UPPER" else (large, small))
            extra = [max(e, size - whole) for e, size, whole in zip(extra, wanted, full)]
    else:
        pairs = _borders(node, [], kernel, strides, rates)
    space = [n + more - a - b for n, more, (a, b) in zip(full, extra, pairs)]
    results = []
    for part, weights in zip(ops.split(x, groups, 1), ops.split(w, groups, 0)):
        filters = ops.transpose(weights, [*range(2, rank), 1, 0])
        shape = [node.shape(x)[0], *full, node.shape(weights)[1]]
        whole = conv_transpose(_channels_last(part, rank), filters, shape, strides, "VALID", dilations=rates)
        # A wider result than the filters reach has zeros there; borders are cut.
        wide = ops.pad(whole, [(0, 0), *[(0, max(more, 0)) for more in extra], (0, 0)])
        cut = (slice(None), *[slice(a, a + size) for (a, _), size in zip(pairs, space)])
        results.append(wide[cut])
    result = ops.concat(results, -1)
    return _channels_second(result if b is None else result + b, rank)


def _windows(node: Call, x: Any, fill: float) -> tuple[Any, Any, Pairs]:
    """The windows of a pooling operator, (batch, *places, elements, channels); which of their elements are x's or
    borders that count; and the borders."""
    rank = node.rank(x)
    kernel, count = node.get("kernel_shape"), rank - 2
    strides = node.get("strides") or [1] * count
    rates = node.get("dilations") or [1] * count
    sizes = node.shape(x)[2:]
    pairs = _borders(node, sizes, kernel, strides, rates)
    ends = []
    for size, (before, after), k, stride, rate in zip(sizes, pairs, kernel, strides, rates):
        span = size + before + after - ((k - 1) * rate + 1)
        places = (math.ceil if node.get("ceil_mode", 0) else math.floor)(span / stride) + 1
        if node.get("ceil_mode", 0) and (places - 1) * stride >= size + before:
            places -= 1  # a window that begins beyond what there is
        ends.append((before, max((places - 1) * stride + (k - 1) * rate + 1 - size - before, 0)))
    last = _channels_last(x, rank)
    attrs = {"sizes": tuple(kernel), "strides": tuple(strides), "rates": tuple(rates), "padding": tuple(ends)}
    windows = call("patches", last, fill=fill, **attrs)
    inside = np.ones([1, *sizes, 1], bool)
    if node.get("count_include_pad", 0):
        inside = np.pad(inside, [(0, 0), *pairs, (0, 0)], constant_values=True)
        attrs["padding"] = tuple((0, end - after) for (_, end), (_, after) in zip(ends, pairs))
        attrs["padding"] = tuple((a, max(b, 0)) for a, b in attrs["padding"])
    counted = call("patches", ops.convert_to_tensor(inside), fill=False, **attrs)
    return windows, counted, ends


@operator("MaxPool")
def _max_pool(node: Call, x: Any) -> Any:
    if len(node.outputs) > 1:
        raise node.refuse("the indices of the largest elements aren't translated")
    lowest = -math.inf if x.dtype.is_floating else int(np.iinfo(x.dtype.np).min)
    windows, _, _ = _windows(node, x, lowest)
    rank = node.rank(x)
    return _channels_second(ops.reduce_max(windows, rank - 1), rank)


@operator("AveragePool")
def _average_pool(node: Call, x: Any) -> Any:
    windows, counted, _ = _windows(node, x, 0)
    rank = node.rank(x)
    count = ops.reduce_sum(ops.cast(counted, x.dtype), rank - 1)
    return _channels_second(ops.reduce_sum(windows, rank - 1) / count, rank)


@operator("LpPool")
def _lp_pool(node: Call, x: Any) -> Any:
    power = number(node.get("p", 2), x)
    windows, _, _ = _windows(node, ops.pow(ops.abs(x), power), 0)
    total = ops.reduce_sum(windows, node.rank(x) - 1)
    return _channels_second(ops.pow(total, ops.reciprocal(power)), node.rank(x))


@operator("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(node: Call, x: Any) -> Any:
    reduce = ops.reduce_mean if node.op == "GlobalAveragePool" else ops.reduce_max
    return reduce(x, list(range(2, node.rank(x))), keepdims=True)


# --- normalization ---------------------------------------------------------------------------------------------------


def _per_channel(x: Any, rank: int) -> Any:
    return ops.reshape(x, [-1, *[1] * (rank - 2)])


@operator("BatchNormalization")
def _batch_normalization(node: Call, x: Any, scale: Any, b: Any, mean: Any, variance: Any) -> Any:
    rank, epsilon = node.rank(x), node.get("epsilon", 1e-5)
    running: tuple[Any, ...] = ()
    if node.get("training_mode", 0):
        momentum = node.get("momentum", 0.9)
        axes = [0, *range(2, rank)]
        now, spread = ops.reduce_mean(x, axes), ops.reduce_variance(x, axes)
        running = tuple(
            old * number(momentum, old) + ops.cast(new, old.dtype) * number(1 - momentum, old)
            for old, new in ((mean, now), (variance, spread))
        )
        mean, variance = now, spread
    scale, b, mean, variance = (_per_channel(ops.cast(each, x.dtype), rank) for each in (scale, b, mean, variance))
    result = (x - mean) * ops.rsqrt(variance + number(epsilon, variance)) * scale + b
    return (result, *running)[: max(len(node.outputs), 1)]


@operator("InstanceNormalization")
def _instance_normalization(node: Call, x: Any, scale: Any, b: Any) -> Any:
    rank = node.rank(x)
    normal = _normalized(x, list(range(2, rank)), node.get("epsilon", 1e-5))[0]
    return normal * _per_channel(scale, rank) + _per_channel(b, rank)


def _normalized(x: Any, axes: list[int], epsilon: float) -> tuple[Any, Any, Any]:
    mean = ops.reduce_mean(x, axes, keepdims=True)
    centred = x - mean
    inverse = ops.rsqrt(ops.reduce_mean(centred * centred, axes, keepdims=True) + number(epsilon, x))
    return centred * inverse, mean, inverse


@operator("LayerNormalization")
def _layer_normalization(node: Call, x: Any, scale: Any, b: Any = None) -> Any:
    rank = node.rank(x)
    axes = list(range(node.get("axis", -1) % rank, rank))
    wide = ops.cast(x, dtypes.float32) if x.dtype.size < 4 else x
    normal, mean, inverse = _normalized(wide, axes, node.get("epsilon", 1e-5))
    result = ops.cast(normal, x.dtype) * scale
    return (result if b is None else result + b, mean, inverse)[: max(len(node.outputs), 1)]


@operator("RMSNormalization")
def _rms_normalization(node: Call, x: Any, scale: Any) -> Any:
    rank = node.rank(x)
    axes = list(range(node.get("axis", -1) % rank, rank))
    mean = ops.reduce_mean(x * x, axes, keepdims=True)
    return x * ops.rsqrt(mean + number(node.get("epsilon", 1e-5), x)) * scale


@operator("GroupNormalization")
def _group_normalization(node: Call, x: Any, scale: Any, b: Any) -> Any:
    rank, groups = node.rank(x), node.get("num_groups")
    if node.version < 21:
        raise node.refuse("only versions from 21 on are translated, since older ones define scales differently")
    batch, channels, *space = node.shape(x)
    parts = ops.reshape(x, [batch, groups, channels // groups, *space])
    normal = _normalized(parts, list(range(2, rank + 1)), node.get("epsilon", 1e-5))[0]
    return ops.reshape(normal, [batch, channels, *space]) * _per_channel(scale, rank) + _per_channel(b, rank)


@operator("LpNormalization")
def _lp_normalization(node: Call, x: Any) -> Any:
    axis, power = node.get("axis", -1), node.get("p", 2)
    if power == 1:
        size = ops.reduce_sum(ops.abs(x), axis, keepdims=True)
    else:
        size = ops.sqrt(ops.reduce_sum(x * x, axis, keepdims=True))
    return ops.where(ops.equal(size, number(0, size)), ops.zeros_like(x), x / size)


@operator("MeanVarianceNormalization")
def _mean_variance_normalization(node: Call, x: Any) -> Any:
    axes = list(node.get("axes") or [0, 2, 3])
    centred = x - ops.reduce_mean(x, axes, keepdims=True)
    deviation = ops.sqrt(ops.reduce_mean(centred * centred, axes, keepdims=True))
    return centred / (deviation + number(1e-9, x))


@operator("LRN")
def _lrn(node: Call, x: Any) -> Any:
    size = node.get("size")
    squares = ops.pad(x * x, [(0, 0), ((size - 1) // 2, size // 2), *[(0, 0)] * (node.rank(x) - 2)])
    channels = node.shape(x)[1]
    total = _sum([squares[:, k : k + channels] for k in range(size)])
    scale = number(node.get("bias", 1.0), x) + total * number(node.get("alpha", 1e-4) / size, x)
    return x / ops.pow(scale, number(node.get("beta", 0.75), x))


def _sum(parts: list[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


@operator("Softmax", "LogSoftmax", "Hardmax")
def _softmax(node: Call, x: Any) -> Any:
    axis = node.get("axis", -1 if node.version >= 13 else 1) % max(node.rank(x), 1)
    shape = None
    if node.version < 13:  # the dimensions from the axis on are one
        shape = ops.shape(x)
        x = ops.reshape(x, [ops.reduce_prod(shape[:axis]), ops.reduce_prod(shape[axis:])])
        axis = 1
    if node.op == "Hardmax":
        best = ops.expand_dims(ops.argmax(x, axis, output_type=dtypes.int32), axis)
        rank = node.rank(x)
        row = ops.reshape(ops.range(call("dim", x, axis=axis)), [-1 if k == axis else 1 for k in range(rank)])
        result = ops.cast(ops.equal(row, best), x.dtype)
    else:
        result = (nn_ops.softmax if node.op == "Softmax" else nn_ops.log_softmax)(x, axis)
    return result if shape is None else ops.reshape(result, shape)


@operator("Dropout")
def _dropout(node: Call, x: Any, ratio: Any = None, training: Any = None) -> Any:
    if training is not None and bool(np.any(node.known(training, "whether it trains"))):
        share = 0.5 if ratio is None else float(node.known(ratio, "its ratio"))
        if share:
            raise node.refuse("training with dropout draws random numbers; set training_mode to false")
    mask = ops.ones_like(ops.cast(x, dtypes.bool_))
    return (x, mask)[: max(len(node.outputs), 1)]


# --- resizing --------------------------------------------------------------------------------------------------------


@operator("Resize", "Upsample")
def _resize(node: Call, x: Any, *more: Any) -> Any:
    """By one axis after the other, each a product with the weights of its elements."""
    if node.version < 11 or node.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        raise node.refuse("only versions from 11 on, without tf_crop_and_resize, are translated")
    _, scales, sizes = [*more, None, None, None][:3]
    shape, mode = node.shape(x), node.get("mode", "nearest")
    axes = list(node.axes() or range(len(shape)))
    if scales is not None and node.known(scales, "the scales").size:
        factors = [float(each) for each in node.known(scales, "the scales")]
        wanted = [math.floor(shape[axis] * factor) for axis, factor in zip(axes, factors)]
    else:
        wanted = node.ints(sizes, "the sizes")
        policy = node.get("keep_aspect_ratio_policy", "stretch")
        factors = [size / shape[axis] for axis, size in zip(axes, wanted)]
        if policy != "stretch":
            factor = (min if policy == "not_larger" else max)(factors)
            wanted = [math.floor(shape[axis] * factor + 0.5) for axis in axes]
            factors = [factor] * len(axes)
    if not x.dtype.is_floating and mode != "nearest":
        raise node.refuse("for integers, only the mode nearest is translated")
    for axis, factor, size in zip(axes, factors, wanted):
        if size == shape[axis] and factor == 1:
            continue
        at = _coordinates(node, shape[axis], size, factor)
        if mode == "nearest":
            x = gather(x, ops.convert_to_tensor(_nearest(node, at, shape[axis])), axis=axis)
            continue
        weights = _weights(node, at, shape[axis], factor, mode)
        moved = ops.tensordot(x, ops.convert_to_tensor(weights.astype(x.dtype.np)), [[axis], [1]])
        rank = len(shape)
        x = ops.transpose(moved, [*range(axis), rank - 1, *range(axis, rank - 1)])
    return x


def _coordinates(node: Call, before: int, after: int, factor: float) -> np.ndarray:
    """Where the elements of the result lie among the operand's."""
    how, places = node.get("coordinate_transformation_mode", "half_pixel"), np.arange(after, dtype=np.float64)
    if how == "asymmetric":
        return places / factor
    if how == "align_corners":
        length = factor * before  # before it is cut to a whole number
        return places * (before - 1) / (length - 1) if length > 1 else places * 0
    if how == "pytorch_half_pixel":
        return (places + 0.5) / factor - 0.5 if after > 1 else places * 0
    if how == "half_pixel_symmetric":
        offset = before / 2 * (1 - after / (factor * before))
        return offset + (places + 0.5) / factor - 0.5
    return (places + 0.5) / factor - 0.5


def _nearest(node: Call, at: np.ndarray, before: int) -> np.ndarray:
    how = node.get("nearest_mode", "round_prefer_floor")
    rounding: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "floor": np.floor, "ceil": np.ceil, "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    }  # fmt: skip
    found = rounding.get(how, lambda x: np.ceil(x - 0.5))(at)
    return np.clip(found, 0, before - 1).astype(np.int64)


def _weights(node: Call, at: np.ndarray, before: int, factor: float, mode: str) -> np.ndarray:
    """How much of each of the operand's elements each of the result's has, (after, before)."""
    stretch = min(factor, 1.0) if node.get("antialias", 0) else 1.0
    a = node.get("cubic_coeff_a", -0.75)
    reach = (1 if mode == "linear" else 2) / stretch
    weights = np.zeros((len(at), before))
    for row, place in enumerate(at):
        first, last = math.floor(place - reach) + 1, math.ceil(place + reach) - 1
        if not node.get("antialias", 0):
            first = math.floor(place) - (0 if mode == "linear" else 1)
            last = first + (1 if mode == "linear" else 3)
        taps = np.arange(first, last + 1)
        parts = _kernel(np.abs(place - taps) * stretch, mode, a)
        if node.get("exclude_outside", 0):
            parts = parts * ((taps >= 0) & (taps < before))
            parts = parts / parts.sum()
        elif node.get("antialias", 0):
            parts = parts / parts.sum()
        np.add.at(weights[row], np.clip(taps, 0, before - 1), parts)
    return weights


def _kernel(distance: np.ndarray, mode: str, a: float) -> np.ndarray:
    if mode == "linear":
        return np.maximum(1 - distance, 0)
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))
