"""Statements as instructions, and the function around them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from runtime.kernel_ir.types import BOOL, Scalar, Tuple, Unsupported
from runtime.llvm import memory
from runtime.llvm.arithmetic import cast
from runtime.llvm.expressions import call, condition, element, typed, value
from runtime.llvm.optimize import outer_loop_vectorize
from runtime.llvm.writer import BY_TWO, MASKED_ROW, ROW, ArrayValue, Value, Writer, literal, parts


def block(w: Writer, body: Sequence[ast.stmt]) -> None:
    """Writes statements in order."""
    for statement in body:
        _WRITERS[type(statement)](w, statement)


def _assign(w: Writer, node: ast.Assign) -> None:
    (target,) = node.targets
    if isinstance(target, ast.Name) and target.id in w.types.tuples:
        return  # its elements stand for themselves
    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Call):
        _assign_results(w, target.elts, node.value)
    elif isinstance(target, ast.Tuple):
        _assign_several(w, target.elts, w.types.items(node.value))
    elif isinstance(target, ast.Name):
        _to_variable(w, target.id, _for_variable(w, target.id, node.value))
    else:
        assert isinstance(target, ast.Subscript)
        _to_element(w, target, node.value)


def _for_variable(w: Writer, name: str, node: ast.expr) -> Value | ArrayValue:
    type_ = w.types.variables[name]
    assert type_ is not None
    return typed(w, node, type_)


def _to_variable(w: Writer, name: str, found: Value | ArrayValue) -> None:
    if isinstance(found, ArrayValue):
        memory.assign(w, name, found)
    else:
        w.store(name, found)


def _assign_several(w: Writer, targets: Sequence[ast.expr], values: Sequence[ast.expr]) -> None:
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    if len(names) != len(targets):
        raise Unsupported("unpacking into elements")
    found = [_for_variable(w, name, node) for name, node in zip(names, values)]
    sources = [node.id for node in values if isinstance(node, ast.Name)]
    if sorted(names) == sorted(sources):  # an exchange: no reference comes or goes
        for name, item in zip(names, found):
            w.store(name, item)
        return
    for item in found:
        if isinstance(item, ArrayValue):
            memory.take(w, item)
    for name, item in zip(names, found):
        if isinstance(item, ArrayValue):
            item = ArrayValue(item.type, item.owner, item.data, item.dims, owned=True)
        _to_variable(w, name, item)


def _assign_results(w: Writer, targets: Sequence[ast.expr], node: ast.Call) -> None:
    for target, found in zip(targets, call(w, node)):
        if not isinstance(target, ast.Name):
            raise Unsupported("unpacking into elements")
        kind = w.types.variables[target.id]
        _to_variable(w, target.id, cast(w, found, kind) if isinstance(kind, Scalar) else found)


def _to_element(w: Writer, target: ast.Subscript, node: ast.expr) -> None:
    kind = w.types.scalar(target)
    found = value(w, node, kind)
    place = element(w, target)
    text = w.op(f"zext i1 {found.text} to i8") if kind == BOOL else found.text
    w.line(f"store {kind.memory} {text}, ptr {place}")


def _augment(w: Writer, node: ast.AugAssign) -> None:
    if isinstance(node.target, ast.Name):
        read: ast.expr = ast.Name(node.target.id, ast.Load())
    else:
        assert isinstance(node.target, ast.Subscript)
        read = ast.Subscript(node.target.value, node.target.slice, ast.Load())
    plain = ast.BinOp(read, node.op, node.value)
    _assign(w, ast.Assign([node.target], plain))


def _if(w: Writer, node: ast.If) -> None:
    if w.lanes is not None and w.lanes.plan.differs(node.test):
        w.lanes.if_(node)
        return
    yes, no, after = w.label(), w.label(), w.label()
    leaves = isinstance(node.body[-1], ast.Return)
    w.branch(condition(w, node.test), yes, no if node.orelse else after, unlikely=leaves)
    w.block(yes)
    block(w, node.body)
    w.jump(after)
    if node.orelse:
        w.block(no)
        block(w, node.orelse)
        w.jump(after)
    w.block(after)


def _while(w: Writer, node: ast.While) -> None:
    if w.lanes is not None and w.lanes.plan.divides(node):
        w.lanes.while_(node)
        return
    if outer_loop_vectorize.write(w, block, node):
        return
    test, body, after = w.label(), w.label(), w.label()
    w.block(test)
    w.branch(condition(w, node.test), body, after)
    w.block(body)
    w.loops.append((test, after))
    block(w, node.body)
    w.loops.pop()
    w.jump(test)
    w.block(after)


def _for(w: Writer, node: ast.For) -> None:
    assert isinstance(node.target, ast.Name)
    name = node.target.id
    kind = w.types.variables[name]
    assert isinstance(kind, Scalar)
    if kind.is_float:
        raise Unsupported("a range of floats")
    bounds = w.types.range(node)
    start = literal(0, kind) if len(bounds) == 1 else value(w, bounds[0], kind)
    stop = value(w, bounds[min(len(bounds), 2) - 1], kind)
    step = w.types.constant(bounds[2]) if len(bounds) == 3 else 1
    if not isinstance(step, int) or step == 0:
        raise Unsupported("a range with a computed step")
    counter = w.stack(kind.ir)
    w.line(f"store {kind.ir} {start.text}, ptr {counter}")
    test, body, following, after = (w.label() for _ in range(4))
    w.block(test)
    index = w.op(f"load {kind.ir}, ptr {counter}")
    sign = "s" if kind.is_signed else "u"
    w.branch(w.op(f"icmp {sign}{'lt' if step > 0 else 'gt'} {kind.ir} {index}, {stop.text}"), body, after)
    w.block(body)
    w.store(name, Value(kind, index))
    w.loops.append((following, after))
    block(w, node.body)
    w.loops.pop()
    w.block(following)
    # With a step of 1 the index can't overflow: it is below the bound.
    flags = f" n{sign}w" if step == 1 else ""
    again = w.op(f"load {kind.ir}, ptr {counter}")
    w.line(f"store {kind.ir} {w.op(f'add{flags} {kind.ir} {again}, {step}')}, ptr {counter}")
    hint = _row_hint(w, node, stop.text) or _pace_hint(node)
    if hint:
        w.repeat(test, hint)
    else:
        w.jump(test)
    w.block(after)


# Elements of a row up to which it is written out, so that LLVM may make vectors of several rows.
_WRITTEN_OUT = 4
_WIDE = 16  # elements that may fit a vector
_TAKEN_TOGETHER = 32  # bytes of a row up to which totals of several rows are vectors


def _row_hint(w: Writer, node: ast.For, count: str) -> str | None:
    """What LLVM shall know of a loop along a row, in a part of a nest, whose length the text says."""
    if not count.isdigit() or not _is_part(w.types.function) or int(count) <= _WRITTEN_OUT:
        return None
    if _gives_totals_only(w.types.function):
        loads = [w.types.scalar(part) for part in ast.walk(node) if isinstance(part, ast.Subscript)]
        if int(count) * max(((kind.bits + 7) // 8 for kind in loads), default=1) <= _TAKEN_TOGETHER:
            return None
    slow = any(isinstance(part, ast.Attribute) and w.program.has_formula(part.attr) for part in ast.walk(node))
    left_over = int(count) % _WIDE
    return MASKED_ROW if slow and (int(count) < _WIDE or left_over > _WIDE // 2) else ROW


def _is_part(function: ast.FunctionDef) -> bool:
    """Whether it stands for a part of a nest that threads share."""
    return any(isinstance(mark, ast.Attribute) and mark.attr == "part" for mark in function.decorator_list)


def _gives_totals_only(function: ast.FunctionDef) -> bool:
    """Whether a part of a nest writes nothing along its rows."""
    (rows,) = (statement for statement in function.body if isinstance(statement, ast.For))
    inner = [part for statement in rows.body for part in ast.walk(statement) if isinstance(part, ast.For)]
    return not any(
        isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store) for loop in inner for part in ast.walk(loop)
    )


def _pace_hint(node: ast.For) -> str | None:
    """Two vectors a trip where the divider has much to do: some divisions may then be done elsewhere
    (`optimize/divide_by_newton.py`)."""
    parts = [part for statement in node.body for part in ast.walk(statement)]
    if any(isinstance(part, (ast.For, ast.While)) for part in parts):
        return None
    divides = any(isinstance(part, ast.Div) for part in parts)
    roots = any(isinstance(part, ast.Attribute) and part.attr == "sqrt" for part in parts)
    return BY_TWO if divides and roots else None


def _break(w: Writer, node: ast.Break) -> None:
    w.jump(w.loops[-1][1])


def _continue(w: Writer, node: ast.Continue) -> None:
    w.jump(w.loops[-1][0])


def _return(w: Writer, node: ast.Return) -> None:
    if w.lanes is not None and w.lanes.alone_for(node):
        w.jump(w.lanes.alone)
        return
    result = w.types.result
    if node.value is not None:
        items = w.types.items(node.value)
        types = result.items if isinstance(result, Tuple) else (result,)
        position = 0
        found = [typed(w, item, type_) for item, type_ in zip([node.value] if items is None else items, types)]
        if any(isinstance(item, Value) and item.type.lanes > 1 for item in found):
            raise Unsupported("lanes in a result")
        if w.direct:
            w.line(f"store {found[0].type.ir} {found[0].text}, ptr %result")  # type: ignore[union-attr]
            w.jump("exit")
            return
        for item in found:
            position = _give(w, item, position)
    w.jump("exit")


def _give(w: Writer, item: Value | ArrayValue, position: int) -> int:
    """Writes a result where the caller says; the position of the next one."""
    if isinstance(item, Value):
        w.line(f"store {item.type.ir} {item.text}, ptr %out{position}")
        return position + 1
    memory.take(w, item)
    for offset, (type_, text) in enumerate(parts(item)):
        w.line(f"store {type_} {text}, ptr %out{position + offset}")
    return position + 2 + item.type.rank


def _expression(w: Writer, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Call):
        found = call(w, node.value)
        if isinstance(found, ArrayValue) and found.owned:
            memory.drop(w, found.owner)


_WRITERS: dict[type, Any] = {
    ast.Assign: _assign,
    ast.AugAssign: _augment,
    ast.If: _if,
    ast.While: _while,
    ast.For: _for,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Return: _return,
    ast.Expr: _expression,
    ast.Pass: lambda w, node: None,
}
