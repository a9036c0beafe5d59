"""Simplification of expressions: one table of rules, for lowering, passes and devices.

    n * 1 + (i - 0)       →    n + i
    not (not found)       →    found
    x if True else y      →    x

A rule takes an expression whose operands are simple already and gives a simpler one, or None. The result has the same
type and the same bits. So there are rules for integers and truth values only: `x + 0.0` isn't `x` for `-0.0`.
Expressions without types (`ir.py`) stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.kernel_ir import ir
from runtime.kernel_ir.types import Scalar


def simplified(item: ir.Expr) -> ir.Expr:
    """An expression with all in it simplified."""
    return outermost(ir.rebuilt(item, simplified)) if type(item) not in _LEAVES else item


def outermost(item: ir.Expr) -> ir.Expr:
    """An expression whose operands are simple, simplified."""
    rule = RULES.get(type(item))
    found = None if rule is None or item.type is None else rule(item)
    return item if found is None or found.type != item.type else found


def total(*terms: ir.Expr | int) -> ir.Expr:
    """The sum of simple expressions."""
    found: ir.Expr = ir.ZERO
    for each in terms:
        found = outermost(found + each)
    return found


def product(*factors: ir.Expr | int) -> ir.Expr:
    """The product of simple expressions."""
    found: ir.Expr = ir.ONE
    for each in factors:
        found = outermost(found * each)
    return found


def difference(left: ir.Expr, right: ir.Expr | int) -> ir.Expr:
    """The difference of simple expressions."""
    return outermost(left - right)


# --- rules -----------------------------------------------------------------------------------------------------------


def _integer(item: ir.Expr) -> int | None:
    """The value of an integer constant."""
    if not isinstance(item, ir.Const) or item.type.kind not in "iu":
        return None
    return int(item.value)


def _constant(value: int, type_: object) -> ir.Const | None:
    """A constant of an integer type; None where it would wrap around."""
    if not isinstance(type_, Scalar) or type_.kind not in "iu":
        return None
    low, high = (0, 1 << type_.bits) if type_.kind == "u" else (-(1 << (type_.bits - 1)), 1 << (type_.bits - 1))
    return ir.Const(value, type_) if low <= value < high else None


_EVALUATED: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}  # fmt: skip


def _binary(item: ir.Binary) -> ir.Expr | None:
    op, left, right = item.op, item.left, item.right
    a, b = _integer(left), _integer(right)
    if op not in _EVALUATED or (op in ("//", "%") and b == 0):
        return None
    if a is not None and b is not None:
        return _constant(_EVALUATED[op](a, b), item.type)
    if (b == 0 and op in "+-") or (b == 1 and op in ("*", "//")):
        return left
    if (a == 0 and op == "+") or (a == 1 and op == "*"):
        return right
    if (op == "*" and 0 in (a, b)) or (op == "%" and b == 1):
        return _constant(0, item.type)
    return None


_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip


def _compare(item: ir.Compare) -> ir.Expr | None:
    a, b = _integer(item.left), _integer(item.right)
    return None if a is None or b is None else ir.truth(_HOLDS[item.op](a, b))


def _unary(item: ir.Unary) -> ir.Expr | None:
    operand = item.operand
    if item.op == "not":
        if isinstance(operand, ir.Unary) and operand.op == "not":
            return operand.operand
        return ir.truth(operand == ir.FALSE) if operand in (ir.TRUE, ir.FALSE) else None
    value = _integer(operand)
    return _constant(-value, item.type) if item.op == "-" and value is not None else None


def _logic(item: ir.Logic) -> ir.Expr | None:
    """`and`, `or`: operands behind one that decides are never computed."""
    decides, passes = (ir.FALSE, ir.TRUE) if item.op == "and" else (ir.TRUE, ir.FALSE)
    kept = [each for each in item.operands if each != passes]
    if decides in kept:
        kept = kept[: kept.index(decides) + 1]
    if len(kept) == len(item.operands):
        return None
    return ir.Logic(item.op, tuple(kept)) if len(kept) > 1 else kept[0] if kept else passes


def _select(item: ir.Select) -> ir.Expr | None:
    if item.test in (ir.TRUE, ir.FALSE):
        return item.yes if item.test == ir.TRUE else item.no
    return item.yes if item.yes == item.no else None


def _convert(item: ir.Convert) -> ir.Expr | None:
    if item.operand.type == item.target:
        return item.operand
    value = _integer(item.operand)
    return None if value is None else _constant(value, item.target)


def _call(item: ir.Call) -> ir.Expr | None:
    """`min` and `max` of integers."""
    if item.function not in ("min", "max"):
        return None
    values = [_integer(each) for each in item.arguments]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return item.arguments[0] if len(set(item.arguments)) == 1 else None
    return _constant(min(known) if item.function == "min" else max(known), item.type)


_LEAVES = frozenset({ir.Var, ir.Const, ir.Named})
RULES: dict[type, Callable[..., ir.Expr | None]] = {
    ir.Binary: _binary, ir.Compare: _compare, ir.Unary: _unary, ir.Logic: _logic, ir.Select: _select,
    ir.Convert: _convert, ir.Call: _call,
}  # fmt: skip
