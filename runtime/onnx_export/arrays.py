"""Lowerings of ops that make, move and count elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime import dtypes
from runtime.graph.ir import Node
from runtime.onnx_export import windows
from runtime.onnx_export.emitter import Emitter, NoForm, Ref, lowering
from runtime.types import TensorType

# --- sizes -----------------------------------------------------------------------------------------------------------


@lowering("shape")
def _shape(e: Emitter, node: Node) -> Ref:
    return e.cast(e.shape(e.inputs(node)[0]), node.attrs["dtype"])


@lowering("dim")
def _dim(e: Emitter, node: Node) -> Ref:
    made_by = node.inputs[0].node
    if made_by is not None and made_by.op.name == "patches":
        size = windows.size(e, made_by, node.attrs["axis"])
    else:
        size = e.dim(e.inputs(node)[0], node.attrs["axis"])
    return e.cast(e.scalar(size), dtypes.int32)


@lowering("size")
def _size(e: Emitter, node: Node) -> Ref:
    return e.cast(e.emit("Size", e.inputs(node)[0], dtype=dtypes.int64), node.attrs["dtype"])


@lowering("rank")
def _rank(e: Emitter, node: Node) -> Ref:
    return e.cast(e.emit("Size", e.shape(e.inputs(node)[0])), dtypes.int32)


# --- the same elements in other shapes -------------------------------------------------------------------------------


@lowering("reshape")
def _reshape(e: Emitter, node: Node) -> Ref:
    x, *holes = e.inputs(node)
    shape: Sequence[int | None] = node.attrs["shape"]
    if -1 in shape and 0 not in shape:
        return e.emit("Reshape", x, e.filled(shape, holes))
    return e.reshape(x, e.filled(shape, holes))


@lowering("expand_dims")
def _expand_dims(e: Emitter, node: Node) -> Ref:
    return e.unsqueeze(e.inputs(node)[0], *node.attrs["axis"])


@lowering("squeeze")
def _squeeze(e: Emitter, node: Node) -> Ref:
    return e.squeeze(e.inputs(node)[0], *node.attrs["axis"])


@lowering("transpose")
def _transpose(e: Emitter, node: Node) -> Ref:
    return e.transpose(e.inputs(node)[0], node.attrs["perm"])


@lowering("reverse")
def _reverse(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    axes = node.attrs["axis"]
    if not axes:
        return x
    low = np.iinfo(np.int64).min
    return e.slice(x, e.ints(*[-1] * len(axes)), e.ints(*[low] * len(axes)), e.ints(*axes), e.ints(*[-1] * len(axes)))


@lowering("broadcast_to")
def _broadcast_to(e: Emitter, node: Node) -> Ref:
    x, *holes = e.inputs(node)
    return expanded(e, x, e.filled(node.attrs["shape"], holes))


@lowering("broadcast_like")
def _broadcast_like(e: Emitter, node: Node) -> Ref:
    x, like = e.inputs(node)
    return expanded(e, x, e.shape(like))


def expanded(e: Emitter, x: Ref, shape: Ref) -> Ref:
    return e.on_first("Expand", x, shape)


@lowering("tile")
def _tile(e: Emitter, node: Node) -> Ref:
    x, *holes = e.inputs(node)
    return e.on_first("Tile", x, e.filled(node.attrs["multiples"], holes))


@lowering("pad")
def _pad(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    return padded(e, x, node.attrs["paddings"], node.attrs["constant_values"])


def padded(e: Emitter, x: Ref, paddings: Sequence[tuple[int, int]], value: object) -> Ref:
    pads = [before for before, _ in paddings] + [after for _, after in paddings]
    if not any(pads):
        return x
    return e.on_first("Pad", x, e.ints(*pads), value=value)


# --- tensors of one value --------------------------------------------------------------------------------------------


@lowering("fill")
def _fill(e: Emitter, node: Node) -> Ref:
    dims, value = e.inputs(node)
    return expanded(e, value, e.cast(dims, dtypes.int64))


@lowering("zeros_like")
def _zeros_like(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    return e.zeros(e.shape(x), x.dtype)


@lowering("ones_like")
def _ones_like(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    return e.full(e.shape(x), 1, x.dtype)


@lowering("range")
def _range(e: Emitter, node: Node) -> Ref:
    return e.compute("Range", *e.inputs(node))


# --- several tensors -------------------------------------------------------------------------------------------------


@lowering("concat")
def _concat(e: Emitter, node: Node) -> Ref:
    return e.emit("Concat", *e.inputs(node), axis=node.attrs["axis"])


@lowering("stack")
def _stack(e: Emitter, node: Node) -> Ref:
    axis = node.attrs["axis"]
    return e.emit("Concat", *[e.unsqueeze(x, axis) for x in e.inputs(node)], axis=axis)


@lowering("unstack")
def _unstack(e: Emitter, node: Node) -> Sequence[Ref]:
    (x,) = e.inputs(node)
    axis, count = node.attrs["axis"], node.attrs["num"]
    return [e.squeeze(each, axis) for each in _parts(e, x, axis, [1] * count)]


@lowering("split")
def _split(e: Emitter, node: Node) -> Sequence[Ref]:
    (x,) = e.inputs(node)
    return _parts(e, x, node.attrs["axis"], node.attrs["sizes"])


def _parts(e: Emitter, x: Ref, axis: int, sizes: Sequence[int]) -> list[Ref]:
    if not sizes:
        return []
    return e.emit_many("Split", [x, e.ints(*sizes)], [(x.dtype, False)] * len(sizes), axis=axis)


# --- positions -------------------------------------------------------------------------------------------------------


@lowering("where_true")
def _where_true(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    if x.dtype is not dtypes.bool_:
        x = e.emit("Not", e.compute("Equal", x, e.number(0, x), dtype=dtypes.bool_))
    if e.rank(node.inputs[0]) == 0:
        found = e.transpose(e.emit("NonZero", e.unsqueeze(x, 0), dtype=dtypes.int64), (1, 0))
        return e.slice(found, e.ints(0), e.ints(0), e.ints(1))
    return e.transpose(e.emit("NonZero", x, dtype=dtypes.int64), (1, 0))


@lowering("boolean_mask")
def _boolean_mask(e: Emitter, node: Node) -> Ref:
    x, mask = e.inputs(node)
    rank = e.rank(node.inputs[1])
    if rank != 1:
        rest = e.emit("Shape", x, dtype=dtypes.int64, start=rank)
        count = e.emit("Reshape", e.emit("Size", mask, dtype=dtypes.int64), e.ints(1))
        x = e.reshape(x, e.concat(count, rest))
        mask = e.emit("Reshape", mask, e.ints(-1))
    return e.emit("Compress", x, mask, axis=0)


@lowering("argsort")
def _argsort(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    axis = node.attrs["axis"]
    return e.cast(_sorted(e, x, axis, e.dim(x, axis), node.attrs["descending"])[1], dtypes.int32)


@lowering("top_few")
def _top_few(e: Emitter, node: Node) -> Sequence[Ref]:
    (x,) = e.inputs(node)
    values, order = _sorted(e, x, -1, e.ints(node.attrs["k"]), True)
    return values, e.cast(order, dtypes.int32)


def _sorted(e: Emitter, x: Ref, axis: int, count: Ref, descending: bool) -> tuple[Ref, Ref]:
    """The `count` largest (or smallest) elements along an axis, sorted, and their positions. Equal elements keep their
    order, in ONNX as here. Raises NoForm for strings."""
    if x.dtype is dtypes.string:
        assert e.node is not None
        raise NoForm(e.node, "it doesn't sort strings", "Sort numbers instead, such as their positions in a vocabulary")
    wide = e.computing("TopK", x)
    made = e.emit_many(
        "TopK",
        [wide, count],
        [(wide.dtype, False), (dtypes.int64, False)],
        axis=axis,
        largest=int(descending),
        sorted=1,
    )
    return e.cast(made[0], x.dtype), made[1]


@lowering("searchsorted")
def _searchsorted(e: Emitter, node: Node) -> Ref:
    """How many elements of the sequence come before each value."""
    sequence, values = e.inputs(node)
    if e.rank(node.inputs[0]) > 1:
        sequence = e.unsqueeze(sequence, -2)
    before = "Less" if node.attrs["side"] == "left" else "LessOrEqual"
    compared = e.compute(before, sequence, e.unsqueeze(values, -1), dtype=dtypes.bool_)
    return e.cast(e.emit("ReduceSum", e.cast(compared, dtypes.int64), e.ints(-1), keepdims=0), node.attrs["dtype"])


@lowering("unique")
def _unique(e: Emitter, node: Node) -> Sequence[Ref]:
    (x,) = e.inputs(node)
    wide, dtype = e.computing("Unique", x), node.attrs["dtype"]
    values, _, inverse, counts = e.emit_many(
        "Unique", [wide], [(wide.dtype, False), *[(dtypes.int64, False)] * 3], sorted=0
    )
    return e.cast(values, x.dtype), e.cast(inverse, dtype), e.cast(counts, dtype)


@lowering("repeated_positions")
def _repeated_positions(e: Emitter, node: Node) -> Ref:
    """How many of the running totals each place has passed."""
    (counts,) = e.inputs(node)
    counts = e.cast(counts, dtypes.int64)
    totals = e.emit("CumSum", counts, e.number(0, dtypes.int32))
    total = e.emit("ReduceSum", counts, keepdims=0)
    places = e.emit("Range", e.number(0, dtypes.int64), total, e.number(1, dtypes.int64))
    passed = e.emit("LessOrEqual", totals, e.unsqueeze(places, -1), dtype=dtypes.bool_)
    found = e.emit("ReduceSum", e.cast(passed, dtypes.int64), e.ints(-1), keepdims=0)
    output = node.outputs[0].type
    assert isinstance(output, TensorType)
    return e.cast(found, output.dtype)


@lowering("find_constant")
def _find_constant(e: Emitter, node: Node) -> Ref:
    """The values of the keys in a table: the last of equal ones wins, a missing one takes the default behind them."""
    wanted, keys, values, default = e.inputs(node)
    equal = e.compute("Equal", e.unsqueeze(wanted, -1), keys, dtype=dtypes.bool_)
    # The default's column is 1 from the start; a found key's is 2 and more, so that the maximum is where it is.
    hits = e.emit("Mul", e.cast(equal, dtypes.int64), e.number(2, dtypes.int64))
    ones = e.full(e.concat(e.shape(wanted), e.ints(1)), 1, dtypes.int64)
    places = e.emit("ArgMax", e.emit("Concat", hits, ones, axis=-1), axis=-1, keepdims=0, select_last_index=1)
    table = e.emit("Concat", values, e.emit("Reshape", default, e.ints(1)), axis=0)
    return e.emit("Gather", table, places, dtype=values.dtype, axis=0)
