"""Scalars of the graph as machine numbers: types, constants, conversions, elementary functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.dtypes import DType, as_dtype, float16, float32, float64
from runtime.kernel_ir import ir
from runtime.kernel_ir.functions import FORMULAS
from runtime.kernel_ir.types import SCALARS, Scalar

HEAD = """import math

import numpy as np

import runtime.codegen.kernel_library.functions as lib
"""


def machine_type(dtype: DType) -> Scalar:
    """The type of a dtype's elements in registers."""
    return SCALARS[dtype.name]


def variable_of(name: str, dtype: DType, rank: int | None = 0) -> ir.Var:
    """The variable of a number, or of a flat array where `rank` isn't 0."""
    element = machine_type(dtype)
    return ir.array_variable(name, element) if rank else ir.Var(name, element)


def literal(value: Any, dtype: DType) -> ir.Const:
    """A scalar constant of exactly this dtype."""
    number: bool | int | float
    if dtype.is_bool:
        number = bool(value)
    elif dtype.is_narrow:
        number = int(np.asarray(value).astype(dtype.np).view(np.uint16))
    elif dtype.is_floating:
        # float32 values are shown with the fewest digits that give the same float32.
        number = float(str(dtype.np.type(value))) if dtype.name == "float32" else float(value)
    else:
        number = int(value)
    return ir.Const(number, machine_type(dtype))


def narrow(expr: ir.Expr, dtype: DType) -> ir.Expr:
    """The result of an arithmetic expression over operands of `dtype`, back in `dtype`.

    Integers are computed in 64 bits and narrowed. The sum of bools is an integer, and true if one of them is. Floats
    and int64 need no conversion.
    """
    if dtype.is_bool:
        return expr if expr.type == machine_type(dtype) else ir.Compare("!=", expr, ir.ZERO)
    if dtype.is_floating or dtype.name == "int64":
        return expr
    return ir.Convert(machine_type(dtype), expr)


def convert(expr: ir.Expr, source: DType, target: DType) -> ir.Expr:
    """A cast. A float loses its fraction when it becomes an integer; `lib` defines the result if it is out of range."""
    if source is target:
        return expr
    if source.is_narrow:
        return convert(ir.call(f"lib.from_{source.name}", expr), float32, target)
    if target.is_narrow:
        # By float32, as NumPy does; but float64 is rounded to float16 once.
        once = source is float64 and target is float16
        wide = ir.call("lib.rounded_to_odd", expr) if once else convert(expr, source, float32)
        return ir.call(f"lib.to_{target.name}", wide)
    if target.is_bool:
        return ir.Compare("!=", expr, literal(0, source))
    if source.is_floating and target.is_integer:
        return ir.call(f"lib.to_{target.name}", expr)
    return ir.Convert(machine_type(target), expr)


def reinterpret(expr: ir.Expr, source: DType, target: DType) -> ir.Expr:
    """A number's bits as another dtype of the same width."""
    if source is target:
        return expr
    signed = as_dtype(f"int{8 * source.size}")
    if source.is_narrow or target.is_narrow:
        return ir.Convert(machine_type(target), expr)
    if source.is_floating:
        return reinterpret(ir.call("lib.as_bits", expr), signed, target)
    if target.is_floating:
        return ir.call("lib.from_bits", convert(expr, source, signed))
    return convert(expr, source, target)


# The ops that convert from any dtype to any other.
CONVERSIONS = {"cast": convert, "bitcast": reinterpret}

# `math` has neither sigmoid nor softplus. The ops' rules use these names nevertheless, since one function computes them
# better than a formula of several.
_OWN_CALLS = {f"math.{name}": f"lib.{name}" for name in FORMULAS}
# For a single number, the C library's tables take half the time.
_QUICK_ALONE = {"exp", "log", "pow"}
_OWN_CALLS_ALONE = {f"math.{name}": f"lib.{name}" for name in FORMULAS if name not in _QUICK_ALONE}


def fast(expr: ir.Expr, dtype: DType, alone: bool = False) -> ir.Expr:
    """The expression with our vectorised functions instead of the C library's. alone: not in a loop over elements."""
    if not dtype.is_floating:
        return expr
    own = _OWN_CALLS_ALONE if alone else _OWN_CALLS

    def change(item: ir.Expr) -> ir.Expr:
        item = ir.rebuilt(item, change)
        return (
            ir.Call(own[item.function], item.arguments) if isinstance(item, ir.Call) and item.function in own else item
        )

    return change(expr)
