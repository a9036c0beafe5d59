"""Array ops without a family of their own: repeat, space to batch, partition and stitch, bitcast, sequence masks."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.dtypes import DTypeLike
from runtime.ops.arrays import creation, scatter, shape_ops
from runtime.ops.arrays.joining import concat, static_axis
from runtime.ops.arrays.reduce import reduce_all, reduce_max
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_indices, convert_to_tensor, int_list, operands, static_value
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise import arithmetic
from runtime.ops.elementwise.compare import equal, where
from runtime.ops.rules import blanks, brackets, dims, product, shape_attr
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType


def _nothing(op: Any, *dy: Any) -> Sequence[Any]:
    return [None] * len(op.inputs)


# --- repeat --------------------------------------------------------------------------------------------------------


def _repeated_kernel(counts: Any) -> Any:
    if np.any(counts < 0):
        raise errors.InvalidArgumentError("repeats must not be negative")
    return np.repeat(np.arange(counts.size, dtype=np.int32), counts.astype(np.int64))


register(
    OpDef(
        "repeated_positions", lambda inputs, attrs: (TensorType(dtypes.int32, (None,)),), _repeated_kernel,
        grad=_nothing, kinds="iu", doc="Each position in a vector of counts, repeated as often as its count says.",
        samples=(Sample(((4,),), low=0.0, high=3.0), Sample(((0,),))),
    )
)  # fmt: skip


@deferrable
def repeat(input: TensorLike, repeats: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Each element (or slice along `axis`) `repeats` times; `repeats` is a number, or a number for each. Without an
    axis, the tensor is flattened first."""
    x = convert_to_tensor(input)
    if axis is None:
        x, axis = call("reshape", x, shape=(-1,)), 0
    at = static_axis(axis, known_rank(x, "repeat"), "repeat")
    counts = convert_to_tensor(repeats)
    if counts._shape in ((), (1,)):
        count = static_value(counts)
        if count is not None and int(count.item()) >= 0:
            return _each_repeated(x, int(count.item()), at)
        size = convert_to_tensor(dims(x)[at])
        counts = call("broadcast_like", call("cast", counts, dtype=dtypes.int32), creation.range(size))
    else:
        _need_same_length(counts, x, at)
    return call("gather", x, call("repeated_positions", counts), axis=at)


def _each_repeated(x: Tensor, count: int, axis: int) -> Tensor:
    """Each slice along `axis` `count` times. What is known of the shape stays known."""
    multiples = tuple(count if i == axis + 1 else 1 for i in range(len(dims(x)) + 1))
    copies = call("tile", call("expand_dims", x, axis=(axis + 1,)), multiples=multiples)
    sizes = [size * count if i == axis else size for i, size in enumerate(dims(x))]
    attr, holes = shape_attr(sizes)
    return call("reshape", copies, *holes, shape=attr)


def _need_same_length(counts: Tensor, x: Tensor, axis: int) -> None:
    """Raises ValueError, or InvalidArgumentError at run time, unless there is a count for each slice along `axis`."""
    if counts._shape is not None and len(counts._shape) != 1:
        raise ValueError(f"repeats must be a number or a vector, got shape {counts.shape}")
    given, wanted = dims(counts)[0], dims(x)[axis]
    if not (isinstance(given, int) and isinstance(wanted, int)):
        sizes = [convert_to_tensor(size, dtypes.int32) for size in (wanted, given)]
        assert_op(equal(*sizes), "Dimensions are not compatible [Op:Repeat]", data=sizes)
    elif given != wanted:
        raise ValueError(f"Dimensions {wanted} and {given} are not compatible: {given} repeats for {wanted} slices")


# --- sequences -----------------------------------------------------------------------------------------------------


@deferrable
def sequence_mask(lengths: Any, maxlen: Any = None, dtype: DTypeLike = dtypes.bool_, name: str | None = None) -> Tensor:
    """True at the first `lengths[i]` of `maxlen` places (default: the largest length), in a new last dimension."""
    counts = convert_to_tensor(lengths)
    longest = reduce_max(counts) if maxlen is None else convert_to_tensor(maxlen)
    if maxlen is None:
        longest = call("maximum", longest, convert_to_tensor(0, longest.dtype))
    line = creation.range(call("cast", longest, dtype=counts.dtype))
    mask = line < call("expand_dims", counts, axis=(known_rank(counts, "sequence_mask"),))
    return mask if dtypes.as_dtype(dtype) is dtypes.bool_ else call("cast", mask, dtype=dtypes.as_dtype(dtype))


@deferrable
def reverse_sequence(
    input: TensorLike, seq_lengths: Any, seq_axis: int = 1, batch_axis: int = 0, name: str | None = None
) -> Tensor:
    """The first `seq_lengths[i]` slices of batch entry i in reverse order, the others as they are."""
    x = convert_to_tensor(input)
    rank = known_rank(x, "reverse_sequence")
    along, batch = seq_axis % rank, batch_axis % rank
    places = creation.range(convert_to_tensor(dims(x)[along]))
    given = convert_to_tensor(seq_lengths)
    if given._shape is not None and len(given._shape) != 1:
        raise errors.InvalidArgumentError(f"seq_lens input must be 1-dim, not {len(given._shape)} [Op:ReverseSequence]")
    if not given.shape.is_compatible_with([dim if isinstance(dim := dims(x)[batch], int) else None]):
        raise errors.InvalidArgumentError(
            f"Length of seq_lens != input.dims({batch}), ({given.shape[0]} vs. {x.shape[batch]}) [Op:ReverseSequence]"
        )
    lengths = call("expand_dims", call("cast", given, dtype=dtypes.int32), axis=(1,))
    order = where(places < lengths, lengths - 1 - places, places + lengths * 0)
    rest = [i for i in range(rank) if i not in (batch, along)]
    moved = call("transpose", x, perm=(batch, along, *rest))
    wide = call("expand_dims", order, axis=tuple(range(2, rank))) if rank > 2 else order
    picked = call("take_along", moved, call("broadcast_like", wide, moved), axis=1)
    return call("transpose", picked, perm=tuple(int(i) for i in np.argsort([batch, along, *rest])))


# --- blocks of space -----------------------------------------------------------------------------------------------


def _block(x: Tensor, sizes: Sequence[Any]) -> Tensor:
    shape, extra = shape_attr(sizes)
    return call("reshape", x, *extra, shape=shape)


def _pairs(value: Any, count: int) -> tuple[tuple[int, int], ...]:
    table = static_value(convert_to_tensor(value))
    if table is None or table.shape != (count, 2):
        raise ValueError(f"paddings and crops must be known while tracing, {count} pairs; got {value!r}")
    return tuple((int(a), int(b)) for a, b in table)


@deferrable
def space_to_batch(input: TensorLike, block_shape: Any, paddings: Any, name: str | None = None) -> Tensor:
    """Moves blocks of the dimensions after the first into the batch dimension."""
    x = convert_to_tensor(input)
    blocks = [int(b) for b in np.reshape(np.asarray(static_value(convert_to_tensor(block_shape))), -1)]
    count, rank = len(blocks), known_rank(x, "space_to_batch")
    pairs = ((0, 0), *_pairs(paddings, count), *[(0, 0)] * (rank - 1 - count))
    x = call("pad", x, paddings=pairs, constant_values=0)
    sizes = dims(x)
    split: list[Any] = [sizes[0]]
    for size, block in zip(sizes[1:], blocks):
        if isinstance(size, int) and size % block:
            raise errors.InvalidArgumentError(f"padded dimension {size} is not divisible by block size {block}")
        split += [size // block, block]
    rest = list(range(1 + 2 * count, 1 + 2 * count + rank - 1 - count))
    wide = _block(x, [*split, *sizes[1 + count :]])
    order = (*range(2, 2 + 2 * count, 2), 0, *range(1, 1 + 2 * count, 2), *rest)
    moved = call("transpose", wide, perm=order)
    lead = product([sizes[0], int(np.prod(blocks))])
    return _block(moved, [lead, *[s // b for s, b in zip(sizes[1:], blocks)], *sizes[1 + count :]])


@deferrable
def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Paddings that make dimensions multiples of blocks, and the crops that undo them: int32, shape (dimensions, 2).

    input_shape, block_shape: lengths. base_paddings: the least paddings, 0 by default; the rest is added at the end.
    Raises ValueError for shapes that don't fit together.
    """
    blocks = convert_to_tensor(block_shape, dtypes.int32 if isinstance(block_shape, (list, tuple)) else None)
    if blocks._shape is None or len(blocks._shape) != 1 or blocks._shape[0] is None:
        raise ValueError(f"block_shape must be a vector of known length, got shape {blocks.shape}")
    count = blocks._shape[0]
    if not count:
        nothing = call("reshape", convert_to_tensor(np.zeros(0, np.int32)), shape=(0, 2))
        return nothing, nothing
    lengths = convert_to_tensor(input_shape, dtypes.int32 if isinstance(input_shape, (list, tuple)) else None)
    base = convert_to_tensor(np.zeros((count, 2), np.int32) if base_paddings is None else base_paddings)
    if lengths._shape not in ((count,), (None,)) or base._shape not in ((count, 2), (None, None)):
        raise ValueError(
            f"input_shape and base_paddings must have shapes [{count}] and [{count}, 2], got {lengths.shape} and "
            f"{base.shape}"
        )
    known = [static_value(each) for each in (lengths, blocks, base)]
    if all(each is not None for each in known):  # then the paddings are known too
        size, block, pairs = known
        more = (block - (size + pairs.sum(1)) % block) % block
        table = np.stack([pairs[:, 0], pairs[:, 1] + more], 1), np.stack([more * 0, more], 1)
        return convert_to_tensor(table[0].astype(np.int32)), convert_to_tensor(table[1].astype(np.int32))
    lengths, blocks, base = (call("cast", each, dtype=dtypes.int32) for each in (lengths, blocks, base))
    extra = (blocks - (lengths + base[:, 0] + base[:, 1]) % blocks) % blocks
    return call("stack", base[:, 0], base[:, 1] + extra, axis=1), call("stack", extra * 0, extra, axis=1)


@deferrable
def batch_to_space(input: TensorLike, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """The inverse of `space_to_batch`; `crops` cuts off what padding added."""
    x = convert_to_tensor(input)
    blocks = [int(b) for b in np.reshape(np.asarray(static_value(convert_to_tensor(block_shape))), -1)]
    count, rank = len(blocks), known_rank(x, "batch_to_space")
    sizes = dims(x)
    total = int(np.prod(blocks))
    if isinstance(sizes[0], int) and sizes[0] % total:
        raise errors.InvalidArgumentError(f"batch {sizes[0]} is not divisible by the number of block elements {total}")
    batch = sizes[0] // total
    wide = _block(x, [*blocks, batch, *sizes[1:]])
    order: list[int] = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    order += range(2 * count + 1, count + rank)
    merged = _block(
        call("transpose", wide, perm=tuple(order)),
        [batch, *[s * b for s, b in zip(sizes[1:], blocks)], *sizes[1 + count :]],
    )
    pairs = _pairs(crops, count)
    return merged[(slice(None), *[slice(a, -b if b else None) for a, b in pairs])]


@deferrable
def space_to_depth(input: TensorLike, block_size: int, data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """Blocks of rows and columns moved into the channels."""
    if data_format != "NHWC":
        raise NotImplementedError("space_to_depth takes data_format NHWC")
    x = convert_to_tensor(input)
    n, h, w, c = dims(x)
    wide = _block(x, [n, h // block_size, block_size, w // block_size, block_size, c])
    moved = call("transpose", wide, perm=(0, 1, 3, 2, 4, 5))
    return _block(moved, [n, h // block_size, w // block_size, product([block_size * block_size, c])])


@deferrable
def depth_to_space(input: TensorLike, block_size: int, data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """The inverse of `space_to_depth`."""
    if data_format != "NHWC":
        raise NotImplementedError("depth_to_space takes data_format NHWC")
    x = convert_to_tensor(input)
    n, h, w, c = dims(x)
    depth = c // (block_size * block_size)
    wide = _block(x, [n, h, w, block_size, block_size, depth])
    moved = call("transpose", wide, perm=(0, 1, 3, 2, 4, 5))
    return _block(moved, [n, product([h, block_size]), product([w, block_size]), depth])


# --- partition and stitch ------------------------------------------------------------------------------------------


@deferrable
def dynamic_partition(data: TensorLike, partitions: Any, num_partitions: int, name: str | None = None) -> list[Tensor]:
    """The rows of `data` as `num_partitions` tensors, by the number of each row.

    Raises InvalidArgumentError for a number out of range.
    """
    x, numbers = convert_to_tensor(data), convert_to_tensor(partitions)
    inside = call("logical_and", numbers >= 0, numbers < num_partitions)
    assert_op(call("reduce_all", inside, axis=tuple(range(known_rank(numbers, "dynamic_partition"))), keepdims=False),
              f"partitions must be in [0, {num_partitions}) [Op:DynamicPartition]")  # fmt: skip
    return [call("boolean_mask", x, equal(numbers, i)) for i in range(num_partitions)]


@deferrable
def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], name: str | None = None) -> Tensor:
    """Rows placed at `indices`; the last one wins where several have the same index."""
    places = [convert_to_tensor(i) for i in indices]
    parts = operands("DynamicStitch", *data)
    flat_places, flat_rows = [], []
    for at, rows in zip(places, parts):
        lead = known_rank(at, "dynamic_stitch")
        flat_places.append(call("reshape", at, shape=(-1,)))
        shape, extra = shape_attr([product(dims(at)), *dims(rows)[lead:]])
        flat_rows.append(call("reshape", rows, *extra, shape=shape))
    at, rows = concat(flat_places, 0), concat(flat_rows, 0)
    size = reduce_max(at) + 1
    return scatter.tensor_scatter_nd_update(
        _zero_rows(call("maximum", size, convert_to_tensor(0, size.dtype)), rows), at[:, None], rows
    )


def _zero_rows(count: Tensor, like: Tensor) -> Tensor:
    shape, extra = shape_attr([call("cast", count, dtype=dtypes.int32), *dims(like)[1:]])
    return call("broadcast_to", convert_to_tensor(blanks((), like.dtype.np)), *extra, shape=shape)


# --- bits and bounds -----------------------------------------------------------------------------------------------


def _infer_bitcast(inputs: Sequence[Any], attrs: dict) -> tuple:
    (x,), wanted = inputs, attrs["dtype"]
    if x.shape is None:
        return (TensorType(wanted, None),)
    old, new = x.dtype.size, wanted.size
    if old == new:
        return (TensorType(wanted, x.shape),)
    if old > new:
        return (TensorType(wanted, (*x.shape, old // new)),)
    if not x.shape or x.shape[-1] not in (None, new // old):
        raise ValueError(
            f"Cannot bitcast from {x.dtype.label} to {wanted.label}: shape {list(x.shape)} must end with {new // old}"
        )
    return (TensorType(wanted, x.shape[:-1]),)


def _bitcast_kernel(x: Any, dtype: Any) -> Any:
    array_ = np.ascontiguousarray(x)
    size = dtype.size
    if array_.itemsize == size:
        return array_.view(dtype._np).reshape(np.shape(x))
    if array_.itemsize > size:
        return array_.reshape(-1).view(dtype._np).reshape(*np.shape(x), array_.itemsize // size)
    if not np.shape(x) or array_.shape[-1] * array_.itemsize != size:
        source = dtypes.as_dtype(array_.dtype)
        raise errors.InvalidArgumentError(
            f"Cannot bitcast from {source.label} to {dtype.label}: shape {brackets(np.shape(x))} must end with "
            f"{size // array_.itemsize} [Op:Bitcast]",
            "Bitcast",
        )
    return array_.reshape(-1).view(dtype._np).reshape(np.shape(x)[:-1])


BITCAST = register(
    OpDef(
        "bitcast", _infer_bitcast, _bitcast_kernel, grad=_nothing, kinds="iufc",
        doc="The same bytes, read as another dtype.",
        samples=(Sample(((3,),), {"dtype": dtypes.uint8}, gradient=()),),
        reads_bits=True, can_fail=False, cheap=True, needs_no_constants=True,
    )
)  # fmt: skip


def bitcast(input: TensorLike, type: DTypeLike, name: str | None = None) -> Tensor:
    """The same bytes as another dtype; if the sizes differ, a last dimension is added or removed."""
    return apply(BITCAST, (convert_to_tensor(input),), {"dtype": dtypes.as_dtype(type)})


def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """`cast`, with values outside the dtype's range clipped to it."""
    x, wanted = convert_to_tensor(value), dtypes.as_dtype(dtype)
    if x.dtype is wanted or wanted.kind not in "iuf" or x.dtype.kind not in "iuf":
        return call("cast", x, dtype=wanted)
    low, high = wanted.min, wanted.max
    if x.dtype.kind in "iu":
        low, high = max(int(low), int(x.dtype.min)), min(int(high), int(x.dtype.max))
        bounds = convert_to_tensor(low, x.dtype), convert_to_tensor(high, x.dtype)
    else:
        # The largest number of the dtype below the bound, as a float that doesn't round past it.
        top = x.dtype.np.type(high)
        if wanted.kind in "iu" and int(top) > int(high):
            top = np.nextafter(top, x.dtype.np.type(0))
        bounds = convert_to_tensor(x.dtype.np.type(low)), convert_to_tensor(top)
    return call("cast", arithmetic.minimum(arithmetic.maximum(x, bounds[0]), bounds[1]), dtype=wanted)


# --- shapes --------------------------------------------------------------------------------------------------------


def shape_n(input: Sequence[Any], out_type: DTypeLike = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """The shapes of several tensors."""
    return [shape_ops.shape(x, out_type) for x in input]


def identity_n(input: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """`identity` of several tensors."""
    return [shape_ops.identity(x) for x in input]


def tuple_(tensors: Sequence[Any], control_inputs: Any = None, name: str | None = None) -> list[Any]:
    """The tensors of a list; None stays None. Functions keep effects in order anyway, so nothing needs to wait.

    Raises ValueError for a list without a tensor.
    """
    if all(x is None for x in tensors):
        raise ValueError("Must have at least one tensor in `tensors`.")
    return [None if x is None else shape_ops.identity(x) for x in tensors]


@deferrable
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape of an elementwise op on tensors of two shapes, as a vector. Raises InvalidArgumentError if there is
    none."""
    x, y = operands("BroadcastArgs", *[
        convert_to_tensor(each, dtypes.int32) if isinstance(each, (list, tuple)) and not each else each
        for each in (shape_x, shape_y)
    ])  # fmt: skip
    a = call("broadcast_to", convert_to_tensor(0), *_holes(x), shape=_attr(x))
    b = call("broadcast_to", convert_to_tensor(0), *_holes(y), shape=_attr(y))
    return call("cast", shape_ops.shape(a + b), dtype=x.dtype)


def _holes(shape: Tensor) -> list[Any]:
    return [d for d in int_list(shape, "shape") if not isinstance(d, int)]


def _attr(shape: Tensor) -> tuple[int | None, ...]:
    return tuple(d if isinstance(d, int) else None for d in int_list(shape, "shape"))


@deferrable
def unravel_index(indices: TensorLike, dims: Any, name: str | None = None) -> Tensor:
    """Positions in the flattened tensor of shape `dims` as coordinates, one row per dimension.

    Raises InvalidArgumentError for a position that the shape doesn't have.
    """
    at = convert_to_indices(indices)
    sizes = [int(d) for d in np.reshape(np.asarray(static_value(convert_to_tensor(dims))), -1)]
    count = functools.reduce(operator.mul, sizes, 1)
    inside = reduce_all(call("logical_and", at >= 0, at < count))
    assert_op(inside, f"index is out of bound as with dims {sizes} [Op:UnravelIndex]", data=[at])
    rows = []
    for i, size in enumerate(sizes):
        below = functools.reduce(operator.mul, sizes[i + 1 :], 1)
        rows.append((at // below) % size)
    return call("stack", *rows, axis=0)
