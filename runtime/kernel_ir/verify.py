"""The rules of the kernel IR, checked after lowering and after every pass if AUTOGRAPH_STRICT=1 (in tests).

- a variable is read only where it has been assigned on every path
- `break` and `continue` are in loops; nothing follows a statement that leaves its block
- elements are read from and written to variables, in SPMD form also views of them; a `Tuple` is only where several
  values are allowed
- kernels call functions with a row (`functions.py`), or those of their module
- a constant fits its type; operators are those of the grammar; a loop's step is a constant that isn't 0
- `Fail` is only in functions that may fail, and names an existing failure site
- parts of nests, which threads run, return nothing and cannot fail
- in kernels that lowering made, also in SPMD form, every expression has a type. A variable has one type wherever it is
  read or assigned; the type of any other expression follows from its operands (`result_types.py`), but calls of the
  library's own functions state it. A stored value has the type of the array's elements; conditions are truth values,
  indices are integers
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from runtime.kernel_ir import ir, result_types
from runtime.kernel_ir.functions import row_of
from runtime.kernel_ir.print_python import expression, lines
from runtime.kernel_ir.types import BOOL, INT64, Array, Scalar, Tuple, Type

_UNARY = frozenset({"-", "+", "~", "not"})
_BINARY = frozenset({"+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>"})
_COMPARE = frozenset({"<", "<=", ">", ">=", "==", "!="})
_LEAVING = (ir.Break, ir.Continue, ir.Return, ir.Fail)


class InvalidKernel(Exception):
    """Kernel IR breaks a rule; this is a bug of this project."""


def verify(
    functions: Sequence[ir.Function], sites: int = 0, stage: str = "lowering",
    starts: Mapping[str, Iterable[str]] | None = None, typed: bool = True,
) -> None:  # fmt: skip
    """Checks all functions of a kernel, with AUTOGRAPH_STRICT=1. sites: the number of failure sites. stage: the
    last pass, for the message. starts: by function, further variables that have values at its beginning. typed: False
    for kernels that are known as text.
    Raises InvalidKernel, with the statement."""
    if os.environ.get("AUTOGRAPH_STRICT") != "1":
        return
    names = {function.name for function in functions}
    for function in functions:
        _Checker(function, names, sites, stage).check(set((starts or {}).get(function.name, ())))
        if typed:
            _Types(function, names, stage).check()


class _Checker:
    def __init__(self, function: ir.Function, functions: set[str], sites: int, stage: str) -> None:
        self.function = function
        self.functions = functions
        self.sites = sites
        self.stage = stage
        self.breaks: list[list[set[str]]] = []  # of each loop around: the variables with a value at its `break`s

    def check(self, start: set[str]) -> None:
        given = {*self.function.parameters, *self.functions, *start}
        if len(set(self.function.parameters)) != len(self.function.parameters):
            self.fail("two parameters have one name", None)
        self.block(self.function.body, given)

    def fail(self, message: str, item: ir.Statement | None) -> None:
        _fail(message, item, self.function, self.stage)

    # --- statements --------------------------------------------------------------------------------------------------

    def block(self, block: ir.Block, given: set[str]) -> set[str] | None:
        """Checks a block; returns the variables that have a value at its end, None if the end isn't reached."""
        for position, item in enumerate(block):
            after = self.statement(item, given)
            if after is None:
                if position + 1 < len(block):
                    self.fail("a statement that is never reached", block[position + 1])
                return None
            given = after
        return given

    def statement(self, item: ir.Statement, given: set[str]) -> set[str] | None:
        for operand in ir.operands(item):
            self.expression(operand, given, item, may_be_tuple=isinstance(item, (ir.Assign, ir.Return)))
        if isinstance(item, ir.If):
            then, other = self.block(item.body, given), self.block(item.orelse, given)
            return other if then is None else then if other is None else then & other
        if isinstance(item, (ir.For, ir.While)):
            return self.loop(item, given)
        if isinstance(item, ir.Store) and not _is_array(item.array):
            self.fail("a store into something else than a variable", item)
        if isinstance(item, (ir.Break, ir.Continue)) and not self.breaks:
            self.fail("a jump out of no loop", item)
        if isinstance(item, ir.Break):
            self.breaks[-1].append(given)
        if isinstance(item, ir.Return) and self.function.kind == "part" and item.values:
            self.fail("a part of a nest that returns something", item)
        if isinstance(item, ir.Fail):
            if self.function.kind == "part":
                self.fail("a part of a nest that fails", item)
            if isinstance(item.status, int) and not 1 <= item.status <= self.sites:
                self.fail(f"failure site {item.status} of {self.sites}", item)
            if isinstance(item.status, str) and item.status not in given:
                self.fail(f"'{item.status}' without a value", item)
        if isinstance(item, _LEAVING):
            return None
        if isinstance(item, ir.Assign):
            self.assignment(item)
        return given.union(ir.targets(item))

    def loop(self, item: ir.For | ir.While, given: set[str]) -> set[str] | None:
        inside = given
        if isinstance(item, ir.For):
            if not isinstance(item.step, ir.Const) or item.step.type != INT64 or item.step.value == 0:
                self.fail("a loop with a computed step", item)
            inside = given | {item.index}
        self.breaks.append([])
        self.block(item.body, inside)
        left = self.breaks.pop()
        if isinstance(item, ir.While) and item.test == ir.TRUE:
            # The variables that have a value at every exit; without exits, code after the loop may read any variable.
            return set.intersection(*left) if left else given | ir.assigned(item.body)
        return given

    def assignment(self, item: ir.Assign) -> None:
        if len(item.targets) > 1:
            if not isinstance(item.value, (ir.Tuple, ir.Call)):
                self.fail("several variables and one value", item)
            if isinstance(item.value, ir.Tuple) and len(item.value.items) != len(item.targets):
                self.fail(f"{len(item.targets)} variables and {len(item.value.items)} values", item)
        if len(set(item.targets)) != len(item.targets):
            self.fail("a variable that is assigned twice at once", item)

    # --- expressions -------------------------------------------------------------------------------------------------

    def expression(self, item: ir.Expr, given: set[str], inside: ir.Statement, may_be_tuple: bool = False) -> None:
        if isinstance(item, ir.Var):
            if item.name not in given:
                self.fail(f"'{item.name}' is read where it may have no value", inside)
        elif isinstance(item, ir.Const):
            self.constant(item, inside)
        elif isinstance(item, ir.Call) and self.function.kind != "library" and item.function not in self.functions:
            if row_of(item.function) is None:
                self.fail(f"a call of '{item.function}', which has no row in functions.py", inside)
        elif isinstance(item, (ir.Load, ir.Size, ir.Dim, ir.ElementType)):
            if not _is_array(item.array):
                self.fail("an array that is no variable", inside)
        elif (isinstance(item, ir.Unary) and item.op not in _UNARY) or (
            isinstance(item, ir.Binary) and item.op not in _BINARY
        ):
            self.fail(f"the operator {item.op}", inside)
        elif isinstance(item, ir.Compare) and item.op not in _COMPARE:
            self.fail(f"the comparison {item.op}", inside)
        elif isinstance(item, ir.Logic) and (item.op not in ("and", "or") or len(item.operands) < 2):
            self.fail("a malformed condition", inside)
        elif isinstance(item, ir.Tuple) and not may_be_tuple:
            self.fail("several values where one is expected", inside)
        joins = isinstance(item, ir.Call) or (isinstance(item, ir.Binary) and may_be_tuple and item.op == "+")
        for operand in ir.operands(item):
            self.expression(operand, given, inside, may_be_tuple=joins)

    def constant(self, item: ir.Const, inside: ir.Statement) -> None:
        type_, value = item.type, item.value
        is_right = isinstance(value, bool) if type_.kind == "b" else isinstance(value, (int, float))
        if type_.kind in "iuh":
            low, high = _limits(type_)
            is_right = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        if not is_right:
            self.fail(f"the constant {value!r} of type {type_.name}", inside)


def _is_array(item: ir.Expr) -> bool:
    """Whether an expression is an array variable or, in SPMD form, a view of one."""
    if isinstance(item, ir.Call) and item.function.startswith("gpu."):
        row = row_of(item.function)
        if row is not None and row.view is not None:
            item = item.arguments[row.view]
    return isinstance(item, ir.Var)


def _fail(message: str, item: ir.Statement | None, function: ir.Function, stage: str) -> None:
    where = "" if item is None else "\n" + "\n".join(lines([item])[:3])
    raise InvalidKernel(f"{message}, in '{function.name}' after {stage}{where}")


class _Types:
    """Checks the types in a function."""

    def __init__(self, function: ir.Function, functions: set[str], stage: str) -> None:
        self.function = function
        self.functions = functions
        self.stage = stage
        self.variables: dict[str, Type] = {}

    def check(self) -> None:
        for item in ir.walk(self.function.body):
            for operand in ir.operands(item):
                self.expression(operand, item)
            self.statement(item)

    def fail(self, message: str, item: ir.Statement) -> None:
        _fail(message, item, self.function, self.stage)

    def statement(self, item: ir.Statement) -> None:
        if isinstance(item, ir.Assign):
            for name, type_ in result_types.assigned(item.targets, item.value.type).items():
                self.variable(name, type_, item)
        elif isinstance(item, ir.Alloc):
            self.variable(item.name, item.variable.type, item)
            self.index(item.size, item)
        elif isinstance(item, ir.Store):
            element = item.array.type.element if isinstance(item.array.type, Array) else None
            self.index(item.index, item)
            if item.value.type != element:
                self.fail(
                    f"{expression(item.value)} of type {_name(item.value.type)} is stored as {_name(element)}", item
                )
        elif isinstance(item, ir.For):
            for bound in (item.start, item.stop, item.step):
                if bound.type != INT64:
                    self.fail(f"the bound {expression(bound)} of type {_name(bound.type)}", item)
            self.variable(item.index, INT64, item)
        elif isinstance(item, (ir.While, ir.If)):
            self.condition(item.test, item)

    def variable(self, name: str, type_: Type | None, inside: ir.Statement) -> None:
        if type_ is None:
            self.fail(f"the variable '{name}' has no type", inside)
            return
        known = self.variables.setdefault(name, type_)
        if known != type_:
            self.fail(f"the variable '{name}' is of type {_name(known)}, and here of type {_name(type_)}", inside)

    def index(self, item: ir.Expr, inside: ir.Statement) -> None:
        if not isinstance(item.type, Scalar) or item.type.kind not in "iu":
            self.fail(f"the index {expression(item)} of type {_name(item.type)}", inside)

    def condition(self, item: ir.Expr, inside: ir.Statement) -> None:
        if item.type != BOOL:
            self.fail(f"the condition {expression(item)} of type {_name(item.type)}", inside)

    def expression(self, item: ir.Expr, inside: ir.Statement) -> None:
        for operand in ir.operands(item):
            self.expression(operand, inside)
        if isinstance(item, ir.Var):
            if item.name not in self.functions:
                self.variable(item.name, item.type, inside)
            return
        if isinstance(item, (ir.Const, ir.Convert, ir.Named, ir.ElementType)):
            return
        if isinstance(item, ir.Load):
            self.index(item.index, inside)
        elif isinstance(item, ir.Select):
            self.condition(item.test, inside)
        elif isinstance(item, ir.Logic):
            for operand in item.operands:
                self.condition(operand, inside)
        derived = replace(item, type=None).type
        is_stated = isinstance(item, ir.Call) and row_of(item.function) is None
        if item.type != derived and not is_stated:
            self.fail(f"{expression(item)} is declared as {_name(item.type)}, but its type is {_name(derived)}", inside)
        if item.type is None and not (isinstance(item, ir.Call) and isinstance(inside, ir.Run)):
            self.fail(f"{expression(item)} has no type", inside)


def _name(type_: Type | None) -> str:
    if isinstance(type_, Tuple):
        return f"({', '.join(map(_name, type_.items))})"
    if isinstance(type_, Array):
        return f"{type_.element.name}[{':, ' * (type_.rank - 1)}:]"
    return "unknown" if type_ is None else type_.name


def _limits(type_: Scalar) -> tuple[int, int]:
    bits = type_.bits
    return (0, 2**bits - 1) if type_.kind in "uh" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
