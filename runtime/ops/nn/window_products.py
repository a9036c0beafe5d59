"""Products of windows with filters: convolution and its two adjoints.

    convolution(x, w)                     (batch, *space, channels), (*sizes, channels, depth) → (batch, *places, depth)
    convolution_input_grad(dy, w, shape)  its adjoint for x: (batch, *places, depth), w → (batch, *space, channels)
    convolution_filters_grad(x, dy)       its adjoint for w: x, (batch, *places, depth) → (*sizes, channels, depth)

The attributes are those of `patches`, which gives the windows. The three are linear in each operand, and the gradients
of each are the other two. They are rows of their own, rather than `patches` and `matmul`, because the windows take as
much memory as the image times the elements of a window: generated code makes a few at a time
(`codegen/op_lowerings/convolution.py`), and a gradient keeps the image instead of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime.ops import blas
from runtime.ops.convert import fill_holes
from runtime.ops.dispatch import call
from runtime.ops.nn.patches import Padding, added, view_of_windows, window_dims, windows
from runtime.ops.rules import brackets, dims, shape_attr
from runtime.ops.table import OpDef, Sample, register
from runtime.types import TensorType

CHANNELS, DEPTHS = "the channels of the input and of the filters", "the depths of the cotangent and of the filters"
PLACES = "the places of windows over the input and those of the cotangent"
SIZES = "the sizes of the filters and of the windows"
ATTRS = ("sizes", "strides", "rates", "padding")
# Images of so many channels are copied place by place, the elements of windows being the slow dimension: four times as
# fast as windows of elements that are hardly longer than a number.
_FEW_CHANNELS = 3


def check_dtypes(one: Any, other: Any) -> None:
    if one.dtype is not other.dtype:
        raise TypeError(
            f"input #1 has dtype {other.dtype.label}, which does not match type {one.dtype.label} of input #0"
        )


def check_equal(what: str, one: int | None, other: int | None) -> None:
    """Raises ValueError where a dimension that two operands have differs."""
    if one is not None and other is not None and one != other:
        raise ValueError(f"{what} differ: {one} and {other}")


def _filters_dims(shape: Any, sizes: Sequence[int]) -> tuple[int | None, int | None]:
    """The channels and the depth of filters. Raises ValueError for another rank and for other sizes."""
    if shape is None:
        return None, None
    if len(shape) != len(sizes) + 2:
        raise ValueError(f"filters must be {len(sizes) + 2}-dimensional, got shape {brackets(shape)}")
    for own, size in zip(shape, sizes):
        check_equal(SIZES, own, size)
    return shape[-2:]


def _depth(shape: Any, sizes: Sequence[int]) -> int | None:
    """The depth of a cotangent. Raises ValueError for another rank."""
    if shape is None:
        return None
    if len(shape) != len(sizes) + 2:
        raise ValueError(f"the cotangent must be {len(sizes) + 2}-dimensional, got shape {brackets(shape)}")
    return shape[-1]


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    x, w = inputs
    check_dtypes(x, w)
    batch, *places, channels = window_dims(x.shape, attrs)
    own, depth = _filters_dims(w.shape, attrs["sizes"])
    check_equal(CHANNELS, channels, own)
    return (TensorType(x.dtype, (batch, *places, depth)),)


def _infer_input_grad(inputs: Sequence[Any], attrs: dict) -> tuple:
    check_dtypes(*inputs[:2])
    own, depth = _filters_dims(inputs[1].shape, attrs["sizes"])
    check_equal(DEPTHS, _depth(inputs[0].shape, attrs["sizes"]), depth)
    check_equal(CHANNELS, attrs["shape"][-1], own)
    return (TensorType(inputs[0].dtype, attrs["shape"]),)


def _infer_filters_grad(inputs: Sequence[Any], attrs: dict) -> tuple:
    x, dy = inputs
    check_dtypes(x, dy)
    *lead, channels = window_dims(x.shape, attrs)
    depth = _depth(dy.shape, attrs["sizes"])
    for one, other in zip(lead, dy.shape or ()):
        check_equal(PLACES, one, other)
    return (TensorType(x.dtype, (*attrs["sizes"], channels, depth)),)


def _rows_of_windows(x: Any, attrs: dict[str, Any]) -> Any:
    """The windows as rows of a matrix."""
    if x.shape[-1] <= _FEW_CHANNELS:
        view = view_of_windows(x, fill=0, **attrs)
        rank, size = len(attrs["sizes"]), math.prod(attrs["sizes"]) * x.shape[-1]
        moved = view.transpose(*range(rank + 2, view.ndim), rank + 1, *range(rank + 1))
        return moved.reshape(size, math.prod(view.shape[: rank + 1])).T
    found = windows(x, fill=0, **attrs)
    return found.reshape(math.prod(found.shape[:-2]), math.prod(found.shape[-2:]))


def _kernel(x: Any, w: Any, **attrs: Any) -> Any:
    channels, _ = _filters_dims(w.shape, attrs["sizes"])
    check_equal(CHANNELS, x.shape[-1], channels)
    rows = _rows_of_windows(x, attrs)
    result = blas.matmul(rows, w.reshape(rows.shape[1], w.shape[-1]))
    return result.reshape(*window_dims(x.shape, attrs)[:-1], w.shape[-1])


def _input_grad(dy: Any, w: Any, *holes: Any, shape: Any, **attrs: Any) -> Any:
    channels, own = _filters_dims(w.shape, attrs["sizes"])
    *lead, depth = dy.shape
    check_equal(DEPTHS, depth, own)
    rows, filters = dy.reshape(math.prod(lead), depth), w.reshape(math.prod(attrs["sizes"]), channels, depth)

    def part(number: int) -> Any:
        """What the windows give their elements of this number: small enough to be added while it is in the cache."""
        return blas.matmul(rows, filters[number].T).reshape(*lead, channels)

    return added(part, dy.dtype, lead[1:], fill_holes(shape, holes), **attrs)


def _filters_grad(x: Any, dy: Any, **attrs: Any) -> Any:
    for one, other in zip(window_dims(x.shape, attrs), dy.shape[:-1]):
        check_equal(PLACES, one, other)
    rows = _rows_of_windows(x, attrs)
    result = blas.matmul(rows.T, dy.reshape(math.prod(dy.shape[:-1]), dy.shape[-1]))
    return result.reshape(*attrs["sizes"], x.shape[-1], dy.shape[-1])


Gradient = Callable[..., Sequence[Any]]


def gradients(name: str, stem: str) -> tuple[Gradient, Gradient, Gradient]:
    """The gradients of a convolution, of `stem`_input_grad and of `stem`_filters_grad: the three are linear in each
    operand, and the gradients of each are the other two."""

    def of_input(dy: Any, w: Any, like: Any, attrs: dict) -> Any:
        shape, extra = shape_attr(dims(like))
        return call(f"{stem}_input_grad", dy, w, *extra, shape=shape, **attrs)

    def of_filters(x: Any, dy: Any, attrs: dict) -> Any:
        return call(f"{stem}_filters_grad", x, dy, **attrs)

    def convolution(op: Any, dy: Any) -> Sequence[Any]:
        x, w = op.inputs
        return (
            of_input(dy, w, x, op.attrs) if op.wants(0) else None,
            of_filters(x, dy, op.attrs) if op.wants(1) else None,
        )

    def input_grad(op: Any, dx: Any) -> Sequence[Any]:
        dy, w, *holes = op.inputs
        attrs = {key: op.attrs[key] for key in ATTRS}
        return (
            call(name, dx, w, **attrs) if op.wants(0) else None,
            of_filters(dx, dy, attrs) if op.wants(1) else None,
            *[None] * len(holes),
        )

    def filters_grad(op: Any, dw: Any) -> Sequence[Any]:
        x, dy = op.inputs
        return (
            of_input(dy, dw, x, op.attrs) if op.wants(0) else None,
            call(name, x, dw, **op.attrs) if op.wants(1) else None,
        )

    return convolution, input_grad, filters_grad


_grad, _grad_input_grad, _grad_filters_grad = gradients("convolution", "convolution")


def _window(shapes: Sequence[Any], attrs: dict) -> int | None:
    channels = shapes[1][-2]
    return None if channels is None else math.prod(attrs["sizes"]) * channels


def _row_of_filters(shapes: Sequence[Any], attrs: dict) -> int | None:
    depth = shapes[1][-1]
    return None if depth is None else math.prod(attrs["sizes"]) * depth


def _places(shapes: Sequence[Any], attrs: dict) -> int | None:
    places = shapes[1][:-1]
    return None if None in places else math.prod(places)


def _case(sizes: Any, strides: Any, rates: Any, padding: Padding) -> dict[str, Any]:
    return {"sizes": sizes, "strides": strides, "rates": rates, "padding": padding}


# The shapes of the input, the filters and the result.
_CASES: list[tuple[tuple[int, ...], dict[str, Any], tuple[int, ...], tuple[int, ...]]] = [
    ((2, 5, 2), _case((3,), (2,), (1,), "SAME"), (3, 2, 3), (2, 3, 3)),
    ((1, 4, 3, 1), _case((2, 2), (1, 1), (1, 1), "VALID"), (2, 2, 1, 2), (1, 3, 2, 2)),
    ((2, 5, 4, 2), _case((2, 2), (2, 1), (2, 1), "SAME"), (2, 2, 2, 1), (2, 3, 4, 1)),
    ((1, 4, 1), _case((2,), (1,), (1,), ((1, 2),)), (2, 1, 2), (1, 6, 2)),
    ((1, 2, 1), _case((3,), (1,), (1,), "VALID"), (3, 1, 2), (1, 0, 2)),
]
CONVOLUTION = register(
    OpDef(
        "convolution", _infer, _kernel, grad=_grad, kinds="iufc", attrs=ATTRS, needs_no_constants=True, can_fail=False,
        terms=_window, doc="Slides filters over the spatial dimensions: products of windows with filters.",
        samples=tuple(Sample((x, w), attrs) for x, attrs, w, _ in _CASES),
    )
)  # fmt: skip
CONVOLUTION_INPUT_GRAD = register(
    OpDef(
        "convolution_input_grad", _infer_input_grad, _input_grad, grad=_grad_input_grad, kinds="iufc",
        attrs=("shape", *ATTRS), can_fail=False, terms=_row_of_filters,
        doc="The adjoint of convolution for its input, which has a given shape.",
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
        "convolution_filters_grad", _infer_filters_grad, _filters_grad, grad=_grad_filters_grad, kinds="iufc",
        attrs=ATTRS, needs_no_constants=True, can_fail=False, terms=_places,
        doc="The adjoint of convolution for its filters.",
        samples=tuple(Sample((x, y), attrs) for x, attrs, _, y in _CASES),
    )
)  # fmt: skip
