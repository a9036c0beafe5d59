"""Parses Python in the small grammar of kernels to kernel IR: library functions, and kernels that are known as text.

`print_python.py` does the opposite; its text is parsed to equal expressions and statements. Raises Unsupported for
anything outside the grammar (`ir.py`). The text only gives the types of constants and conversions.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from typing import Any

from runtime.kernel_ir.ir import (
    Alloc,
    Assign,
    Binary,
    Block,
    Break,
    Call,
    Compare,
    Const,
    Continue,
    Convert,
    Dim,
    ElementType,
    Expr,
    For,
    Function,
    If,
    Load,
    Logic,
    Named,
    Return,
    Run,
    Select,
    Size,
    Statement,
    Store,
    Tuple,
    Unary,
    Var,
    While,
    range_bounds,
)
from runtime.kernel_ir.safe_parsing import parse
from runtime.kernel_ir.types import BOOL, FLOAT64, INT64, SCALARS, UINT64, Unsupported

_BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not"}
_COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_NUMBERS = {"inf": float("inf"), "nan": float("nan"), "pi": 3.141592653589793, "e": 2.718281828459045}
_MODULES = frozenset({"np", "math", "lib", "gpu"})
_LARGEST_EXPONENT = 64
_MARKS = {"part": "part", "recursive": "recursive"}


@functools.lru_cache(maxsize=1 << 14)
def parse_expression(text: str) -> Expr:
    """One expression."""
    (statement,) = parse(text).body
    if not isinstance(statement, ast.Expr):
        raise Unsupported(f"{text!r} where an expression is expected")
    return expression(statement.value)


def parse_functions(text: str) -> list[Function]:
    """The functions of a module; imports and assignments are left out."""
    return [function(node) for node in parse(text).body if isinstance(node, ast.FunctionDef)]


def parse_constants(text: str) -> dict[str, bool | int | float]:
    """The numbers that a module gives names to."""
    found: dict[str, bool | int | float] = {}
    for node in parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            (target,) = node.targets
            if isinstance(target, ast.Name) and isinstance(node.value.value, (bool, int, float)):
                found[target.id] = node.value.value
    return found


def function(node: ast.FunctionDef) -> Function:
    """A function. Its decorator or its name gives its kind."""
    if node.args.kwonlyargs or node.args.vararg or node.args.kwarg or node.args.defaults:
        raise Unsupported(f"the parameters of {node.name}")
    marks = [mark.attr for mark in node.decorator_list if isinstance(mark, ast.Attribute)]
    kind = next((_MARKS[mark] for mark in marks if mark in _MARKS), "kernel" if node.name == "kernel" else "library")
    returns = node.returns.value if isinstance(node.returns, ast.Constant) else None
    own = returns if isinstance(returns, str) else None
    return Function(node.name, tuple(a.arg for a in node.args.args), block(node.body), kind, own)


# --- statements ------------------------------------------------------------------------------------------------------


def block(body: Sequence[ast.stmt]) -> Block:
    found: Block = []
    for node in body:
        reader = _STATEMENTS.get(type(node))
        if reader is None:
            raise Unsupported(f"a statement {type(node).__name__}")
        statement = reader(node)
        if statement is not None:
            found.append(statement)
    return found


def _assign(node: ast.Assign) -> Statement:
    (target,) = node.targets
    if isinstance(target, ast.Tuple):
        return Assign(tuple(_name(each) for each in target.elts), expression(node.value))
    value = expression(node.value)
    if isinstance(target, ast.Subscript):
        return Store(expression(target.value), expression(target.slice), value)
    if isinstance(value, Call) and value.function == "np.empty" and len(value.arguments) == 2:
        size, element = value.arguments
        if isinstance(element, (Named, ElementType)):
            return Alloc(_name(target), size, element.target if isinstance(element, Named) else element)
    return Assign((_name(target),), value)


def _name(node: ast.expr) -> str:
    if not isinstance(node, ast.Name):
        raise Unsupported(f"assigning to {ast.unparse(node)}")
    return node.id


def _augmented(node: ast.AugAssign) -> Statement:
    op, value = _BINARY[type(node.op)], expression(node.value)
    if isinstance(node.target, ast.Name):
        return Assign((node.target.id,), Binary(op, Var(node.target.id), value))
    if not isinstance(node.target, ast.Subscript):
        raise Unsupported(f"assigning to {ast.unparse(node.target)}")
    array, index = expression(node.target.value), expression(node.target.slice)
    return Store(array, index, Binary(op, Load(array, index), value))


def _for(node: ast.For) -> Statement:
    if node.orelse:
        raise Unsupported("the else of a loop")
    call = expression(node.iter)
    if not isinstance(call, Call) or call.function != "range" or not 1 <= len(call.arguments) <= 3:
        raise Unsupported("a loop over something else than a range")
    return For(_name(node.target), *range_bounds(call.arguments), block(node.body))


def _while(node: ast.While) -> Statement:
    if node.orelse:
        raise Unsupported("the else of a loop")
    return While(expression(node.test), block(node.body))


def _return(node: ast.Return) -> Statement:
    value = None if node.value is None else expression(node.value)
    return Return(() if value is None else value.items if isinstance(value, Tuple) else (value,))


def _expression_statement(node: ast.Expr) -> Statement | None:
    if isinstance(node.value, ast.Constant):
        return None  # a docstring
    call = expression(node.value)
    if not isinstance(call, Call):
        raise Unsupported("an expression as a statement")
    return Run(call)


_STATEMENTS: dict[type, Any] = {
    ast.Assign: _assign,
    ast.AugAssign: _augmented,
    ast.If: lambda node: If(expression(node.test), block(node.body), block(node.orelse)),
    ast.While: _while,
    ast.For: _for,
    ast.Break: lambda node: Break(),
    ast.Continue: lambda node: Continue(),
    ast.Return: _return,
    ast.Expr: _expression_statement,
    ast.Pass: lambda node: None,
}


# --- expressions -----------------------------------------------------------------------------------------------------


def expression(node: ast.expr) -> Expr:
    reader = _EXPRESSIONS.get(type(node))
    if reader is None:
        raise Unsupported(f"an expression {type(node).__name__}")
    found: Expr = reader(node)
    return found


def constant(value: Any) -> Const:
    """A Python number as numba takes it."""
    if isinstance(value, bool):
        return Const(value, BOOL)
    if isinstance(value, float):
        return Const(value, FLOAT64)
    if not isinstance(value, int):
        raise Unsupported(f"the constant {value!r}")
    return Const(value, INT64 if -(2**63) <= value < 2**63 else UINT64)


def _attribute(node: ast.Attribute) -> Expr:
    if isinstance(node.value, ast.Name) and node.value.id in ("np", "math"):
        if node.attr in _NUMBERS:
            return Const(_NUMBERS[node.attr], FLOAT64)
        if node.attr in SCALARS:
            return Named(SCALARS[node.attr])
    if isinstance(node.value, ast.Name) and node.value.id == "lib" and node.attr in SCALARS:
        return Named(SCALARS[node.attr])
    if node.attr == "size":
        return Size(expression(node.value))
    if node.attr == "dtype":
        return ElementType(expression(node.value))
    raise Unsupported(f"the attribute {ast.unparse(node)}")


def _subscript(node: ast.Subscript) -> Expr:
    if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        axis = expression(node.slice)
        if not isinstance(axis, Const) or axis.type != INT64:
            raise Unsupported("a computed dimension")
        return Dim(expression(node.value.value), int(axis.value))
    return Load(expression(node.value), expression(node.slice))


def _unary(node: ast.UnaryOp) -> Expr:
    operand = expression(node.operand)
    if isinstance(node.op, ast.USub) and isinstance(operand, Const) and operand.type in (INT64, UINT64, FLOAT64):
        return constant(-operand.value)
    return Unary(_UNARY[type(node.op)], operand)


def _binary(node: ast.BinOp) -> Expr:
    left, right = expression(node.left), expression(node.right)
    if isinstance(node.op, ast.Add) and isinstance(left, Tuple) and isinstance(right, Tuple):
        return Tuple(left.items + right.items)
    op = _BINARY.get(type(node.op))
    if op is None:
        raise Unsupported(f"the operator {type(node.op).__name__}")
    folded = _power(left, right) if op == "**" else None
    return folded or Binary(op, left, right)


def _power(base: Expr, exponent: Expr) -> Const | None:
    """A power of plain integers, which is how Python code writes large constants: `2**63`. It may not fit int64."""
    for each in (base, exponent):
        if not isinstance(each, Const) or each.type != INT64:
            return None
    assert isinstance(base, Const)
    assert isinstance(exponent, Const)
    value = base.value**exponent.value if 0 <= exponent.value <= _LARGEST_EXPONENT else -(2**64)
    return constant(value) if -(2**63) <= value < 2**64 else None


def _compare(node: ast.Compare) -> Expr:
    if len(node.ops) != 1:
        raise Unsupported("a chain of comparisons")
    op = _COMPARE.get(type(node.ops[0]))
    if op is None:
        raise Unsupported(f"the comparison {type(node.ops[0]).__name__}")
    return Compare(op, expression(node.left), expression(node.comparators[0]))


def _call(node: ast.Call) -> Expr:
    if node.keywords:
        raise Unsupported("an argument by name")
    arguments = tuple(expression(each) for each in node.args)
    func = node.func
    if isinstance(func, ast.Name):
        return Call(func.id, arguments)
    if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name) or func.value.id not in _MODULES:
        raise Unsupported(f"calling {ast.unparse(func)}")
    if func.value.id in ("np", "lib") and func.attr in SCALARS and len(arguments) == 1:
        return converted(SCALARS[func.attr], arguments[0])
    return Call(f"{func.value.id}.{func.attr}", arguments)


def converted(target: Any, operand: Expr) -> Expr:
    """A conversion; for a plain number of the same kind, the constant of the target type."""
    if isinstance(operand, Const) and operand.type in (INT64, UINT64, FLOAT64, BOOL):
        value = operand.value
        if target.is_float and operand.type == FLOAT64:
            return Const(value, target)
        if target == BOOL and operand.type == BOOL:
            return operand
        if target.kind in "iuh" and operand.type in (INT64, UINT64):
            low = -(1 << (target.bits - 1)) if target.kind == "i" else 0
            if low <= value < low + (1 << target.bits):
                return Const(value, target)
    return Convert(target, operand)


_EXPRESSIONS: dict[type, Any] = {
    ast.Name: lambda node: Var(node.id),
    ast.Constant: lambda node: constant(node.value),
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.Compare: _compare,
    ast.BoolOp: lambda node: Logic(
        "and" if isinstance(node.op, ast.And) else "or", tuple(expression(each) for each in node.values)
    ),
    ast.IfExp: lambda node: Select(expression(node.test), expression(node.body), expression(node.orelse)),
    ast.Call: _call,
    ast.Tuple: lambda node: Tuple(tuple(expression(each) for each in node.elts)),
}
