"""Reading and writing by position: gather, scatter, updates of rows, one-hot.

Indices are checked: one out of range raises InvalidArgumentError, as TensorFlow does on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.dataclass import dataclass
from runtime.dtypes import DTypeLike
from runtime.ops.arrays.accumulate import accumulate
from runtime.ops.arrays.creation import range as range_
from runtime.ops.arrays.joining import static_axis
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.arrays.slicing import add_at, index_of_axis
from runtime.ops.convert import convert_to_indices, convert_to_tensor, fill_holes, operands, scalar_int
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.rules import brackets, dims, product, shape_attr
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType


def check_indices(indices: Any, size: int, label: str) -> None:
    """Raises InvalidArgumentError for an index outside of [0, size), naming the first."""
    bad = (indices < 0) | (indices >= size)
    if np.any(bad):
        place = np.argwhere(bad)[0]
        shown = f"indices[{','.join(map(str, place))}]" if place.size else "indices"
        value = np.asarray(indices)[tuple(place)]
        raise errors.InvalidArgumentError(f"{shown} = {value} is not in [0, {size}) [Op:{label}]", label)


def _need_ints(operand: Any, what: str = "indices") -> None:
    if operand.dtype.kind not in "iu":
        raise TypeError(f"{what} must be integers, got {operand.dtype.label}")


# --- gather --------------------------------------------------------------------------------------------------------


def _infer_gather(inputs: Sequence[Any], attrs: dict) -> tuple:
    params, indices = inputs
    _need_ints(indices)
    axis = attrs["axis"]
    if params.shape is None or indices.shape is None:
        return (TensorType(params.dtype, None),)
    return (TensorType(params.dtype, params.shape[:axis] + indices.shape + params.shape[axis + 1 :]),)


def _gather_kernel(params: Any, indices: Any, axis: int, slices: bool = False) -> Any:
    """slices: whether the gradient of a variable's value may be `Slices`, as it is for users' own calls."""
    check_indices(indices, params.shape[axis], "GatherV2")
    result = np.take(params, indices, axis)
    if params.dtype == object and not isinstance(result, np.ndarray):
        scalar = np.empty((), np.dtype(object))
        scalar[()] = result
        return scalar
    return result


@dataclass(frozen=True)
class Slices:
    """A cotangent that is zero but for rows: `values` are those at `indices`, whose shape `values` starts with. Rows at
    the same index are added. Gradient rules may give one for an operand of which the call takes slices."""

    values: Any
    indices: Any

    def added_to(self, total: Any) -> Any:
        """The sum of a tensor and the rows."""
        return call("index_add", total, self.indices, self.values, axis=0)

    def as_tensor(self, like: Any) -> Any:
        """The whole cotangent, of the shape of a tensor."""
        shape, extra = shape_attr(dims(like))
        return call("gather_grad", self.values, self.indices, *extra, axis=0, shape=shape)


def _grad_gather(op: Any, dy: Any) -> Sequence[Any]:
    if op.attrs.get("slices") and op.takes_slices(0):
        return Slices(dy, op.inputs[1]), None
    shape, extra = shape_attr(dims(op.inputs[0]))
    return call("gather_grad", dy, op.inputs[1], *extra, axis=op.attrs["axis"], shape=shape), None


def _add_into(op: Any, total: Any) -> Any:
    value, indices, axis = op.inputs[0], op.inputs[1], op.attrs["axis"]
    if indices._shape == () and value._shape is not None:
        return add_at(total, value, index_of_axis(axis, len(value._shape) + 1), [indices])
    return call("index_add", total, indices, value, axis=axis)


def _gather_grad_kernel(dy: Any, indices: Any, *holes: Any, axis: int, shape: tuple[int | None, ...]) -> Any:
    result = np.zeros(fill_holes(shape, holes), dy.dtype)
    check_indices(indices, result.shape[axis], "GatherGrad")
    accumulate(np.add, result, indices, dy, axis)
    return result


def _index_add_kernel(acc: Any, indices: Any, values: Any, axis: int) -> Any:
    check_indices(indices, acc.shape[axis], "IndexAdd")
    result = np.array(acc, order="C")
    accumulate(np.add, result, indices, values, axis)
    return result


_INDICES = np.array([2, 0, 2], np.int32)
_TABLE = np.array([[0, 1], [1, 1]], np.int64)
GATHER = register(
    OpDef(
        "gather", _infer_gather, _gather_kernel, grad=_grad_gather, label="GatherV2",
        doc="The slices of params at the given positions of an axis.",
        samples=(
            Sample(((3, 2), (3,)), {"axis": 0}, fixed={1: _INDICES}),
            Sample(((3, 2), (2, 2)), {"axis": 1}, fixed={1: _TABLE}),
            Sample(((3, 2), ()), {"axis": 0}, fixed={1: np.int32(1)}),
            Sample(((3,), (0,)), {"axis": 0}, fixed={1: _INDICES[:0]}),
        ),
        reads_part=True,
        is_quiet=True,
        by_parts=True,
        needs_no_constants=True,
        cheap=True,
        complex_rule=True,
    )
)  # fmt: skip
GATHER_GRAD = register(
    OpDef(
        "gather_grad", lambda inputs, attrs: (TensorType(inputs[0].dtype, attrs["shape"]),), _gather_grad_kernel,
        grad=lambda op, dy: (
            call("gather", dy, op.inputs[1], axis=op.attrs["axis"]), *[None] * (len(op.inputs) - 1)
        ),
        add_into=_add_into,
        kinds="iufc", doc="Zeros of a shape with slices added at positions of an axis: the adjoint of gather.",
        samples=(
            Sample(((3, 2), (3,)), {"axis": 0, "shape": (3, 2)}, fixed={1: _INDICES}),
            Sample(((3, 2, 2), (2, 2)), {"axis": 1, "shape": (3, 2)}, fixed={1: _TABLE}),
            Sample(((3, 2), (3,), ()), {"axis": 0, "shape": (None, 2)}, fixed={1: _INDICES, 2: np.int32(4)}),
        ),
        by_parts=True,
    )
)  # fmt: skip
INDEX_ADD = register(
    OpDef(
        "index_add", lambda inputs, attrs: (inputs[0],), _index_add_kernel,
        grad=lambda op, dy: (dy, None, call("gather", dy, op.inputs[1], axis=op.attrs["axis"])),
        kinds="iufc", doc="acc with slices added at positions of an axis.",
        samples=(
            Sample(((3, 2), (3,), (3, 2)), {"axis": 0}, fixed={1: _INDICES}),
            Sample(((3, 2), (), (2,)), {"axis": 0}, fixed={1: np.int32(1)}),
        ),
        is_update=True,
        joins="add",
        rounds_once=lambda node: node.inputs[1].shape == (),
        by_parts=True,
    )
)  # fmt: skip


def gather_slices(x: Tensor, indices: Tensor) -> Tensor:
    """The rows of `x` at `indices`. Its gradient is `Slices` where the call takes them."""
    return apply(GATHER, (x, indices), {"axis": 0, "slices": True} if x.dtype.is_differentiable else {"axis": 0})


@deferrable
def gather(
    params: TensorLike, indices: TensorLike, validate_indices: Any = None, axis: Any = None, batch_dims: int = 0,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The slices of `params` at `indices` along `axis` (default: `batch_dims`).

    Shape: params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:].
    Raises InvalidArgumentError for an index out of range.
    """
    x, positions = convert_to_tensor(params), convert_to_indices(indices)
    if positions.dtype.kind not in "iu":
        raise errors.DTypeError(f"indices must be integers, got {positions.dtype.name} [Op:GatherV2]")
    r = known_rank(x, "gather")
    batch = batch_dims + known_rank(positions, "gather") if batch_dims < 0 else batch_dims
    if batch and (batch > known_rank(positions, "gather") or batch >= r):
        raise errors.InvalidArgumentError(
            f"batch_dims = {batch_dims} needs indices of at least {batch} dimensions and params of more, got "
            f"shapes {brackets(positions._shape)} and {brackets(x._shape)} [Op:GatherV2]"
        )
    at = batch if axis is None else static_axis(axis, r, "gather")
    if batch == 0:
        return gather_slices(x, positions) if at == 0 else apply(GATHER, (x, positions), {"axis": at})
    if at < batch:
        raise ValueError(f"batch_dims = {batch} must be less than or equal to axis = {at}")
    if at > batch:
        # The batched axis goes next to the batch; what lies between goes behind it, and back afterwards.
        order = (*range(batch), at, *range(batch, at), *range(at + 1, r))
        inner = gather(call("transpose", x, perm=order), positions, axis=batch, batch_dims=batch)
        count = known_rank(positions, "gather") - batch
        middle = range(batch + count, batch + count + at - batch)
        back = (*range(batch), *middle, *range(batch, batch + count), *range(at + count, r + count - 1))
        return call("transpose", inner, perm=back)
    return _gather_batched(x, positions, batch)


def _gather_batched(x: Tensor, positions: Tensor, batch: int) -> Tensor:
    """One batch of rows after the other in a flat table, and indices moved on by a table's length per batch."""
    sizes, places = dims(x), dims(positions)
    lead = product(sizes[:batch])
    length = sizes[batch]
    rows_attr, rows_extra = shape_attr([lead * length, *sizes[batch + 1 :]])
    rows = call("reshape", x, *rows_extra, shape=rows_attr)
    flat_attr, flat_extra = shape_attr([lead, product(places[batch:])])
    flat = call("reshape", positions, *flat_extra, shape=flat_attr)
    base = call("cast", call("expand_dims", range_(lead), axis=(1,)), dtype=flat.dtype)
    shifted = flat + base * call("cast", convert_to_tensor(length), dtype=flat.dtype)
    picked = call("gather", rows, shifted, axis=0)
    attr, extra = shape_attr([*places, *sizes[batch + 1 :]])
    return call("reshape", picked, *extra, shape=attr)


# --- one row of a buffer -------------------------------------------------------------------------------------------


def _row_update_kernel(buffer: Any, i: Any, value: Any) -> Any:
    if not 0 <= i < buffer.shape[0]:
        raise errors.InvalidArgumentError(f"index {int(i)} is not in [0, {buffer.shape[0]}) [Op:RowUpdate]")
    result = np.array(buffer)
    result[i, ...] = value  # an element of an array of strings stays one, without an array around it
    return result


def _infer_row_update(inputs: Sequence[Any], attrs: dict) -> tuple:
    buffer, _, value = inputs
    if buffer.dtype is not value.dtype:
        raise TypeError(f"a row of dtype {value.dtype.label} can't go into a buffer of {buffer.dtype.label}")
    return (buffer,)


def _grad_row_update(op: Any, dy: Any) -> Sequence[Any]:
    _, i, value = op.inputs
    # Read before it is overwritten, so that generated code can write in place.
    row = call("gather", dy, i, axis=0)
    return call("row_update", dy, i, call("zeros_like", value)), None, row


ROW_UPDATE = register(
    OpDef(
        "row_update", _infer_row_update, _row_update_kernel, grad=_grad_row_update, cheap=True,
        doc="A buffer with row i replaced; generated code writes in place if nothing else uses the buffer.",
        samples=(
            Sample(((3, 2), (), (2,)), fixed={1: np.int32(1)}), Sample(((3,), (), ()), fixed={1: np.int64(2)}),
        ),
        is_update=True,
        fails_first=True,
        is_quiet=True,
        by_parts=True,
        needs_no_constants=True,
    )
)  # fmt: skip


def row_update(buffer: Any, i: Any, value: Any) -> Tensor:
    """`buffer` with its row `i` replaced by `value`. Raises InvalidArgumentError for an index out of range."""
    x, row = operands("RowUpdate", buffer, value)
    return apply(ROW_UPDATE, (x, convert_to_tensor(i), row))


# --- one-hot and masks ---------------------------------------------------------------------------------------------


@deferrable
def one_hot(
    indices: TensorLike, depth: Any, on_value: Any = None, off_value: Any = None, axis: int | None = None,
    dtype: DTypeLike = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """A new axis of length `depth` (last by default) that holds `on_value` at the index and `off_value` elsewhere.

    indices: integers; a NumPy array of other numbers is converted to int64. Values default to 1 and 0 of dtype
    float32. An index out of range gives only `off_value`. Raises DTypeError for tensors and lists of other numbers.
    """
    if isinstance(indices, (np.ndarray, np.generic)) and indices.dtype.kind in "fb":
        indices = indices.astype(np.int64)
    positions = convert_to_indices(indices)
    if positions.dtype.kind not in "iu":
        raise errors.DTypeError(f"indices of one_hot must be integers, got {positions.dtype.label} [Op:OneHot]")
    count = scalar_int(depth, "depth")
    r = known_rank(positions, "one_hot")
    at = r if axis is None or axis == -1 else axis
    if dtype is None:
        given = [v for v in (on_value, off_value) if v is not None]
        dtype = convert_to_tensor(given[0]).dtype if given else dtypes.float32
    on = convert_to_tensor(1 if on_value is None else on_value, dtype)
    off = convert_to_tensor(0 if off_value is None else off_value, on.dtype)
    line = call("cast", range_(count), dtype=positions.dtype)
    if r > at:
        line = call("expand_dims", line, axis=tuple(range(1, r - at + 1)))
    hit = call("equal", call("expand_dims", positions, axis=(at,)), line)
    return call("select", hit, on, off)


def _infer_boolean_mask(inputs: Sequence[Any], attrs: dict) -> tuple:
    x, mask = inputs
    if mask.dtype is not dtypes.bool_:
        raise TypeError(f"mask must be bool, got {mask.dtype.label}")
    if x.shape is None or mask.shape is None:
        return (TensorType(x.dtype, None),)
    if len(mask.shape) == 0:
        raise ValueError("mask cannot be scalar.")
    lead = x.shape[: len(mask.shape)]
    if len(lead) < len(mask.shape) or any(a is not None and b is not None and a != b for a, b in zip(lead, mask.shape)):
        raise ValueError(f"Shapes {brackets(lead)} and {brackets(mask.shape)} are incompatible")
    return (TensorType(x.dtype, (None, *x.shape[len(mask.shape) :])),)


def _boolean_mask_kernel(x: Any, mask: Any) -> Any:
    if x.shape[: mask.ndim] != mask.shape:  # NumPy takes a mask without elements for any length
        raise ValueError(f"Shapes {brackets(x.shape[: mask.ndim])} and {brackets(mask.shape)} are incompatible")
    return x[mask]


def _grad_boolean_mask(op: Any, dy: Any) -> Sequence[Any]:
    x, mask = op.inputs
    shape, extra = shape_attr(dims(x))
    return call("scatter_nd", call("where_true", mask), dy, *extra, shape=shape), None


register(
    OpDef(
        "boolean_mask", _infer_boolean_mask, _boolean_mask_kernel, grad=_grad_boolean_mask,
        doc="The slices at which a mask is true.",
        samples=(
            Sample(((3, 2), (3,)), fixed={1: np.array([True, False, True])}),
            Sample(((2, 2), (2, 2)), fixed={1: np.array([[True, False], [True, True]])}),
        ),
    )
)  # fmt: skip


@deferrable
def boolean_mask(tensor: TensorLike, mask: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """The slices of `tensor` at which `mask` (bool, of its leading shape from `axis` on) is true.

    Raises ValueError for a scalar mask or one whose shape doesn't fit.
    """
    x, hits = convert_to_tensor(tensor), convert_to_tensor(mask)
    if hits._shape == ():
        raise ValueError("mask cannot be scalar.")
    if hits.dtype is not dtypes.bool_:
        hits = call("not_equal", hits, call("zeros_like", hits))
    at = 0 if axis is None else static_axis(axis, known_rank(x, "boolean_mask"), "boolean_mask")
    if at:
        r, count = known_rank(x, "boolean_mask"), known_rank(hits, "boolean_mask")
        order = (*range(at, at + count), *range(at), *range(at + count, r))
        masked = call("boolean_mask", call("transpose", x, perm=order), hits)
        return call("transpose", masked, perm=(*range(1, at + 1), 0, *range(at + 1, r - count + 1)))
    return call("boolean_mask", x, hits)
