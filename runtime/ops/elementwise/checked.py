"""Arithmetic of Python's integers, which have no end: in 64 bits, with OverflowError for a result that needs more.

    add(9223372036854775807, 1)           →   -9223372036854775808, as TensorFlow has it for tensors
    checked_add(9223372036854775807, 1)   →   OverflowError

Python numbers that a program changes use these rows (`ops/staged_number.py`). Each names the row that computes the same
numbers without a check (`OpDef.unchecked`), which takes its place where only the low bits of the result are read
(`graph/passes/rewrites/low_bits.py`). Generated code leaves out checks that ranges make redundant.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.ops.elementwise import arithmetic, compare  # noqa: F401  they register the rows that wrap
from runtime.ops.elementwise.elementary import CAST
from runtime.ops.rules import infer_binary, infer_same
from runtime.ops.table import BEYOND_64_BITS, OPS, OpDef, Sample, ScalarRule, register
from runtime.types import TensorType

_LEAST, _GREATEST = dtypes.int64.limits
_SURELY_FITS = 2.0**62  # a float below it stands for an integer that fits, however it was rounded
_NUMBERS = np.array([[-3, 2, 5], [7, -1, 4]])
_POSITIVE = np.array([[3, 2, 5], [7, 1, 4]])


def _checked(function: Callable[..., Any], wrapping: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy kernel. function: the operation on Python's integers and on floats; wrapping: the kernel that wraps."""

    def kernel(*operands: Any) -> Any:
        if all(np.ndim(each) == 0 for each in operands):
            return np.int64(_fitting(function(*map(int, operands))))
        result = wrapping(*operands)
        with np.errstate(all="ignore"):
            rough = function(*[each.astype(np.float64) for each in operands])
        doubtful = ~(np.abs(rough) < _SURELY_FITS)
        if np.any(doubtful):
            for numbers in zip(*[each[doubtful].tolist() for each in np.broadcast_arrays(*operands)]):
                _fitting(function(*numbers))
        return result

    return kernel


def _fitting(number: int) -> int:
    if not _LEAST <= number <= _GREATEST:
        raise OverflowError(BEYOND_64_BITS)
    return number


def _floordiv(x: Any, y: Any) -> Any:
    return x // y if np.ndim(x) or np.ndim(y) or y else OPS["floordiv"].kernel(np.int64(x), np.int64(y))  # it raises


def _pow(x: Any, y: Any) -> Any:
    if type(x) is not int:
        return np.power(x, y)
    if y < 0:
        return OPS["pow"].kernel(np.int64(x), np.int64(y))  # it raises
    # No power above the 64th fits, except for those of -1, 0 and 1, which repeat.
    return x ** (y if y <= 64 else 64 + y % 2)


def _left_shift(x: Any, y: Any) -> Any:
    if type(x) is not int:
        return np.ldexp(x, np.where(y < 0, 2000, np.minimum(y, 64)).astype(np.int32))  # negative counts are doubtful
    _need_count(y)
    return x << min(y, 64)


def _right_shift(x: Any, y: Any) -> Any:
    _need_count(y)
    return np.right_shift(x, np.minimum(y, 63))


def _need_count(y: Any) -> None:
    if np.any(y < 0):
        raise ValueError("negative shift count")


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    for each in inputs:
        if each.dtype is not dtypes.int64:
            raise TypeError(f"Python's integers are int64, not {each.dtype.name}")
    return infer_same(inputs, attrs) if len(inputs) == 1 else infer_binary(inputs, attrs)


def _register(name: str, function: Callable[..., Any], exceeds: str, scalar: ScalarRule | None = None) -> None:
    """Adds the row that checks what the row `name` computes. function: on Python's integers and on floats, or the
    kernel where nothing exceeds. scalar: if it isn't that row's."""
    row = OPS[name]
    operands = (_NUMBERS, _POSITIVE)[: len(row.samples[0].shapes) if row.samples else 2]
    register(
        OpDef(
            f"checked_{name}", _infer, _checked(function, row.kernel) if exceeds else function, scalar or row.scalar,
            lambda op, dy: (None,) * len(op.inputs), cheap=True, kinds="i", label=row.label, unchecked=name,
            exceeds=exceeds, divisor=row.divisor, exponent=row.exponent, by_low_bits=row.by_low_bits,
            doc=f"{row.label} of Python's integers. Raises OverflowError for a result that 64 bits can't hold.",
            samples=(
                Sample(((2, 3),) * len(operands), fixed=dict(enumerate(operands)), gradient=()),
                Sample(((),) * len(operands), fixed={k: each[0, 0] for k, each in enumerate(operands)}, gradient=()),
            ),
        )
    )  # fmt: skip


_register("add", operator.add, "sum_exceeds")
_register("subtract", operator.sub, "difference_exceeds")
_register("multiply", operator.mul, "product_exceeds")
_register("floordiv", _floordiv, "quotient_exceeds")
_register("pow", _pow, "power_exceeds")
_register("negative", operator.neg, "negative_exceeds")
_register("abs", operator.abs, "negative_exceeds")
_register("left_shift", _left_shift, "shifted_exceeds")
# Counts beyond the width, which Python allows, are limited.
_register("right_shift", _right_shift, "", "({0} >> min({1}, 63))")


def _infer_cast(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (TensorType(dtypes.int64, inputs[0].shape),)


def _cast_kernel(x: Any, dtype: Any) -> Any:
    for number in np.ravel(x[~(np.abs(x) < _SURELY_FITS)] if np.ndim(x) else x).tolist():
        _fitting(int(number))  # Python's own errors for infinities and NaN
    return CAST.kernel(x, dtype)


register(
    OpDef(
        "checked_cast", _infer_cast, _cast_kernel, CAST.scalar, lambda op, dy: (None,), cheap=True, kinds="f",
        label=CAST.label, unchecked="cast", exceeds="float_exceeds",
        doc="`int` of a float. Raises OverflowError where 64 bits can't hold it, ValueError for NaN.",
        samples=(Sample(((2, 3),), {"dtype": dtypes.int64}, fixed={0: _NUMBERS / 2}, gradient=()),),
        cuts_gradient="integers have no gradient",
    )
)  # fmt: skip

# The rows by the names of those that wrap.
CHECKED = {row.unchecked: row for row in OPS.values() if row.unchecked}
