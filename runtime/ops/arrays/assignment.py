"""What assignments do to a variable's value: `slice_update`, a tensor with a slice replaced (`v[1:3].assign(...)`), and
sums that take the place of the old value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import errors
from runtime.context import ctx
from runtime.ops.arrays.slicing import SLICE_ADD, STRIDED_SLICE, parse_key, slice_shape
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import call
from runtime.ops.table import OpDef, Sample, register
from runtime.shapes import Shape
from runtime.tensor import Tensor
from runtime.types import TensorType


def _kernel(x: Any, value: Any, *holes: Any, spec: tuple) -> Any:
    positions = np.arange(x.size).reshape(x.shape)
    chosen = STRIDED_SLICE.kernel(positions, *holes, spec=spec)
    result = np.array(x).reshape(-1)
    result[np.reshape(chosen, -1)] = np.broadcast_to(value, np.shape(chosen)).reshape(-1)
    return result.reshape(x.shape)


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    x, value, *holes = inputs
    if x.dtype is not value.dtype:
        raise TypeError(
            f"a value of dtype {value.dtype.label} can't be assigned to a slice of a tensor of dtype {x.dtype.label}"
        )
    STRIDED_SLICE.infer([x, *holes], attrs)
    return (TensorType(x.dtype, x.shape),)


def _grad(op: Any, dy: Any) -> Sequence[Any]:
    _, value, *holes = op.inputs
    spec = op.attrs["spec"]
    cleared = call("slice_update", dy, convert_to_tensor(0, dy.dtype), *holes, spec=spec)
    taken = call("sum_to_shape_of", call("strided_slice", dy, *holes, spec=spec), value)
    return (cleared, taken, *[None] * len(holes))


register(
    OpDef(
        "slice_update", _infer, _kernel, grad=_grad, kinds="biufcO", doc="x with the elements of a slice replaced.",
        samples=tuple(
            Sample(sample.shapes, sample.attrs, fixed=sample.fixed, gradient=sample.gradient)
            for sample in SLICE_ADD.samples or ()
        ),
        is_update=True,
        fails_first=True,
        is_quiet=True,
        by_parts=True,
    )
)  # fmt: skip


def sliced_update(x: Tensor, key: Any, value: Any) -> Tensor:
    """x with `x[key]` replaced by `value`, which broadcasts. Keys are ints, slices, `...`, None and scalar tensors.

    Raises TypeError for masks and index arrays, ValueError for a value that doesn't fit the slice.
    """
    tensor = convert_to_tensor(value, x.dtype)
    spec, holes = parse_key(key, x._shape)
    target = slice_shape(x._shape, spec)
    _need_broadcast(tensor._shape, target)
    return call("slice_update", x, tensor, *holes, spec=spec)


def _need_broadcast(value: Shape, target: Shape) -> None:
    if value is None or target is None:
        return
    tail = target[len(target) - len(value) :] if len(value) <= len(target) else None
    if tail is None or any(v not in (1, t) and None not in (v, t) for v, t in zip(value, tail)):
        raise errors.InvalidArgumentError(
            f"Cannot broadcast input shape {list(value)}: it doesn't fit a slice of shape {list(target)} "
            "[Op:ResourceStridedSliceAssign]"
        )


def change_in_place(ufunc: Any, array: np.ndarray, change: Any) -> bool:
    """`array = ufunc(array, change)` in the memory of `array`. Whether that was possible: else nothing has changed."""
    if not (array.flags.owndata and array.flags.writeable) or array.dtype.kind not in "iufc":
        return False
    if change.dtype != array.dtype or change.shape != array.shape:
        return False
    ctx.quiet(ufunc, array, change, array)
    return True
