"""Order: sort, argsort, top_k, in_top_k, searchsorted, unique; and picking along an axis, which their gradients are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime import dtypes, errors
from runtime.dtypes import DTypeLike
from runtime.ops.arrays.accumulate import accumulate
from runtime.ops.arrays.creation import range as range_
from runtime.ops.arrays.gather import check_indices
from runtime.ops.arrays.joining import static_axis
from runtime.ops.arrays.reduce import reduce_all, reduce_sum
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.control import assert_op
from runtime.ops.convert import check_kind, convert_to_indices, convert_to_tensor, fill_holes, operands, scalar_int
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise.compare import equal, greater, logical_and
from runtime.ops.rules import brackets, dims, shape_attr
from runtime.ops.table import OPS, OpDef, Sample, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType


def _nothing(op: Any, *dy: Any) -> Sequence[Any]:
    return [None] * len(op.inputs)


# --- take_along ----------------------------------------------------------------------------------------------------


def _infer_take(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (TensorType(inputs[0].dtype, inputs[1].shape),)


def _take_kernel(x: Any, indices: Any, axis: int) -> Any:
    check_indices(indices, x.shape[axis], "TakeAlong")
    return np.take_along_axis(x, indices.astype(np.int64), axis)


def _grad_take(op: Any, dy: Any) -> Sequence[Any]:
    shape, extra = shape_attr(dims(op.inputs[0]))
    return call("take_along_grad", dy, op.inputs[1], *extra, axis=op.attrs["axis"], shape=shape), None


def _take_grad_kernel(dy: Any, indices: Any, *holes: Any, axis: int, shape: tuple[int | None, ...]) -> Any:
    result = np.zeros(fill_holes(shape, holes), dy.dtype)
    if any(a != b for i, (a, b) in enumerate(zip(result.shape, indices.shape)) if i != axis):
        raise errors.InvalidArgumentError("leading dimensions of elements and indices differ")
    index = list(np.ogrid[tuple(slice(d) for d in indices.shape)])
    index[axis] = indices
    accumulate(np.add, result.reshape(-1), np.ravel_multi_index(tuple(index), result.shape), dy)
    return result


_ORDER = np.array([[1, 0, 0], [2, 2, 1]], np.int32)
register(
    OpDef(
        "take_along", _infer_take, _take_kernel, grad=_grad_take,
        doc="x[..., indices[..., i, ...], ...] along an axis, at each place of the other axes.",
        samples=(
            Sample(((2, 3), (2, 3)), {"axis": 1}, fixed={1: _ORDER}),
            Sample(((3, 3), (2, 3)), {"axis": 0}, fixed={1: _ORDER}),
        ),
        is_quiet=True,
        by_parts=True,
    )
)  # fmt: skip
register(
    OpDef(
        "take_along_grad", lambda inputs, attrs: (TensorType(inputs[0].dtype, attrs["shape"]),), _take_grad_kernel,
        grad=lambda op, dy: (
            call("take_along", dy, op.inputs[1], axis=op.attrs["axis"]), *[None] * (len(op.inputs) - 1)
        ),
        kinds="iufc", doc="Zeros of a shape with numbers added along an axis: the adjoint of take_along.",
        samples=(
            Sample(((2, 3), (2, 3)), {"axis": 1, "shape": (2, 4)}, fixed={1: _ORDER}),
            Sample(((2, 3), (2, 3), ()), {"axis": 0, "shape": (None, 3)}, fixed={1: _ORDER, 2: np.int32(3)}),
        ),
    )
)  # fmt: skip


def take_along(x: Any, indices: Any, axis: int) -> Tensor:
    """`np.take_along_axis`: the elements of x at `indices` along an axis. Raises InvalidArgumentError out of range."""
    tensor, at = convert_to_tensor(x), convert_to_indices(indices)
    return call("take_along", tensor, at, axis=static_axis(axis, known_rank(tensor, "take_along"), "take_along"))


# --- argsort -------------------------------------------------------------------------------------------------------


def _argsort_kernel(x: Any, axis: int, descending: bool) -> Any:
    if descending:
        # Sorted from the back, so that equal elements keep their order.
        return (x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, "stable"), axis)).astype(np.int32)
    return np.argsort(x, axis, "stable").astype(np.int32)


register(
    OpDef(
        "argsort", lambda inputs, attrs: (TensorType(dtypes.int32, inputs[0].shape),), _argsort_kernel,
        grad=_nothing, kinds="biufO", compares=True,
        doc="The positions of the elements in sorted order along an axis; equal elements keep their order.",
        samples=tuple(
            Sample((shape,), {"axis": axis, "descending": descending})
            for shape, axis in [((5,), 0), ((3, 4), 1), ((4, 2), 0), ((0,), 0)]
            for descending in (False, True)
        ),
    )
)  # fmt: skip


def _direction(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(
            f"Argument `direction` should be one of 'ASCENDING' or 'DESCENDING'. Received: direction={direction}"
        )
    return direction == "DESCENDING"


@deferrable
def argsort(
    values: Any, axis: Any = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """The int32 positions that sort `values` along an axis; always stable. Raises ValueError for an unknown
    direction."""
    x = convert_to_tensor(values)
    check_kind(OPS["argsort"], x.dtype)
    at = static_axis(axis, known_rank(x, "argsort"), "argsort")
    return call("argsort", x, axis=at, descending=_direction(direction))


@deferrable
def sort(values: Any, axis: Any = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """The elements sorted along an axis. Raises ValueError for an unknown direction."""
    x = convert_to_tensor(values)
    at = static_axis(axis, known_rank(x, "sort"), "sort")
    return call("take_along", x, argsort(x, at, direction), axis=at)


# Up to here those found so far are kept in order; beyond, all elements are sorted.
_FEW = 64


def _infer_top(inputs: Sequence[Any], attrs: dict) -> tuple:
    (x,) = inputs
    if x.shape is not None and x.shape[-1] is not None:
        _need_columns(x.shape[-1], attrs["k"])
    shape = None if x.shape is None else (*x.shape[:-1], attrs["k"])
    return TensorType(x.dtype, shape), TensorType(dtypes.int32, shape)


def _need_columns(size: int, k: int) -> None:
    if size < k:
        raise ValueError(f"input must have at least k columns. Had {size}, needed {k}")


def _top_kernel(x: Any, k: int) -> tuple:
    _need_columns(x.shape[-1], k)
    order = _argsort_kernel(x, x.ndim - 1, True)[..., :k]
    return np.take_along_axis(x, order, -1), order


def _grad_top(op: Any, dy: Any, dorder: Any) -> Sequence[Any]:
    axis = len(op.inputs[0]._shape) - 1
    shape, extra = shape_attr(dims(op.inputs[0]))
    return [call("take_along_grad", dy, op.outputs[1], *extra, axis=axis, shape=shape)]


register(
    OpDef(
        "top_few", _infer_top, _top_kernel, multiple=True, grad=_grad_top, kinds="iuf",
        doc="The k largest elements along the last axis, the largest first, NaN before it, and their positions.",
        samples=tuple(Sample((shape,), {"k": k}) for shape, k in [((5,), 2), ((3, 4), 4), ((2, 3, 150), 3), ((4,), 0)]),
    )
)  # fmt: skip


@deferrable
def top_k(
    input: Any, k: Any = 1, sorted: bool = True, index_type: DTypeLike = dtypes.int32, name: str | None = None
) -> TopKV2:
    """The k largest elements along the last dimension, the largest first, and their positions.

    Raises InvalidArgumentError when there are fewer.
    """
    x = convert_to_tensor(input)
    count = scalar_int(k, "k")
    axis = known_rank(x, "top_k") - 1
    if axis < 0:
        raise errors.InvalidArgumentError(f"input must be >= 1-D, got shape {x.shape} [Op:TopKV2]", "top_k")
    size = x._shape[axis]  # type: ignore[index]
    if isinstance(count, int) and size is not None and not 0 <= count <= size:
        raise errors.InvalidArgumentError(f"input must have at least k columns. Had {size}, needed {count} [Op:TopKV2]")
    if size is None or not isinstance(count, int):
        columns, wanted_columns = call("dim", x, axis=axis), call("cast", convert_to_tensor(count), dtype=dtypes.int32)
        message = "input must have at least k columns [Op:TopKV2], got columns and k ="
        fits = call("less_equal", wanted_columns, columns)
        call("assert", fits, columns, wanted_columns, message=message, error="InvalidArgumentError", summarize=3)
    if isinstance(count, int) and size is not None and count <= _FEW and x.dtype.kind in OPS["top_few"].kinds:
        values, order = call("top_few", x, k=count)
    else:
        order = call("argsort", x, axis=axis, descending=True)[..., :count]
        values = call("take_along", x, order, axis=axis)
    wanted = dtypes.as_dtype(index_type)
    return TopKV2(values, order if wanted is dtypes.int32 else call("cast", order, dtype=wanted))


class TopKV2(NamedTuple):
    """The pair of `top_k`."""

    values: Tensor
    indices: Tensor


@deferrable
def in_top_k(targets: TensorLike, predictions: TensorLike, k: Any, name: str | None = None) -> Tensor:
    """Whether fewer than k predictions are larger than that of the target; one row per target.

    The answer is False for a target out of range, and if its prediction isn't finite.
    """
    classes, scores = convert_to_tensor(targets), convert_to_tensor(predictions)
    if len(scores._shape or (0, 0)) != 2 or len(classes._shape or (0,)) != 1:
        raise errors.InvalidArgumentError(
            f"predictions must be a matrix and targets a vector, got shapes {scores.shape} and {classes.shape} "
            "[Op:InTopKV2]"
        )
    rows, count = dims(scores)
    given = dims(classes)[0]
    if not (isinstance(rows, int) and isinstance(given, int)):
        sizes = [convert_to_tensor(size, dtypes.int32) for size in (rows, given)]
        assert_op(equal(*sizes), "predictions and targets have different lengths [Op:InTopKV2]", data=sizes)
    elif rows != given:
        raise errors.InvalidArgumentError(
            f"First dimension of predictions {rows} must match length of targets {given} [Op:InTopKV2]"
        )
    inside = logical_and(classes >= 0, classes < call("cast", convert_to_tensor(count), dtype=classes.dtype))
    safe = call("select", inside, classes, call("zeros_like", classes))
    own = call("take_along", scores, call("expand_dims", safe, axis=(1,)), axis=1)
    larger = reduce_sum(call("cast", greater(scores, own), dtype=dtypes.int32), 1)
    finite = call("is_finite", call("squeeze", own, axis=(1,)))
    limit = call("cast", convert_to_tensor(k), dtype=dtypes.int32)
    return logical_and(logical_and(inside, finite), larger < limit)


# --- searchsorted --------------------------------------------------------------------------------------------------


def _search_kernel(sequence: Any, values: Any, side: str, dtype: Any) -> Any:
    if sequence.ndim == 1:
        return np.searchsorted(sequence, values, side).astype(dtype._np)  # type: ignore[call-overload]
    if sequence.shape[:-1] != values.shape[:-1]:
        raise ValueError("Leading dim_size of both tensors must match")
    count = math.prod(sequence.shape[:-1])
    rows = sequence.reshape(count, sequence.shape[-1])
    wanted = values.reshape(count, values.shape[-1])
    found = [np.searchsorted(row, value, side) for row, value in zip(rows, wanted)]  # type: ignore[call-overload]
    return np.array(found, dtype._np).reshape(values.shape)


register(
    OpDef(
        "searchsorted", lambda inputs, attrs: (TensorType(attrs["dtype"], inputs[1].shape),), _search_kernel,
        grad=_nothing, kinds="iuf", doc="Where values belong in sorted sequences along the last dimension.",
        samples=(
            Sample(((2, 3), (2, 2)), {"side": "left", "dtype": dtypes.int32}, low=0.0, high=0.0, gradient=()),
            Sample(((3,), (2, 2)), {"side": "right", "dtype": dtypes.int64}, low=1.0, high=1.0, gradient=()),
        ),
    )
)  # fmt: skip


@deferrable
def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: DTypeLike = dtypes.int32, name: str | None = None
) -> Tensor:
    """The index at which each value would be inserted into a sorted sequence (along the last dimension), before or
    after ("right") equal elements.

    Raises ValueError for another side.
    """
    if side not in ("left", "right"):
        raise ValueError(f"Argument `side` must be either 'right' or 'left'. Received: `side` = '{side}'.")
    sequence, wanted = operands("Searchsorted", sorted_sequence, values)
    return call("searchsorted", sequence, wanted, side=side, dtype=dtypes.as_dtype(out_type))


# --- unique --------------------------------------------------------------------------------------------------------


def _infer_unique(inputs: Sequence[Any], attrs: dict) -> tuple:
    (x,), kind = inputs, attrs["dtype"]
    if x.shape is not None and len(x.shape) != 1:
        raise ValueError("unique expects a 1D vector.")
    return TensorType(x.dtype, (None,)), TensorType(kind, x.shape), TensorType(kind, (None,))


def _unique_kernel(x: Any, dtype: Any) -> tuple:
    if x.ndim != 1:
        raise ValueError("unique expects a 1D vector.")
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    # In the order of their first occurrence, as in TensorFlow, rather than sorted.
    order = np.argsort(first, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return values[order], place[inverse.reshape(-1)].astype(dtype._np), counts[order].astype(dtype._np)


UNIQUE = register(
    OpDef(
        "unique", _infer_unique, _unique_kernel, multiple=True, grad=_nothing, kinds="biufO", compares=True,
        doc="The distinct elements of a vector, the position of each element among them, and how often each occurs.",
        samples=(
            Sample(((8,),), {"dtype": dtypes.int32}, gradient=()),
            Sample(((0,),), {"dtype": dtypes.int64}, gradient=()),
        ),
    )
)  # fmt: skip


class Unique(NamedTuple):
    """The pair of `unique`."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """The results of `unique_with_counts`."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]


@deferrable
def unique(x: Any, out_idx: DTypeLike = dtypes.int32, name: str | None = None) -> Unique:
    """The distinct elements of a vector in order of first appearance, and the index of each element among them."""
    return Unique(*unique_with_counts(x, out_idx)[:2])


@deferrable
def unique_with_counts(x: Any, out_idx: DTypeLike = dtypes.int32, name: str | None = None) -> UniqueWithCounts:
    """`unique`, and how often each occurs."""
    tensor = convert_to_tensor(x)
    check_kind(UNIQUE, tensor.dtype)
    return UniqueWithCounts(*apply(UNIQUE, (tensor,), {"dtype": dtypes.as_dtype(out_idx)}))


@deferrable
def invert_permutation(x: TensorLike, name: str | None = None) -> Tensor:
    """The permutation that undoes a permutation of 0 .. n - 1. Raises InvalidArgumentError for other vectors."""
    tensor = convert_to_tensor(x)
    if tensor._shape is not None and len(tensor._shape) != 1:
        raise errors.InvalidArgumentError(f"invert_permutation expects a vector, got shape {brackets(tensor._shape)}")
    order = argsort(tensor)
    places = range_(call("dim", tensor, axis=0))
    sound = reduce_all(call("equal", call("gather", call("cast", tensor, dtype=dtypes.int32), order, axis=0), places))
    assert_op(sound, "the numbers are not a permutation of 0 .. n - 1 [Op:InvertPermutation]", data=[tensor])
    return call("cast", order, dtype=tensor.dtype)
