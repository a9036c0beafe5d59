"""Spreading values over a shape, and summing them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import errors
from runtime.ops.convert import convert_to_tensor, fill_holes, shape_args
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.rules import brackets, unbroadcast
from runtime.ops.table import OpDef, Sample, register
from runtime.shapes import TensorShape, as_shape, broadcast, merge
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType


def _infer_broadcast_to(inputs: Sequence[Any], attrs: dict) -> tuple:
    x, target = inputs[0], attrs["shape"]
    try:
        joined = broadcast(x.shape, target)
        merge(joined, target)
    except ValueError:
        raise ValueError(f"Incompatible shapes: {brackets(x.shape)} vs. {brackets(target)}") from None
    return (TensorType(x.dtype, target),)


def _broadcast_kernel(x: Any, *holes: Any, shape: tuple[int | None, ...]) -> Any:
    target = fill_holes(shape, holes)
    try:
        return np.broadcast_to(x, target) if target else x
    except ValueError:
        # The type rule knows only the static part of the shape, NumPy's words aren't TensorFlow's.
        if min(target) < 0:
            raise errors.InvalidArgumentError(f"Dimension {min(target)} must be >= 0") from None
        raise errors.InvalidArgumentError(f"Incompatible shapes: {brackets(x.shape)} vs. {brackets(target)}") from None


BROADCAST_TO = register(
    OpDef(
        "broadcast_to", _infer_broadcast_to, _broadcast_kernel, cheap=True,
        grad=lambda op, dy: (unbroadcast(dy, op.inputs[0]), *[None] * (len(op.inputs) - 1)),
        doc="Repeats x along dimensions of size 1 and new leading dimensions, up to a shape.",
        samples=(
            Sample(((3,),), {"shape": (2, 3)}), Sample(((2, 1),), {"shape": (2, 3)}), Sample(((),), {"shape": ()}),
            Sample(((),), {"shape": (2, 0)}),
            Sample(((3,), ()), {"shape": (None, 3)}, fixed={1: np.int32(2)}, gradient=(0,)),
        ),
        is_move=True,
        can_fail=False,
        is_view=True,
        numbers_after=1,
        cost=0,
    )
)  # fmt: skip


@deferrable
def broadcast_to(input: TensorLike, shape: Any, name: str | None = None) -> Tensor:
    """Repeated to `shape` by the broadcasting rules. Raises InvalidArgumentError when they don't allow it."""
    x = convert_to_tensor(input)
    attr, holes = shape_args(shape)
    return apply(BROADCAST_TO, (x, *holes), {"shape": attr})


@deferrable
def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The TensorShape of an elementwise op on two shapes. Raises ValueError when they don't broadcast."""
    return TensorShape(broadcast(as_shape(shape_x), as_shape(shape_y)))


def _infer_like(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (TensorType(inputs[0].dtype, inputs[1].shape),)


def _sum_to_kernel(x: Any, like: Any) -> Any:
    target = like.shape
    if x.shape == target:
        return x
    lead = x.ndim - len(target)
    axes = tuple(range(lead)) + tuple(i + lead for i, d in enumerate(target) if d == 1 and x.shape[i + lead] != 1)
    return np.add.reduce(x, axis=axes, dtype=x.dtype).reshape(target)[()]


SUM_TO = register(
    OpDef(
        "sum_to_shape_of", _infer_like, _sum_to_kernel, kinds="iufc", complex_rule=True, shape_only=(1,),
        grad=lambda op, dy: (call("broadcast_like", dy, op.inputs[0]), None),
        doc="The adjoint of broadcasting: sums x over the dimensions along which `like` was repeated.",
        samples=tuple(
            Sample(shapes, gradient=(0,)) for shapes in [((2, 3), (3,)), ((2, 3), (2, 1)), ((3,), ()), ((0, 2), (1, 2))]
        ),
        can_fail=False,
        by_parts=True,
        cheap=True,
    )
)  # fmt: skip
BROADCAST_LIKE = register(
    OpDef(
        "broadcast_like", _infer_like, lambda x, like: np.broadcast_to(x, like.shape) if like.ndim else x,
        kinds="biufc", complex_rule=True, shape_only=(1,), cheap=True,
        grad=lambda op, dy: (call("sum_to_shape_of", dy, op.inputs[0]), None),
        doc="x broadcast to the shape of another tensor.",
        samples=tuple(
            Sample(shapes, gradient=(0,)) for shapes in [((3,), (2, 3)), ((2, 1), (2, 3)), ((), ()), ((), (0, 2))]
        ),
        is_move=True,
        is_view=True,
        numbers_after=1,
        cost=0,
    )
)  # fmt: skip
