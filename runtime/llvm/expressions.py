"""Expressions as instructions."""

from __future__ import annotations

import ast
from typing import Any

from runtime.kernel_ir.types import BOOL, INT64, Array, Scalar, Type, Unsupported
from runtime.llvm import arithmetic, calls
from runtime.llvm.writer import ArrayValue, Value, Writer, literal

# Expressions of these are computed whether they are needed or not, so that a choice between them is one instruction.
_CHEAP = (
    ast.Name, ast.Constant, ast.Load, ast.UnaryOp, ast.USub, ast.Not, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.BitAnd,
    ast.BitOr, ast.BitXor, ast.Compare, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.BoolOp, ast.And,
    ast.Or, ast.Attribute,
)  # fmt: skip
_CASTS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"})
_MOST_CHEAP = 24  # nodes of a syntax tree


def any_value(w: Writer, node: ast.expr) -> Value | ArrayValue:
    """The value of an expression."""
    folded = w.types.constant(node)
    if folded is not None:
        return literal(folded, w.types.scalar(node))
    writer: Any = _WRITERS.get(type(node))
    if writer is None:
        raise Unsupported(f"an expression {type(node).__name__}")
    return writer(w, node)


def value(w: Writer, node: ast.expr, type_: Scalar | None = None) -> Value:
    """The value of an expression that is a number; of the type given, or its own."""
    if type_ is not None:
        folded = w.types.constant(node)
        if folded is not None and (type_.is_float or not isinstance(folded, float)):
            return literal(folded, type_)
    found = any_value(w, node)
    if not isinstance(found, Value):
        raise Unsupported(f"the array {ast.unparse(node)} where a number is expected")
    return found if type_ is None else arithmetic.cast(w, found, type_)


def array(w: Writer, node: ast.expr) -> ArrayValue:
    """The value of an expression that is an array."""
    found = any_value(w, node)
    if not isinstance(found, ArrayValue):
        raise Unsupported(f"the number {ast.unparse(node)} where an array is expected")
    return found


def typed(w: Writer, node: ast.expr, type_: Type) -> Value | ArrayValue:
    """The value of an expression as a variable of this type holds it."""
    return value(w, node, type_) if isinstance(type_, Scalar) else array(w, node)


def condition(w: Writer, node: ast.expr) -> str:
    """The operand of a truth value that decides where to go on."""
    found = arithmetic.truth(w, value(w, node))
    if found.type.lanes > 1:
        raise Unsupported("a condition that differs between lanes")
    return found.text


def _name(w: Writer, node: ast.Name) -> Value | ArrayValue:
    if node.id not in w.places:
        raise Unsupported(f"the name {node.id}")
    return w.load(node.id)


def _attribute(w: Writer, node: ast.Attribute) -> Value:
    return Value(INT64, w.size(array(w, node.value)))


def _subscript(w: Writer, node: ast.Subscript) -> Value:
    if isinstance(node.value, ast.Attribute):
        dimension = w.types.constant(node.slice)
        assert isinstance(dimension, int)
        return Value(INT64, array(w, node.value.value).dims[dimension])
    if w.lanes is not None and w.lanes.plan.differs(node.slice):
        lanes: Value = w.lanes.elements(node)
        return lanes
    place = element(w, node)
    kind = w.types.scalar(node)
    loaded = w.op(f"load {kind.memory}, ptr {place}")
    return Value(kind, w.op(f"icmp ne i8 {loaded}, 0")) if kind == BOOL else Value(kind, loaded)


def element(w: Writer, node: ast.Subscript) -> str:
    """Where an array's element is."""
    whole = array(w, node.value)
    index = value(w, node.slice)
    if index.type.is_float or index.type == BOOL:
        raise Unsupported("an index that isn't an integer")
    if isinstance(w.types.constant(node.slice), int) and index.text.startswith("-"):
        raise Unsupported("an index from the end")
    return w.element(whole, index)


def _binary(w: Writer, node: ast.BinOp) -> Value:
    result = w.types.scalar(node)
    own = isinstance(node.op, (ast.FloorDiv, ast.Mod, ast.Pow))  # these look at the types of their operands
    left, right = (value(w, side, result if result.is_float and not own else None) for side in (node.left, node.right))
    return arithmetic.binary(w, node.op, left, right, result)


def _unary(w: Writer, node: ast.UnaryOp) -> Value:
    operand = value(w, node.operand)
    if isinstance(node.op, ast.Not):
        return arithmetic.negation(w, operand)
    if isinstance(node.op, ast.USub):
        return arithmetic.negated(w, operand, w.types.scalar(node))
    if isinstance(node.op, ast.Invert):
        return arithmetic.inverted(w, operand, w.types.scalar(node))
    return operand


def _compare(w: Writer, node: ast.Compare) -> Value:
    if len(node.ops) != 1:
        raise Unsupported("a chain of comparisons")
    return arithmetic.compare(w, node.ops[0], value(w, node.left), value(w, node.comparators[0]))


def _bool_op(w: Writer, node: ast.BoolOp) -> Value:
    if w.lanes is not None and w.lanes.plan.differs(node):
        lanes: Value = w.lanes.bool_op(node)
        return lanes
    is_and = isinstance(node.op, ast.And)
    result = condition(w, node.values[0])
    for operand in node.values[1:]:
        if is_cheap(operand):
            other = condition(w, operand)
            # Unlike `and i1`, it doesn't look at the second operand unless it is needed.
            chosen = f"i1 {other}, i1 false" if is_and else f"i1 true, i1 {other}"
            result = w.op(f"select i1 {result}, {chosen}")
            continue
        place = w.stack("i1")
        w.line(f"store i1 {result}, ptr {place}")
        more, after = w.label(), w.label()
        w.branch(result, *((more, after) if is_and else (after, more)))
        w.block(more)
        w.line(f"store i1 {condition(w, operand)}, ptr {place}")
        w.block(after)
        result = w.op(f"load i1, ptr {place}")
    return Value(BOOL, result)


def _if_exp(w: Writer, node: ast.IfExp) -> Value | ArrayValue:
    if w.lanes is not None and w.lanes.plan.differs(node):
        lanes: Value = w.lanes.if_exp(node)
        return lanes
    type_ = w.types.of(node)
    if isinstance(type_, Array):
        raise Unsupported("a choice between arrays")
    kind = w.types.scalar(node)
    test = condition(w, node.test)
    if is_cheap(node.body) and is_cheap(node.orelse):
        yes, no = value(w, node.body, kind), value(w, node.orelse, kind)
        return Value(kind, w.op(f"select i1 {test}, {kind.ir} {yes.text}, {kind.ir} {no.text}"))
    place = w.stack(kind.ir)
    yes_block, no_block, after = w.label(), w.label(), w.label()
    w.branch(test, yes_block, no_block)
    for block, branch in ((yes_block, node.body), (no_block, node.orelse)):
        w.block(block)
        w.line(f"store {kind.ir} {value(w, branch, kind).text}, ptr {place}")
        w.jump(after)
    w.block(after)
    return Value(kind, w.op(f"load {kind.ir}, ptr {place}"))


def call(w: Writer, node: ast.Call) -> Any:
    """A call's result; None where there is none, a list of several."""
    operands = [_operand(w, argument) for argument in node.args]
    module, _, name = ast.unparse(node.func).partition(".") if w.joined else ("", "", "")
    if module == "lib" and name in calls.JOINED and ast.unparse(node.args[0]) in w.joined:
        joint: Value = w.program.joined_call(w, name, operands[0])
        return joint
    row, type_ = calls.row(w.program, node.func), w.types.of(node)
    if not row.lanes and any(isinstance(operand, Value) and operand.type.lanes > 1 for operand in operands):
        lanes: Value = w.lanes.one_by_one(row, operands, type_)
        return lanes
    return row.write(w, operands, type_)


def _used(node: ast.Call, result: Value | ArrayValue | None) -> Value | ArrayValue:
    if result is None:
        raise Unsupported(f"the result of {ast.unparse(node)}")
    return result


def _operand(w: Writer, node: ast.expr) -> calls.Operand:
    """An argument: a value, several, an element type, or the name of a function."""
    named = w.types.named(node)
    if named is not None:
        return named
    if isinstance(node, ast.Tuple):
        return tuple(any_value(w, item) for item in node.elts)
    return any_value(w, node)


def is_cheap(node: ast.expr) -> bool:
    """Whether computing an expression in vain costs little and does no harm."""
    count = 0
    for part in ast.walk(node):
        count += 1
        if isinstance(part, ast.Call):
            if not is_cast(part):
                return False
        elif not isinstance(part, _CHEAP):
            return False
    return count <= _MOST_CHEAP


def is_cast(node: ast.Call) -> bool:
    """Whether a call is a number's conversion."""
    return isinstance(node.func, ast.Attribute) and node.func.attr in _CASTS


_WRITERS: dict[type, Any] = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.BoolOp: _bool_op,
    ast.IfExp: _if_exp,
    ast.Call: lambda w, node: _used(node, call(w, node)),
}
