"""Lowerings of windows, and of what they are for: convolutions and pooling.

An op or a reduction whose operand is windows (`patches`) becomes ONNX' own operator, where ONNX Runtime has it in the
dtype:

    convolution(x, w)                           Conv
    depthwise_convolution(x, w)                 Conv with a group for each channel
    reduce_sum(patches(x)) over a window        AveragePool, times the window's size
    max_pool(x), of float32                     MaxPool

Windows that nothing else reads are left out with all that nobody reads (`Emitter.pruned`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.graph.ir import Node, Value
from runtime.onnx_export.control_flow import lowered_program
from runtime.onnx_export.emitter import Emitter, Ref, lowering
from runtime.ops.convert import constant
from runtime.ops.dispatch import call
from runtime.ops.nn.patches import borders
from runtime.ops.rules import dims, product, shape_attr
from runtime.tensor import Tensor


def windows_of(value: Value, fill: float = 0) -> Node | None:
    """The node that made windows of float32 numbers, with this number on their borders."""
    node = value.node
    if node is None or node.op.name != "patches" or value.dtype is not dtypes.float32:
        return None
    return node if node.attrs["fill"] == fill and node.inputs[0].shape is not None else None


def _has_operator(node: Node) -> bool:
    """Whether ONNX Runtime's Conv takes a convolution's operands and attributes."""
    x, w = node.inputs
    space = node.outputs[0].shape[1:-1] if node.outputs[0].shape is not None else (None,)
    is_known = x.shape is not None and None not in x.shape[1:-1]
    # It refuses images smaller than a window; its own rule for the borders doesn't know of rates.
    fits = 0 not in space and (is_known or node.attrs["padding"] != "SAME" or set(node.attrs["rates"]) == {1})
    return x.dtype is dtypes.float32 and fits and w.shape is not None and None not in w.shape


@lowering("convolution")
def _convolution(e: Emitter, node: Node) -> Ref:
    if not _has_operator(node):
        (found,) = lowered_program(e, node, _products)
        return found
    count = len(node.attrs["sizes"])
    filters = e.transpose(e.ref(node.inputs[1]), (count + 1, count, *range(count)))
    return _convolved(e, node, filters, 1)


def _products(x: Tensor, w: Tensor, **attrs: Any) -> Sequence[Tensor]:
    """The windows times the filters."""
    found = call("patches", x, fill=0, **attrs)
    *lead, elements, channels = dims(found)
    columns, depth = product([elements, channels]), dims(w)[-1]
    result = call("matmul", _shaped(found, product(lead), columns), _shaped(w, columns, depth), **_NO_FLIPS)
    return (_shaped(result, *lead, depth),)


_NO_FLIPS = {"transpose_a": False, "transpose_b": False}


def _shaped(x: Tensor, *sizes: Any) -> Tensor:
    shape, extra = shape_attr(sizes)
    found: Tensor = call("reshape", x, *extra, shape=shape)
    return found


@lowering("convolution_input_grad")
def _convolution_input_grad(e: Emitter, node: Node) -> Ref:
    (found,) = lowered_program(e, node, _spread)
    return found


def _spread(dy: Tensor, w: Tensor, *holes: Tensor, shape: Any, **attrs: Any) -> Sequence[Tensor]:
    """Windows, which are the cotangent times the filters, added up where they come from."""
    *lead, depth = dims(dy)
    channels, elements = dims(w)[-2], math.prod(attrs["sizes"])
    matrix = _shaped(w, product([elements, channels]), depth)
    windows = call("matmul", _shaped(dy, product(lead), depth), matrix, transpose_a=False, transpose_b=True)
    return (call("patches_grad", _shaped(windows, *lead, elements, channels), *holes, shape=shape, **attrs),)


@lowering("convolution_filters_grad")
def _convolution_filters_grad(e: Emitter, node: Node) -> Ref:
    (found,) = lowered_program(e, node, _correlated)
    return found


def _correlated(x: Tensor, dy: Tensor, **attrs: Any) -> Sequence[Tensor]:
    """The windows, transposed, times the cotangent."""
    found = call("patches", x, fill=0, **attrs)
    *lead, elements, channels = dims(found)
    depth = dims(dy)[-1]
    windows = _shaped(found, product(lead), product([elements, channels]))
    result = call("matmul", windows, _shaped(dy, product(lead), depth), transpose_a=True, transpose_b=False)
    return (_shaped(result, *attrs["sizes"], channels, depth),)


@lowering("depthwise_convolution")
def _depthwise_convolution(e: Emitter, node: Node) -> Ref:
    if not _has_operator(node):
        (found,) = lowered_program(e, node, _weighted)
        return found
    count, channels = len(node.attrs["sizes"]), node.inputs[1].shape[-1]
    filters = e.transpose(e.ref(node.inputs[1]), (count, *range(count)))
    filters = e.reshape(filters, e.ints(channels, 1, *node.attrs["sizes"]))
    return _convolved(e, node, filters, channels)


def _weighted(x: Tensor, w: Tensor, **attrs: Any) -> Sequence[Tensor]:
    """The sum of each window's elements times the filters."""
    found = call("patches", x, fill=0, **attrs)
    terms = found * _shaped(w, math.prod(attrs["sizes"]), dims(w)[-1])
    return (call("reduce_sum", terms, axis=(len(attrs["sizes"]) + 1,), keepdims=False),)


@lowering("depthwise_input_grad")
def _depthwise_input_grad(e: Emitter, node: Node) -> Ref:
    (found,) = lowered_program(e, node, _spread_by_channel)
    return found


def _spread_by_channel(dy: Tensor, w: Tensor, *holes: Tensor, shape: Any, **attrs: Any) -> Sequence[Tensor]:
    """Windows, which are the cotangent times the filters, added up where they come from."""
    cotangent = call("expand_dims", dy, axis=(len(attrs["sizes"]) + 1,))
    windows = cotangent * _shaped(w, math.prod(attrs["sizes"]), dims(w)[-1])
    return (call("patches_grad", windows, *holes, shape=shape, **attrs),)


@lowering("depthwise_filters_grad")
def _depthwise_filters_grad(e: Emitter, node: Node) -> Ref:
    (found,) = lowered_program(e, node, _correlated_by_channel)
    return found


def _correlated_by_channel(x: Tensor, dy: Tensor, **attrs: Any) -> Sequence[Tensor]:
    """The windows times the cotangent, added up."""
    rank = len(attrs["sizes"]) + 1
    terms = call("patches", x, fill=0, **attrs) * call("expand_dims", dy, axis=(rank,))
    total = call("reduce_sum", terms, axis=tuple(range(rank)), keepdims=False)
    return (_shaped(total, *attrs["sizes"], dims(x)[-1]),)


def _convolved(e: Emitter, patches: Node, filters: Ref, groups: int) -> Ref:
    x, rank = _channels_second(e, patches)
    made = e.emit("Conv", x, filters, group=groups, **_attributes(patches))
    return e.transpose(made, (0, *range(2, rank), 1))


def _channels_second(e: Emitter, patches: Node) -> tuple[Ref, int]:
    rank = len(patches.attrs["sizes"]) + 2
    return e.transpose(e.ref(patches.inputs[0]), (0, rank - 1, *range(1, rank - 1))), rank


def _attributes(patches: Node) -> dict[str, Any]:
    padding, shape = patches.attrs["padding"], patches.inputs[0].shape
    if padding == "SAME" and shape is not None and None not in shape[1:-1]:
        sizes, strides, rates = (patches.attrs[name] for name in ("sizes", "strides", "rates"))
        padding = borders(shape[1:-1], sizes, strides, rates, padding)
    found: dict[str, Any] = {
        "kernel_shape": list(patches.attrs["sizes"]), "strides": list(patches.attrs["strides"]),
        "dilations": list(patches.attrs["rates"]),
    }  # fmt: skip
    if padding == "SAME":
        found["auto_pad"] = "SAME_UPPER"
    elif padding != "VALID":
        found["pads"] = [a for a, _ in padding] + [b for _, b in padding]
    return found


def window_sum(e: Emitter, node: Node) -> Ref | None:
    """A sum over windows as an average times their size; None where it is none."""
    patches = windows_of(node.inputs[0])
    if patches is None or node.attrs["keepdims"] or node.attrs["axis"] != (len(patches.attrs["sizes"]) + 1,):
        return None
    shape = patches.inputs[0].shape
    if None in shape[1:-1] or len(shape) > 5:
        return None
    attrs = _attributes(patches)
    x, rank = _channels_second(e, patches)
    made = e.emit("AveragePool", x, count_include_pad=1, **attrs)
    made = e.emit("Mul", made, e.number(math.prod(patches.attrs["sizes"]), made))
    return e.transpose(made, (0, *range(2, rank), 1))


@lowering("max_pool")
def _max_pool(e: Emitter, node: Node) -> Sequence[Ref]:
    values, numbers = lowered_program(e, node, _largest)
    sizes, rates, padding = (node.attrs[name] for name in ("sizes", "rates", "padding"))
    shape = node.inputs[0].shape
    # ONNX Runtime's own rule for the borders doesn't know of steps between elements.
    is_known = shape is not None and None not in shape[1:-1]
    if values.dtype is dtypes.float32 and len(sizes) <= 3 and (is_known or padding != "SAME" or set(rates) == {1}):
        attrs = _attributes(node)
        x, rank = _channels_second(e, node)
        values = e.transpose(e.emit("MaxPool", x, **attrs), (0, *range(2, rank), 1))
    return values, numbers


def _largest(x: Tensor, **attrs: Any) -> Sequence[Tensor]:
    """The first of the largest of each window, and its number in the window; NaN before all."""
    windows, axis = call("patches", x, fill=-math.inf, **attrs), len(attrs["sizes"]) + 1
    nan = call("is_nan", windows)
    # `argmax` leaves NaN out.
    places = [call("argmax", values, axis=axis, output_type=dtypes.int32) for values in (nan, windows)]
    number = call("select", call("reduce_any", nan, axis=(axis,), keepdims=False), *places)
    best = call("take_along", windows, call("expand_dims", number, axis=(axis,)), axis=axis)
    return call("squeeze", best, axis=(axis,)), number


@lowering("max_pool_grad")
def _max_pool_grad(e: Emitter, node: Node) -> Sequence[Ref]:
    return lowered_program(e, node, _largest_grad)


def _largest_grad(dy: Tensor, number: Tensor, *holes: Tensor, **attrs: Any) -> Sequence[Tensor]:
    axis = len(attrs["sizes"]) + 1
    every = constant(np.arange(math.prod(attrs["sizes"]), dtype=np.int32)[:, None])
    is_it = call("equal", call("expand_dims", number, axis=(axis,)), every)
    wide = call("expand_dims", dy, axis=(axis,))
    return (call("patches_grad", call("select", is_it, wide, call("zeros_like", wide)), *holes, **attrs),)


def size(e: Emitter, patches: Node, axis: int) -> Ref:
    """A dimension of windows, a vector of one element, without making them."""
    x, sizes = e.ref(patches.inputs[0]), patches.attrs["sizes"]
    count = len(sizes)
    if axis in (0, count + 2):
        return e.dim(x, 0 if axis == 0 else -1)
    if axis == count + 1:
        return e.ints(math.prod(sizes))
    length, stride = e.dim(x, axis), patches.attrs["strides"][axis - 1]
    padding = patches.attrs["padding"]
    if padding == "SAME":
        more = stride - 1
    else:
        before, after = (0, 0) if padding == "VALID" else padding[axis - 1]
        more = before + after - (sizes[axis - 1] - 1) * patches.attrs["rates"][axis - 1] - 1 + stride
    found = e.emit("Div", e.emit("Add", length, e.ints(more)), e.ints(stride))
    return e.emit("Max", found, e.ints(0))
