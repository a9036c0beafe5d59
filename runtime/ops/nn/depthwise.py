"""Convolution of each channel by itself, and its two adjoints.

    depthwise_convolution(x, w)          (batch, *space, channels), (*sizes, channels) → (batch, *places, channels)
    depthwise_input_grad(dy, w, shape)   its adjoint for x: (batch, *places, channels), w → (batch, *space, channels)
    depthwise_filters_grad(x, dy)        its adjoint for w: x, (batch, *places, channels) → (*sizes, channels)

The attributes are those of `patches`. The three are linear in each operand, and the gradients of each are the other
two. They are rows of their own because an element of a window has a single product: matrix products of windows and
filters would take longer to make and to read than to compute.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from runtime.ops.convert import fill_holes
from runtime.ops.nn.patches import added, view_of_windows, window_dims
from runtime.ops.nn.window_products import ATTRS, CHANNELS, PLACES, SIZES, check_dtypes, check_equal, gradients
from runtime.ops.rules import brackets
from runtime.ops.table import OpDef, Sample, register
from runtime.types import TensorType

# Bytes of a copy of an image's elements, of which several are read and written while they are in the cache.
_CACHED = 1 << 18


def _channels(shape: Any, sizes: Sequence[int]) -> int | None:
    """The number of channels of filters of this shape; None if it isn't known. Raises ValueError if their rank or sizes
    don't fit."""
    if shape is None:
        return None
    if len(shape) != len(sizes) + 1:
        raise ValueError(f"filters must be {len(sizes) + 1}-dimensional, got shape {brackets(shape)}")
    for own, size in zip(shape, sizes):
        check_equal(SIZES, own, size)
    return shape[-1]


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    x, w = inputs
    check_dtypes(x, w)
    *lead, channels = window_dims(x.shape, attrs)
    own = _channels(w.shape, attrs["sizes"])
    check_equal(CHANNELS, channels, own)
    return (TensorType(x.dtype, (*lead, own if channels is None else channels)),)


def _infer_input_grad(inputs: Sequence[Any], attrs: dict) -> tuple:
    dy, w = inputs[:2]
    check_dtypes(dy, w)
    own = _channels(w.shape, attrs["sizes"])
    check_equal(CHANNELS, None if dy.shape is None else dy.shape[-1], own)
    check_equal(CHANNELS, attrs["shape"][-1], own)
    return (TensorType(dy.dtype, attrs["shape"]),)


def _infer_filters_grad(inputs: Sequence[Any], attrs: dict) -> tuple:
    x, dy = inputs
    check_dtypes(x, dy)
    found = window_dims(x.shape, attrs)
    for one, other in zip(found, dy.shape or ()):
        check_equal(PLACES, one, other)
    return (TensorType(x.dtype, (*attrs["sizes"], found[-1])),)


def _images(x: Any) -> Iterator[slice]:
    """A few images at a time, which stay in the cache."""
    step = max(1, _CACHED // max(1, x[:1].nbytes))
    for first in range(0, len(x), step):
        yield slice(first, first + step)


def _padding(x: Any, factor: Any, attrs: dict) -> Any:
    """Where a window has no element of the image, of each offset; None if products with the zeros there are zeros."""
    if np.isfinite(factor).all():
        return None
    return ~view_of_windows(np.ones((1, *x.shape[1:-1], 1), bool), fill=False, **attrs)


def _kernel(x: Any, w: Any, **attrs: Any) -> Any:
    check_equal(CHANNELS, x.shape[-1], _channels(w.shape, attrs["sizes"]))
    view, padding = view_of_windows(x, fill=0, **attrs), _padding(x, w, attrs)
    result = np.zeros(view.shape[: x.ndim], x.dtype)
    for some in _images(result):
        out, part = result[some], view[some]
        product = np.empty_like(out)
        for offset in itertools.product(*map(range, attrs["sizes"])):
            np.multiply(part[(..., *offset)], w[offset], out=product)
            if padding is not None:
                np.copyto(product, 0, where=padding[(..., *offset)])
            out += product
    return result


def _input_grad(dy: Any, w: Any, *holes: Any, shape: Any, **attrs: Any) -> Any:
    channels = _channels(w.shape, attrs["sizes"])
    check_equal(CHANNELS, dy.shape[-1], channels)
    target = fill_holes(shape, holes)
    check_equal(CHANNELS, target[-1], channels)
    check_equal(PLACES, target[0], len(dy))
    filters = w.reshape(math.prod(attrs["sizes"]), w.shape[-1])
    result = np.empty(target, dy.dtype)
    for some in _images(dy):
        part = dy[some]
        product = np.empty_like(part)
        result[some] = added(
            lambda number: np.multiply(part, filters[number], out=product),  # noqa: B023, called at once
            dy.dtype, dy.shape[1:-1], (len(part), *target[1:]), **attrs,
        )  # fmt: skip
    return result


def _filters_grad(x: Any, dy: Any, **attrs: Any) -> Any:
    for one, other in zip(window_dims(x.shape, attrs), dy.shape):
        check_equal(PLACES, one, other)
    view, padding = view_of_windows(x, fill=0, **attrs), _padding(x, dy, attrs)
    result = np.zeros((*attrs["sizes"], x.shape[-1]), x.dtype)
    for some in _images(dy):
        part, cotangent = view[some], dy[some]
        product = np.empty_like(cotangent)
        ones = np.ones(math.prod(product.shape[:-1]), x.dtype)
        for offset in itertools.product(*map(range, attrs["sizes"])):
            np.multiply(part[(..., *offset)], cotangent, out=product)
            if padding is not None:
                np.copyto(product, 0, where=padding[(..., *offset)])
            result[offset] += ones @ product.reshape(len(ones), x.shape[-1])
    return result


_grad, _grad_input_grad, _grad_filters_grad = gradients("depthwise_convolution", "depthwise")


def _window(shapes: Sequence[Any], attrs: dict) -> int | None:
    return math.prod(attrs["sizes"])


def _places(shapes: Sequence[Any], attrs: dict) -> int | None:
    places = shapes[1][:-1]
    return None if None in places else math.prod(places)


def _case(sizes: Any, strides: Any, rates: Any, padding: Any) -> dict[str, Any]:
    return {"sizes": sizes, "strides": strides, "rates": rates, "padding": padding}


# The shapes of the input, the filters and the result.
_CASES: list[tuple[tuple[int, ...], dict[str, Any], tuple[int, ...], tuple[int, ...]]] = [
    ((2, 5, 2), _case((3,), (2,), (1,), "SAME"), (3, 2), (2, 3, 2)),
    ((1, 4, 3, 1), _case((2, 2), (1, 1), (1, 1), "VALID"), (2, 2, 1), (1, 3, 2, 1)),
    ((2, 5, 4, 3), _case((2, 2), (2, 1), (2, 1), "SAME"), (2, 2, 3), (2, 3, 4, 3)),
    ((1, 4, 1), _case((2,), (1,), (1,), ((1, 2),)), (2, 1), (1, 6, 1)),
    ((1, 2, 1), _case((3,), (1,), (1,), "VALID"), (3, 1), (1, 0, 1)),
]
DEPTHWISE = register(
    OpDef(
        "depthwise_convolution", _infer, _kernel, grad=_grad, kinds="iufc", attrs=ATTRS, needs_no_constants=True,
        can_fail=False, terms=_window, doc="Slides a filter over the spatial dimensions of each channel.",
        samples=tuple(Sample((x, w), attrs) for x, attrs, w, _ in _CASES), label="DepthwiseConv2dNative",
    )
)  # fmt: skip
register(
    OpDef(
        "depthwise_input_grad", _infer_input_grad, _input_grad, grad=_grad_input_grad, kinds="iufc",
        attrs=("shape", *ATTRS), can_fail=False, terms=_window,
        doc="The adjoint of depthwise_convolution for its input, which has a given shape.",
        samples=(
            *[Sample((y, w), {**attrs, "shape": x}) for x, attrs, w, y in _CASES],
            Sample(
                (_CASES[0][3], _CASES[0][2], ()), {**_CASES[0][1], "shape": (None, 5, 2)}, fixed={2: np.int32(2)},
                gradient=(0, 1),
            ),
        ),
    )
)  # fmt: skip
register(
    OpDef(
        "depthwise_filters_grad", _infer_filters_grad, _filters_grad, grad=_grad_filters_grad, kinds="iufc",
        attrs=ATTRS, needs_no_constants=True, can_fail=False, terms=_places,
        doc="The adjoint of depthwise_convolution for its filters.",
        samples=tuple(Sample((x, y), attrs) for x, attrs, _, y in _CASES),
    )
)  # fmt: skip
