"""Putting tensors together and taking them apart: concat, stack, unstack, split."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import errors
from runtime.ops.arrays.shape_ops import ensure_shape, known_rank, normal_axis
from runtime.ops.control import assert_op
from runtime.ops.convert import (
    convert_to_tensor,
    has_dtype,
    int_list,
    is_tensor_like,
    operands,
    scalar_int,
    static_value,
    unknown_now,
)
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.rules import brackets, dims, need_same_dtype
from runtime.ops.table import OpDef, Sample, register
from runtime.shapes import Shape, merge
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType


def static_axis(axis: Any, rank: int, what: str) -> int:
    """A non-negative axis known now. Raises TypeError when it isn't, InvalidArgumentError when out of range."""
    position = scalar_int(axis, "axis")
    if not isinstance(position, int):
        raise unknown_now("axis", axis)
    return normal_axis(position, rank, what)


# --- concat --------------------------------------------------------------------------------------------------------


def _infer_concat(inputs: Sequence[Any], attrs: dict) -> tuple:
    need_same_dtype(inputs)
    axis = attrs["axis"]
    shapes = [t.shape for t in inputs]
    if any(s is None for s in shapes):
        return (TensorType(inputs[0].dtype, None),)
    first = shapes[0]
    result: list[int | None] = list(first)
    for position, shape in enumerate(shapes[1:], 1):
        if len(shape) != len(first):
            raise ValueError(
                f"ConcatOp : Ranks of all input tensors should match: shape[0] = {brackets(first)} vs. "
                f"shape[{position}] = {brackets(shape)}"
            )
        for i, (a, b) in enumerate(zip(result, shape)):
            if i == axis:
                result[i] = None if a is None or b is None else a + b
            elif a is None:
                result[i] = b
            elif b is not None and a != b:
                raise ValueError(
                    f"ConcatOp : Dimension {i} in both shapes must be equal: shape[0] = {brackets(first)} vs. "
                    f"shape[{position}] = {brackets(shape)}"
                )
    return (TensorType(inputs[0].dtype, tuple(result)),)


def _grad_concat(op: Any, dy: Any) -> Sequence[Any]:
    axis = op.attrs["axis"]
    start: Any = 0
    result = []
    for x in op.inputs:
        size = dims(x)[axis]
        key = [slice(None)] * len(x._shape)
        key[axis] = slice(start, start + size)
        result.append(dy[tuple(key)])
        start = start + size
    return result


CONCAT = register(
    OpDef(
        "concat", _infer_concat, lambda *xs, axis: np.concatenate(xs, axis), grad=_grad_concat, label="ConcatV2",
        doc="Joins tensors one after the other along an axis.",
        samples=(
            Sample(((2, 3), (1, 3)), {"axis": 0}), Sample(((2, 3), (2, 1), (2, 2)), {"axis": 1}),
            Sample(((3,), (0,)), {"axis": 0}), Sample(((2,),), {"axis": 0}),
        ),
        is_move=True,
        can_fail=False,
    )
)  # fmt: skip


@deferrable
def concat(values: Any, axis: Any, name: str | None = None) -> Tensor:
    """The tensors one after the other along `axis`.

    Raises InvalidArgumentError when ranks or the other dimensions differ.
    """
    if not isinstance(values, (list, tuple)):
        values = [values]
    if not values:
        raise errors.InvalidArgumentError("ConcatOp : Expected at least one tensor, got an empty list [Op:ConcatV2]")
    tensors = operands("ConcatV2", *values)
    ranks = [len(t._shape) for t in tensors if t._shape is not None]
    if not ranks:
        raise ValueError("concat needs a tensor of known rank.")
    if max(ranks) == 0:
        raise errors.InvalidArgumentError(
            "ConcatOp : Expected concatenating dimensions in the range [0, 0), got scalars; join scalars "
            "with `stack` [Op:ConcatV2]"
        )
    return apply(CONCAT, tensors, {"axis": static_axis(axis, max(ranks), "ConcatOp")})


# --- stack and unstack ---------------------------------------------------------------------------------------------


def _infer_stack(inputs: Sequence[Any], attrs: dict) -> tuple:
    need_same_dtype(inputs)
    merged: Shape = inputs[0].shape
    for position, operand in enumerate(inputs):
        try:
            merged = merge(merged, operand.shape)
        except ValueError:
            raise ValueError(
                f"Shapes of all inputs must match: values[0].shape = {brackets(inputs[0].shape)} != "
                f"values[{position}].shape = {brackets(operand.shape)}"
            ) from None
    axis = attrs["axis"]
    if merged is None:
        return (TensorType(inputs[0].dtype, None),)
    return (TensorType(inputs[0].dtype, (*merged[:axis], len(inputs), *merged[axis:])),)


def _stack_kernel(*xs: Any, axis: int) -> Any:
    first = xs[0]
    if first.dtype.kind == "O":
        return np.stack(xs, axis)
    if not first.ndim:
        return np.array(xs, first.dtype)
    shape = (*first.shape[:axis], 1, *first.shape[axis:])
    if any(x.shape != first.shape for x in xs):
        raise ValueError("all tensors must have the same shape")
    return np.concatenate([x.reshape(shape) for x in xs], axis)


STACK = register(
    OpDef(
        "stack", _infer_stack, _stack_kernel, cheap=True, label="Pack",
        grad=lambda op, dy: call("unstack", dy, axis=op.attrs["axis"], num=len(op.inputs)),
        doc="Stacks tensors of one shape along a new axis.",
        samples=(
            Sample(((2, 3), (2, 3)), {"axis": 0}), Sample(((2, 3), (2, 3)), {"axis": 2}),
            Sample(((), (), ()), {"axis": 0}), Sample(((0,), (0,)), {"axis": 1}),
        ),
        is_move=True,
        can_fail=False,
    )
)  # fmt: skip


@deferrable
def stack(values: Any, axis: Any = 0, name: str | None = None) -> Tensor:
    """Tensors of one shape along a new axis. Raises InvalidArgumentError when the shapes differ.

    A tensor, or a list that a staged loop has filled, counts as the list of its rows.
    """
    if not isinstance(values, (list, tuple)):
        if type(axis) is int and axis == 0:
            return convert_to_tensor(values)
        values = unstack(values)
    elif not values:
        return convert_to_tensor([])
    elif values and hasattr(values[0], "moved_to"):  # a list that has become a staged one
        return stack(values[0].moved_to, axis)
    elif values and type(axis) is int and axis == 0 and not any(has_dtype(each) for each in values):
        try:
            return convert_to_tensor(values)  # together, so that 1 beside 2.0 is a float, as in TensorFlow
        except (TypeError, ValueError):
            pass  # one by one they may fit, or fail with a better message
    tensors = operands("Pack", *values)
    ranks = [len(t._shape) for t in tensors if t._shape is not None]
    if not ranks and (type(axis) is not int or axis < 0):
        raise ValueError("stack with an axis that counts from the end needs tensors of known rank.")
    position = static_axis(axis, ranks[0] + 1, "stack") if ranks else axis
    return apply(STACK, tensors, {"axis": position})


def _infer_unstack(inputs: Sequence[Any], attrs: dict) -> tuple:
    (x,), axis, num = inputs, attrs["axis"], attrs["num"]
    if x.shape is None:
        return (x,) * num
    if x.shape[axis] not in (None, num):
        raise ValueError(f"Input shape axis {axis} must equal {num}, got shape {brackets(x.shape)}")
    return (TensorType(x.dtype, x.shape[:axis] + x.shape[axis + 1 :]),) * num


def _unstack_kernel(x: Any, axis: int, num: int) -> Any:
    if x.shape[axis] != num:
        raise ValueError(f"Input shape axis {axis} must equal {num}, got shape {brackets(x.shape)}")
    index: list[Any] = [slice(None)] * x.ndim
    parts = []
    for i in range(num):
        index[axis] = slice(i, i + 1)
        parts.append(np.squeeze(x[tuple(index)], axis))
    return tuple(parts)


def _or_zeros(cotangents: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    return [call("zeros_like", out) if dy is None else dy for dy, out in zip(cotangents, outputs)]


UNSTACK = register(
    OpDef(
        "unstack", _infer_unstack, _unstack_kernel, multiple=True, cheap=True, label="Unpack",
        grad=lambda op, *dys: (call("stack", *_or_zeros(dys, op.outputs), axis=op.attrs["axis"]),),
        doc="The slices along an axis, which they no longer have.",
        samples=(Sample(((2, 3),), {"axis": 0, "num": 2}), Sample(((2, 3),), {"axis": 1, "num": 3})),
        is_move=True,
    )
)  # fmt: skip


@deferrable
def unstack(value: TensorLike, num: int | None = None, axis: Any = 0, name: str | None = None) -> list[Tensor]:
    """The slices of a tensor along `axis`, as a list. Raises ValueError when their number isn't known while tracing."""
    x = convert_to_tensor(value)
    if num is None and x._shape is None:
        raise ValueError("Cannot infer argument `num` from shape <unknown>")
    r = known_rank(x, "unstack")
    if not -r <= axis < r:
        raise ValueError(f"Argument `axis` = {axis} not in range [{-r}, {r})")
    position = axis % r
    static = x._shape[position]  # type: ignore[index]
    count = static if num is None else num
    if count is None:
        raise ValueError(f"Cannot infer argument `num` from shape {brackets(x._shape)}")
    return list(apply(UNSTACK, (x,), {"axis": position, "num": count}))


# --- split ---------------------------------------------------------------------------------------------------------


def _infer_split(inputs: Sequence[Any], attrs: dict) -> tuple:
    (x,), axis, sizes = inputs, attrs["axis"], attrs["sizes"]
    if x.shape is None:
        return (x,) * len(sizes)
    if x.shape[axis] is not None and x.shape[axis] != sum(sizes):
        raise ValueError(
            f"Determined shape must either match input shape along split_dim exactly if fully specified, or be less "
            f"than the size of the input along split_dim if not fully specified. Got: {sum(sizes)}"
        )
    return tuple(TensorType(x.dtype, (*x.shape[:axis], s, *x.shape[axis + 1 :])) for s in sizes)


def _split_kernel(x: Any, axis: int, sizes: tuple[int, ...]) -> Any:
    if x.shape[axis] != sum(sizes):
        raise ValueError(f"split sizes {sizes} don't add up to dimension {axis} of shape {brackets(x.shape)}")
    before = (slice(None),) * (axis % x.ndim)
    ends = itertools.accumulate(sizes)
    return tuple([x[(*before, slice(end - size, end))] for size, end in zip(sizes, ends)])


SPLIT = register(
    OpDef(
        "split", _infer_split, _split_kernel, multiple=True, cheap=True,
        grad=lambda op, *dys: (call("concat", *_or_zeros(dys, op.outputs), axis=op.attrs["axis"]),),
        doc="Splits a tensor into consecutive blocks along an axis.",
        samples=(Sample(((3, 2),), {"axis": 0, "sizes": (1, 2)}), Sample(((2, 4),), {"axis": 1, "sizes": (2, 0, 2)})),
        is_move=True,
        numbers_after=1,
    )
)  # fmt: skip


@deferrable
def split(
    value: TensorLike, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str | None = None
) -> list[Tensor]:
    """Splits a tensor along `axis` into consecutive blocks: a number of equal ones, or blocks of the given sizes (one
    may be -1).

    Raises InvalidArgumentError when the dimension doesn't divide evenly or the sizes don't add up.
    """
    x = convert_to_tensor(value)
    position = static_axis(axis, known_rank(x, "split"), "split")
    size = x._shape[position]  # type: ignore[index]
    if isinstance(num_or_size_splits, (int, np.integer)):
        count = int(num_or_size_splits)
        if size is None:
            return _split_unknown(x, position, count)
        if count <= 0 or size % count:
            raise errors.InvalidArgumentError(
                f"Number of ways to split should evenly divide the split dimension, but got split_dim {position} "
                f"(size = {size}) and num_split {count} [Op:Split]",
                "split",
            )
        sizes = [size // count] * count
    else:
        given = convert_to_tensor(num_or_size_splits) if is_tensor_like(num_or_size_splits) else num_or_size_splits
        if isinstance(given, Tensor) and given._shape == ():
            raise ValueError(
                "Rank-0 tensors are not supported as the num_or_size_splits argument to split. Argument provided: "
                f"{num_or_size_splits}"
            )
        if isinstance(given, Tensor) and num is not None and static_value(given) is None:
            given = ensure_shape(given, [num])
        elif isinstance(given, Tensor) and num not in (None, *given._shape):  # type: ignore[misc]
            raise ValueError(f"split got num={num} and sizes of shape {given.shape}")
        entries = int_list(given, "size_splits")
        if not all(isinstance(e, int) for e in entries):
            raise TypeError("The sizes of a split must be known while tracing.")
        sizes = [int(e) for e in entries]  # type: ignore[arg-type]
        if sizes.count(-1) > 1 or any(s < -1 for s in sizes):
            raise errors.InvalidArgumentError(
                f"Sizes of a split must not be negative, except for one -1; got {sizes} [Op:SplitV]", "split"
            )
        if -1 in sizes:
            if size is None:
                raise ValueError("A split with a size of -1 needs a known dimension.")
            if sum(sizes) + 1 > size:
                raise errors.InvalidArgumentError(
                    f"The sizes {sizes} add up to more than dimension {position} of shape {brackets(x._shape)} "
                    "[Op:SplitV]", "split"
                )  # fmt: skip
            sizes[sizes.index(-1)] = size - (sum(sizes) + 1)
    return list(apply(SPLIT, (x,), {"axis": position, "sizes": tuple(sizes)}))


def _split_unknown(x: Tensor, axis: int, count: int) -> list[Tensor]:
    """Equal blocks of a dimension that is known only at run time."""
    size = call("dim", x, axis=axis)
    message = f"Number of ways to split ({count}) should evenly divide the split dimension {axis} [Op:Split]"
    assert_op(size % count == 0, message)
    step = size // count
    key: list[Any] = [slice(None)] * len(x._shape or ())
    blocks = []
    for i in range(count):
        key[axis] = slice(step * i, step * (i + 1))
        blocks.append(x[tuple(key)])
    return blocks
