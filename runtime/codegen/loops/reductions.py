"""How reductions accumulate: start value, step and result, as expressions.

Sums and products of float32 accumulate in float64; of float64 in float64. `lib.add` may be reassociated, so the
machine keeps several partial sums in vector registers: as accurate as blocked summation, and as fast as memory. Sums
over few elements, rows that are known to be short and parts of large arrays, are in float32: at most 64 terms fall on
one of 64 partial sums (32 on a column's), and the error stays within 72 units in the last place of the sum of absolute
values (worst case; a few are usual). Products are in float64, because that of a part may overflow where that of all
elements doesn't.
Integers accumulate in 64 bits and wrap at the end, which is the same as wrapping at each step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from runtime import dtypes
from runtime.codegen.kernel import scalars
from runtime.dtypes import DType
from runtime.kernel_ir import ir

Step = Callable[[ir.Expr, ir.Expr, DType], ir.Expr]


class Reduction(NamedTuple):
    """start(dtype) returns the neutral element; step(accumulator, value name, accumulator dtype) the next
    accumulator."""

    start: Callable[[DType], object]
    step: Step
    wide: bool = False  # accumulates in 64 bits
    sums: bool = False
    mean: bool = False


def _lowest(dtype: DType) -> object:
    if dtype.is_floating:
        return -np.inf
    return False if dtype.is_bool else np.iinfo(dtype.np).min


def _highest(dtype: DType) -> object:
    if dtype.is_floating:
        return np.inf
    return True if dtype.is_bool else np.iinfo(dtype.np).max


def _arithmetic(sign: str, function: str) -> Step:
    def step(total: ir.Expr, value: ir.Expr, dtype: DType) -> ir.Expr:
        if dtype.is_floating:
            return ir.call(f"lib.{function}", total, value)
        return scalars.narrow(ir.Binary(sign, total, ir.Convert(scalars.machine_type(dtype), value)), dtype)

    return step


def _extreme(sign: str) -> Step:
    def step(best: ir.Expr, value: ir.Expr, dtype: DType) -> ir.Expr:
        if dtype.is_floating:
            # NaN wins, as in NumPy.
            return ir.call(f"lib.{'maximum' if sign == '>' else 'minimum'}", best, value)
        return value.compare(sign, best).choose(value, best)

    return step


def _joined(sign: str) -> Step:
    """Joins truth values without branches, unlike `or` and `and`."""
    return lambda total, value, dtype: ir.Binary(sign, total, value)


REDUCTIONS: dict[str, Reduction] = {
    "reduce_sum": Reduction(lambda dtype: 0, _arithmetic("+", "add"), wide=True, sums=True),
    "reduce_mean": Reduction(lambda dtype: 0, _arithmetic("+", "add"), wide=True, sums=True, mean=True),
    "reduce_prod": Reduction(lambda dtype: 1, _arithmetic("*", "mul"), wide=True),
    "sum_to_shape_of": Reduction(lambda dtype: 0, _arithmetic("+", "add"), wide=True, sums=True),
    "reduce_max": Reduction(_lowest, _extreme(">")),
    "reduce_min": Reduction(_highest, _extreme("<")),
    "reduce_any": Reduction(lambda dtype: False, _joined("|")),
    "reduce_all": Reduction(lambda dtype: True, _joined("&")),
}


# arg-reduction -> (its reduction, the comparison by which a new element replaces the extreme)
EXTREMES = {"argmax": ("reduce_max", ">"), "argmin": ("reduce_min", "<")}
REDUCING = frozenset({*REDUCTIONS, *EXTREMES})


def accumulator(reduction: Reduction, dtype: DType, short: bool = False) -> DType:
    """The dtype in which values of `dtype` are accumulated; `short`: over few elements."""
    if not reduction.wide or dtype.name == "uint64" or (short and reduction.sums and dtype.name == "float32"):
        return dtype
    return dtypes.float64 if dtype.is_floating else dtypes.int64


def result(reduction: Reduction, total: ir.Expr, count: ir.Expr, dtype: DType, short: bool = False) -> ir.Expr:
    """The reduction's value from what was accumulated over `count` elements."""
    own = accumulator(reduction, dtype, short)
    if reduction.mean and dtype.is_floating:
        total = total / ir.Convert(scalars.machine_type(own), count)
    elif reduction.mean:
        # Sums wrap before they are divided, as in eager execution; the quotient rounds towards zero.
        wrapped = total if own is dtype else ir.Convert(scalars.machine_type(dtype), total)
        return ir.Convert(scalars.machine_type(dtype), ir.call("np.trunc", wrapped / count))
    return total if own is dtype else ir.Convert(scalars.machine_type(dtype), total)
