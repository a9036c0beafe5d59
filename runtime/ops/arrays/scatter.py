"""Reading and writing at index vectors: gather_nd, scatter_nd and tensor_scatter_nd_*.

Indices are checked: one out of range raises InvalidArgumentError, as TensorFlow does on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.dtypes import DType, as_dtype
from runtime.ops.arrays.accumulate import accumulate
from runtime.ops.arrays.creation import range as range_
from runtime.ops.arrays.gather import Slices
from runtime.ops.arrays.joining import concat
from runtime.ops.arrays.segments import unsorted_segment_sum
from runtime.ops.arrays.shape_ops import reshape, shape
from runtime.ops.convert import convert_to_indices, convert_to_tensor, fill_holes, operands, shape_args, static_value
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.rules import blanks, brackets, dims, product, shape_attr
from runtime.ops.table import OpDef, Sample, register
from runtime.shapes import TensorShape, element_count
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType


def _need_ints(operand: Any) -> None:
    if operand.dtype.kind not in "iu":
        raise TypeError(f"indices must be integers, got {operand.dtype.label}")


def _need_short(indices: Any, shape: Sequence[int], label: str) -> None:
    depth = indices.shape[-1]
    if depth > len(shape):
        raise errors.InvalidArgumentError(
            f"index vectors of length {depth} are longer than the rank of shape {brackets(tuple(shape))} [Op:{label}]",
            label,
        )


def _check_nd(indices: Any, shape: Sequence[int], label: str) -> tuple[Any, ...]:
    _need_short(indices, shape, label)
    depth = indices.shape[-1]
    bounds = np.array(shape[:depth])
    bad = ((indices < 0) | (indices >= bounds)).any(-1)
    if np.any(bad):
        place = np.argwhere(bad)[0]
        value = brackets(tuple(int(v) for v in indices[tuple(place)]))
        raise errors.InvalidArgumentError(
            f"indices[{','.join(map(str, place))}] = {value} does not index into shape {brackets(tuple(shape))} "
            f"[Op:{label}]",
            label,
        )
    return tuple(np.moveaxis(indices, -1, 0))


def _need_fitting(updates: Any, indices: Any, table: Any, label: str) -> None:
    """Raises InvalidArgumentError unless each index vector has an update of the shape of what it leads to."""
    if updates is None or indices is None or table is None or indices[-1] is None:
        return
    wanted = _nd_shape(table, indices)
    if len(updates) == len(wanted) and all(a is None or b is None or a == b for a, b in zip(updates, wanted)):
        return
    raise errors.InvalidArgumentError(
        f"updates of shape {brackets(updates)} don't fit indices of shape {brackets(indices)} and a tensor of shape "
        f"{brackets(table)}: expected {brackets(wanted)} [Op:{label}]",
        label,
    )


def _nd_shape(params: Any, indices: Any) -> Any:
    if params is None or indices is None or indices[-1] is None:
        return None
    return indices[:-1] + params[indices[-1] :]


def _infer_gather_nd(inputs: Sequence[Any], attrs: dict) -> tuple:
    params, indices = inputs
    _need_ints(indices)
    return (TensorType(params.dtype, _nd_shape(params.shape, indices.shape)),)


def _infer_scatter_nd(inputs: Sequence[Any], attrs: dict) -> tuple:
    indices, updates = inputs[:2]
    _need_ints(indices)
    _need_fitting(updates.shape, indices.shape, attrs["shape"], "ScatterNd")
    return (TensorType(updates.dtype, attrs["shape"]),)


def _infer_update(label: str) -> Any:
    def infer(inputs: Sequence[Any], attrs: dict) -> tuple:
        table, indices, updates = inputs
        _need_ints(indices)
        _need_fitting(updates.shape, indices.shape, table.shape, label)
        return (table,)

    return infer


def _gather_nd_kernel(params: Any, indices: Any, slices: bool = False) -> Any:
    """slices: whether the gradient of a variable's value may be `Slices`."""
    index = _check_nd(indices, params.shape, "GatherNd")
    if params.dtype == object and index:
        return params[(*index, ...)]  # one string stays an array
    return params[index] if index else np.broadcast_to(params, indices.shape[:-1] + params.shape)


def _scattered(result: Any, how: Any, indices: Any, updates: Any, label: str) -> Any:
    """Joins updates to the elements at index vectors, in the array itself."""
    # Shapes before values, as in native code.
    _need_short(indices, result.shape, label)
    _need_fitting(updates.shape, indices.shape, result.shape, label)
    index = _check_nd(indices, result.shape, label)
    # Vectors of no numbers all lead to the whole.
    target, index = (result, index) if index else (result[None], (np.zeros(indices.shape[:-1], np.int64),))
    if how is None:
        target[index] = updates
    else:
        indexed = len(index)
        rows = target.reshape(math.prod(target.shape[:indexed]), *target.shape[indexed:])
        accumulate(how, rows, np.ravel_multi_index(index, target.shape[:indexed]), updates)
    return result


def _scatter_nd_kernel(indices: Any, updates: Any, *holes: Any, shape: tuple[int | None, ...]) -> Any:
    return _scattered(blanks(fill_holes(shape, holes), updates.dtype), np.add, indices, updates, "ScatterNd")


def _update_kernel(label: str, how: Any) -> Any:
    def kernel(tensor: Any, indices: Any, updates: Any) -> Any:
        return _scattered(np.array(tensor, order="C"), how, indices, updates, label)

    return kernel


def _grad_gather_nd(op: Any, dy: Any) -> Sequence[Any]:
    if op.attrs.get("slices") and op.takes_slices(0):
        return Slices(dy, call("squeeze", op.inputs[1], axis=(1,))), None
    shape, extra = shape_attr(dims(op.inputs[0]))
    return call("scatter_nd", op.inputs[1], dy, *extra, shape=shape), None


def _grad_update(op: Any, dy: Any) -> Sequence[Any]:
    _, indices, updates = op.inputs
    # Read before they are overwritten, so that generated code can write in place.
    arrived = call("gather_nd", dy, indices)
    return call("tensor_scatter_nd_update", dy, indices, call("zeros_like", updates)), None, arrived


def _updates_once(node: Any) -> bool:
    """Whether all index vectors are known to differ."""
    indices = node.inputs[1]
    if element_count((indices.shape or (None,))[:-1]) == 1:
        return True
    if indices.node is None or indices.node.op.name != "constant":
        return False
    vectors = indices.node.attrs["value"].array
    return len(np.unique(vectors.reshape(-1, vectors.shape[-1]), axis=0)) == vectors.size // max(vectors.shape[-1], 1)


_ND = np.array([[2], [0]], np.int32)
_PAIRS = np.array([[2, 1], [0, 0]], np.int32)
GATHER_ND = register(
    OpDef(
        "gather_nd", _infer_gather_nd, _gather_nd_kernel,
        grad=_grad_gather_nd, doc="Slices of params at index vectors.",
        samples=(Sample(((3, 2), (2, 1)), fixed={1: _ND}), Sample(((3, 2), (2, 2)), fixed={1: _PAIRS})),
        reads_part=True,
        is_quiet=True,
        by_parts=True,
        needs_no_constants=True,
    )
)  # fmt: skip
SCATTER_ND = register(
    OpDef(
        "scatter_nd", _infer_scatter_nd, _scatter_nd_kernel, kinds="iufc", complex_rule=True,
        grad=lambda op, dy: (
            None, call("gather_nd", dy, op.inputs[0]), *[None] * (len(op.inputs) - 2)
        ),
        add_into=lambda op, total: call("tensor_scatter_nd_add", total, op.inputs[0], op.inputs[1]),
        doc="Zeros of a shape with updates added at index vectors.",
        samples=(
            Sample(((2, 1), (2, 2)), {"shape": (3, 2)}, fixed={0: _ND}),
            Sample(((2, 2), (2,), ()), {"shape": (None, 2)}, fixed={0: _PAIRS, 2: np.int32(3)}),
        ),
        by_parts=True,
    )
)  # fmt: skip
SCATTER_UPDATE = register(
    OpDef(
        "tensor_scatter_nd_update", _infer_update("TensorScatterUpdate"), _update_kernel("TensorScatterUpdate", None),
        grad=_grad_update, label="TensorScatterUpdate", doc="A tensor with slices replaced at index vectors.",
        samples=(
            Sample(((3, 2), (2, 1), (2, 2)), fixed={1: _ND}), Sample(((3, 2), (2, 2), (2,)), fixed={1: _PAIRS}),
        ),
        is_update=True,
        fails_first=True,
        by_parts=True,
        needs_no_constants=True,
    )
)  # fmt: skip
SCATTER_ADD = register(
    OpDef(
        "tensor_scatter_nd_add", _infer_update("TensorScatterAdd"), _update_kernel("TensorScatterAdd", np.add),
        grad=lambda op, dy: (dy, None, call("gather_nd", dy, op.inputs[1])), label="TensorScatterAdd", kinds="iufc",
        complex_rule=True,
        doc="A tensor with slices added at index vectors.",
        samples=(
            Sample(((3, 2), (2, 1), (2, 2)), fixed={1: _ND}), Sample(((3, 2), (2, 2), (2,)), fixed={1: _PAIRS}),
        ),
        is_update=True,
        fails_first=True,
        joins="add",
        rounds_once=_updates_once,
        by_parts=True,
        needs_no_constants=True,
    )
)  # fmt: skip


def _infer_extreme(label: str) -> Any:
    update = _infer_update(label)

    def infer(inputs: Sequence[Any], attrs: dict) -> tuple:
        flags = TensorType(dtypes.bool_, inputs[2].shape)
        return (*update(inputs, attrs), flags, flags)

    return infer


def _extreme_kernel(label: str, how: Any) -> Any:
    def kernel(tensor: Any, indices: Any, updates: Any) -> tuple:
        result = _scattered(np.array(tensor, order="C"), how, indices, updates, label)
        index = tuple(np.moveaxis(indices, -1, 0))
        if not index:
            tensor, whole, index = tensor[None], result[None], (np.zeros(indices.shape[:-1], np.int64),)
        else:
            whole = result
        after = whole[index]
        return result, np.asarray(tensor[index] == after), np.asarray(updates == after)

    return kernel


def _grad_scatter_extreme(op: Any, dy: Any, *others: Any) -> Sequence[Any]:
    """To the tensor where it kept its element, to the updates that are the extreme; equal ones share.

    Works on the elements at the index vectors alone, so that it costs as much as the op where `dy` is written in place.
    """
    _, indices, _ = op.inputs
    flags = op.outputs[1:]
    arrived = call("gather_nd", dy, indices)
    if element_count((indices._shape or (None,))[:-1]) == 1:
        # Chosen rather than divided: a division takes as long as the rest of the trip of a loop.
        half = call("multiply", arrived, convert_to_tensor(0.5, dy.dtype))
        share = call("select", call("logical_and", *flags), half, arrived)
        kept, won = (call("select", flag, share, convert_to_tensor(0, dy.dtype)) for flag in flags)
        return call("tensor_scatter_nd_update", dy, indices, kept), None, won
    kept, won = (call("cast", flag, dtype=dy.dtype) for flag in flags)
    # Several vectors may lead to one element: the elements count who shares them, before they get their shares.
    dy = call("tensor_scatter_nd_add", call("tensor_scatter_nd_update", dy, indices, kept), indices, won)
    share = arrived / call("maximum", call("gather_nd", dy, indices), convert_to_tensor(1, dy.dtype))
    return call("tensor_scatter_nd_update", dy, indices, share * kept), None, share * won


_EXTREMES = (
    Sample(((3, 2), (2, 1), (2, 2)), fixed={1: _ND}), Sample(((3, 2), (2, 2), (2,)), fixed={1: _PAIRS}),
    Sample(((3, 2), (1, 1), (1, 2)), fixed={1: _ND[:1]}), Sample(((3, 2), (2,), ()), fixed={1: _PAIRS[0]}),
    Sample(((3, 2), (3, 1), (3, 2)), fixed={1: np.array([[2], [0], [2]], np.int32)}),
)  # fmt: skip
SCATTER_MAX = register(
    OpDef(
        "tensor_scatter_nd_max", _infer_extreme("TensorScatterMax"), _extreme_kernel("TensorScatterMax", np.maximum),
        multiple=True, grad=_grad_scatter_extreme, label="TensorScatterMax", kinds="iuf", samples=_EXTREMES,
        doc="A tensor with the larger of slices and updates at index vectors. Two more results say for each update "
        "whether the element kept its value, and whether it has the value of the update.",
        is_update=True,
        fails_first=True,
        joins="maximum",
        rounds_once=lambda node: True,
        needs_no_constants=True,
    )
)  # fmt: skip
SCATTER_MIN = register(
    OpDef(
        "tensor_scatter_nd_min", _infer_extreme("TensorScatterMin"), _extreme_kernel("TensorScatterMin", np.minimum),
        multiple=True, grad=_grad_scatter_extreme, label="TensorScatterMin", kinds="iuf", samples=_EXTREMES,
        doc="A tensor with the smaller of slices and updates at index vectors. Two more results say for each update "
        "whether the element kept its value, and whether it has the value of the update.",
        is_update=True,
        fails_first=True,
        joins="minimum",
        rounds_once=lambda node: True,
        needs_no_constants=True,
    )
)  # fmt: skip


@deferrable
def gather_nd(params: TensorLike, indices: TensorLike, batch_dims: int = 0, name: str | None = None) -> Tensor:
    """The slices of `params` at the index vectors in the last dimension of `indices`.

    batch_dims: leading dimensions that both have; the index vectors then index within a batch entry.
    """
    x, at = convert_to_tensor(params), convert_to_indices(indices)
    if batch_dims:
        # The batch's own coordinates go in front of each index vector.
        lead = dims(at)[:-1]
        count = len(lead)
        columns = []
        for axis in range(batch_dims):
            line = call("cast", range_(convert_to_tensor(lead[axis])), dtype=at.dtype)
            line = call("expand_dims", line, axis=tuple(i for i in range(count + 1) if i != axis))
            columns.append(line + call("zeros_like", at[..., :1]))
        at = call("concat", *columns, at, axis=count)
    # Where each vector is one number, as in TensorFlow.
    of_rows = x.dtype.is_differentiable and at._shape is not None and len(at._shape) == 2 and at._shape[1] == 1
    return apply(GATHER_ND, (x, at), {"slices": True} if of_rows else {})


@deferrable
def scatter_nd(indices: TensorLike, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Zeros of `shape` with `updates` added at the index vectors in the last dimension of `indices`."""
    attr, holes = shape_args(shape)
    return apply(SCATTER_ND, (convert_to_indices(indices), convert_to_tensor(updates), *holes), {"shape": attr})


def _scatter(row: OpDef, tensor: Any, indices: Any, updates: Any) -> Any:
    x, values = operands(row.label, tensor, updates)
    return apply(row, (x, convert_to_indices(indices), values))


@deferrable
def tensor_scatter_nd_update(tensor: TensorLike, indices: TensorLike, updates: Any, name: str | None = None) -> Tensor:
    """A copy of `tensor` with the slices at the index vectors replaced. Raises InvalidArgumentError out of range."""
    return _scatter(SCATTER_UPDATE, tensor, indices, updates)


@deferrable
def tensor_scatter_nd_add(tensor: TensorLike, indices: TensorLike, updates: Any, name: str | None = None) -> Tensor:
    """A copy of `tensor` with `updates` added to the slices at the index vectors."""
    return _scatter(SCATTER_ADD, tensor, indices, updates)


@deferrable
def tensor_scatter_nd_sub(tensor: TensorLike, indices: TensorLike, updates: Any, name: str | None = None) -> Tensor:
    """A copy of `tensor` with `updates` subtracted from the slices at the index vectors."""
    x, values = operands("TensorScatterSub", tensor, updates)
    if x.dtype.kind == "u":
        # Unsigned numbers have no negative; their difference wraps round like a sum with the complement.
        return apply(SCATTER_ADD, (x, convert_to_indices(indices), call("invert", values) + 1))
    return apply(SCATTER_ADD, (x, convert_to_indices(indices), -values))


@deferrable
def tensor_scatter_nd_max(tensor: TensorLike, indices: TensorLike, updates: Any, name: str | None = None) -> Tensor:
    """A copy of `tensor` with the larger of slices and `updates` at the index vectors."""
    return _scatter(SCATTER_MAX, tensor, indices, updates)[0]


@deferrable
def tensor_scatter_nd_min(tensor: TensorLike, indices: TensorLike, updates: Any, name: str | None = None) -> Tensor:
    """A copy of `tensor` with the smaller of slices and `updates` at the index vectors."""
    return _scatter(SCATTER_MIN, tensor, indices, updates)[0]


class IndexedSlices:
    """Rows of a tensor at given indices, for `Variable.scatter_add` and similar methods. All other rows are zero.

    A tape gives it as the gradient of a variable that is only read by `gather`, `nn.embedding_lookup` and the like.

    values: the rows. indices: the row number of each. dense_shape: the shape of the whole tensor, if known. Other
    functions then use it as that tensor, in which rows with the same number are added; `convert_to_tensor` makes it.
    """

    __ag_composite__ = "slices"
    __ag_tensor__ = True  # for `is_tensor`

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values = convert_to_tensor(values)
        self.indices = convert_to_indices(indices)
        self.dense_shape = None if dense_shape is None else convert_to_tensor(dense_shape)

    @classmethod
    def joined(cls, parts: Sequence[Slices], like: Any) -> IndexedSlices:
        """The rows of all parts, one part after the other, as rows of a tensor `like`."""
        row = dims(like)[1:]
        values, indices = [], []
        for part in parts:
            sizes = dims(part.indices)
            is_list = len(sizes) == 1
            values.append(part.values if is_list else reshape(part.values, [product(sizes), *row]))
            indices.append(part.indices if is_list else reshape(part.indices, [product(sizes)]))
        if len({each.dtype for each in indices}) > 1:
            indices = [call("cast", each, dtype=dtypes.int64) for each in indices]
        return cls(_end_to_end(values), _end_to_end(indices), shape(like))

    @property
    def dtype(self) -> DType:
        return self.values.dtype

    @property
    def shape(self) -> TensorShape:
        known = None if self.dense_shape is None else static_value(self.dense_shape)
        return TensorShape(None if known is None else [int(d) for d in known])

    def with_values(self, values: Any) -> IndexedSlices:
        """Other values at the same indices."""
        return IndexedSlices(values, self.indices, self.dense_shape)

    def alongside(self, other: IndexedSlices) -> IndexedSlices:
        """These slices, with int64 indices if the other ones' have another dtype."""
        if self.indices.dtype is other.indices.dtype:
            return self
        return IndexedSlices(self.values, call("cast", self.indices, dtype=dtypes.int64), self.dense_shape)

    def __neg__(self) -> IndexedSlices:
        return self.with_values(-self.values)

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return None, (self.values, self.indices, self.dense_shape)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> IndexedSlices:
        made = cls.__new__(cls)
        made.values, made.indices, made.dense_shape = components
        return made

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Tensor:
        if dtype is not None and as_dtype(dtype) is not self.dtype:
            raise ValueError(
                f"Incompatible tensor conversion requested to dtype {as_dtype(dtype).name} for IndexedSlices with "
                f"dtype {self.dtype.name}"
            )
        if self.dense_shape is None:
            raise ValueError(
                f"IndexedSlices without dense_shape can't become a tensor, which needs the number of rows: {self!r}"
            )
        return unsorted_segment_sum(self.values, self.indices, self.dense_shape[0])

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"'IndexedSlices' object has no attribute {name!r}. It holds some rows of a tensor; "
            "ag.convert_to_tensor(slices) gives the whole tensor."
        )

    def __repr__(self) -> str:
        whole = "" if self.dense_shape is None else f", dense_shape={self.dense_shape!s}"
        return f"IndexedSlices(indices={self.indices!s}, values={self.values!s}{whole})"


def _end_to_end(tensors: list[Any]) -> Any:
    return tensors[0] if len(tensors) == 1 else concat(tensors, 0)
