"""Copies, borders and orders: tile, pad, reverse, roll."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.ops.array import known_rank
from runtime.ops.convert import convert_to_tensor, fill_holes, int_list, mismatch, shape_args, static_value
from runtime.ops.dispatch import apply, call
from runtime.ops.joining import concat, static_axis
from runtime.ops.rules import brackets, dims, shape_attr
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor
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
        "tile", _infer_tile, _tile_kernel, grad=_grad_tile, doc="Copies side by side, so many per dimension.",
        samples=(
            Sample(((2, 3),), {"multiples": (2, 1)}), Sample(((3,),), {"multiples": (0,)}),
            Sample(((2, 3), ()), {"multiples": (None, 2)}, fixed={1: np.int32(2)}, gradient=(0,)),
            Sample(((),), {"multiples": ()}),
        ),
    )
)  # fmt: skip


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
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
    return np.pad(x, paddings, constant_values=constant_values) if paddings else x


def _grad_pad(op: Any, dy: Any) -> Sequence[Any]:
    return (dy[tuple(slice(a, -b if b else None) for a, b in op.attrs["paddings"])],)


PAD = register(
    OpDef(
        "pad", _infer_pad, _pad_kernel, grad=_grad_pad, kinds="biufc", complex_rule=True,
        doc="With a border of one value.",
        samples=(
            Sample(((2, 3),), {"paddings": ((1, 0), (0, 2)), "constant_values": 0}),
            Sample(((0,),), {"paddings": ((2, 1),), "constant_values": 1}),
        ),
    )
)  # fmt: skip


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None
) -> Tensor:
    """With a border of `paddings[i] = (before, after)` elements in each dimension.

    mode: "CONSTANT" (`constant_values`), "REFLECT" (mirrored, without the edge) or "SYMMETRIC" (with it).
    Raises ValueError for another mode and for a mirror wider than the tensor.
    """
    x = convert_to_tensor(tensor)
    known = convert_to_tensor(paddings)
    table = static_value(known)
    if table is None or table.ndim != 2 or table.shape[1] != 2:
        raise ValueError(f"paddings must have shape [rank, 2] and be known while tracing, got {paddings!r}")
    pairs = tuple((int(a), int(b)) for a, b in table)
    kind = mode.upper()
    if kind == "CONSTANT":
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
        size = (x._shape or ())[axis]
        if size is None:
            raise ValueError(f"mode {kind} needs dimension {axis} known while tracing")
        if max(before, after) > size - (kind == "REFLECT"):
            raise ValueError(f"paddings {before, after} are too wide for {kind} of dimension {axis} of size {size}")
        if before or after:
            how: Any = kind.lower()
            positions = np.pad(np.arange(size, dtype=np.int32), (before, after), how)
            x = call("gather", x, convert_to_tensor(positions), axis=axis)
    return x


REVERSE = register(
    OpDef(
        "reverse", lambda inputs, attrs: (inputs[0],), lambda x, axis: np.flip(x, axis), cheap=True, label="ReverseV2",
        grad=lambda op, dy: (call("reverse", dy, axis=op.attrs["axis"]),), doc="Back to front along axes.",
        samples=tuple(Sample((s,), {"axis": a}) for s, a in [((2, 3), (0,)), ((2, 3), (0, 1)), ((0,), (0,))]),
    )
)  # fmt: skip


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """Back to front along the given axes."""
    x = convert_to_tensor(tensor)
    r = known_rank(x, "reverse")
    axes = tuple(sorted(static_axis(a, r, "reverse") for a in int_list(axis, "axis")))
    return apply(REVERSE, (x,), {"axis": axes})


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Elements moved on by `shift` places along `axis` (an int or several of each); those that leave come in again."""
    x = convert_to_tensor(input)
    r = known_rank(x, "roll")
    for count, position in zip(int_list(shift, "shift"), int_list(axis, "axis")):
        at = static_axis(position, r, "roll")
        size = dims(x)[at]
        cut = -count % size  # type: ignore[operator]
        first, second = [slice(None)] * r, [slice(None)] * r
        first[at], second[at] = slice(cut, None), slice(None, cut)
        x = concat([x[tuple(first)], x[tuple(second)]], at)
    return x
