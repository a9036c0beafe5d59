"""Expressions as instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime.kernel_ir import ir, print_python
from runtime.kernel_ir.types import BOOL, INT64, Array, Scalar, Type, Unsupported
from runtime.llvm import arithmetic, calls
from runtime.llvm.writer import ArrayValue, Value, Writer, literal

_CHEAP_OPERATORS = frozenset({"+", "-", "*", "&", "|", "^", "not"})
_MOST_CHEAP = 5  # instructions: so many are computed speculatively rather than jumped over
_MAY_BE_CONSTANT = frozenset({ir.Const, ir.Var, ir.Unary, ir.Binary})
_OWN_TYPES = frozenset({"//", "%", "**"})  # operators whose operands keep their types


def any_value(w: Writer, item: ir.Expr) -> Value | ArrayValue:
    """The value of an expression."""
    kind = type(item)
    if kind in _MAY_BE_CONSTANT:
        folded = w.types.constant(item)
        if folded is not None:
            return literal(folded, w.types.scalar(item))
    writer = _WRITERS.get(kind)
    if writer is None:
        raise Unsupported(f"{print_python.expression(item)} where a value is expected")
    return writer(w, item)


def value(w: Writer, item: ir.Expr, type_: Scalar | None = None) -> Value:
    """The value of an expression that is a number, converted to `type_` if that is given."""
    if type_ is not None and type(item) in _MAY_BE_CONSTANT:
        folded = w.types.constant(item)
        if folded is not None and (type_.is_float or not isinstance(folded, float)):
            return literal(folded, type_)
    found = any_value(w, item)
    if not isinstance(found, Value):
        raise Unsupported(f"the array {print_python.expression(item)} where a number is expected")
    return found if type_ is None else arithmetic.cast(w, found, type_)


def array(w: Writer, item: ir.Expr) -> ArrayValue:
    """The value of an expression that is an array."""
    found = any_value(w, item)
    if not isinstance(found, ArrayValue):
        raise Unsupported(f"the number {print_python.expression(item)} where an array is expected")
    return found


def typed(w: Writer, item: ir.Expr, type_: Type) -> Value | ArrayValue:
    """The value of an expression, converted to the type of the variable that it is for."""
    return value(w, item, type_) if isinstance(type_, Scalar) else array(w, item)


def condition(w: Writer, item: ir.Expr) -> str:
    """The operand of a branch's condition."""
    found = arithmetic.truth(w, value(w, item))
    if found.type.lanes > 1:
        raise Unsupported("a condition that differs between lanes")
    return found.text


def _var(w: Writer, item: ir.Var) -> Value | ArrayValue:
    if item.name not in w.slots:
        raise Unsupported(f"the name {item.name}")
    return w.read(item.name)


def _size(w: Writer, item: ir.Size) -> Value:
    return Value(INT64, w.size(array(w, item.array)))


def _dim(w: Writer, item: ir.Dim) -> Value:
    return Value(INT64, array(w, item.array).dims[item.axis])


def _load(w: Writer, item: ir.Load) -> Value:
    if w.lanes is not None and w.lanes.plan.differs(item.index):
        lanes: Value = w.lanes.elements(item)
        return lanes
    address = element(w, item.array, item.index)
    kind = w.types.scalar(item)
    loaded = w.op(f"load {kind.memory}, {address}")
    return Value(kind, w.binary("icmp ne", loaded, 0, "i8")) if kind == BOOL else Value(kind, loaded)


def element(w: Writer, base: ir.Expr, position: ir.Expr) -> str:
    """The pointer operand of a load or store of an array's element, with its alignment."""
    whole = array(w, base)
    index = value(w, position)
    if index.type.is_float or index.type == BOOL:
        raise Unsupported("an index that isn't an integer")
    if index.text.startswith("-") and isinstance(w.types.constant(position), int):
        raise Unsupported("an index from the end")
    known = "" if whole.alignment is None else f", align {whole.alignment}"
    return f"ptr {w.element(whole, index)}{known}"


def _binary(w: Writer, item: ir.Binary) -> Value:
    result = w.types.scalar(item)
    wanted = result if result.is_float and item.op not in _OWN_TYPES else None
    left, right = value(w, item.left, wanted), value(w, item.right, wanted)
    return arithmetic.binary(w, item.op, left, right, result)


def _unary(w: Writer, item: ir.Unary) -> Value:
    operand = value(w, item.operand)
    if item.op == "not":
        return arithmetic.negation(w, operand)
    if item.op == "-":
        return arithmetic.negated(w, operand, w.types.scalar(item))
    if item.op == "~":
        return arithmetic.inverted(w, operand, w.types.scalar(item))
    return operand


def _compare(w: Writer, item: ir.Compare) -> Value:
    return arithmetic.compare(w, item.op, value(w, item.left), value(w, item.right))


def _convert(w: Writer, item: ir.Convert) -> Value:
    return arithmetic.cast(w, value(w, item.operand), item.target)


def _logic(w: Writer, item: ir.Logic) -> Value:
    if w.lanes is not None and w.lanes.plan.differs(item):
        lanes: Value = w.lanes.logic(item)
        return lanes
    is_and = item.op == "and"
    result = condition(w, item.operands[0])
    for operand in item.operands[1:]:
        if is_cheap(operand):
            other = condition(w, operand)
            # Unlike `and i1`, `select` ignores poison in the second operand if the first decides.
            chosen = f"i1 {other}, i1 false" if is_and else f"i1 true, i1 {other}"
            result = w.op(f"select i1 {result}, {chosen}")
            continue
        slot = w.stack("i1")
        w.store("i1", result, slot)
        more, after = w.label(), w.label()
        w.branch(result, *((more, after) if is_and else (after, more)))
        w.block(more)
        w.store("i1", condition(w, operand), slot)
        w.block(after)
        result = w.load("i1", slot)
    return Value(BOOL, result)


def _select(w: Writer, item: ir.Select) -> Value | ArrayValue:
    if w.lanes is not None and w.lanes.plan.differs(item):
        lanes: Value = w.lanes.select(item)
        return lanes
    if isinstance(w.types.of(item), Array):
        raise Unsupported("a choice between arrays")
    kind = w.types.scalar(item)
    test = condition(w, item.test)
    if is_cheap(item.yes) and is_cheap(item.no):
        yes, no = value(w, item.yes, kind), value(w, item.no, kind)
        return Value(kind, w.select(test, yes.text, no.text, kind.ir))
    slot = w.stack(kind.ir)
    yes_block, no_block, after = w.label(), w.label(), w.label()
    w.branch(test, yes_block, no_block)
    for block, branch in ((yes_block, item.yes), (no_block, item.no)):
        w.block(block)
        w.store(kind.ir, value(w, branch, kind).text, slot)
        w.jump(after)
    w.block(after)
    return Value(kind, w.load(kind.ir, slot))


def call(w: Writer, item: ir.Call) -> Any:
    """A call's result: None if there is none, a list if there are several."""
    operands = [_argument(w, each) for each in item.arguments]
    if w.joined and item.function in calls.JOINED and item.arguments[0] in w.joined:
        joint: Value = w.program.joined_call(w, item.function, operands[0])
        return joint
    rule, type_ = w.program.call_rule(item.function), w.types.result_of(item)
    if not rule.lanes and any(isinstance(operand, Value) and operand.type.lanes > 1 for operand in operands):
        lanes: Value = w.lanes.one_by_one(rule, operands, type_)
        return lanes
    return rule.write(w, operands, type_)


def _called(w: Writer, item: ir.Call) -> Value | ArrayValue:
    result: Value | ArrayValue | None = call(w, item)
    if result is None:
        raise Unsupported(f"the result of {print_python.expression(item)}")
    return result


def _argument(w: Writer, item: ir.Expr) -> calls.Operand:
    """An argument: a value, a tuple of values, an element type, or the name of a function."""
    named = w.types.named(item)
    if named is not None:
        return named
    if isinstance(item, ir.Tuple):
        return tuple(any_value(w, each) for each in item.items)
    return any_value(w, item)


def is_cheap(item: ir.Expr) -> bool:
    """Whether an expression may be computed speculatively: it is cheap and has no effects."""
    return _cost(item) <= _MOST_CHEAP


def _cost(item: ir.Expr) -> int:
    """The number of instructions; more than `_MOST_CHEAP` if one of them must not be computed speculatively."""
    if isinstance(item, (ir.Var, ir.Const)):
        return 0
    if isinstance(item, (ir.Unary, ir.Binary)):
        if item.op not in _CHEAP_OPERATORS:
            return _TOO_MUCH
    elif isinstance(item, ir.Convert):
        if item.target == BOOL:
            return _TOO_MUCH
    elif not isinstance(item, (ir.Compare, ir.Logic, ir.Size)):
        return _TOO_MUCH
    return 1 + sum(_cost(operand) for operand in ir.operands(item))


_TOO_MUCH = _MOST_CHEAP + 1

_WRITERS: dict[type, Callable[[Writer, Any], Value | ArrayValue]] = {
    ir.Var: _var,
    ir.Size: _size,
    ir.Dim: _dim,
    ir.Load: _load,
    ir.Binary: _binary,
    ir.Unary: _unary,
    ir.Compare: _compare,
    ir.Convert: _convert,
    ir.Logic: _logic,
    ir.Select: _select,
    ir.Call: _called,
}
