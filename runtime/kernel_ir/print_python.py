"""Prints kernel IR as Python that numba accepts. People read this text, golden files contain it, cache keys hash it.

    Store(Var("y"), Var("i"), Binary("*", Load(Var("x"), Var("i")), Const(2.0, FLOAT32)))
        →  y[i] = x[i] * np.float32(2.0)

Parentheses are printed only where Python needs them. For numba, plain numbers are float64 or int64, so any other
constant names its type. numba lets negative indices count from the end, which can't be vectorised, so functions that
threads run have unsigned indices (`x[np.uint64(i)]`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from runtime.kernel_ir.ir import (
    ONE,
    ZERO,
    Alloc,
    Assign,
    Binary,
    Block,
    Call,
    Compare,
    Const,
    Convert,
    Dim,
    ElementType,
    Expr,
    Fail,
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
    shown,
)
from runtime.kernel_ir.types import BOOL, FLOAT64, INT64, Scalar

INDENT = "    "
# Python makes a longer tuple from a list, which numba doesn't support.
_LONGEST_DISPLAY = 30

# The precedence of operators in Python's grammar.
_SELECT, _NOT, _COMPARE, _SIGN, _POWER, _ATOM = 1, 4, 5, 12, 13, 14
_LOGIC = {"or": 2, "and": 3}
_BINARY = {
    "|": 6, "^": 7, "&": 8, "<<": 9, ">>": 9, "+": 10, "-": 10, "*": 11, "/": 11, "//": 11, "%": 11, "**": _POWER,
}  # fmt: skip


def expression(item: Expr, unsigned: bool = False) -> str:
    """The text of an expression. unsigned: whether indices are printed as unsigned."""
    return _Printer(unsigned).of(item, 0)


def closed(item: Expr) -> str:
    """The text as an operand: in parentheses unless it is an atom."""
    return _Printer(False).of(item, _ATOM)


shown.append(closed)


def type_name(type_: Scalar) -> str:
    """`np.float32`: names a type, and converts to it. numba has no floats of 16 bits: the library's names stand for
    integers."""
    if type_ == BOOL:
        return "np.bool_"
    return f"{'lib' if type_.kind == 'h' else 'np'}.{type_.name}"


class _Printer:
    def __init__(self, unsigned: bool) -> None:
        self.unsigned = unsigned

    def of(self, item: Expr, least: int) -> str:
        """The text, in parentheses if its precedence is lower than `least`."""
        text, tightness = _PRINTERS[type(item)](self, item)
        return text if tightness >= least else f"({text})"

    def listed(self, items: Sequence[Expr]) -> str:
        return ", ".join([self.of(item, 0) for item in items])

    def index(self, item: Expr) -> str:
        text = self.of(item, 0)
        return f"np.uint64({text})" if self.unsigned else text

    def _Var(self, item: Var) -> tuple[str, int]:
        return item.name, _ATOM

    def _Const(self, item: Const) -> tuple[str, int]:
        value, type_ = item.value, item.type
        if type_ == BOOL:
            return ("True" if value else "False"), _ATOM
        if not type_.is_float:
            text = str(int(value))
        elif math.isnan(value):
            text = "np.nan"
        elif math.isinf(value):
            text = "np.inf" if value > 0 else "-np.inf"
        else:
            text = repr(float(value))
        if type_ in (INT64, FLOAT64) and value != -(2**63):
            return text, _SIGN if text.startswith("-") else _ATOM
        return f"{type_name(type_)}({text})", _ATOM

    def _Unary(self, item: Unary) -> tuple[str, int]:
        if item.op == "not":
            return f"not {self.of(item.operand, _NOT)}", _NOT
        return f"{item.op}{self.of(item.operand, _SIGN)}", _SIGN

    def _Binary(self, item: Binary) -> tuple[str, int]:
        own = _BINARY[item.op]
        if item.op == "**":
            return f"{self.of(item.left, _ATOM)} ** {self.of(item.right, _SIGN)}", own
        return f"{self.of(item.left, own)} {item.op} {self.of(item.right, own + 1)}", own

    def _Compare(self, item: Compare) -> tuple[str, int]:
        return f"{self.of(item.left, _COMPARE + 1)} {item.op} {self.of(item.right, _COMPARE + 1)}", _COMPARE

    def _Logic(self, item: Logic) -> tuple[str, int]:
        own = _LOGIC[item.op]
        return f" {item.op} ".join([self.of(each, own + 1) for each in item.operands]), own

    def _Select(self, item: Select) -> tuple[str, int]:
        yes, test, no = self.of(item.yes, _SELECT + 1), self.of(item.test, _SELECT + 1), self.of(item.no, _SELECT)
        return f"{yes} if {test} else {no}", _SELECT

    def _Convert(self, item: Convert) -> tuple[str, int]:
        return f"{type_name(item.target)}({self.of(item.operand, 0)})", _ATOM

    def _Load(self, item: Load) -> tuple[str, int]:
        return f"{self.of(item.array, _ATOM)}[{self.index(item.index)}]", _ATOM

    def _Size(self, item: Size) -> tuple[str, int]:
        return f"{self.of(item.array, _ATOM)}.size", _ATOM

    def _Dim(self, item: Dim) -> tuple[str, int]:
        return f"{self.of(item.array, _ATOM)}.shape[{item.axis}]", _ATOM

    def _Call(self, item: Call) -> tuple[str, int]:
        return f"{item.function}({self.listed(item.arguments)})", _ATOM

    def _Tuple(self, item: Tuple) -> tuple[str, int]:
        if len(item.items) > _LONGEST_DISPLAY:
            return self.several(item.items), _BINARY["+"]
        return f"({self.listed(item.items)}{',' if len(item.items) == 1 else ''})", _ATOM

    def _ElementType(self, item: ElementType) -> tuple[str, int]:
        return f"{self.of(item.array, _ATOM)}.dtype", _ATOM

    def _Named(self, item: Named) -> tuple[str, int]:
        return type_name(item.target), _ATOM

    def several(self, items: Sequence[Expr]) -> str:
        """Several expressions as they are returned or assigned: separated by commas, without parentheses."""
        if len(items) <= _LONGEST_DISPLAY:
            return self.listed(items)
        parts = [items[i : i + _LONGEST_DISPLAY] for i in range(0, len(items), _LONGEST_DISPLAY)]
        return " + ".join(f"({self.listed(part)},)" for part in parts)


_PRINTERS = {
    kind: getattr(_Printer, f"_{kind.__name__}")
    for kind in (
        Var, Const, Unary, Binary, Compare, Logic, Select, Convert, Load, Size, Dim, Call, Tuple, ElementType, Named,
    )
}  # fmt: skip


def lines(block: Block, depth: int = 1, unsigned: bool = False) -> list[str]:
    """The lines of a block, indented by `depth` levels."""
    printer, found = _Printer(unsigned), [""][:0]
    _print_block(printer, block, depth, found)
    return found


def _print_block(printer: _Printer, block: Block, depth: int, found: list[str]) -> None:
    if not block:
        found.append(INDENT * depth + "pass")
    for item in block:
        _print_statement(printer, item, depth, found)


def _print_statement(printer: _Printer, item: Statement, depth: int, found: list[str], word: str = "if") -> None:
    start = INDENT * depth
    if isinstance(item, Assign):
        value = item.value
        text = (
            printer.several(value.items) if isinstance(value, Tuple) and len(item.targets) > 1 else printer.of(value, 0)
        )
        found.append(f"{start}{', '.join(item.targets)} = {text}")
    elif isinstance(item, Store):
        array = printer.of(item.array, _ATOM)
        found.append(f"{start}{array}[{printer.index(item.index)}] = {printer.of(item.value, 0)}")
    elif isinstance(item, If):
        found.append(f"{start}{word} {printer.of(item.test, 0)}:")
        _print_block(printer, item.body, depth + 1, found)
        if len(item.orelse) == 1 and isinstance(item.orelse[0], If):
            _print_statement(printer, item.orelse[0], depth, found, "elif")
        elif item.orelse:
            found.append(f"{start}else:")
            _print_block(printer, item.orelse, depth + 1, found)
    elif isinstance(item, For):
        found.append(f"{start}for {item.index} in range({_bounds(printer, item)}):")
        _print_block(printer, item.body, depth + 1, found)
    elif isinstance(item, While):
        found.append(f"{start}while {printer.of(item.test, 0)}:")
        _print_block(printer, item.body, depth + 1, found)
    elif isinstance(item, Alloc):
        element = item.element if isinstance(item.element, ElementType) else Named(item.element)
        found.append(f"{start}{item.name} = np.empty({printer.of(item.size, 0)}, {printer.of(element, 0)})")
    elif isinstance(item, Run):
        found.append(start + printer.of(item.call, 0))
    elif isinstance(item, Return):
        found.append(f"{start}return {printer.several(item.values)}".rstrip())
    elif isinstance(item, Fail):
        found.append(f"{start}fail({', '.join([str(item.status), *[printer.of(each, 0) for each in item.details]])})")
    else:
        found.append(start + type(item).__name__.lower())


def _bounds(printer: _Printer, item: For) -> str:
    """The arguments of `range`, without its defaults."""
    if item.step != ONE:
        return printer.listed([item.start, item.stop, item.step])
    return printer.listed([item.stop] if item.start == ZERO else [item.start, item.stop])


def function(item: Function) -> str:
    """The text of a function."""
    marks = {"part": "@lib.part\n", "recursive": "@lib.recursive\n"}.get(item.kind, "")
    returns = f' -> "{item.returns}"' if item.returns is not None else ""
    body = "\n".join(lines(item.body, 1, unsigned=item.kind == "part"))
    return f"{marks}def {item.name}({', '.join(item.parameters)}){returns}:\n{body}"
