"""Operators that make, move, choose and count elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import numpy_helper

from autograph.onnx_models.operators.registry import Call, dtype_of, number, operator
from runtime import dtypes
from runtime.ops import api as ops
from runtime.ops.arrays.gather import gather
from runtime.ops.arrays.miscellaneous import reverse_sequence
from runtime.ops.arrays.sorting import unique_with_counts
from runtime.ops.convert import static_value
from runtime.ops.dispatch import call

# --- values ----------------------------------------------------------------------------------------------------------


@operator("Constant")
def _constant(node: Call) -> Any:
    for name, dtype in (("value_float", np.float32), ("value_floats", np.float32), ("value_int", np.int64),
                        ("value_ints", np.int64)):  # fmt: skip
        if name in node.attrs:
            return ops.convert_to_tensor(np.asarray(node.attrs[name], dtype))
    for name in ("value_string", "value_strings"):
        if name in node.attrs:
            return ops.constant(node.attrs[name])
    if "value" not in node.attrs:
        raise node.refuse("only dense constants are translated")
    return tensor(node.attrs["value"])


def tensor(proto: Any) -> Any:
    """A tensor of what ONNX writes."""
    dtype = dtype_of(proto.data_type)
    array = numpy_helper.to_array(proto)
    if dtype is dtypes.string:
        flat = [each if isinstance(each, bytes) else str(each).encode() for each in np.ravel(array).tolist()]
        objects = np.empty(array.shape, object)
        objects.reshape(-1)[:] = flat
        return ops.constant(objects)
    return ops.convert_to_tensor(np.asarray(array).astype(dtype.np, copy=False))


@operator("ConstantOfShape")
def _constant_of_shape(node: Call, shape: Any) -> Any:
    value = node.get("value")
    fill = np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value)
    return ops.fill(shape, ops.convert_to_tensor(fill.reshape(())))


@operator("EyeLike")
def _eye_like(node: Call, x: Any) -> Any:
    rows, columns = node.shape(x)
    dtype = dtype_of(node.get("dtype")) if node.get("dtype") else x.dtype
    return ops.convert_to_tensor(np.eye(rows, columns, node.get("k", 0)).astype(dtype.np))


@operator("Range")
def _range(node: Call, start: Any, limit: Any, delta: Any) -> Any:
    start, limit, delta = (ops.reshape(each, []) for each in (start, limit, delta))
    return call("range", start, limit, delta, size=None)


@operator("Shape")
def _shape(node: Call, x: Any) -> Any:
    known = x._shape
    start, end = node.get("start", 0), node.get("end")
    if known is not None and None not in known[start:end]:
        return ops.convert_to_tensor(np.asarray(known[start:end], np.int64))
    return ops.shape(x, dtypes.int64)[start:end]


@operator("Size")
def _size(node: Call, x: Any) -> Any:
    return ops.size(x, dtypes.int64)


# --- shapes ----------------------------------------------------------------------------------------------------------


@operator("Reshape")
def _reshape(node: Call, x: Any, shape: Any = None) -> Any:
    wanted = node.get("shape") if shape is None else static_value(shape)
    if wanted is None:
        return ops.reshape(x, shape)  # a 0 in it is taken for a size
    sizes: list[Any] = [int(size) for size in wanted]
    if not node.get("allowzero", 0):
        sizes = [call("dim", x, axis=axis) if size == 0 else size for axis, size in enumerate(sizes)]
    return ops.reshape(x, sizes)


@operator("Flatten")
def _flatten(node: Call, x: Any) -> Any:
    rank = node.rank(x)
    axis = node.get("axis", 1)
    sizes = ops.shape(x)
    axis = axis + rank if axis < 0 else axis
    return ops.reshape(x, [ops.reduce_prod(sizes[:axis]), ops.reduce_prod(sizes[axis:])])


@operator("Squeeze")
def _squeeze(node: Call, x: Any, axes: Any = None) -> Any:
    found = node.axes(axes)
    return ops.squeeze(x, None if found is None else list(found))


@operator("Unsqueeze")
def _unsqueeze(node: Call, x: Any, axes: Any = None) -> Any:
    found = node.axes(axes) or ()
    rank = node.rank(x) + len(found)
    return call("expand_dims", x, axis=tuple(sorted(axis % rank for axis in found)))


@operator("Transpose")
def _transpose(node: Call, x: Any) -> Any:
    return ops.transpose(x, node.get("perm"))


@operator("Expand")
def _expand(node: Call, x: Any, shape: Any) -> Any:
    known = static_value(shape)
    wanted = shape if known is None else [int(size) for size in known]
    return call("select", ops.fill(wanted, ops.constant(True)), x, x)


@operator("Tile")
def _tile(node: Call, x: Any, repeats: Any) -> Any:
    return ops.tile(x, repeats)


@operator("Concat")
def _concat(node: Call, *inputs: Any) -> Any:
    return ops.concat(list(inputs), node.get("axis"))


@operator("Split")
def _split(node: Call, x: Any, split: Any = None) -> Any:
    axis = node.get("axis", 0)
    sizes = node.get("split") if split is None else node.ints(split, "the sizes of the parts")
    if sizes is None:
        length = node.shape(x)[axis]
        count = len(node.outputs)
        size = -(-length // count)
        sizes = [min(size, max(length - k * size, 0)) for k in range(count)]
    return tuple(ops.split(x, list(sizes), axis))


@operator("Slice")
def _slice(node: Call, x: Any, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None) -> Any:
    if starts is None:
        begin, end = list(node.get("starts")), list(node.get("ends"))
    else:
        begin, end = _parts(starts), _parts(ends)
    where = list(range(len(begin))) if node.axes(axes) is None else list(node.axes(axes) or ())
    step = [1] * len(begin) if steps is None else node.ints(steps, "steps")
    rank = node.rank(x)
    key: list[Any] = [slice(None)] * rank
    for axis, first, last, by in zip(where, begin, end, step):
        if by < 0 and isinstance(last, int) and isinstance(first, int):
            # The size is what Python counts negative limits from.
            first, last = _backwards(node, x, axis % rank, first, last)
        key[axis % rank] = slice(first, last, by)
    return x[tuple(key)]


def _parts(tensor: Any) -> list[Any]:
    known = static_value(tensor)
    if known is not None:
        return [int(each) for each in known]
    return list(ops.unstack(tensor))


def _backwards(node: Call, x: Any, axis: int, first: int, last: int) -> tuple[int | None, int | None]:
    size = x._shape[axis] if x._shape else None
    if size is None:
        return (None if first >= 2**31 else first), (None if last <= -(2**31) else last)
    start = min(first + size if first < 0 else first, size - 1)
    end = last + size if last < 0 else last
    return (0, 0) if start < 0 else (start, None if end < 0 else end)


@operator("Pad")
def _pad(node: Call, x: Any, pads: Any = None, value: Any = None, axes: Any = None) -> Any:
    numbers = node.get("pads") if pads is None else node.ints(pads, "the widths of the borders")
    rank = node.rank(x)
    where = [axis % rank for axis in (range(rank) if node.axes(axes) is None else node.axes(axes) or ())]
    pairs = [(0, 0)] * rank
    for place, axis in enumerate(where):
        pairs[axis] = (int(numbers[place]), int(numbers[place + len(where)]))
    mode = node.get("mode", "constant")
    # Negative borders cut.
    cut = tuple(slice(max(-a, 0), None if b >= 0 else b) for a, b in pairs)
    x = x[cut] if any(a < 0 or b < 0 for a, b in pairs) else x
    pairs = [(max(a, 0), max(b, 0)) for a, b in pairs]
    if mode == "constant":
        fill = node.get("value", 0) if value is None else value
        filled = ops.pad(ops.ones_like(ops.cast(x, dtypes.bool_)), pairs)
        fill = fill if hasattr(fill, "dtype") else number(fill, x)
        return ops.where(filled, ops.pad(x, pairs), ops.reshape(fill, []))
    if mode == "reflect":
        return ops.pad(x, pairs, "REFLECT")
    for axis, (before, after) in enumerate(pairs):
        if not before and not after:
            continue
        size = node.shape(x)[axis]
        places = np.arange(-before, size + after)
        places = np.clip(places, 0, size - 1) if mode == "edge" else places % size
        x = gather(x, ops.convert_to_tensor(places), axis=axis)
    return x


@operator("DepthToSpace")
def _depth_to_space(node: Call, x: Any) -> Any:
    batch, depth, rows, columns = node.shape(x)
    size = node.get("blocksize")
    if node.get("mode", "DCR") == "DCR":
        parts = ops.transpose(ops.reshape(x, [batch, size, size, depth // size**2, rows, columns]), [0, 3, 4, 1, 5, 2])
    else:
        parts = ops.transpose(ops.reshape(x, [batch, depth // size**2, size, size, rows, columns]), [0, 1, 4, 2, 5, 3])
    return ops.reshape(parts, [batch, depth // size**2, rows * size, columns * size])


@operator("SpaceToDepth")
def _space_to_depth(node: Call, x: Any) -> Any:
    batch, depth, rows, columns = node.shape(x)
    size = node.get("blocksize")
    parts = ops.reshape(x, [batch, depth, rows // size, size, columns // size, size])
    parts = ops.transpose(parts, [0, 1, 3, 5, 2, 4] if node.get("mode", "DCR") == "CRD" else [0, 3, 5, 1, 2, 4])
    return ops.reshape(parts, [batch, depth * size**2, rows // size, columns // size])


@operator("ReverseSequence")
def _reverse_sequence(node: Call, x: Any, lengths: Any) -> Any:
    return reverse_sequence(x, lengths, seq_axis=node.get("time_axis", 0), batch_axis=node.get("batch_axis", 1))


@operator("Trilu")
def _trilu(node: Call, x: Any, k: Any = None) -> Any:
    rank = node.rank(x)
    offset = 0 if k is None else ops.cast(ops.reshape(k, []), dtypes.int32)
    rows = ops.range(call("dim", x, axis=rank - 2))[:, None] + offset
    columns = ops.range(call("dim", x, axis=rank - 1))
    kept = columns >= rows if node.get("upper", 1) else columns <= rows
    return ops.where(kept, x, ops.zeros_like(x))


# --- elements at positions -------------------------------------------------------------------------------------------


def _counted(x: Any, indices: Any, axis: int) -> Any:
    """Indices of which negative ones count from the end."""
    indices = ops.cast(indices, dtypes.int64)
    size = ops.cast(call("dim", x, axis=axis), dtypes.int64)
    return ops.where(indices < number(0, indices), indices + size, indices)


@operator("Gather")
def _gather(node: Call, x: Any, indices: Any) -> Any:
    axis = node.get("axis", 0) % node.rank(x)
    return gather(x, _counted(x, indices, axis), axis=axis)


@operator("GatherElements")
def _gather_elements(node: Call, x: Any, indices: Any) -> Any:
    axis = node.get("axis", 0) % node.rank(x)
    x_shape, i_shape = node.shape(x), node.shape(indices)
    cut = tuple(slice(0, i) if k != axis else slice(None) for k, i in enumerate(i_shape))
    return call("take_along", x[cut] if x_shape != i_shape else x, _counted(x, indices, axis), axis=axis)


@operator("GatherND")
def _gather_nd(node: Call, x: Any, indices: Any) -> Any:
    batch = node.get("batch_dims", 0)
    sizes = ops.cast(ops.shape(x), dtypes.int64)[batch : batch + node.shape(indices)[-1]]
    indices = ops.where(indices < number(0, indices), indices + sizes, indices)
    return ops.gather_nd(x, indices, batch_dims=batch)


@operator("ScatterND")
def _scatter_nd(node: Call, x: Any, indices: Any, updates: Any) -> Any:
    sizes = ops.cast(ops.shape(x), dtypes.int64)[: node.shape(indices)[-1]]
    indices = ops.where(indices < number(0, indices), indices + sizes, indices)
    return _scattered(node, x, indices, updates)


def _scattered(node: Call, x: Any, indices: Any, updates: Any) -> Any:
    how = node.get("reduction", "none")
    if how == "none":
        return ops.tensor_scatter_nd_update(x, indices, updates)
    if how == "add":
        return ops.tensor_scatter_nd_add(x, indices, updates)
    if how in ("max", "min"):
        return call(f"tensor_scatter_nd_{how}", x, indices, updates)[0]
    if how == "mul":
        # Each element takes one factor at a time, as often as it has any.
        rows = ops.reshape(indices, [-1, node.shape(indices)[-1]])
        parts = ops.reshape(updates, ops.concat([[-1], ops.shape(updates)[node.rank(indices) - 1 :]], 0))
        for place in range(node.shape(rows)[0]):
            at = rows[place : place + 1]
            x = ops.tensor_scatter_nd_update(x, at, ops.gather_nd(x, at) * parts[place : place + 1])
        return x
    raise node.refuse(f"the reduction {how!r} isn't known")


@operator("ScatterElements", "Scatter")
def _scatter_elements(node: Call, x: Any, indices: Any, updates: Any) -> Any:
    axis = node.get("axis", 0) % node.rank(x)
    shape = node.shape(indices)
    places = [np.broadcast_to(grid, shape).astype(np.int64) for grid in np.indices(shape)]
    vectors: list[Any] = [ops.convert_to_tensor(place) for place in places]
    vectors[axis] = _counted(x, indices, axis)
    return _scattered(node, x, ops.stack(vectors, axis=-1), updates)


@operator("Compress")
def _compress(node: Call, x: Any, condition: Any) -> Any:
    axis = node.get("axis")
    if axis is None:
        x, axis = ops.reshape(x, [-1]), 0
    places = call("where_true", condition)[:, 0]
    return gather(x, places, axis=axis % node.rank(x))


@operator("NonZero")
def _non_zero(node: Call, x: Any) -> Any:
    return ops.transpose(call("where_true", x))


@operator("OneHot")
def _one_hot(node: Call, indices: Any, depth: Any, values: Any) -> Any:
    count = ops.cast(ops.reshape(depth, []), dtypes.int64)
    indices = ops.cast(indices, dtypes.int64)
    indices = ops.where(indices < number(0, indices), indices + count, indices)
    axis = node.get("axis", -1)
    rank = node.rank(indices) + 1
    zero, one = number(0, count), number(1, count)
    row = ops.reshape(call("range", zero, count, one, size=None), [-1 if k == axis % rank else 1 for k in range(rank)])
    return ops.where(ops.equal(ops.expand_dims(indices, axis), row), values[1], values[0])


@operator("Unique")
def _unique(node: Call, x: Any) -> Any:
    if node.get("axis") is not None and node.rank(x) != 1:
        raise node.refuse("with an axis, it isn't translated")
    x = ops.reshape(x, [-1])
    values, inverse, counts = unique_with_counts(x, dtypes.int64)
    count = ops.cast(ops.size(values), dtypes.int64)
    order = ops.range(ops.cast(count, dtypes.int32))
    if node.get("sorted", 1):
        order = call("argsort", values, axis=0, descending=False)
        place = call("argsort", order, axis=0, descending=False)
        values, counts = gather(values, order), gather(counts, order)
        inverse = ops.cast(gather(place, inverse), dtypes.int64)
    same = ops.equal(x[None, :], values[:, None])
    first = ops.argmax(ops.cast(same, dtypes.int32), 1)
    return values, first, inverse, counts


@operator("TopK")
def _top_k(node: Call, x: Any, k: Any = None) -> Any:
    count = node.get("k") if k is None else int(node.ints(k, "k")[0])
    axis = node.get("axis", -1) % node.rank(x)
    order = call("argsort", x, axis=axis, descending=bool(node.get("largest", 1)))
    order = order[(*[slice(None)] * axis, slice(0, count))]
    return call("take_along", x, order, axis=axis), ops.cast(order, dtypes.int64)


@operator("BitCast")
def _bit_cast(node: Call, x: Any) -> Any:
    return call("bitcast", x, dtype=dtype_of(node.get("to")))
