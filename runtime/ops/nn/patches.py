"""Windows over the space dimensions of a tensor, and sums back from windows: what convolution and pooling are made of.

    patches(x, sizes, strides, rates, padding)   (batch, *space, channels) -> (batch, *places, elements, channels)
    patches_grad(windows, ...)                    its adjoint: adds each window's elements up where they came from
    max_pool(x, sizes, strides, rates, padding)   the largest element of each window, and its number in the window
    max_pool_grad(dy, number, ...)                the adjoint of its first result

`elements` counts a window's elements, the last dimension fastest. `padding` is "VALID", "SAME" (TensorFlow's rule: the
odd element goes to the end) or pairs. A convolution is a product of windows and filters (`window_products.py`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.ops.blend import bits_of, blend, mask_of
from runtime.ops.convert import fill_holes
from runtime.ops.dispatch import call
from runtime.ops.rules import brackets, dims, shape_attr
from runtime.ops.table import OpDef, Sample, register
from runtime.types import TensorType

Padding = str | tuple[tuple[int, int], ...]
# The declarations of some NumPys know only one axis.
_sliding_window_view: Any = np.lib.stride_tricks.sliding_window_view


def borders(space: Sequence[int], sizes: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: Padding):
    """Elements to add before and after each space dimension."""
    if padding == "VALID":
        return tuple((0, 0) for _ in space)
    if padding != "SAME":
        return padding
    pairs = []
    for length, size, stride, rate in zip(space, sizes, strides, rates):
        total = max((-(-length // stride) - 1) * stride + (size - 1) * rate + 1 - length, 0)
        pairs.append((total // 2, total - total // 2))
    return tuple(pairs)


def places(length: int | None, size: int, stride: int, rate: int, pair: Any) -> int | None:
    """How many windows there are along a dimension."""
    if length is None:
        return None
    if pair == "SAME":
        return -(-length // stride)
    before, after = (0, 0) if pair == "VALID" else pair
    return max((length + before + after - (size - 1) * rate - 1) // stride + 1, 0)


def _pairs(padding: Padding, count: int) -> Sequence[Any]:
    return [padding] * count if isinstance(padding, str) else padding


def window_dims(shape: tuple[int | None, ...] | None, attrs: dict) -> tuple[int | None, ...]:
    """(batch, *places, channels) of the windows over a tensor of this shape. Raises ValueError for another rank."""
    sizes = attrs["sizes"]
    rank = len(sizes) + 2
    if shape is None:
        return (None,) * rank
    if len(shape) != rank:
        raise ValueError(f"input must be {rank}-dimensional, got shape {brackets(shape)}")
    pairs = _pairs(attrs["padding"], len(sizes))
    found = [places(*item) for item in zip(shape[1:-1], sizes, attrs["strides"], attrs["rates"], pairs)]
    return (shape[0], *found, shape[-1])


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    *lead, channels = window_dims(inputs[0].shape, attrs)
    return (TensorType(inputs[0].dtype, (*lead, math.prod(attrs["sizes"]), channels)),)


def _view(x: Any, sizes: Any, strides: Any, rates: Any) -> Any:
    """A view (batch, *places, channels, *sizes) of a tensor with its borders."""
    space = tuple(range(1, x.ndim - 1))
    spans = tuple((size - 1) * rate + 1 for size, rate in zip(sizes, rates))
    if any(x.shape[axis] < span for axis, span in zip(space, spans)):
        counts = [places(x.shape[a], s, t, r, (0, 0)) for a, s, t, r in zip(space, sizes, strides, rates)]
        return np.zeros((x.shape[0], *counts, x.shape[-1], *sizes), x.dtype)
    view = _sliding_window_view(x, spans, space)
    view = view[(slice(None), *[slice(None, None, s) for s in strides])]
    return view[(..., *[slice(None, None, r) for r in rates])]


def view_of_windows(x: Any, sizes: Any, strides: Any, rates: Any, padding: Padding, fill: Any) -> Any:
    """(batch, *places, channels, *sizes) of an array, or of a copy with its borders."""
    pairs = borders(x.shape[1:-1], sizes, strides, rates, padding)
    padded = np.pad(x, ((0, 0), *pairs, (0, 0)), constant_values=fill) if any(map(any, pairs)) else x
    return _view(padded, sizes, strides, rates)


def windows(x: Any, sizes: Any, strides: Any, rates: Any, padding: Padding, fill: Any) -> Any:
    """(batch, *places, elements, channels) of an array."""
    view = view_of_windows(x, sizes, strides, rates, padding, fill)
    moved = np.moveaxis(view, len(sizes) + 1, -1)
    return moved.reshape(*moved.shape[: len(sizes) + 1], -1 if moved.size else math.prod(sizes), x.shape[-1])


def fold(dy: Any, *holes: Any, shape: Any, **attrs: Any) -> Any:
    """Zeros of a shape with windows added."""
    counts = dy.shape[1 : len(attrs["sizes"]) + 1]
    return added(lambda number: dy[..., number, :], dy.dtype, counts, fill_holes(shape, holes), **attrs)


def added(
    part: Callable[[int], Any], dtype: Any, counts: Any, target: Any, sizes: Any, strides: Any, rates: Any, padding: Any
) -> Any:
    """Zeros with windows added; `part` gives the elements of all windows that have this number in them."""
    pairs = borders(target[1:-1], sizes, strides, rates, padding)
    padded = np.zeros((target[0], *[d + a + b for d, (a, b) in zip(target[1:-1], pairs)], target[-1]), dtype)
    for number, offset in enumerate(itertools.product(*[range(s) for s in sizes])):
        key = [slice(o * r, o * r + (n - 1) * s + 1, s) if n else slice(0, 0)
               for o, r, n, s in zip(offset, rates, counts, strides)]  # fmt: skip
        padded[(slice(None), *key)] += part(number)
    return padded[(slice(None), *[slice(a, a + d) for d, (a, _) in zip(target[1:-1], pairs)])]


def _largest(x: Any, sizes: Any, strides: Any, rates: Any, padding: Padding) -> Any:
    view = view_of_windows(x, sizes, strides, rates, padding, -np.inf)
    offsets = itertools.product(*[range(s) for s in sizes])
    largest: Any = None
    for number, offset in enumerate(offsets):
        value = np.ascontiguousarray(view[(..., *offset)])
        if largest is None:
            largest, numbers = value.copy(), np.zeros(value.shape, np.int32)
            continue
        better = ~(value <= largest) & (largest == largest)  # NaN is larger than all else
        mask = mask_of(better, bits_of(x.dtype))
        ours, others = largest.view(mask.dtype), value.view(mask.dtype)
        ours ^= (ours ^ others) & mask
        numbers ^= (numbers ^ number) & mask.astype(np.int32, copy=False)
    return largest, numbers


def _infer_largest(inputs: Sequence[Any], attrs: dict) -> tuple:
    shape = window_dims(inputs[0].shape, attrs)
    return TensorType(inputs[0].dtype, shape), TensorType(dtypes.int32, shape)


def _largest_grad(dy: Any, numbers: Any, *holes: Any, shape: Any, **attrs: Any) -> Any:
    zero = np.zeros((), dy.dtype)
    return added(lambda n: blend(numbers == n, dy, zero), dy.dtype, dy.shape[1:-1], fill_holes(shape, holes), **attrs)


def _grad_largest(op: Any, dy: Any, dnumber: Any) -> Sequence[Any]:
    shape, extra = shape_attr(dims(op.inputs[0]))
    return (call("max_pool_grad", dy, op.outputs[1], *extra, shape=shape, **op.attrs),)


def _grad_largest_grad(op: Any, dx: Any) -> Sequence[Any]:
    """Picks from each window the element with the number."""
    attrs = {k: v for k, v in op.attrs.items() if k != "shape"}
    axis = len(attrs["sizes"]) + 1
    numbers = call("expand_dims", op.inputs[1], axis=(axis,))
    picked = call("take_along", call("patches", dx, fill=0, **attrs), numbers, axis=axis)
    return (call("squeeze", picked, axis=(axis,)), *[None] * (len(op.inputs) - 1))


def _grad(op: Any, dy: Any) -> Sequence[Any]:
    attrs = {k: v for k, v in op.attrs.items() if k != "fill"}
    shape, extra = shape_attr(dims(op.inputs[0]))
    return (call("patches_grad", dy, *extra, shape=shape, **attrs),)


def _grad_fold(op: Any, dy: Any) -> Sequence[Any]:
    attrs = {k: v for k, v in op.attrs.items() if k != "shape"}
    return (call("patches", dy, fill=0, **attrs), *[None] * (len(op.inputs) - 1))


def _case(sizes: Any, strides: Any, rates: Any, padding: Padding) -> dict[str, Any]:
    return {"sizes": sizes, "strides": strides, "rates": rates, "padding": padding}


_CASES: list[tuple[tuple[int, ...], dict[str, Any], tuple[int, ...]]] = [
    ((2, 5, 2), _case((3,), (2,), (1,), "SAME"), (2, 3, 3, 2)),
    ((1, 4, 3, 1), _case((2, 2), (1, 1), (1, 1), "VALID"), (1, 3, 2, 4, 1)),
    ((1, 5, 4, 2), _case((2, 2), (2, 1), (2, 1), "SAME"), (1, 3, 4, 4, 2)),
    ((1, 4, 1), _case((2,), (1,), (1,), ((1, 2),)), (1, 6, 2, 1)),
    ((1, 2, 1), _case((3,), (1,), (1,), "VALID"), (1, 0, 3, 1)),
]
register(
    OpDef(
        "patches", _infer, windows, grad=_grad, kinds="biufc", complex_rule=True,
        doc="Extracts windows over the spatial dimensions.",
        samples=tuple(Sample((shape,), {**attrs, "fill": 0}) for shape, attrs, _ in _CASES),
    )
)  # fmt: skip
register(
    OpDef(
        "patches_grad", lambda inputs, attrs: (TensorType(inputs[0].dtype, attrs["shape"]),), fold, grad=_grad_fold,
        kinds="iufc", complex_rule=True, doc="Zeros of a shape, with windows added: the adjoint of patches.",
        attrs=("shape", "sizes", "strides", "rates", "padding"), can_fail=False,
        samples=(
            *[Sample((windows,), {**attrs, "shape": shape}) for shape, attrs, windows in _CASES],
            Sample(((2, 3, 3, 2), ()), {**_CASES[0][1], "shape": (None, 5, 2)}, fixed={1: np.int32(2)}, gradient=(0,)),
        ),
    )
)  # fmt: skip
register(
    OpDef(
        "max_pool", _infer_largest, _largest, multiple=True, grad=_grad_largest, kinds="f",
        doc="The largest element of each window and its index in the window; NaN counts as larger than any number.",
        # The fourth has windows outside, of which the largest is -inf.
        samples=tuple(Sample((shape,), attrs) for shape, attrs, _ in (*_CASES[:3], _CASES[4])),
    )
)  # fmt: skip
_NUMBERS = np.array([[[2, 0], [1, 1], [0, 1]], [[1, 2], [0, 0], [1, 1]]], np.int32)
register(
    OpDef(
        "max_pool_grad", lambda inputs, attrs: (TensorType(inputs[0].dtype, attrs["shape"]),), _largest_grad,
        grad=_grad_largest_grad, kinds="f",
        doc="Zeros of a shape, with values added at the largest element of each window: the adjoint of max_pool.",
        attrs=("shape", "sizes", "strides", "rates", "padding"), can_fail=False,
        samples=(
            Sample(((2, 3, 2), (2, 3, 2)), {**_CASES[0][1], "shape": (2, 5, 2)}, fixed={1: _NUMBERS}, gradient=(0,)),
            Sample(
                ((2, 3, 2), (2, 3, 2), ()), {**_CASES[0][1], "shape": (None, 5, 2)},
                fixed={1: _NUMBERS, 2: np.int32(2)}, gradient=(0,),
            ),
            Sample(
                ((1, 2, 2, 1), (1, 2, 2, 1)), {**_case((2, 2), (1, 1), (1, 1), "VALID"), "shape": (1, 3, 3, 1)},
                fixed={1: np.array([[[[3], [2]], [[1], [0]]]], np.int32)}, gradient=(0,),
            ),
        ),
    )
)  # fmt: skip
