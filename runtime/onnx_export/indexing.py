"""Lowerings of ops that read and write parts of tensors: slices, gather, scatter, segments, growable arrays.

Parts that are written are index vectors for ScatterND. Where a slice is written, the vectors are what the slice reads
of the tensor's own positions. Indices out of range, which end our programs, are the runtime's to refuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.dtypes import DType
from runtime.graph.ir import Node, Value
from runtime.onnx_export.arrays import expanded
from runtime.onnx_export.emitter import Emitter, NoForm, Ref, lowering
from runtime.ops.arrays.slicing import HOLE, Spec

_LAST, _FIRST = np.iinfo(np.int64).max, np.iinfo(np.int64).min


# --- slices ----------------------------------------------------------------------------------------------------------


@lowering("strided_slice")
def _strided_slice(e: Emitter, node: Node) -> Ref:
    x, *holes = e.inputs(node)
    return _sliced(e, node, x, node.attrs["spec"], holes)


def _sliced(e: Emitter, node: Node, x: Ref, spec: Spec, holes: Sequence[Ref]) -> Ref:
    if any(item[0] == "ellipsis" for item in spec):
        raise NoForm(node, "the rank of what is sliced isn't known", "Give it in the signature or by ag.ensure_shape")
    given = iter(holes)
    axis, new_axes, place = 0, [], 0
    bounds: list[tuple[int, list[Ref]]] = []
    indices: list[tuple[int, Ref]] = []
    for item in spec:
        if item[0] == "newaxis":
            new_axes.append(place)
            place += 1
            continue
        if item[0] == "index":
            index = e.cast(next(given), dtypes.int64) if item[1] == HOLE else e.number(item[1], dtypes.int64)
            indices.append((axis, index))
        else:
            found = _bounds(e, item[1:], given)
            if found is not None:
                bounds.append((axis, found))
            place += 1
        axis += 1
    if bounds:
        starts, ends, steps = (e.concat(*[each[k] for _, each in bounds]) for k in range(3))
        x = e.slice(x, starts, ends, e.ints(*[axis for axis, _ in bounds]), steps)
    rank = axis
    for axis, index in reversed(indices):
        x = gathered(e, x, index, axis, 0, rank)
        rank -= 1
    return e.unsqueeze(x, *new_axes)


def _bounds(e: Emitter, item: Sequence[Any], holes: Iterator[Ref]) -> list[Ref] | None:
    """Start, end and step as vectors of one element; None for a whole dimension."""
    if all(part is None for part in item[:2]) and item[2] in (None, 1):
        return None
    start, stop, step = (e.vector(next(holes)) if part == HOLE else part for part in item)
    if isinstance(step, Ref) and (start is None or stop is None):
        below = e.emit("Less", step, e.ints(0), dtype=dtypes.bool_)
        first, last = e.where(below, e.ints(_LAST), e.ints(0)), e.where(below, e.ints(_FIRST), e.ints(_LAST))
    else:
        backwards = isinstance(step, int) and step < 0
        first, last = (e.ints(_LAST), e.ints(_FIRST)) if backwards else (e.ints(0), e.ints(_LAST))
    parts = (start, first), (stop, last), (step, e.ints(1))
    return [part if isinstance(part, Ref) else usual if part is None else e.ints(part) for part, usual in parts]


def _positions(e: Emitter, node: Node, shape: Ref, spec: Spec, holes: Sequence[Ref]) -> Ref:
    """The places of a slice's elements among all elements, counted in row-major order."""
    count = e.emit("ReduceProd", shape, keepdims=0)
    places = e.emit("Range", e.number(0, dtypes.int64), count, e.number(1, dtypes.int64))
    return _sliced(e, node, e.reshape(places, shape), spec, holes)


def _written(e: Emitter, node: Node, x: Ref, value: Ref, spec: Spec, holes: Sequence[Ref], how: str = "none") -> Ref:
    """x with a slice replaced by `value`, or joined to it."""
    if spec and all(item[0] == "index" for item in spec):
        given = iter(holes)
        parts = [e.vector(next(given)) if item[1] == HOLE else e.ints(item[1]) for item in spec]
        where = e.unsqueeze(e.concat(*parts), 0)
        rest = e.emit("Shape", x, dtype=dtypes.int64, start=len(spec))
        row = expanded(e, value, e.concat(e.ints(1), rest))
        return scattered(e, x, where, row, how)
    shape = e.shape(x)
    places = _positions(e, node, shape, spec, holes)
    values = expanded(e, value, e.shape(places))
    flat = e.emit("Reshape", x, e.ints(-1))
    made = scattered(e, flat, e.emit("Reshape", places, e.ints(-1, 1)), e.emit("Reshape", values, e.ints(-1)), how)
    return e.reshape(made, shape)


@lowering("slice_update")
def _slice_update(e: Emitter, node: Node) -> Ref:
    x, value, *holes = e.inputs(node)
    return _written(e, node, x, value, node.attrs["spec"], holes)


@lowering("slice_add")
def _slice_add(e: Emitter, node: Node) -> Ref:
    x, value, *holes = e.inputs(node)
    return _written(e, node, x, value, node.attrs["spec"], holes, "add")


@lowering("slice_grad")
def _slice_grad(e: Emitter, node: Node) -> Ref:
    dy, *rest = e.inputs(node)
    shape = node.attrs["shape"]
    count = list(shape).count(None)
    zeros = e.zeros(e.filled(shape, rest[:count]), dy.dtype)
    return _written(e, node, zeros, dy, node.attrs["spec"], rest[count:])


# --- gather and scatter ----------------------------------------------------------------------------------------------


def scattered(e: Emitter, x: Ref, indices: Ref, updates: Ref, how: str = "none") -> Ref:
    """x with updates at index vectors; how: none, add, mul, max or min."""
    wide = e.computing("ScatterND", x)
    if how != "none" and x.dtype is dtypes.bool_:
        wide = e.cast(x, dtypes.uint8)
    return e.cast(
        e.emit("ScatterND", wide, e.cast(indices, dtypes.int64), e.cast(updates, wide.dtype), reduction=how), x.dtype
    )


@lowering("gather")
def _gather(e: Emitter, node: Node) -> Ref:
    params, indices = e.inputs(node)
    axis = node.attrs["axis"]
    if params.dtype is not dtypes.string:
        return gathered(e, params, indices, axis)
    return gathered(e, params, indices, axis, e.rank(node.inputs[1]), e.rank(node.inputs[0]))


def gathered(e: Emitter, x: Ref, indices: Ref, axis: int, many: int = 0, rank: int = 0) -> Ref:
    """The slices of x at positions of an axis. For strings: many, rank: the ranks of the indices and of x."""
    indices = _index(e, indices)
    if x.dtype is not dtypes.string:
        return e.emit("Gather", x, indices, axis=axis)
    # ONNX Runtime's Gather (1.32) copies only the first string of each slice.
    front = e.transpose(x, [axis, *[k for k in range(rank) if k != axis]])
    found = e.emit("GatherND", front, e.unsqueeze(e.cast(indices, dtypes.int64), -1))
    return e.transpose(found, [*range(many, many + axis), *range(many), *range(many + axis, many + rank - 1)])


def _index(e: Emitter, indices: Ref) -> Ref:
    return indices if indices.dtype in (dtypes.int32, dtypes.int64) else e.cast(indices, dtypes.int64)


@lowering("gather_grad")
def _gather_grad(e: Emitter, node: Node) -> Ref:
    dy, indices, *holes = e.inputs(node)
    zeros = e.zeros(e.filled(node.attrs["shape"], holes), dy.dtype)
    return _added_along(e, node, zeros, indices, dy, len(node.attrs["shape"]))


@lowering("index_add")
def _index_add(e: Emitter, node: Node) -> Ref:
    acc, indices, values = e.inputs(node)
    return _added_along(e, node, acc, indices, values, e.rank(node.inputs[0]))


def _added_along(e: Emitter, node: Node, acc: Ref, indices: Ref, values: Ref, rank: int) -> Ref:
    """Slices added at positions of an axis, which becomes the first one for the time."""
    axis, many = node.attrs["axis"], e.rank(node.inputs[1])
    front = [axis, *[k for k in range(rank) if k != axis]]
    acc = e.transpose(acc, front)
    places = [*range(axis, axis + many)]
    values = e.transpose(values, [*places, *[k for k in range(rank - 1 + many) if k not in places]])
    made = scattered(e, acc, e.unsqueeze(indices, -1), values, "add")
    return e.transpose(made, np.argsort(front).tolist())


@lowering("take_along")
def _take_along(e: Emitter, node: Node) -> Ref:
    x, indices = e.inputs(node)
    axis = node.attrs["axis"]
    shapes = [[size for k, size in enumerate(v.shape or ()) if k != axis] for v in node.inputs]
    if shapes[0] != shapes[1] or None in shapes[0]:
        # The other axes broadcast in ours, and are cut to the indices' in ONNX.
        x_shape, i_shape = e.shape(x), e.shape(indices)
        common = e.extremum("Max", x_shape, i_shape)
        at = e.emit(
            "Equal",
            e.emit("Range", e.number(0, dtypes.int64), e.emit("Size", x_shape), e.number(1, dtypes.int64)),
            e.number(axis, dtypes.int64),
            dtype=dtypes.bool_,
        )
        x, indices = expanded(e, x, e.where(at, x_shape, common)), expanded(e, indices, e.where(at, i_shape, common))
    return e.emit("GatherElements", x, _index(e, indices), axis=axis)


@lowering("take_along_grad")
def _take_along_grad(e: Emitter, node: Node) -> Ref:
    dy, indices, *holes = e.inputs(node)
    zeros = e.zeros(e.filled(node.attrs["shape"], holes), dy.dtype)
    zeros, updates = e.computing("ScatterElements", zeros), e.computing("ScatterElements", dy)
    made = e.emit("ScatterElements", zeros, _index(e, indices), updates, axis=node.attrs["axis"], reduction="add")
    return e.cast(made, dy.dtype)


@lowering("gather_nd")
def _gather_nd(e: Emitter, node: Node) -> Ref:
    params, indices = e.inputs(node)
    _need_vectors(node, node.inputs[1])
    return e.emit("GatherND", params, e.cast(indices, dtypes.int64))


def _need_vectors(node: Node, indices: Value) -> None:
    shape = indices.shape
    if shape is not None and shape[-1] == 0:
        raise NoForm(node, "its index vectors are empty", "Use the whole tensor instead, broadcast to the shape")


@lowering("scatter_nd")
def _scatter_nd(e: Emitter, node: Node) -> Ref:
    indices, updates, *holes = e.inputs(node)
    _need_vectors(node, node.inputs[0])
    return scattered(e, e.zeros(e.filled(node.attrs["shape"], holes), updates.dtype), indices, updates, "add")


@lowering("tensor_scatter_nd_update", "tensor_scatter_nd_add")
def _scatter_update(e: Emitter, node: Node) -> Ref:
    _need_vectors(node, node.inputs[1])
    tensor, indices, updates = e.inputs(node)
    return scattered(e, tensor, indices, updates, "add" if node.op.name.endswith("add") else "none")


@lowering("tensor_scatter_nd_max", "tensor_scatter_nd_min")
def _scatter_extreme(e: Emitter, node: Node) -> Sequence[Ref]:
    tensor, indices, updates = e.inputs(node)
    _need_vectors(node, node.inputs[1])
    result = scattered(e, tensor, indices, updates, node.op.name[-3:])
    index = e.cast(indices, dtypes.int64)
    before, after = e.emit("GatherND", tensor, index), e.emit("GatherND", result, index)
    return (
        result,
        e.compute("Equal", before, after, dtype=dtypes.bool_),
        e.compute("Equal", updates, after, dtype=dtypes.bool_),
    )


# --- segments --------------------------------------------------------------------------------------------------------


def _extreme(dtype: DType, lowest: bool) -> object:
    if dtype.is_floating:
        # TensorFlow's: the lowest finite number.
        return dtype.min if lowest else dtype.max
    return np.iinfo(dtype.np).min if lowest else np.iinfo(dtype.np).max


@lowering("unsorted_segment_sum", "unsorted_segment_prod", "unsorted_segment_max", "unsorted_segment_min")
def _segments(e: Emitter, node: Node) -> Ref:
    """Rows with negative ids go to one more row, which is cut off."""
    data, ids, *holes = e.inputs(node)
    how = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}[node.op.name[-4:].strip("_")]
    rank = e.rank(node.inputs[1])
    count = e.filled((node.attrs["num"],), holes)
    rest = e.emit("Shape", data, dtype=dtypes.int64, start=rank)
    flat = e.emit("Reshape", e.cast(ids, dtypes.int64), e.ints(-1))
    rows = e.reshape(data, e.concat(e.shape(flat), rest))
    negative = e.emit("Less", flat, e.number(0, flat), dtype=dtypes.bool_)
    places = e.unsqueeze(e.where(negative, count, flat), -1)
    begin = {"add": 0, "mul": 1}.get(how)
    start = e.full(
        e.concat(e.emit("Add", count, e.ints(1)), rest),
        _extreme(data.dtype, how == "max") if begin is None else begin,
        data.dtype,
    )
    return e.first_rows(scattered(e, start, places, rows, how), count)


# --- growable arrays (runtime/ops/growable.py) -----------------------------------------------------------------------


@lowering("row_update")
def _row_update(e: Emitter, node: Node) -> Ref:
    buffer, index, value = e.inputs(node)
    return _row_set(e, buffer, index, value)


def _row_set(e: Emitter, buffer: Ref, index: Ref, value: Ref, how: str = "none") -> Ref:
    where = e.emit("Reshape", e.cast(index, dtypes.int64), e.ints(1, 1))
    rest = e.emit("Shape", buffer, dtype=dtypes.int64, start=1)
    return scattered(e, buffer, where, expanded(e, value, e.concat(e.ints(1), rest)), how)


def _with_rows(e: Emitter, buffer: Ref, count: Ref, rest: Ref) -> Ref:
    """The buffer with zeros after its rows, until there are at least `count` (a vector of one element)."""
    rows = e.dim(buffer, 0)
    more = e.extremum("Max", e.emit("Sub", count, rows), e.ints(0))
    return e.emit("Concat", buffer, e.zeros(e.concat(more, rest), buffer.dtype), axis=0)


@lowering("array_write")
def _array_write(e: Emitter, node: Node) -> Ref:
    buffer, index, value, size = e.inputs(node)
    known = node.inputs[0].shape
    if not (node.attrs["fixed"] and known and known[0] and None not in known):
        needed = e.extremum("Max", e.vector(size), e.emit("Add", e.vector(index), e.ints(1)))
        rest = e.shape(value)
        # A buffer without rows may not know yet how long they will be.
        buffer = e.reshape(buffer, e.concat(e.dim(buffer, 0), rest))
        buffer = _with_rows(e, buffer, needed, rest)
    return _row_set(e, buffer, index, value)


@lowering("resize_rows")
def _resize_rows(e: Emitter, node: Node) -> Ref:
    buffer, count = e.inputs(node)
    wanted = e.vector(count)
    if not node.attrs["within"]:
        buffer = _with_rows(e, buffer, wanted, e.emit("Shape", buffer, dtype=dtypes.int64, start=1))
    return e.first_rows(buffer, wanted)


@lowering("row")
def _row(e: Emitter, node: Node) -> Ref:
    buffer, index, *size = e.inputs(node)
    if not size:
        rank = e.rank(node.inputs[0]) if buffer.dtype is dtypes.string else 0
        return gathered(e, buffer, e.cast(index, dtypes.int64), 0, 0, rank)
    # A row that doesn't exist yet is zero. It isn't an `If`: ONNX Runtime loses results of those in branches whose
    # condition it finds out.
    begin = e.vector(index)
    found = e.slice(buffer, begin, e.emit("Add", begin, e.ints(1)), e.ints(0))
    rest = e.emit("Shape", buffer, dtype=dtypes.int64, start=1)
    rows = e.emit("Concat", found, e.zeros(e.concat(e.ints(1), rest), buffer.dtype), axis=0)
    return e.squeeze(e.first_rows(rows, e.ints(1)), 0)


@lowering("row_grad")
def _row_grad(e: Emitter, node: Node) -> Ref:
    like, index, dy = e.inputs(node)
    return _added_to_row(e, e.zeros(e.shape(like), dy.dtype), index, dy)


@lowering("row_add")
def _row_add(e: Emitter, node: Node) -> Ref:
    return _added_to_row(e, *e.inputs(node))


def _added_to_row(e: Emitter, total: Ref, index: Ref, dy: Ref) -> Ref:
    """Adds rows at indices; those at an index out of range are added to an extra row, which is cut off."""
    rows = e.dim(total, 0)
    place = e.extremum("Min", e.vector(index), rows)
    rest = e.emit("Shape", total, dtype=dtypes.int64, start=1)
    longer = e.emit("Concat", total, e.zeros(e.concat(e.ints(1), rest), total.dtype), axis=0)
    return e.first_rows(_row_set(e, longer, place, dy, "add"), rows)
