"""The ranges of integers while a kernel is lowered: least and greatest number, and a dimension that is greater.

    while i < 300:                       while i < 300:
        if i < 0 or i >= n:                  total = total + a[i]
            return 1, i, n         →         i = i + 1
        total = total + a[i]
        i = i + 1

Literals and counters of loops (`lower/induction_variables.py`) have ranges, and so do sums, products and remainders of
them. A check that an index is in bounds, or that a divisor isn't zero, is left out where ranges prove it. How sizes
compare may change the text of a kernel; the sizes themselves may not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from runtime.codegen.kernel.region import Region
from runtime.dtypes import DType, int64
from runtime.graph.ir import Node, Value
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.polynomial import Polynomial
from runtime.kernel_ir.types import INT64
from runtime.ops.table import BEYOND_64_BITS, OpDef, too_large

Atom = ir.Var | ir.Const


class _Comparisons(Protocol):
    def is_below(self, polynomial: Polynomial | None, size: Atom) -> bool: ...


class Numbers(Protocol):
    """What this module asks of the kernel that is being lowered (`lower/state.py`)."""

    region: Region

    @property
    def shape_env(self) -> _Comparisons: ...
    def static_size(self, atom: ir.Expr) -> int | None: ...
    def size_in_check(self, size: Atom) -> Atom: ...
    def ref(self, value: Value) -> Any: ...
    def scalar_name(self, value: Value) -> ir.Var | ir.Const: ...
    def atom(self, expr: ir.Expr, base: str | None = "n") -> Atom: ...
    def assign(self, expr: ir.Expr, base: str | None = None) -> ir.Var: ...


class Range(NamedTuple):
    """low, high: the least and the greatest that a scalar can be.

    below: a dimension atom that is greater. wide: the same integer in 64 bits: a variable that doesn't change while
    the scalar is in scope, or an expression of such variables. polynomial: the same as a polynomial (`shape_env.py`).
    """

    low: int
    high: int
    below: ir.Expr | None = None
    wide: ir.Expr | None = None
    polynomial: Polynomial | None = None

    @property
    def is_nonnegative(self) -> bool:
        return self.low >= 0


def known_range(ref: Any) -> Range | None:
    """The range of the integer scalar that a ref represents; None if nothing is known."""
    known: Range | None = getattr(ref, "range", None)
    if known is not None or not getattr(ref, "dtype", None) or not ref.dtype.is_integer:
        return known
    expr = getattr(ref, "expr", None)
    if not isinstance(expr, ir.Const):
        return None
    return Range(int(expr.value), int(expr.value), None, ir.as_expr(int(expr.value)))


def range_of_either(refs: Sequence[Any]) -> Range | None:
    """What is known of a scalar that is one of some others."""
    known = [each for each in map(known_range, refs) if each is not None]
    return _either(*known) if len(known) == len(refs) else None


def _either(*known: Range) -> Range:
    return Range(min(each.low for each in known), max(each.high for each in known))


def range_of(ref: Any) -> Range | None:
    """The range of the scalar that a ref represents; for other integers the range of the dtype."""
    known, dtype = known_range(ref), getattr(ref, "dtype", None)
    return Range(*limits(dtype)) if known is None and dtype is not None and dtype.is_integer else known


def polynomial_of(known: Range | None) -> Polynomial | None:
    """The polynomial that an integer is."""
    if known is None or known.polynomial is not None:
        return None if known is None else known.polynomial
    if known.low == known.high:
        return Polynomial.of(known.low)
    return Polynomial.of(known.wide) if isinstance(known.wide, ir.Var) else None


def number_of(ref: Any) -> int | None:
    """The integer that a ref represents, if it is known while lowering; else None."""
    known = known_range(ref)
    return known.low if known is not None and known.low == known.high else None


def limits(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number of an integer dtype."""
    bits = dtype.size * 8
    return (0, 2**bits - 1) if dtype.is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def result_of(op: OpDef, operands: Sequence[Range | None], output: DType) -> Range | None:
    """What is known of the result of an elementwise op. One that doesn't fit its dtype is an error, or it wraps."""
    if not output.is_integer or (op.name == "cast" and operands[0] is None):
        return None
    least, greatest = limits(output)
    found = _unlimited(op, _after_checks(op, operands))
    if found is None or (least <= found.low and found.high <= greatest):
        return found
    if not op.unchecked or found.high < least or found.low > greatest:
        return None
    return found._replace(low=max(found.low, least), high=min(found.high, greatest))


def _after_checks(op: OpDef, operands: Sequence[Range | None]) -> Sequence[Range | None]:
    """The ranges of operands for which a checked op doesn't fail, as far as its other operand is known."""
    allowed = _allowed(op, operands)
    if allowed is None:
        return operands
    position, low, high = allowed
    known = operands[position] or Range(*limits(int64))
    if high < known.low or low > known.high:
        return operands
    narrowed = known._replace(low=max(known.low, low), high=min(known.high, high))
    return [narrowed if index == position else each for index, each in enumerate(operands)]


def _allowed(op: OpDef, operands: Sequence[Range | None]) -> tuple[int, int, int] | None:
    """For a checked op of which all operands but one are known: its position, the least and the greatest that it can
    be without an error."""
    if not op.unchecked:
        return None
    least, greatest = limits(int64)
    if op.arithmetic in ("negative", "abs"):
        return 0, -greatest, greatest
    numbers = [each.low if each is not None and each.low == each.high else None for each in operands]
    if len(numbers) != 2 or (numbers[0] is None) == (numbers[1] is None):
        return None
    position = 0 if numbers[0] is None else 1
    number = numbers[1 - position]
    assert number is not None
    if op.arithmetic == "add":
        return position, least - number, greatest - number
    if op.arithmetic == "subtract":
        return (0, least + number, greatest + number) if position == 0 else (1, number - greatest, number - least)
    if op.arithmetic == "left_shift" and position == 0 and number >= 0:
        number = 1 << min(number, 64)
    elif op.arithmetic != "multiply" or number == 0:
        return None
    ends = (least, greatest) if number > 0 else (greatest, least)
    return position, -(-ends[0] // number), ends[1] // number


def _unlimited(op: OpDef, operands: Sequence[Range | None]) -> Range | None:
    """The range of an op's result before it wraps around in its dtype; None if the op has no rule."""
    rule = _RULES.get(op.arithmetic)
    if rule is None or (op.arithmetic == "cast" and operands[0] is None):
        return None
    every = Range(*limits(int64))
    found: Range | None = rule(*(each or every for each in operands))
    return found


def _add(a: Range, b: Range) -> Range:
    return Range(a.low + b.low, a.high + b.high, None, _moved(a, b, "+") or _moved(b, a, "+") or _both(a, b, "+"))


def _subtract(a: Range, b: Range) -> Range:
    below = a.below if b.is_nonnegative else None
    return Range(a.low - b.high, a.high - b.low, below, _moved(a, b, "-") or _both(a, b, "-"))


def _moved(a: Range, b: Range, sign: str) -> ir.Expr | None:
    """`a` plus or minus a literal, in 64 bits."""
    if b.low != b.high or b.low < 0 or not isinstance(a.wide, ir.Var):
        return None
    return ir.Binary(sign, a.wide, ir.as_expr(b.low))


def _both(a: Range, b: Range, sign: str) -> ir.Expr | None:
    """The sum or difference of two variables, in 64 bits."""
    if not isinstance(a.wide, ir.Var) or not isinstance(b.wide, ir.Var):
        return None
    return ir.Binary(sign, a.wide, b.wide)


def _multiply(a: Range, b: Range) -> Range:
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return Range(min(corners), max(corners))


def _minimum(a: Range, b: Range) -> Range:
    if a.high <= b.low or b.high <= a.low:
        return a if a.high <= b.low else b
    return Range(min(a.low, b.low), min(a.high, b.high), a.below or b.below)


def _maximum(a: Range, b: Range) -> Range:
    if a.low >= b.high or b.low >= a.high:
        return a if a.low >= b.high else b
    return Range(max(a.low, b.low), max(a.high, b.high))


def _floormod(a: Range, b: Range) -> Range | None:
    return Range(0, b.high - 1) if b.low > 0 else None


def _floordiv(a: Range, b: Range) -> Range | None:
    if b.low <= 0:
        return None
    corners = [x // y for x in (a.low, a.high) for y in (b.low, b.high)]
    wide = ir.Binary("//", a.wide, ir.as_expr(b.low)) if a.wide is not None and b.low == b.high else None
    return Range(min(corners), max(corners), a.below if a.is_nonnegative else None, wide)


def _negative(a: Range) -> Range:
    return Range(-a.high, -a.low)


def _abs(a: Range) -> Range:
    return Range(0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high)), max(abs(a.low), abs(a.high)))


def _bitwise_and(a: Range, b: Range) -> Range | None:
    highs = [each.high for each in (a, b) if each.is_nonnegative]
    return Range(0, min(highs)) if highs else None


def _right_shift(a: Range, b: Range) -> Range | None:
    return Range(a.low >> b.low, a.high >> b.low) if b.low == b.high and 0 <= b.low < 64 else None


def _left_shift(a: Range, b: Range) -> Range | None:
    return Range(a.low << b.low, a.high << b.low) if b.low == b.high and 0 <= b.low < 64 else None


_RULES: dict[str, Callable[..., Range | None]] = {
    "add": _add, "subtract": _subtract, "multiply": _multiply, "minimum": _minimum, "maximum": _maximum,
    "floormod": _floormod, "floordiv": _floordiv, "cast": lambda a: a, "narrow": lambda a: a,
    "select": lambda predicate, a, b: _either(a, b), "negative": _negative, "abs": _abs, "bitwise_and": _bitwise_and,
    "right_shift": _right_shift, "left_shift": _left_shift,
}  # fmt: skip


def outside(low: Numbers, index: ir.Expr, known: Range | None, size: Atom) -> ir.Expr | None:
    """The condition that an index is outside [0, size), without the tests that ranges make redundant; None if it never
    is."""
    parts: list[ir.Expr] = [] if known is not None and known.is_nonnegative else [index.compare("<", 0)]
    if not is_below(low, known, size):
        parts.append(index.compare(">=", low.size_in_check(size)))
    return ir.either(*parts) if parts else None


def is_below(low: Numbers, known: Range | None, size: Atom) -> bool:
    """Whether a number is known to be less than a dimension."""
    if known is None:
        return False
    static = low.static_size(size)
    if known.below == size or (static is not None and known.high < static):
        return True
    return bool(low.shape_env.is_below(polynomial_of(known), size))


def may_be(known: Range | None, low: int | None, high: int) -> bool:
    """Whether a number may lie between `low` (None: however small) and `high`."""
    return known is None or (known.low <= high and (low is None or low <= known.high))


def index_of(low: Numbers, value: Value, base: str) -> tuple[Atom, Range | None]:
    """A rank-0 integer as a 64-bit variable or literal, and what is known of it."""
    known = known_range(low.ref(value))
    if known is not None and known.wide is not None:
        name = low.atom(known.wide, base)
    else:
        name = low.assign(ir.Convert(INT64, low.scalar_name(value)), base)
    ref = low.region.env[value]
    if known is None or known.wide != name:
        low.region.env[value] = replace(ref, range=(known or Range(*limits(ref.dtype)))._replace(wide=name))
    return name, known


def learn_inside(low: Numbers, value: Value, size: ir.Expr | None) -> None:
    """Records what a check has shown: that the integer given to `index_of` is in [0, size)."""
    ref = low.region.env[value]
    known = known_range(ref)
    assert known is not None
    low.region.env[value] = replace(ref, range=known._replace(low=max(known.low, 0), below=size or known.below))


class Check(NamedTuple):
    """An error that an op may be: where the condition holds."""

    condition: ir.Expr
    error: str
    message: str


def checks(node: Node, known: Sequence[Range | None], name_of: Callable[[Value], ir.Expr]) -> list[Check]:
    """The checks that an integer op's row asks for: a divisor must not be zero, an exponent not negative, a number must
    fit its dtype. known: the ranges of the operands. name_of: their variables."""
    op = node.op
    found = []
    if op.divisor is not None and may_be(known[op.divisor], 0, 0):
        is_zero = name_of(node.inputs[op.divisor]).compare("==", 0)
        found.append(Check(is_zero, "DivisionByZeroError", f"Integer division by zero [Op:{op.label}]"))
    if op.exponent is not None and may_be(known[op.exponent], None, -1) and not node.outputs[0].dtype.is_unsigned:
        message = f"Integers to negative integer powers are not allowed [Op:{op.label}]"
        found.append(Check(name_of(node.inputs[op.exponent]).compare("<", 0), "InvalidArgumentError", message))
    if op.narrows:
        source, (least, greatest) = node.inputs[0], limits(node.outputs[0].dtype)
        given = known[0] or Range(*limits(source.dtype))
        message = too_large(node.outputs[0].dtype)
        if given.low < least:
            found.append(Check(name_of(source).compare("<", least), "InvalidArgumentError", message))
        if given.high > greatest:
            found.append(Check(name_of(source).compare(">", greatest), "InvalidArgumentError", message))
    if op.unchecked:
        found += _checks_of_result(node, known, name_of)
    return found


def _checks_of_result(node: Node, known: Sequence[Range | None], name_of: Callable[[Value], ir.Expr]) -> list[Check]:
    """The checks of a result that must fit 64 bits, as far as the operands' ranges don't show that it does."""
    least, greatest = limits(int64)
    name, result = node.op.arithmetic, _unlimited(node.op, known)
    found = []
    if name in ("left_shift", "right_shift") and may_be(known[1], None, -1):
        found.append(Check(name_of(node.inputs[1]).compare("<", 0), "ValueError", "negative shift count"))
    if name == "cast":
        is_nan = name_of(node.inputs[0]).compare("!=", name_of(node.inputs[0]))
        found.append(Check(is_nan, "ValueError", "cannot convert float NaN to integer"))
    fits = not node.op.exceeds or (result is not None and least <= result.low and result.high <= greatest)
    if name == "floordiv":
        fits = fits or not (may_be(known[0], None, least) and may_be(known[1], -1, -1))
    if fits:
        return found
    allowed = _allowed(node.op, known)
    if allowed is None:
        exceeds: ir.Expr = ir.call(f"lib.{node.op.exceeds}", *[name_of(v) for v in node.inputs])
    else:
        position, low, high = allowed
        operand, given = name_of(node.inputs[position]), known[position] or Range(least, greatest)
        tests = [operand.compare("<", low)] if given.low < low else []
        exceeds = ir.either(*tests, *([operand.compare(">", high)] if given.high > high else []))
    return [*found, Check(exceeds, "OverflowError", BEYOND_64_BITS)]
