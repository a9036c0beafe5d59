"""Copies, borders and orders: tile, pad, reverse, roll."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.ops.arrays.joining import concat, static_axis
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import convert_to_tensor, fill_holes, int_list, mismatch, shape_args, static_value
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.rules import brackets, dims, shape_attr
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType


def _infer_tile(inputs: Sequence[Any], attrs: dict) -> tuple:
    x, multiples = inputs[0], attrs["multiples"]
    if x.shape is None:
        return (TensorType(x.dtype, (None,) * len(multiples)),)
    if len(x.shape) != len(multiples):
        raise ValueError(
            f"Expected multiples argument to be a vector of length {len(x.shape)} but got length {len(multiples)}"
        )
    return (TensorType(x.dtype, tuple(None if d is None or m is None else d * m for d, m in zip(x.shape, multiples))),)


def _tile_kernel(x: Any, *holes: Any, multiples: tuple[int | None, ...]) -> Any:
    factors = fill_holes(multiples, holes)
    if len(factors) != x.ndim:
        raise ValueError("multiples must have one entry per dimension")
    for position, factor in enumerate(factors):
        if factor < 0:
            raise ValueError(f"Expected multiples[{position}] >= 0, but got {factor}")
    return np.tile(x, factors) if factors else x


def _grad_tile(op: Any, dy: Any) -> Sequence[Any]:
    """The copies, side by side in a shape (m0, d0, m1, d1, ...), summed."""
    rest = iter(op.inputs[1:])
    shape: list[Any] = []
    for multiple, dim in zip(op.attrs["multiples"], dims(op.inputs[0])):
        shape += [next(rest) if multiple is None else multiple, dim]
    attr, extra = shape_attr(shape)
    split_up = call("reshape", dy, *extra, shape=attr)
    return (
        call("reduce_sum", split_up, axis=tuple(range(0, len(shape), 2)), keepdims=False),
        *[None] * (len(op.inputs) - 1),
    )


TILE = register(
    OpDef(
        "tile", _infer_tile, _tile_kernel, grad=_grad_tile,
        doc="Repeats a tensor a given number of times along each dimension.",
        samples=(
            Sample(((2, 3),), {"multiples": (2, 1)}), Sample(((3,),), {"multiples": (0,)}),
            Sample(((2, 3), ()), {"multiples": (None, 2)}, fixed={1: np.int32(2)}, gradient=(0,)),
            Sample(((),), {"multiples": ()}),
        ),
        is_move=True,
        numbers_after=1,
    )
)  # fmt: skip


@deferrable
def tile(input: TensorLike, multiples: Any, name: str | None = None) -> Tensor:
    """Copies of a tensor side by side, `multiples[i]` of them along dimension i."""
    attr, holes = shape_args(multiples, "multiples")
    return apply(TILE, (convert_to_tensor(input), *holes), {"multiples": attr})


def _infer_pad(inputs: Sequence[Any], attrs: dict) -> tuple:
    x, paddings = inputs[0], attrs["paddings"]
    if x.shape is not None and len(x.shape) != len(paddings):
        raise ValueError(
            f"The first dimension of paddings must be the rank of inputs: {brackets(x.shape)}, {len(paddings)} pairs"
        )
    shape = x.shape or (None,) * len(paddings)
    return (TensorType(x.dtype, tuple(None if d is None else a + d + b for d, (a, b) in zip(shape, paddings))),)


def _pad_kernel(x: Any, paddings: tuple[tuple[int, int], ...], constant_values: Any) -> Any:
    if x.ndim != len(paddings):
        raise errors.InvalidArgumentError(
            f"The first dimension of paddings must be the rank of inputs: {brackets(x.shape)}, {len(paddings)} pairs "
            "[Op:Pad]"
        )
    if x.dtype == object:  # NumPy would make its own kind of bytes of the value
        padded = np.full([a + d + b for d, (a, b) in zip(x.shape, paddings)], constant_values, object)
        padded[tuple([slice(a, a + d) for d, (a, _) in zip(x.shape, paddings)])] = x
        return padded
    return np.pad(x, paddings, constant_values=constant_values) if paddings else x


def _grad_pad(op: Any, dy: Any) -> Sequence[Any]:
    return (dy[tuple(slice(a, -b if b else None) for a, b in op.attrs["paddings"])],)


PAD = register(
    OpDef(
        "pad", _infer_pad, _pad_kernel, grad=_grad_pad, kinds="biufc", complex_rule=True,
        doc="A tensor with a border of one value.",
        samples=(
            Sample(((2, 3),), {"paddings": ((1, 0), (0, 2)), "constant_values": 0}),
            Sample(((0,),), {"paddings": ((2, 1),), "constant_values": 1}),
        ),
        by_parts=True,
    )
)  # fmt: skip


def _known_pairs(paddings: Any) -> np.ndarray | None:
    """The widths where all of them are known now, in a list of pairs that has tensors of a trace in it."""
    if not isinstance(paddings, (list, tuple)) or not all(isinstance(pair, (list, tuple)) for pair in paddings):
        return None
    table = [int_list(pair, "paddings") for pair in paddings]
    return np.array(table) if all(isinstance(width, int) for pair in table for width in pair) else None


@deferrable
def pad(
    tensor: TensorLike, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None
) -> Tensor:
    """Adds a border of `paddings[i] = (before, after)` elements to each dimension.

    mode: "CONSTANT" (`constant_values`), "REFLECT" (mirrored, without the edge) or "SYMMETRIC" (with it).
    paddings: int32 or int64, shape (rank, 2); a NumPy array of other numbers is converted.
    Raises ValueError for another mode, DTypeError for paddings of another dtype, and InvalidArgumentError for a mirror
    wider than the tensor.
    """
    x = convert_to_tensor(tensor)
    if isinstance(paddings, np.ndarray) and paddings.dtype not in (np.int32, np.int64):
        paddings = paddings.astype(np.int32)
    known = convert_to_tensor(paddings)
    if known.dtype not in (dtypes.int32, dtypes.int64):
        raise errors.DTypeError(
            f"paddings must be int32 or int64, got {known.dtype.label}; ag.cast(paddings, ag.int32) would convert them "
            "[Op:Pad]"
        )
    shape = known._shape
    if shape is not None and (len(shape) != 2 or shape[1] not in (2, None)):
        raise errors.InvalidArgumentError(f"paddings must be a matrix with 2 columns: {brackets(shape)} [Op:Pad]")
    table = static_value(known)
    if table is None:
        table = _known_pairs(paddings)
    if table is None:
        return _pad_dynamic(x, known, mode.upper(), constant_values)
    if np.any(table < 0):
        raise errors.InvalidArgumentError(f"Paddings must be non-negative: {table.tolist()} [Op:Pad]")
    pairs = tuple((int(a), int(b)) for a, b in table)
    kind = mode.upper()
    if kind == "CONSTANT":
        if x.dtype is dtypes.bool_ and type(constant_values) is int:
            constant_values = bool(constant_values)
        border = convert_to_tensor(constant_values, None if isinstance(constant_values, Tensor) else x.dtype)
        value = static_value(border)
        if value is not None:
            return apply(PAD, (x,), {"paddings": pairs, "constant_values": value.item()})
        if border.dtype is not x.dtype:
            raise mismatch("PadV2", 2, x.dtype, border.dtype)
        # A value that is known only at run time: it goes where padding ones with zeros leaves zeros.
        inner = apply(PAD, (call("ones_like", x),), {"paddings": pairs, "constant_values": 0})
        padded = apply(PAD, (x,), {"paddings": pairs, "constant_values": 0})
        return call("select", call("cast", inner, dtype=dtypes.bool_), padded, border)
    if kind not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(
            "Value of argument `mode` expected to be one of 'CONSTANT', 'REFLECT', or 'SYMMETRIC'. "
            f"Received `mode` = {mode}"
        )
    for axis, (before, after) in enumerate(pairs):
        size = dims(x)[axis]
        if not isinstance(size, int):
            x = _mirrored(x, axis, before, after, kind)
            continue
        if max(before, after) > size - (kind == "REFLECT"):
            raise errors.InvalidArgumentError(
                f"paddings must be {'less' if kind == 'REFLECT' else 'no greater'} than the dimension size: "
                f"{before}, {after} {'not less' if kind == 'REFLECT' else 'greater'} than {size} [Op:MirrorPad]"
            )
        if before or after:
            how: Any = kind.lower()
            positions = np.pad(np.arange(size, dtype=np.int32), (before, after), how)
            x = call("gather", x, convert_to_tensor(positions), axis=axis)
    return x


def _pad_dynamic(x: Tensor, paddings: Tensor, kind: str, constant_values: Any) -> Tensor:
    """`pad` by widths that are known only at run time, one dimension after the other."""
    rank = known_rank(x, "pad")
    if kind not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        raise ValueError(f"mode must be CONSTANT, REFLECT or SYMMETRIC, got {kind!r}")
    if paddings._shape is not None and paddings._shape[0] not in (rank, None):
        raise ValueError(
            f"The first dimension of paddings must be the rank of inputs: {brackets(paddings._shape)}, "
            f"{brackets(x._shape)}"
        )
    border = convert_to_tensor(constant_values, None if isinstance(constant_values, Tensor) else x.dtype)
    if border.dtype is not x.dtype:
        raise mismatch("PadV2", 2, x.dtype, border.dtype)
    widths = call("cast", paddings, dtype=dtypes.int32)
    for axis in range(rank):
        before, after = (call("strided_slice", widths, spec=(("index", axis), ("index", i))) for i in range(2))
        if kind != "CONSTANT":
            x = _mirrored(x, axis, before, after, kind)
            continue
        call(
            "assert", call("logical_and", before >= 0, after >= 0), before, after, summarize=3,
            message="Paddings must be non-negative [Op:Pad]:", error="InvalidArgumentError",
        )  # fmt: skip
        parts = []
        for width in (before, after):
            attr, holes = shape_attr([width if i == axis else d for i, d in enumerate(dims(x))])
            parts.append(call("broadcast_to", border, *holes, shape=attr))
        x = concat([parts[0], x, parts[1]], axis)
    return x


def _mirrored(x: Tensor, axis: int, before: Any, after: Any, kind: str) -> Tensor:
    """x with its ends mirrored along an axis; sizes and widths may be known only at run time."""
    start, stop, size = (convert_to_tensor(n, dtypes.int32) for n in (before, after, dims(x)[axis]))
    reflect = kind == "REFLECT"
    widest = size - 1 if reflect else size
    fits = call("logical_and", call("maximum", start, stop) <= widest, call("minimum", start, stop) >= 0)
    call(
        "assert", fits, start, stop, size, summarize=3, error="InvalidArgumentError",
        message=f"paddings are too wide for {kind} [Op:MirrorPad]: before, after and dimension {axis} =",
    )  # fmt: skip
    places = call("range", -start, size + stop, convert_to_tensor(1), size=None)
    if reflect:
        last = size - 1
        places = last - abs(last - abs(places))
    else:
        places = call("select", places < 0, -1 - places, places)
        places = call("select", places >= size, 2 * size - 1 - places, places)
    return call("gather", x, places, axis=axis)


REVERSE = register(
    OpDef(
        "reverse", lambda inputs, attrs: (inputs[0],), lambda x, axis: np.flip(x, axis), cheap=True, label="ReverseV2",
        grad=lambda op, dy: (call("reverse", dy, axis=op.attrs["axis"]),),
        doc="Reverses the order of elements along axes.",
        samples=tuple(Sample((s,), {"axis": a}) for s, a in [((2, 3), (0,)), ((2, 3), (0, 1)), ((0,), (0,))]),
        is_move=True,
    )
)  # fmt: skip


@deferrable
def reverse(tensor: TensorLike, axis: Any, name: str | None = None) -> Tensor:
    """The elements in reverse order along the given axes."""
    x = convert_to_tensor(tensor)
    r = known_rank(x, "reverse")
    axes = tuple(sorted(static_axis(a, r, "reverse") for a in int_list(axis, "axis")))
    return apply(REVERSE, (x,), {"axis": axes})


@deferrable
def roll(input: TensorLike, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Elements shifted by `shift` places along `axis` (an int or several of each); those pushed out re-enter at the
    other end."""
    x = convert_to_tensor(input)
    r = known_rank(x, "roll")
    shifts, axes = int_list(shift, "shift"), int_list(axis, "axis")
    if len(shifts) != len(axes):
        raise errors.InvalidArgumentError(
            f"shift and axis must have the same size, got {len(shifts)} and {len(axes)} [Op:Roll]", "roll"
        )
    for count, position in zip(shifts, axes):
        at = static_axis(position, r, "roll")
        size: Any = dims(x)[at]
        # Of no elements none is moved.
        size = max(size, 1) if isinstance(size, int) else call("maximum", size, convert_to_tensor(1, size.dtype))
        cut = -count % size  # type: ignore[operator]
        first, second = [slice(None)] * r, [slice(None)] * r
        first[at], second[at] = slice(cut, None), slice(None, cut)
        x = concat([x[tuple(first)], x[tuple(second)]], at)
    return x
