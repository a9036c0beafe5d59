"""Nodes on single numbers as expressions over Python's numbers, for loops that the interpreter runs (`hot_loops.py`).

NumPy takes a tenth of a microsecond for an operation on one number, and a microsecond or more for a check; Python takes
30 ns. In such loops single bools, int32, int64 and float64 are therefore Python's. Single float32 are NumPy's, since
Python has none. The expression of a node comes from its op's `scalar`, where Python computes the same bits by it. What
isn't the same for all operands, such as an integer that leaves its dtype, has a condition; where that is false, the
op's own kernel computes the node.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.dataclass import dataclass
from runtime.dtypes import DType
from runtime.graph.ir import Node
from runtime.types import TensorType

_OURS = (dtypes.bool_, dtypes.int32, dtypes.int64, dtypes.float64)
Range = tuple[int, int]  # the least and the greatest value of an integer


def number(type_: Any) -> DType | None:
    """The dtype of a value that is one number of Python's in such a loop; None for all others."""
    if isinstance(type_, TensorType) and type_.rank == 0 and type_.dtype in _OURS:
        return type_.dtype
    return None


@functools.cache
def full_range(dtype: DType) -> Range | None:
    """All values of an integer dtype; None for the others."""
    return (int(dtype.min), int(dtype.max)) if dtype.kind == "i" else None


def _square_root(x: float) -> float:
    return math.sqrt(x) if x >= 0.0 else np.sqrt(x).item()


def _single_root(x: np.float32) -> np.float32:
    # Rounding a float64's root is rounding the root: it has more than twice the digits.
    return np.float32(math.sqrt(x)) if x >= 0.0 else np.sqrt(x)


def _quotient(x: float, y: float) -> float:
    return x / y if y else (np.float64(x) / np.float64(y)).item()


# What the expressions name.
NAMES = {
    "square_root": _square_root, "single_root": _single_root, "quotient": _quotient, "float32": np.float32,
    "infinity": math.inf, "single_infinity": np.float32(math.inf),
}  # fmt: skip


@dataclass(frozen=True)
class Expression:
    """text: over the operands {0}, {1} and so on. before: a condition on them, and after: one on the result {r}, under
    which the text is what the node computes; "" for none. range: of an integer result."""

    text: str
    before: str = ""
    after: str = ""
    range: Range | None = None


def expression(node: Node, ranges: Sequence[Range | None]) -> Expression | None:
    """A node's result as an expression; None where Python's numbers give other bits, or aren't for its operands.
    ranges: those of the operands."""
    scalar = node.op.scalar
    if scalar is None or len(node.outputs) != 1:
        return None
    types: list[Any] = [value.type for value in (*node.inputs, *node.outputs)]
    if not all(number(type_) or (type_.rank == 0 and type_.dtype is dtypes.float32) for type_ in types):
        return None
    *inputs, output = [type_.dtype for type_ in types]
    arguments = [_literal(value.node, position) for position, value in enumerate(node.inputs)]
    text = scalar.format(*arguments) if isinstance(scalar, str) else scalar(arguments, inputs, output)
    return _translated(text, tuple(inputs), tuple(ranges), output, node.op.converts or node.op.narrows)


def _literal(source: Node | None, position: int) -> str:
    """An operand in an expression for generated code: its position, or a number that is known."""
    if source is not None and source.op.name == "constant":
        array = source.attrs["value"].array
        if np.isfinite(array):
            return f"np.{array.dtype.name}({array.item()!r})"
    return f"x{position}"


@functools.lru_cache(maxsize=4096)
def _translated(
    text: str, inputs: tuple[DType, ...], ranges: tuple[Range | None, ...], output: DType, converts: bool
) -> Expression | None:
    writer = _Writer(inputs, ranges)
    try:
        found = writer.visit(ast.parse(text, mode="eval").body)
        return writer.converted(found, output, converts)
    except _Refused:
        return None


class _Refused(Exception):
    """Python doesn't compute this to the same bits."""


_BOOL, _INT, _FLOAT, _SINGLE = "bool", "int", "float", "single"


def _kind(dtype: DType) -> str:
    return {"b": _BOOL, "i": _INT}.get(dtype.kind) or (_SINGLE if dtype is dtypes.float32 else _FLOAT)


@dataclass(frozen=True)
class _Text:
    """range: of an integer, if Python's numbers had no end. Outside the dtype the text is right only once its value is
    known to be inside, since generated code wraps around. beside: the text beside another float32, which makes Python's
    literals one of its kind."""

    text: str
    kind: str
    range: Range = (0, 0)
    beside: str = ""


_SAME = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==",
    ast.NotEq: "!=", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
# Of operators that aren't Python's for all second operands: a condition on these, and the kinds that it is for.
_GUARDED: dict[type, tuple[str, tuple[str, ...]]] = {
    ast.Div: ("{0}", (_FLOAT,)), ast.FloorDiv: ("{0}", (_INT,)), ast.Mod: ("{0}", (_INT, _FLOAT)),
    ast.RShift: ("0 <= {0} < 32", (_INT,)), ast.LShift: ("0 <= {0} < 32", (_INT,)),
}  # fmt: skip


class _Writer(ast.NodeVisitor):
    """Expressions of generated code as Python's."""

    def __init__(self, inputs: Sequence[DType], ranges: Sequence[Range | None]) -> None:
        self.inputs, self.ranges = inputs, ranges
        self.before: list[str] = []
        integers = [dtype for dtype in inputs if dtype.kind == "i"]
        self.widest = (full_range(integers[0]) if integers else None) or (0, 0)

    def converted(self, found: _Text, output: DType, converts: bool) -> Expression:
        """The expression in the dtype of the result, to which generated code converts all results."""
        wanted, text, range_ = _kind(output), found.text, found.range
        if found.kind != wanted:
            if not converts or wanted == _BOOL or self._is_wide(found):
                raise _Refused
            text, range_ = self._in_kind(found, output), full_range(output) or (0, 0)
        before = " and ".join(dict.fromkeys(self.before))
        limits = full_range(output)
        if limits is None:
            return Expression(text, before)
        if limits[0] <= range_[0] and range_[1] <= limits[1]:
            return Expression(text, before, range=range_)
        return Expression(text, before, f"{limits[0]} <= {{r}} <= {limits[1]}", limits)

    def _in_kind(self, found: _Text, output: DType) -> str:
        wanted = _kind(output)
        if wanted == _SINGLE:
            if found.kind == _INT and self.inputs[0] is not dtypes.int32:
                raise _Refused  # it would be rounded twice
            return f"float32({found.text})"
        if wanted == _FLOAT:
            return f"float({found.text})"
        if found.kind == _FLOAT:  # not of float32, whose comparisons round the bounds
            # The least integer and one more than the greatest are powers of two, and the fraction is dropped.
            self.before.append(f"{float(output.min)!r} <= {found.text} < {-float(output.min)!r}")
        elif found.kind != _BOOL:
            raise _Refused
        return f"int({found.text})"

    def _is_wide(self, found: _Text) -> bool:
        return found.range[0] < self.widest[0] or found.range[1] > self.widest[1]

    def visit(self, node: ast.AST) -> _Text:
        written: _Text = super().visit(node)
        return written

    def generic_visit(self, node: ast.AST) -> Any:
        raise _Refused

    def _exact(self, node: ast.AST) -> _Text:
        found = self.visit(node)
        if self._is_wide(found):
            raise _Refused
        return found

    def visit_Name(self, node: ast.Name) -> _Text:
        position = int(node.id[1:])
        return _Text(f"{{{position}}}", _kind(self.inputs[position]), self.ranges[position] or (0, 0))

    def visit_Constant(self, node: ast.Constant) -> _Text:
        kinds: dict[type, str] = {bool: _BOOL, int: _INT, float: _FLOAT}
        if type(node.value) not in kinds:
            raise _Refused
        return self._number(node.value, kinds[type(node.value)])

    def _number(self, value: Any, kind: str) -> _Text:
        known = {_BOOL: bool, _INT: int, _FLOAT: float}[kind](value)
        return _Text(f"({known!r})" if known < 0 else repr(known), kind, (known, known) if kind == _INT else (0, 0))

    def visit_Call(self, node: ast.Call) -> _Text:
        name = ast.unparse(node.func)
        if name.startswith("np."):
            return self._typed_literal(name.removeprefix("np."), node.args[0])
        operands = [self._exact(argument) for argument in node.args]
        texts, kind = ", ".join(each.text for each in operands), operands[0].kind
        if name in ("max", "min") and all(each.kind == _INT for each in operands):
            choose = max if name == "max" else min
            ends = [choose(each.range[end] for each in operands) for end in (0, 1)]
            return _Text(f"{name}({texts})", _INT, (ends[0], ends[1]))
        if name == "abs" and kind != _BOOL:
            least, greatest = operands[0].range
            return _Text(f"abs({texts})", kind, (0, max(abs(least), abs(greatest))))
        if name == "math.sqrt" and kind in (_FLOAT, _SINGLE):
            return _Text(f"{'square' if kind == _FLOAT else 'single'}_root({texts})", kind)
        raise _Refused

    def _typed_literal(self, name: str, value: ast.expr) -> _Text:
        dtype = getattr(dtypes, "bool_" if name == "bool" else name, None)
        if dtype in (dtypes.float32, dtypes.float64) and ast.unparse(value) == "np.inf":
            return _Text("infinity" if dtype is dtypes.float64 else "single_infinity", _kind(dtype))
        try:
            known = ast.literal_eval(value)
        except ValueError:
            raise _Refused from None
        if dtype not in (*_OURS, dtypes.float32):
            raise _Refused
        if dtype is dtypes.float32:
            return _Text(f"float32({known!r})", _SINGLE, beside=f"({known!r})")
        return self._number(known, _kind(dtype))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> _Text:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.USub) and operand.kind != _BOOL:
            return _Text(f"(-{operand.text})", operand.kind, (-operand.range[1], -operand.range[0]))
        if self._is_wide(operand):
            raise _Refused
        if isinstance(node.op, ast.Not) and operand.kind == _BOOL:
            return _Text(f"(not {operand.text})", _BOOL)
        if isinstance(node.op, ast.Invert) and operand.kind == _INT:
            return _Text(f"(~{operand.text})", _INT, (~operand.range[1], ~operand.range[0]))
        raise _Refused

    def visit_BinOp(self, node: ast.BinOp) -> _Text:
        one, other = self.visit(node.left), self.visit(node.right)
        kind, op = one.kind, type(node.op)
        if kind != other.kind or op not in _SAME:
            raise _Refused
        text = f"({one.text} {_SAME[op]} {other.text})"
        if kind == _SINGLE and not (one.beside and other.beside):
            text = f"({one.beside or one.text} {_SAME[op]} {other.beside or other.text})"
        if op in (ast.Add, ast.Sub, ast.Mult) and kind != _BOOL:
            # Sums and products that wrap around are those of integers, but for multiples of the dtype's range.
            return _Text(text, kind, _combined(op, one.range, other.range))
        if self._is_wide(one) or self._is_wide(other):
            raise _Refused
        if op in (ast.BitAnd, ast.BitOr, ast.BitXor) and kind in (_BOOL, _INT):
            is_mask = op is ast.BitAnd and other.range[0] >= 0
            return _Text(text, kind, (0, other.range[1]) if is_mask else self.widest)
        if op is ast.Div and kind == _SINGLE:  # NumPy's numbers: an infinity for a division by zero
            return _Text(text, _SINGLE)
        if op is ast.Div and kind == _FLOAT and not isinstance(node.right, ast.Name):
            return _Text(f"quotient({one.text}, {other.text})", _FLOAT)
        if op in _GUARDED and kind in _GUARDED[op][1]:
            return self._guarded(op, text, one, other)
        raise _Refused

    def _guarded(self, op: type, text: str, one: _Text, other: _Text) -> _Text:
        kind, (least, greatest) = one.kind, other.range
        is_positive = kind == _INT and least > 0
        if not (is_positive and (op in (ast.FloorDiv, ast.Mod) or greatest < 32)):
            self.before.append(_GUARDED[op][0].format(other.text))
        if kind != _INT:
            return _Text(text, kind)
        if op is ast.Mod:
            return _Text(text, kind, (0, greatest - 1) if is_positive else self.widest)
        if op is ast.LShift:
            return _Text(text, kind, (2 * self.widest[0], 2 * self.widest[1]))
        if op is ast.FloorDiv and not is_positive:  # the least integer by -1 is one too many
            return _Text(text, kind, (self.widest[0], -self.widest[0]))
        return _Text(text, kind, (min(one.range[0], 0), max(one.range[1], 0)))

    def visit_Compare(self, node: ast.Compare) -> _Text:
        if len(node.ops) != 1 or type(node.ops[0]) not in _SAME:
            raise _Refused
        one, other = self._exact(node.left), self._exact(node.comparators[0])
        if one.kind != other.kind and not isinstance(node.comparators[0], ast.Constant):
            raise _Refused
        if one.kind == other.kind == _INT:
            known = _ordered(type(node.ops[0]), one.range, other.range)
            if known is not None:
                return _Text(repr(known), _BOOL)
        return _Text(f"({one.text} {_SAME[type(node.ops[0])]} {other.text})", _BOOL)

    def visit_BoolOp(self, node: ast.BoolOp) -> _Text:
        operands = [self._exact(value) for value in node.values]
        if any(operand.kind != _BOOL for operand in operands):
            raise _Refused
        joint = " and " if isinstance(node.op, ast.And) else " or "
        return _Text(f"({joint.join(operand.text for operand in operands)})", _BOOL)

    def visit_IfExp(self, node: ast.IfExp) -> _Text:
        test, one, other = self._exact(node.test), self.visit(node.body), self.visit(node.orelse)
        if test.kind != _BOOL or one.kind != other.kind:
            raise _Refused
        range_ = min(one.range[0], other.range[0]), max(one.range[1], other.range[1])
        return _Text(f"({one.text} if {test.text} else {other.text})", one.kind, range_)


def _combined(op: type, one: Range, other: Range) -> Range:
    """The range of a sum, a difference or a product."""
    if op is ast.Add:
        return one[0] + other[0], one[1] + other[1]
    if op is ast.Sub:
        return one[0] - other[1], one[1] - other[0]
    products = [a * b for a in one for b in other]
    return min(products), max(products)


def _ordered(op: type, one: Range, other: Range) -> bool | None:
    """What a comparison of integers gives, where their ranges decide it."""
    if op in (ast.Gt, ast.LtE):
        one, other = other, one
    if op in (ast.Lt, ast.Gt, ast.GtE, ast.LtE):
        is_less = True if one[1] < other[0] else False if one[0] >= other[1] else None
        return is_less if is_less is None or op in (ast.Lt, ast.Gt) else not is_less
    return None
