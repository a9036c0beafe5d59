"""Partial results of totals: their neutral elements, and how to join two of them."""

from __future__ import annotations

from runtime.kernel_ir import ir
from runtime.kernel_ir.types import Scalar

# By the way in which a total is joined: a library function, an operator, '>' or '<'.
WORDS = {
    "lib.add": "add", "lib.mul": "mul", "lib.maximum": "maximum", "lib.minimum": "minimum", "+": "plus", "*": "times",
    "|": "or", "&": "and", ">": "most", "<": "least",
}  # fmt: skip


def neutral(join: str, type_: Scalar) -> ir.Expr:
    """The neutral element for numbers of this type."""
    if join in ("lib.add", "+", "|"):
        value: bool | int | float = False if type_.kind == "b" else 0.0 if type_.is_float else 0
    elif join in ("lib.mul", "*"):
        value = 1.0 if type_.is_float else 1
    elif join == "&":
        value = True if type_.kind == "b" else -1 if type_.is_signed else (1 << type_.bits) - 1
    else:
        greatest = join in ("lib.minimum", "<")
        if type_.is_float:
            value = float("inf") if greatest else float("-inf")
        elif type_.kind == "b":
            value = greatest
        elif type_.is_signed:
            value = (1 << (type_.bits - 1)) - 1 if greatest else -(1 << (type_.bits - 1))
        else:
            value = (1 << type_.bits) - 1 if greatest else 0
    return ir.Const(value, type_)


def joined(join: str, left: ir.Expr, right: ir.Expr, type_: Scalar) -> ir.Expr:
    """Joins two partial results."""
    if join.startswith("lib."):
        return ir.call(join, left, right)
    if join in "<>":
        return right.compare(join, left).choose(right, left)
    value = ir.Binary(join, left, right)
    return value if type_.kind == "b" or type_.is_float else ir.Convert(type_, value)
