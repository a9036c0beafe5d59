"""What type each expression and each variable of a function has.

The grammar of kernels, which is Python's but for what is missing:

    module     = imports, functions
    function   = [@lib.part | @njit | @lib.recursive] def name(parameters) [-> "(types)"]: statements
    statement  = name = e | a[i] = e | a, b = c, d | a, b = f(e, ...) | name op= e | a[i] op= e | if | while
                 | for name in range(...) | break | return e, ... | (1,) + failed | lib.f(...)
    e          = name | number | True | False | np.inf | e op e | op e | e < e | e and e | not e | e if e else e
                 | a[i] | a.size | a.shape[0] | f(e, ...)

A variable has one type: what all its values meet in. Types are found by going over the statements until nothing
changes. An expression in which something isn't known yet has the type None. A function that calls itself says what it
returns.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from runtime.kernel_ir.types import (
    BOOL,
    FLOAT64,
    INT64,
    SCALARS,
    UINT64,
    Array,
    Scalar,
    Tuple,
    Type,
    Unsupported,
    arithmetic,
    unified,
)
from runtime.llvm import calls

_CONSTANTS = {"inf": float("inf"), "nan": float("nan"), "pi": 3.141592653589793, "e": 2.718281828459045}
_FOLDED = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
    ast.Pow: lambda a, b: a**b, ast.LShift: lambda a, b: a << b,
}  # fmt: skip


class Types:
    """The types in one function for given types of its parameters."""

    def __init__(self, program: Any, function: ast.FunctionDef, parameters: Sequence[Type]) -> None:
        self.program = program
        self.function = function
        names = [a.arg for a in function.args.args]
        if len(names) != len(parameters):
            raise Unsupported(f"{function.name} takes {len(names)} arguments, not {len(parameters)}")
        self.variables: dict[str, Type | None] = dict(zip(names, parameters))
        self.parameters = tuple(names)
        self.tuples: dict[str, list[ast.expr]] = {}
        self._tuple_nodes: dict[str, ast.Assign] = {}
        self.result: Type | None = None
        self.allocates = False  # whether anything in it can fail
        self.assigned: set[str] = set()
        before = None
        while before != (self.variables, self.result):
            before = dict(self.variables), self.result
            self._block(function.body)
        unknown = [name for name, type_ in self.variables.items() if type_ is None]
        if unknown:
            raise Unsupported(f"the type of {', '.join(unknown)}")

    # --- statements --------------------------------------------------------------------------------------------------

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            method: Callable[[Any], None] | None = getattr(self, f"_{type(statement).__name__}", None)
            if method is None:
                raise Unsupported(f"a statement {type(statement).__name__}")
            method(statement)

    def _Assign(self, node: ast.Assign) -> None:
        (target,) = node.targets
        if isinstance(target, ast.Name) and isinstance(node.value, (ast.Tuple, ast.BinOp)):
            items = self.items(node.value)
            if items is not None:
                # A name for a list of values, which stand for themselves wherever it is used.
                if self._tuple_nodes.setdefault(target.id, node) is not node or target.id in self.variables:
                    raise Unsupported("a tuple that is assigned twice")
                self.tuples[target.id] = items
                return
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Call):
            type_ = self.of(node.value)
            if type_ is not None:
                if not isinstance(type_, Tuple) or len(type_.items) != len(target.elts):
                    raise Unsupported("unpacking")
                for name, item in zip(target.elts, type_.items):
                    self._assign(name, item)
            return
        if isinstance(target, ast.Tuple):
            values = self.items(node.value)
            if values is None or len(target.elts) != len(values):
                raise Unsupported("unpacking")
            for name, value in zip(target.elts, values):
                self._assign(name, self.of(value))
            return
        self._assign(target, self.of(node.value))

    def _assign(self, target: ast.expr, type_: Type | None) -> None:
        if isinstance(target, ast.Name):
            self.assigned.add(target.id)
            self.variables[target.id] = unified(self.variables.get(target.id), type_)
        elif not isinstance(target, ast.Subscript):
            raise Unsupported(f"assigning to {type(target).__name__}")

    def _AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            read = ast.Name(node.target.id, ast.Load())
            self._assign(node.target, self._operator(node.op, self.of(read), self.of(node.value)))

    def _If(self, node: ast.If) -> None:
        self._block(node.body)
        self._block(node.orelse)

    def _While(self, node: ast.While) -> None:
        if node.orelse:
            raise Unsupported("while-else")
        self._block(node.body)

    def _For(self, node: ast.For) -> None:
        types = [self.of(bound) for bound in self.range(node)]
        whole: Type | None = None
        for type_ in types:
            whole = unified(whole, type_)
        self._assign(node.target, whole)
        self._block(node.body)

    def range(self, node: ast.For) -> list[ast.expr]:
        """The arguments of the `range` that a loop goes over."""
        call = node.iter
        known = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"
        if not known or node.orelse or not isinstance(node.target, ast.Name):
            raise Unsupported("a loop over something else than a range")
        assert isinstance(call, ast.Call)
        return call.args

    def _Return(self, node: ast.Return) -> None:
        if node.value is None:
            return
        items = self.items(node.value)
        if items is None:
            self.result = unified(self.result, self.of(node.value))
            return
        types = [self.of(item) for item in items]
        known = tuple(type_ for type_ in types if type_ is not None)
        if len(known) == len(types):  # else the next round tells
            self.result = unified(self.result, Tuple(known))

    def _Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.of(node.value)
        elif not isinstance(node.value, ast.Constant):
            raise Unsupported("an expression as a statement")

    def _Break(self, node: ast.Break) -> None:
        pass

    _Continue = _Break
    _Pass = _Break

    # --- expressions -------------------------------------------------------------------------------------------------

    def items(self, node: ast.expr) -> list[ast.expr] | None:
        """The expressions of a tuple that is written out: `a, b`, `(1,) + failed`; None for anything else."""
        if isinstance(node, ast.Tuple):
            return node.elts
        if isinstance(node, ast.Name):
            return self.tuples.get(node.id)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left = self.items(node.left)
            right = self.items(node.right) if left is not None else None
            return left + right if left is not None and right is not None else None
        if isinstance(node, ast.IfExp):
            yes, no = self.items(node.body), self.items(node.orelse)
            if yes is not None and no is not None and len(yes) == len(no):
                return [ast.IfExp(node.test, a, b) for a, b in zip(yes, no)]
        return None

    def of(self, node: ast.expr) -> Type | None:
        """The type of an expression as far as it is known."""
        method: Callable[[Any], Type | None] | None = getattr(self, f"_of_{type(node).__name__}", None)
        if method is None:
            raise Unsupported(f"an expression {type(node).__name__}")
        return method(node)

    def scalar(self, node: ast.expr) -> Scalar:
        """The type of a number, when all types are known."""
        type_ = self.of(node)
        if not isinstance(type_, Scalar):
            raise Unsupported(f"{ast.unparse(node)} where a number is expected")
        return type_

    def constant(self, node: ast.expr) -> bool | int | float | None:
        """The value of an expression of literals; None where it isn't one."""
        if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
            return node.value
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("np", "math"):
            return _CONSTANTS.get(node.attr)
        if isinstance(node, ast.Name) and node.id not in self.variables:
            return self.program.constants.get(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.constant(node.operand)
            return None if value is None or isinstance(value, bool) else -value
        if isinstance(node, ast.BinOp) and type(node.op) in _FOLDED:
            a, b = self.constant(node.left), self.constant(node.right)
            if type(a) is int and type(b) is int:
                return _FOLDED[type(node.op)](a, b)
        return None

    def _of_Constant(self, node: ast.expr) -> Type | None:
        value = self.constant(node)
        if value is None:
            raise Unsupported(f"the constant {ast.unparse(node)}")
        if isinstance(value, bool):
            return BOOL
        if isinstance(value, float):
            return FLOAT64
        return INT64 if -(2**63) <= value < 2**63 else UINT64

    def _of_Name(self, node: ast.Name) -> Type | None:
        if node.id in self.variables:
            return self.variables[node.id]
        if node.id in self.program.constants:
            return self._of_Constant(node)
        return None  # assigned further down

    def _of_Attribute(self, node: ast.Attribute) -> Type | None:
        if self.constant(node) is not None:
            return self._of_Constant(node)
        if node.attr == "size":
            return INT64
        raise Unsupported(f"the attribute {ast.unparse(node)}")

    def _of_Subscript(self, node: ast.Subscript) -> Type | None:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            if not isinstance(self.constant(node.slice), int):
                raise Unsupported("a computed dimension")
            return INT64
        if isinstance(node.value, ast.Name) and node.value.id in self.tuples:
            raise Unsupported("an element of a tuple")
        array = self.of(node.value)
        if array is None:
            return None
        if not isinstance(array, Array) or array.rank != 1:
            raise Unsupported("an element of something else than a flat array")
        return array.element

    def _of_BinOp(self, node: ast.BinOp) -> Type | None:
        if self.constant(node) is not None:
            return self._of_Constant(node)
        return self._operator(node.op, self.of(node.left), self.of(node.right))

    def _operator(self, op: ast.operator, a: Type | None, b: Type | None) -> Type | None:
        if a is None or b is None:
            return None
        if not isinstance(a, Scalar) or not isinstance(b, Scalar):
            raise Unsupported("an operator of arrays")
        if isinstance(op, ast.Div):
            return arithmetic(a, b) if a.is_float or b.is_float else FLOAT64
        if isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)) and a == b == BOOL:
            return BOOL
        if isinstance(op, (ast.LShift, ast.RShift)):
            return UINT64 if a.kind == "u" else INT64
        return arithmetic(a, b)

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Type | None:
        if self.constant(node) is not None:
            return self._of_Constant(node)
        if isinstance(node.op, ast.Not):
            return BOOL
        type_ = self.of(node.operand)
        if type_ is None or (isinstance(type_, Scalar) and type_.is_float):
            return type_
        if not isinstance(type_, Scalar) or type_ == BOOL:
            raise Unsupported("an operator of a truth value or an array")
        return UINT64 if type_.kind == "u" else INT64

    def _of_Compare(self, node: ast.Compare) -> Type | None:
        return BOOL

    def _of_BoolOp(self, node: ast.BoolOp) -> Type | None:
        types = [self.of(value) for value in node.values]
        if any(type_ not in (None, BOOL) for type_ in types):
            raise Unsupported("and/or of numbers")
        return BOOL

    def _of_IfExp(self, node: ast.IfExp) -> Type | None:
        return unified(self.of(node.body), self.of(node.orelse))

    def _of_Call(self, node: ast.Call) -> Type | None:
        if node.keywords:
            raise Unsupported("an argument by name")
        operands = [self._operand(argument) for argument in node.args]
        if any(operand is None for operand in operands):
            return None
        known = [operand for operand in operands if operand is not None]
        row = calls.row(self.program, node.func)
        self.allocates |= row.allocates(known)
        return row.type_of(known)

    def _operand(self, node: ast.expr) -> calls.OperandType | None:
        named = self.named(node)
        if named is not None:
            return named
        if isinstance(node, ast.Tuple):
            types = [self.of(item) for item in node.elts]
            known = tuple(type_ for type_ in types if type_ is not None)
            return Tuple(known) if len(known) == len(types) else None
        return self.of(node)

    def named(self, node: ast.expr) -> calls.Named | None:
        """What an argument names that isn't a value: an element type or a function of the program."""
        if isinstance(node, ast.Name) and node.id in self.program.functions and node.id not in self.variables:
            return calls.Named(function=node.id)
        if not isinstance(node, ast.Attribute):
            return None
        if node.attr == "dtype":
            array = self.of(node.value)
            return calls.Named(dtype=array.element) if isinstance(array, Array) else None
        if isinstance(node.value, ast.Name) and node.value.id == "np" and node.attr in SCALARS:
            return calls.Named(dtype=SCALARS[node.attr])
        return None
