"""Growable arrays: a buffer whose rows (first axis) are written one at a time; it grows when a row beyond is written.

    array_write(buffer, index, value, size)   the buffer with row `index` set; it gets at least `size` rows (new ones
                                              are zeros), and twice as many as before when it must grow beyond that
    row(buffer, index, size?)                 one of the first `size` rows (default: of all), zeros if it doesn't exist
    resize_rows(buffer, count)                the first `count` rows, with zeros for those that don't exist; `within`
                                              says that all exist, so that generated code needs no copy

A buffer may have more rows than were written; who owns it knows how many count. `TensorArray` and staged Python lists
are built on these two rows. Generated code writes in place where nobody else holds the buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import errors
from runtime.ops.convert import static_value
from runtime.ops.dispatch import apply, call
from runtime.ops.rules import blanks
from runtime.ops.table import OpDef, Sample, register
from runtime.shapes import covers, widen
from runtime.tensor import DeviceTensor, EagerTensor, Tensor
from runtime.types import TensorType


def _infer_write(inputs: Sequence[Any], attrs: dict) -> tuple:
    buffer, _, value, _ = inputs
    if buffer.dtype is not value.dtype:
        raise TypeError(f"a {value.dtype.name} value can't be written to a {buffer.dtype.name} array")
    if buffer.shape is not None and value.shape is not None:
        if len(buffer.shape) != len(value.shape) + 1:
            raise ValueError(f"a value of shape {value.shape} can't be a row of an array of shape {buffer.shape}")
        rows = buffer.shape[0] if attrs["fixed"] and buffer.shape[0] else None
        element = buffer.shape[1:]
        if not covers(element, value.shape):
            element = widen(element, value.shape)
        return (TensorType(buffer.dtype, (rows, *(element or ()))),)
    return (TensorType(buffer.dtype, None),)


def _write_kernel(buffer: Any, index: Any, value: Any, size: Any, fixed: bool) -> Any:
    index, size = int(index), int(size)
    if index < 0 or (fixed and index >= size):
        raise errors.OutOfRangeError(
            f"Tried to write to index {index} but array is not resizeable and size is: {size}"
            if index >= 0
            else f"Tried to write to index {index}, which is negative"
        )
    rows = len(buffer)
    if rows and np.shape(value) != buffer.shape[1:]:
        raise errors.InvalidArgumentError(
            f"A value of shape {np.shape(value)} can't be written to an array of elements of shape {buffer.shape[1:]}"
        )
    needed = max(size, index + 1)
    if rows < needed:
        capacity = needed if needed <= size else max(needed, 2 * rows)
        grown = blanks((capacity, *np.shape(value)), buffer.dtype)
        if rows:
            grown[:rows] = buffer
    else:
        grown = buffer.copy()
    if grown.shape[1:] != np.shape(value):
        raise errors.InvalidArgumentError(
            f"A value of shape {np.shape(value)} can't be written to an array of elements of shape {grown.shape[1:]}"
        )
    grown[index, ...] = value  # an element of an array of strings stays one, without an array around it
    return grown


def _grad_write(op: Any, dy: Any) -> Sequence[Any]:
    buffer, index, _, size = op.inputs
    # Read before it is overwritten, so that generated code can write in place.
    row = call("row", dy, index)
    # Zeros like the row, not like what was written: that would have to be kept.
    below = apply(ARRAY_WRITE, (dy, index, call("zeros_like", row), size), op.attrs)
    if type(buffer) in (EagerTensor, DeviceTensor):
        # A view of NumPy's. In graphs the rows beyond stay, see autodiff/buffers.py.
        below = apply(RESIZE_ROWS, (below, call("dim", buffer, axis=0)), {"static": None, "within": False})
    return below, None, row, None


def _infer_resize(inputs: Sequence[Any], attrs: dict) -> tuple:
    buffer = inputs[0]
    if buffer.shape is None:
        return (buffer,)
    return (TensorType(buffer.dtype, (attrs["static"], *buffer.shape[1:])),)


def _resize_kernel(buffer: Any, count: Any, static: int | None, within: bool) -> Any:
    count, rows = int(count), len(buffer)
    if count <= rows:
        return buffer[:count]
    resized = blanks((count, *buffer.shape[1:]), buffer.dtype)
    resized[:rows] = buffer
    return resized


def _grad_resize(op: Any, dy: Any) -> Sequence[Any]:
    buffer = op.inputs[0]
    rows = buffer._shape[0] if buffer._shape else None
    return apply(RESIZE_ROWS, (dy, call("dim", buffer, axis=0)), {"static": rows, "within": False}), None


def _row_kernel(buffer: Any, index: Any, size: Any = None) -> Any:
    index, rows = int(index), len(buffer)
    size = rows if size is None else int(size)
    if not 0 <= index < size:
        raise errors.OutOfRangeError(f"Tried to read from index {index} but array size is: {size}")
    if index >= rows:
        return blanks(buffer.shape[1:], buffer.dtype)
    # An element of an array of strings stays an array.
    return buffer[index, ...] if buffer.dtype == object else buffer[index]


ARRAY_WRITE: OpDef = register(
    OpDef(
        "array_write",
        _infer_write,
        _write_kernel,
        grad=_grad_write,
        doc="A growable array with one row set.",
        samples=(
            Sample(((4, 2), (), (2,), ()), {"fixed": True}, fixed={1: np.int32(3), 3: np.int32(4)}),
            Sample(((2,), (), (), ()), {"fixed": False}, fixed={1: np.int32(5), 3: np.int32(0)}),
        ),
        is_update=True,
        is_quiet=True,
        keeps_rows=True,
        by_parts=True,
    )
)
RESIZE_ROWS: OpDef = register(
    OpDef(
        "resize_rows",
        _infer_resize,
        _resize_kernel,
        grad=_grad_resize,
        doc="The first rows of a growable array.",
        samples=(
            Sample(((4, 2), ()), {"static": None, "within": False}, fixed={1: np.int32(3)}),
            Sample(((4, 2), ()), {"static": None, "within": True}, fixed={1: np.int32(2)}),
            Sample(((3,), ()), {"static": 5, "within": False}, fixed={1: np.int32(5)}),
        ),
        by_parts=True,
    )
)
ROW: OpDef = register(
    OpDef(
        "row",
        lambda inputs, attrs: (TensorType(inputs[0].dtype, None if inputs[0].shape is None else inputs[0].shape[1:]),),
        _row_kernel,
        grad=lambda op, dy: (
            apply(ROW_GRAD, (op.inputs[0], op.inputs[1], dy)),
            *[None] * (len(op.inputs) - 1),
        ),
        cheap=True,
        doc="One row of a growable array.",
        samples=(
            Sample(((4, 2), ()), fixed={1: np.int32(3)}),
            Sample(((3,), ()), fixed={1: np.int32(0)}),
            Sample(((3,), (), ()), fixed={1: np.int32(1), 2: np.int32(2)}),
            Sample(((3,), (), ()), fixed={1: np.int32(4), 2: np.int32(5)}),
            Sample(((3, 2), (), ()), fixed={1: np.int32(4), 2: np.int32(5)}),
        ),
        reads_part=True,
        is_quiet=True,
        by_parts=True,
    )
)


def _row_grad_kernel(like: Any, index: Any, dy: Any) -> Any:
    result = blanks(like.shape, dy.dtype)
    if index < len(result):
        result[int(index)] = dy
    return result


def _row_add_kernel(total: Any, index: Any, dy: Any) -> Any:
    result = total.copy()
    if index < len(result):
        result[int(index)] += dy
    return result


def _row_or_zeros(array: Any, index: Any) -> Any:
    return apply(ROW, (array, index, index + 1))


ROW_GRAD: OpDef = register(
    OpDef(
        "row_grad",
        lambda inputs, attrs: (inputs[0],),
        _row_grad_kernel,
        grad=lambda op, dy: (None, None, _row_or_zeros(dy, op.inputs[1])),
        add_into=lambda op, total: apply(ROW_ADD, (total, op.inputs[1], op.inputs[2])),
        shape_only=(0,),
        doc="Zeros like a growable array, with one row set if that row exists.",
        samples=(
            Sample(((4, 2), (), (2,)), fixed={1: np.int32(3)}, gradient=(2,)),
            Sample(((4, 2), (), (2,)), fixed={1: np.int32(4)}),
        ),
        by_parts=True,
    )
)
ROW_ADD: OpDef = register(
    OpDef(
        "row_add",
        lambda inputs, attrs: (inputs[0],),
        _row_add_kernel,
        grad=lambda op, dy: (dy, None, _row_or_zeros(dy, op.inputs[1])),
        kinds="biufc",
        doc="A growable array with a value added to one row if that row exists.",
        samples=(
            Sample(((4, 2), (), (2,)), fixed={1: np.int32(1)}),
            Sample(((3,), (), ()), fixed={1: np.int32(3)}),
        ),
        is_update=True,
        joins="add",
        rounds_once=lambda node: True,
        keeps_rows=True,
        by_parts=True,
    )
)


def first_rows(buffer: Tensor, size: Any, within: bool = False) -> Tensor:
    """The first `size` rows of a growable array; the array itself where it is known to have just these.

    within: the array surely has so many.
    """
    count = static_value(size)
    static = None if count is None else int(count)
    if static is not None and buffer._shape and buffer._shape[0] == static:
        return buffer
    return apply(RESIZE_ROWS, (buffer, size), {"static": static, "within": within})


def growable(rows: Any) -> Any:
    """A tensor as a growable array.

    In a graph the cotangent of an array that has grown has more rows than it had at first; here it is cut to these.
    """
    return apply(RESIZE_ROWS, (rows, call("dim", rows, axis=0)), {"static": None, "within": True})
