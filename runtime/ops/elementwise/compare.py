"""Elementwise comparison, logic, bits and selection."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.ops.blend import blend
from runtime.ops.convert import convert_to_tensor, mismatch, operands
from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise.define import binary, unary
from runtime.ops.rules import binary_samples, broadcast_types, infer_comparison, infer_predicate, unbroadcast
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType

_TIES = binary_samples(-2.0, 2.0)


def _no_gradient(op: Any, dy: Any) -> Sequence[Any]:
    return [None] * len(op.inputs)


def _object_bool(kernel: Any) -> Any:
    """Comparison of strings gives NumPy bools too."""

    def compare(x: Any, y: Any) -> Any:
        return np.asarray(kernel(x, y), bool) if x.dtype == object else kernel(x, y)

    return compare


equal = binary(
    "equal", _object_bool(np.equal), "({0} == {1})", "Whether x equals y.", _no_gradient, kinds="biufcO",
    infer=infer_comparison, samples=_TIES, cheap=True, compares=True,
)  # fmt: skip
not_equal = binary(
    "not_equal", _object_bool(np.not_equal), "({0} != {1})", "Whether x differs from y.", _no_gradient, kinds="biufcO",
    infer=infer_comparison, samples=_TIES, cheap=True, compares=True,
)  # fmt: skip
less = binary(
    "less", operator.lt, "({0} < {1})", "Whether x < y.", _no_gradient,
    infer=infer_comparison, samples=_TIES, cheap=True,
)  # fmt: skip
less_equal = binary(
    "less_equal", operator.le, "({0} <= {1})", "Whether x <= y.", _no_gradient,
    infer=infer_comparison, samples=_TIES, cheap=True,
)  # fmt: skip
greater = binary(
    "greater", operator.gt, "({0} > {1})", "Whether x > y.", _no_gradient,
    infer=infer_comparison, samples=_TIES, cheap=True,
)  # fmt: skip
greater_equal = binary(
    "greater_equal", operator.ge, "({0} >= {1})", "Whether x >= y.", _no_gradient,
    infer=infer_comparison, samples=_TIES, cheap=True,
)  # fmt: skip

logical_and = binary("logical_and", np.logical_and, "({0} and {1})", "x and y.", kinds="b", samples=_TIES, cheap=True)
logical_or = binary("logical_or", np.logical_or, "({0} or {1})", "x or y.", kinds="b", samples=_TIES, cheap=True)
logical_xor = binary("logical_xor", np.logical_xor, "({0} != {1})", "x xor y.", kinds="b", samples=_TIES, cheap=True)
logical_not = unary("logical_not", np.logical_not, "(not {0})", "not x.", kinds="b", cheap=True)

bitwise_and = binary("bitwise_and", operator.and_, "({0} & {1})", "Bits in both.", kinds="iu", cheap=True)
bitwise_or = binary(
    "bitwise_or", operator.or_, "({0} | {1})", "Bits in either.", kinds="iu", cheap=True, by_low_bits=(0, 1)
)
bitwise_xor = binary(
    "bitwise_xor", operator.xor, "({0} ^ {1})", "Bits in exactly one.", kinds="iu", cheap=True, by_low_bits=(0, 1)
)
invert = unary("invert", np.invert, "(~{0})", "Each bit flipped.", kinds="iu", cheap=True, by_low_bits=(0,))
left_shift = binary(
    "left_shift", np.left_shift, "({0} << {1})", "x shifted left by y bits, 0 <= y < width.", kinds="iu",
    samples=binary_samples(0, 7), cheap=True, by_low_bits=(0,),
)  # fmt: skip
right_shift = binary(
    "right_shift", np.right_shift, "({0} >> {1})", "x shifted right by y bits, 0 <= y < width; keeps the sign.",
    kinds="iu", samples=binary_samples(0, 7), cheap=True,
)  # fmt: skip

is_nan = unary(
    "is_nan", np.isnan, "({0} != {0})", "Whether x is NaN.", _no_gradient, infer=infer_predicate, cheap=True,
    label="IsNan",
)  # fmt: skip
is_inf = unary(
    "is_inf", np.isinf, "np.isinf({0})", "Whether x is an infinity.", _no_gradient, infer=infer_predicate, cheap=True,
    label="IsInf",
)  # fmt: skip
is_finite = unary(
    "is_finite", np.isfinite, "np.isfinite({0})", "Whether x is neither NaN nor infinite.", _no_gradient,
    infer=infer_predicate, cheap=True, label="IsFinite",
)  # fmt: skip


# --- select --------------------------------------------------------------------------------------------------------


def _infer_select(inputs: Sequence[Any], attrs: dict) -> tuple:
    condition, x, y = inputs
    if condition.dtype is not dtypes.bool_:
        raise TypeError(f"expected a bool condition, got {condition.dtype.label}")
    if x.dtype is not y.dtype:
        raise TypeError(f"x has dtype {x.dtype.label} and y has dtype {y.dtype.label}")
    both = TensorType(x.dtype, broadcast_types(x, y))
    return (TensorType(x.dtype, broadcast_types(condition, both)),)


def _select_kernel(condition: Any, x: Any, y: Any) -> Any:
    if not (condition.ndim or x.ndim or y.ndim):
        return x if condition else y
    return blend(condition, x, y)


def _grad_select(op: Any, dy: Any) -> Sequence[Any]:
    condition, x, y = op.inputs
    zero = convert_to_tensor(0, dy.dtype)
    return (
        None,
        unbroadcast(call("select", condition, dy, zero), x, y, condition),
        unbroadcast(call("select", condition, zero, dy), y, x, condition),
    )


_MASK = np.array([[True, False, True], [False, False, True]])
SELECT = register(
    OpDef(
        "select", _infer_select, _select_kernel, "({1} if {0} else {2})", _grad_select, cheap=True, label="SelectV2",
        by_low_bits=(1, 2),
        doc="x where the condition holds, else y. The operands broadcast.",
        samples=(
            Sample(((2, 3), (2, 3), (2, 3)), fixed={0: _MASK}),
            Sample(((2, 3), (), (3,)), fixed={0: _MASK}),
            Sample(((), (2, 1), (3,)), fixed={0: np.array(True)}),
            Sample(((), (), ()), fixed={0: np.array(False)}),
            Sample(((2, 3), (), ()), fixed={0: _MASK}),
            Sample(((3,), (0, 3), ()), fixed={0: _MASK[0]}),
        ),
        by_parts=True,
    )
)  # fmt: skip


def where(
    condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """x where `condition` (bool) holds, else y; all three broadcast.

    With `condition` alone: the int64 coordinates of its true elements, shape (count, rank); in eager code only.
    Raises ValueError when only one of x and y is given, InvalidArgumentError for a condition that isn't bool.
    """
    condition = convert_to_tensor(condition)
    if x is None and y is None:
        return call("where_true", condition)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    if condition.dtype is not dtypes.bool_:
        raise mismatch("SelectV2", 0, dtypes.bool_, condition.dtype)
    x, y = operands("SelectV2", x, y)
    return apply(SELECT, (condition, x, y))


def _infer_where_true(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (TensorType(dtypes.int64, (None, inputs[0].rank)),)


def _where_true_kernel(x: Any) -> Any:
    return np.argwhere(x).reshape(np.count_nonzero(x), np.ndim(x)).astype(np.int64)


register(
    OpDef(
        "where_true", _infer_where_true, _where_true_kernel,
        label="Where", kinds="biufc", grad=_no_gradient, doc="Coordinates of the true (nonzero) elements.",
        samples=(Sample(((2, 3),)), Sample(((4,),)), Sample(((0, 2),)), Sample(((),))),
    )
)  # fmt: skip
