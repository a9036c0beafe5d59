"""Type inference: the type of each expression and each variable in a function, for given types of its parameters.

Expressions that lowering made have their types already (`kernel_ir/ir.py`). Inference finds those of library functions
and of kernels that are known as text. Library functions are generic: each is inferred once for every list of parameter
types that it is called with.

A variable has one type, the common type of all values that it is assigned (`unified`). Inference goes over the
statements until no type changes; until a type is known it is None. A recursive function declares what it returns.

A name may stand for a tuple: after `failed = (a, b)`, `return (1,) + failed` returns three values. Such a name isn't a
variable; its items are used in its place.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

from runtime.kernel_ir import ir, print_python, result_types
from runtime.kernel_ir.functions import row_of
from runtime.kernel_ir.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT64,
    UINT64,
    Array,
    Scalar,
    Tuple,
    Type,
    Unsupported,
    unified,
)
from runtime.llvm import calls

_FOLDED: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "<<": lambda a, b: a << b,
}  # fmt: skip
_LARGEST_SHIFT = 64


class Inference:
    """The types in one function for given types of its parameters.

    variables   the type of each variable, in the order in which they are first assigned
    assigned    the variables that are assigned a value, including such parameters
    tuples      the names that stand for tuples, with the items
    result      the type of what the function returns, a Tuple of several; None where it returns nothing
    allocates   whether anything in it may run out of memory
    called      the names of what it calls
    """

    def __init__(self, program: Any, function: ir.Function, parameters: Sequence[Type]) -> None:
        if len(function.parameters) != len(parameters):
            raise Unsupported(f"{function.name} takes {len(function.parameters)} arguments, not {len(parameters)}")
        self.program = program
        self.function = function
        self.parameters = function.parameters
        self.variables: dict[str, Type | None] = dict(zip(function.parameters, parameters))
        self.assigned: set[str] = set()
        self.tuples: dict[str, tuple[ir.Expr, ...]] = {}
        self.result: Type | None = None
        self.allocates = False
        self.called: set[str] = set()
        self._tuple_statements: dict[str, ir.Statement] = {}
        self._types: dict[int, tuple[ir.Expr, Type | None]] = {}  # by identity; holding the expression keeps it unique
        self._failures: dict[ir.Statement, tuple[ir.Expr, ...]] = {}
        self._note_calls()
        self._settled, self._changed = False, True
        while self._changed and not self._settled:
            self._settled = True  # until a type is missing, or one changes that may have been used
            self._changed = False
            self._types.clear()
            self._block(function.body)
        unknown = [name for name, type_ in self.variables.items() if type_ is None]
        if unknown:
            raise Unsupported(f"the type of {', '.join(unknown)}")

    # --- statements --------------------------------------------------------------------------------------------------

    def _block(self, block: ir.Block) -> None:
        for item in block:
            _STATEMENTS[type(item)](self, item)

    def _assign(self, item: ir.Assign) -> None:
        value = item.value
        if len(item.targets) == 1:
            (name,) = item.targets
            if type(value) is ir.Tuple or type(value) is ir.Binary:
                items = self.items(value)
                if items is not None:
                    if self._tuple_statements.setdefault(name, item) is not item or name in self.variables:
                        raise Unsupported("a tuple variable that is assigned twice")
                    self.tuples[name] = items
                    return
            self._assign_type(name, self.of(value))
            return
        if type(value) is ir.Call:
            type_ = self.of(value)
            if type_ is None:
                return  # known in the next round
            if not isinstance(type_, Tuple) or len(type_.items) != len(item.targets):
                raise Unsupported("unpacking")
            for name, each in zip(item.targets, type_.items):
                self._assign_type(name, each)
            return
        values = self.items(value)
        if values is None or len(item.targets) != len(values):
            raise Unsupported("unpacking")
        for name, source in zip(item.targets, values):
            self._assign_type(name, self.of(source))

    def _assign_type(self, name: str, type_: Type | None) -> None:
        """Records that a variable is assigned a value of this type."""
        self.assigned.add(name)
        before = self.variables.setdefault(name, None)
        if type_ is before or type_ == before:
            return
        after = self.variables[name] = unified(before, type_)
        if after != before:
            self._changed = True
            self._settled = self._settled and before is None  # where it was None, its reads have reset the flag

    def _alloc(self, item: ir.Alloc) -> None:
        size, element = self.of(item.size), item.element
        if isinstance(element, ir.ElementType):
            named = self._argument(element)
            if named is None:
                self._settled = False
                return
            element = named.type
        if size is not None and (not isinstance(size, Scalar) or size.is_float):
            raise Unsupported("an array whose size isn't an integer")
        self.allocates = True
        self._assign_type(item.name, Array(element))

    def _store(self, item: ir.Store) -> None:
        self.of(item.value)
        self.element(item.array)
        self.of(item.index)

    def _if(self, item: ir.If) -> None:
        self.of(item.test)
        self._block(item.body)
        self._block(item.orelse)

    def _while(self, item: ir.While) -> None:
        self.of(item.test)
        self._block(item.body)

    def _for(self, item: ir.For) -> None:
        index: Type | None = None
        for bound in self.bounds(item):
            index = unified(index, self.of(bound))
        self._assign_type(item.index, index)
        self._block(item.body)

    @staticmethod
    def bounds(item: ir.For) -> list[ir.Expr]:
        """The bounds of a loop that determine the type of its index: those that differ from the defaults of `range`."""
        if item.step != ir.ONE:
            return [item.start, item.stop, item.step]
        return [item.stop] if item.start == ir.ZERO else [item.start, item.stop]

    def _return(self, item: ir.Return | ir.Fail) -> None:
        values = self.returned(item)
        if not values:
            return
        items = self.items(values[0]) if len(values) == 1 else values
        if items is None:
            self.result = unified(self.result, self.of(values[0]))
            return
        types = [self.of(each) for each in items]
        known = tuple(type_ for type_ in types if type_ is not None)
        if len(known) == len(types):  # else it is known in the next round
            self.result = unified(self.result, Tuple(known))

    def returned(self, item: ir.Return | ir.Fail) -> tuple[ir.Expr, ...]:
        """The values that a statement returns from the function."""
        if isinstance(item, ir.Return):
            return item.values
        values = self._failures.get(item)
        if values is None:
            values = self._failures[item] = self.program.failure(self.function, item)
        return values

    def _run(self, item: ir.Run) -> None:
        self._called(item.call)

    def _nothing(self, item: ir.Statement) -> None:
        pass

    # --- expressions -------------------------------------------------------------------------------------------------

    def items(self, item: ir.Expr) -> tuple[ir.Expr, ...] | None:
        """The items of a tuple expression such as `(a, b)` or `(1,) + failed`; None for any other expression."""
        kind = type(item)
        if kind is ir.Tuple:
            return item.items  # type: ignore[union-attr]
        if kind is ir.Var:
            return self.tuples.get(item.name)  # type: ignore[union-attr]
        if isinstance(item, ir.Binary) and item.op == "+":
            left = self.items(item.left)
            right = self.items(item.right) if left is not None else None
            return left + right if left is not None and right is not None else None
        if isinstance(item, ir.Select):
            yes, no = self.items(item.yes), self.items(item.no)
            if yes is not None and no is not None and len(yes) == len(no):
                return tuple(ir.Select(item.test, a, b) for a, b in zip(yes, no))
        return None

    def of(self, item: ir.Expr) -> Type | None:
        """The type of an expression as far as it is known."""
        if item.type is not None:
            return item.type
        kind = type(item)
        if kind is ir.Var:
            found = self._var(item)  # type: ignore[arg-type]
        else:
            known = self._types.get(id(item))
            if known is not None:
                return known[1]
            found = _EXPRESSIONS[kind](self, item)
            self._types[id(item)] = item, found
        if found is None:
            self._settled = False
        return found

    def scalar(self, item: ir.Expr) -> Scalar:
        """The type of a number, once all types are known."""
        type_ = self.of(item)
        if not isinstance(type_, Scalar):
            raise Unsupported(f"{print_python.expression(item)} where a number is expected")
        return type_

    def constant(self, item: ir.Expr) -> bool | int | float | None:
        """The value of a constant expression; None for any other."""
        kind = type(item)
        if kind is ir.Const:
            return _rounded(item)  # type: ignore[arg-type]
        if kind is ir.Var:
            name = item.name  # type: ignore[union-attr]
            return None if name in self.variables else self.program.constants.get(name)
        if isinstance(item, ir.Binary):
            return self._folded(item)
        if isinstance(item, ir.Unary) and item.op == "-" and _is_plain(item.operand):
            value = self.constant(item.operand)
            return None if value is None or isinstance(value, bool) else -value
        return None

    def _folded(self, item: ir.Binary) -> int | None:
        if item.op not in _FOLDED or not _is_plain(item.right) or not _is_plain(item.left):
            return None
        b = self.constant(item.right)
        a = self.constant(item.left) if type(b) is int else None
        if type(a) is not int or type(b) is not int:
            return None
        if item.op == "<<" and not 0 <= b <= _LARGEST_SHIFT:
            return None
        value = _FOLDED[item.op](a, b)
        return value if -(2**63) <= value < 2**63 else None  # else it wraps around at run time

    def _literal(self, item: ir.Expr) -> Type | None:
        """The type of a constant expression that isn't a `Const`; None for any other expression."""
        value = self.constant(item)
        if value is None:
            return None
        if isinstance(value, bool):
            return BOOL
        if isinstance(value, float):
            return FLOAT64
        return INT64 if -(2**63) <= value < 2**63 else UINT64

    def _var(self, item: ir.Var) -> Type | None:
        if item.name in self.variables:
            return self.variables[item.name]
        return self._literal(item)  # None: the assignment comes later

    def _size(self, item: ir.Size | ir.Dim) -> Type:
        self.of(item.array)
        return INT64

    def element(self, array: ir.Expr) -> Scalar | None:
        """The type of a flat array's elements."""
        if isinstance(array, ir.Var) and array.name in self.tuples:
            raise Unsupported("an element of a tuple")
        type_ = self.of(array)
        return None if type_ is None else result_types.element(type_)

    def _load(self, item: ir.Load) -> Type | None:
        self.of(item.index)
        return self.element(item.array)

    def _binary(self, item: ir.Binary) -> Type | None:
        literal = self._literal(item)
        if literal is not None:
            return literal
        a, b = self.of(item.left), self.of(item.right)
        return None if a is None or b is None else result_types.binary(item.op, a, b)

    def _unary(self, item: ir.Unary) -> Type | None:
        literal = self._literal(item)
        if literal is not None:
            return literal
        type_ = self.of(item.operand)
        return None if type_ is None else result_types.unary(item.op, type_)

    def _compare(self, item: ir.Compare) -> Type:
        self.of(item.left)
        self.of(item.right)
        return BOOL

    def _logic(self, item: ir.Logic) -> Type:
        for operand in item.operands:
            if self.of(operand) not in (None, BOOL):
                raise Unsupported("and/or of numbers")
        return BOOL

    def _select(self, item: ir.Select) -> Type | None:
        self.of(item.test)
        return unified(self.of(item.yes), self.of(item.no))

    def _convert(self, item: ir.Convert) -> Type | None:
        return item.target if self.of(item.operand) is not None else None

    def _call(self, item: ir.Call) -> Type | None:
        known, found = self._called(item)
        if known and found is None:
            raise Unsupported(f"the result of {print_python.expression(item)}")
        return found

    def result_of(self, item: ir.Call) -> Type | None:
        """The type of a call's result, once all types are known; None where it has none."""
        if item.type is not None:
            return item.type
        known = self._types.get(id(item))
        return known[1] if known is not None else self._called(item)[1]

    def _called(self, item: ir.Call) -> tuple[bool, Type | None]:
        """Whether the types of a call's arguments are known; and the type of its result, None if there is none."""
        types = [self._argument(each) for each in item.arguments]
        if any(type_ is None for type_ in types):
            self._settled = False
            return False, None
        self.called.add(item.function)
        rule = self.program.call_rule(item.function)
        self.allocates |= rule.allocates(types)
        if rule.type_of is not None:
            return True, rule.type_of(types)
        row = row_of(item.function)
        if row is None:
            raise Unsupported(f"the result of {item.function}")
        return True, row.result(*types)

    def _note_calls(self) -> None:
        """Records the calls whose types are known already, which no rule below comes to."""
        for statement in ir.walk(self.function.body):
            for item in ir.expressions(statement):
                if type(item) is ir.Call and item.type is not None:
                    self._check_result(item, self._called(item)[1])

    def _check_result(self, item: ir.Call, found: Type | None) -> None:
        """Checks that a function returns what its call states (with AUTOGRAPH_STRICT=1)."""
        if found != item.type and os.environ.get("AUTOGRAPH_STRICT") == "1":
            raise AssertionError(f"{print_python.expression(item)} is declared as {item.type}, but gives {found}")

    def _argument(self, item: ir.Expr) -> Any:
        """The type of an argument, or the function or element type that it names; None while it is unknown."""
        named = self.named(item)
        if named is not None:
            return named
        if isinstance(item, ir.Tuple):
            types = [self.of(each) for each in item.items]
            known = tuple(type_ for type_ in types if type_ is not None)
            return Tuple(known) if len(known) == len(types) else None
        return None if isinstance(item, ir.ElementType) else self.of(item)

    def named(self, item: ir.Expr) -> calls.ElementType | calls.Function | None:
        """What an argument names if it isn't a value: an element type, or a function of the program."""
        kind = type(item)
        if kind is ir.Var:
            name = item.name  # type: ignore[union-attr]
            return calls.Function(name) if name not in self.variables and name in self.program.functions else None
        if isinstance(item, ir.ElementType):
            array = self.of(item.array)
            return calls.ElementType(array.element) if isinstance(array, Array) else None
        return calls.ElementType(item.target) if isinstance(item, ir.Named) else None

    def _no_value(self, item: ir.Expr) -> Type | None:
        raise Unsupported(f"{print_python.expression(item)} where a value is expected")


def _rounded(item: ir.Const) -> bool | int | float:
    """A constant's value; a float32 is rounded, since it may be written with more digits than it has."""
    if item.type != FLOAT32:
        return item.value
    try:
        value: float = struct.unpack("f", struct.pack("f", item.value))[0]
    except OverflowError:
        value = float("inf") if item.value > 0 else float("-inf")
    return value


def _is_plain(item: ir.Expr) -> bool:
    """Whether an expression may be an operand of a constant expression: no constant, or one that Python writes without
    a type."""
    return type(item) is not ir.Const or item.type in (INT64, FLOAT64) or (item.type == UINT64 and item.value >= 2**63)


_STATEMENTS: dict[type, Callable[[Inference, Any], None]] = {
    ir.Assign: Inference._assign,
    ir.Alloc: Inference._alloc,
    ir.Store: Inference._store,
    ir.For: Inference._for,
    ir.While: Inference._while,
    ir.If: Inference._if,
    ir.Break: Inference._nothing,
    ir.Continue: Inference._nothing,
    ir.Run: Inference._run,
    ir.Return: Inference._return,
    ir.Fail: Inference._return,
}
_EXPRESSIONS: dict[type, Callable[[Inference, Any], Type | None]] = {
    ir.Unary: Inference._unary,
    ir.Binary: Inference._binary,
    ir.Compare: Inference._compare,
    ir.Logic: Inference._logic,
    ir.Select: Inference._select,
    ir.Convert: Inference._convert,
    ir.Load: Inference._load,
    ir.Size: Inference._size,
    ir.Dim: Inference._size,
    ir.Call: Inference._call,
    ir.Tuple: Inference._no_value,
    ir.ElementType: Inference._no_value,
    ir.Named: Inference._no_value,
}
