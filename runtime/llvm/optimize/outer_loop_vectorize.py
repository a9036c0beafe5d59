"""Loops in lanes as instructions: what `outer_loop_plan.py` has planned.

A variable that differs between lanes has a second place, which holds a vector. Under a condition that differs, a mask
says which lanes run; a variable that others see keeps its value in the lanes that don't. What only some lanes would pay
for (loops, calls, elements of arrays) is jumped over where none does.

Where a lane would leave the kernel with an error, nothing has been changed yet: the loop goes on by itself for one
trip, and so comes to the first error in order.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from typing import Any

from runtime.kernel_ir.types import BOOL, INT64, Scalar, Unsupported
from runtime.llvm import arithmetic, processor
from runtime.llvm.expressions import any_value, condition, is_cast, is_cheap, value
from runtime.llvm.optimize.outer_loop_plan import Plan, ends_loop
from runtime.llvm.optimize.version_select import Pace
from runtime.llvm.writer import Value, Writer, literal


@functools.cache
def _vector_bits() -> int:
    """How long the vectors are: with 32 registers, two of them each, which hide each other's latencies."""
    features = processor.features()
    return 1024 if features.get("avx512f") else 256 if features.get("avx2") else 128


_DEAR = (ast.While, ast.Subscript, ast.Return, ast.Pow, ast.Div)


def _width(found: Plan) -> int:
    return max(_vector_bits() // found.hot, 2)


def _is_plain(node: ast.AST) -> bool:
    """Whether statements may as well be done in vain."""
    if isinstance(node, ast.Call) and not is_cast(node):
        return False
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod)) and _names_something(node.right):
        return False
    return not isinstance(node, _DEAR) and all(_is_plain(part) for part in ast.iter_child_nodes(node))


def _names_something(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Name) and part.id != "np" for part in ast.walk(node))


Block = Callable[[Writer, Sequence[ast.stmt]], None]  # writes statements


class Lanes:
    """Statements being written for lanes.

    mask    which lanes run
    inside  statements around these that only some lanes run, and the condition by which they do, innermost last
    alone   where the loop runs one trip by itself
    """

    def __init__(self, w: Writer, block: Block, found: Plan, width: int, first: Value, active: str, alone: str) -> None:
        self.w = w
        self._block = block
        self.plan = found
        self.width = width
        self.inside: list[tuple[list[ast.stmt], Value]] = []
        self.alone = alone
        self._questions = {
            id(inner)
            for statement in found.apart
            for part in ast.walk(statement)
            if isinstance(part, ast.If) and ast.unparse(part.test) == "lib.interrupted()"
            for inner in part.body
        }
        steps = "<" + ", ".join(f"i64 {lane}" for lane in range(width)) + ">"
        line, counts = INT64.times(width), arithmetic.spread(w, Value(INT64, active), width)
        self.mask = Value(BOOL.times(width), w.op(f"icmp ult {line.ir} {steps}, {counts.text}"))
        base = arithmetic.spread(w, first, width)
        self._index = Value(line, w.op(f"add {line.ir} {base.text}, {steps}"), first.text)
        self._places: dict[str, str] = {}
        for name in sorted(found.varying - {found.index}):
            type_ = w.types.variables[name]
            if not isinstance(type_, Scalar):
                raise Unsupported("lanes of something else than numbers")
            self._places[name] = place = w.stack(type_.times(width).ir)
            # Every lane holds some number, so that what is done in vain to those at rest has an answer.
            w.line(f"store {type_.times(width).ir} zeroinitializer, ptr {place}")

    def holds(self, name: str) -> bool:
        return name in self.plan.varying

    def load(self, name: str) -> Value:
        """A variable's lanes."""
        if name == self.plan.index:
            return self._index
        type_ = self.w.types.variables[name].times(self.width)
        return Value(type_, self.w.op(f"load {type_.ir}, ptr {self._places[name]}"))

    def store(self, name: str, found: Value) -> None:
        """Writes the lanes that run."""
        w = self.w
        found = arithmetic.spread(w, found, self.width)
        # Where nothing else sees the variable, it matters only by which conditions its statements divide the lanes.
        conditions = []
        for body, condition_ in reversed(self.inside):
            if self.plan.is_local(name, body):
                break
            conditions.append(condition_)
        else:
            conditions = [self.mask] if self.inside else []
        if conditions:
            among = conditions[0] if len(conditions) == 1 else self.mask
            found = arithmetic.chosen(w, among, found, self.load(name))
        w.line(f"store {found.type.ir} {found.text}, ptr {self._places[name]}")

    def elements(self, node: ast.Subscript) -> Value:
        """The elements of an array at an index that differs between lanes."""
        w = self.w
        whole: Any = any_value(w, node.value)
        kind = whole.type.element
        index = value(w, node.slice)
        if index.type.is_float or index.type.kind == "b":
            raise Unsupported("an index that isn't an integer")
        memory = Scalar("uint8", "u", 8, self.width) if kind == BOOL else kind.times(self.width)
        kept = f"{memory.ir} zeroinitializer"
        mask = f"{self.mask.type.ir} {self.mask.text}"
        suffix = f"v{self.width}{'f' if kind.is_float else 'i'}{memory.bits}"
        one = memory.times(1).ir
        if index.first is not None:
            place = w.op(f"getelementptr inbounds {one}, ptr {whole.data}, i64 {index.first}")
            name, pointer = f"@llvm.masked.load.{suffix}.p0", "ptr"
        else:
            wide = arithmetic.cast(w, index, INT64)
            place = w.op(f"getelementptr {one}, ptr {whole.data}, {wide.type.ir} {wide.text}")
            name, pointer = f"@llvm.masked.gather.{suffix}.v{self.width}p0", f"<{self.width} x ptr>"
        w.program.declare(f"declare {memory.ir} {name}({pointer}, i32, {self.mask.type.ir}, {memory.ir})")
        found = Value(memory, w.op(f"call {memory.ir} {name}({pointer} {place}, i32 {kind.size}, {mask}, {kept})"))
        return arithmetic.truth(w, found) if kind == BOOL else Value(kind.times(self.width), found.text)

    def one_by_one(self, row: Any, operands: list[Any], type_: Any) -> Value:
        """A function of numbers that knows no lanes, called for each."""
        w = self.w
        if not isinstance(type_, Scalar) or not all(isinstance(operand, Value) for operand in operands):
            raise Unsupported("lanes as arguments of a function of arrays")
        result = f"{type_.times(self.width).ir}"
        found = "poison"
        for lane in range(self.width):
            given = []
            for operand in operands:
                one = operand.type.times(1)
                if operand.type.lanes > 1:
                    operand = Value(one, w.op(f"extractelement {operand.type.ir} {operand.text}, i64 {lane}"))
                given.append(operand)
            answer = row.write(w, given, type_)
            found = w.op(f"insertelement {result} {found}, {type_.ir} {answer.text}, i64 {lane}")
        return Value(type_.times(self.width), found)

    # --- under conditions --------------------------------------------------------------------------------------------

    def any(self, mask: Value) -> str:
        """Whether there is a lane in a mask."""
        whole = self.w.op(f"bitcast {mask.type.ir} {mask.text} to i{self.width}")
        return self.w.op(f"icmp ne i{self.width} {whole}, 0")

    def among(self, mask: Value, condition: Value) -> Value:
        """The lanes of a mask where a condition holds; what it is in others doesn't matter."""
        return arithmetic.chosen(self.w, mask, condition, literal(False, mask.type))

    def under(self, mask: Value, node: ast.expr, kind: Scalar, other: Value) -> Value:
        """An expression in the lanes of a mask, `other` in the rest; not computed where there are none."""
        w = self.w
        place = w.stack(other.type.ir)
        w.line(f"store {other.type.ir} {other.text}, ptr {place}")
        some, after = w.label(), w.label()
        w.branch(self.any(mask), some, after)
        w.block(some)
        before, self.mask = self.mask, mask
        found = arithmetic.cast(w, value(w, node), kind)
        self.mask = before
        found = arithmetic.chosen(w, mask, found, other)
        w.line(f"store {found.type.ir} {found.text}, ptr {place}")
        w.block(after)
        return Value(other.type, w.op(f"load {other.type.ir}, ptr {place}"))

    def bool_op(self, node: ast.BoolOp) -> Value:
        """`and`, `or`: an operand is computed in the lanes whose answer it decides."""
        w, is_and = self.w, isinstance(node.op, ast.And)
        result = arithmetic.spread(w, arithmetic.truth(w, value(w, node.values[0])), self.width)
        for operand in node.values[1:]:
            if is_cheap(operand):
                other = arithmetic.truth(w, value(w, operand))
                sides = (other, literal(False, BOOL)) if is_and else (literal(True, BOOL), other)
                result = arithmetic.chosen(w, result, *sides)
                continue
            undecided = result if is_and else arithmetic.negation(w, result)
            result = self.under(self.among(self.mask, undecided), operand, BOOL, result)
        return result

    def if_exp(self, node: ast.IfExp) -> Value:
        w = self.w
        kind = w.types.scalar(node)
        test = arithmetic.spread(w, arithmetic.truth(w, value(w, node.test)), self.width)
        if is_cheap(node.body) and is_cheap(node.orelse):
            return arithmetic.chosen(w, test, value(w, node.body, kind), value(w, node.orelse, kind))
        yes = self.among(self.mask, test)
        no = self.among(self.mask, arithmetic.negation(w, test))
        found = self.under(no, node.orelse, kind, literal(0, kind.times(self.width)))
        return self.under(yes, node.body, kind, found)

    def if_(self, node: ast.If) -> None:
        """An `if` whose condition differs between lanes."""
        w = self.w
        test = arithmetic.truth(w, value(w, node.test))
        if isinstance(node.body[-1], ast.Return):
            right = w.label()
            w.branch(self.any(self.among(self.mask, test)), self.alone, right, unlikely=True)
            w.block(right)
        else:
            self._body(test, node.body)
        if node.orelse:
            self._body(arithmetic.negation(w, test), node.orelse)

    def _body(self, test: Value, body: list[ast.stmt]) -> None:
        w, after = self.w, None
        mask = self.among(self.mask, test)
        if not all(_is_plain(statement) for statement in body):
            some, after = w.label(), w.label()
            w.branch(self.any(mask), some, after)
            w.block(some)
        before, self.mask = self.mask, mask
        self.inside.append((body, test))
        self._block(w, body)
        self.inside.pop()
        self.mask = before
        if after is not None:
            w.block(after)

    def while_(self, node: ast.While) -> None:
        """A loop that some lanes leave before others."""
        w = self.w
        place = w.stack(self.mask.type.ir)
        w.line(f"store {self.mask.type.ir} {self.mask.text}, ptr {place}")
        test, body, after = w.label(), w.label(), w.label()
        before = self.mask
        w.block(test)
        self.mask = Value(before.type, w.op(f"load {before.type.ir}, ptr {place}"))
        running = self.among(self.mask, arithmetic.truth(w, value(w, node.test)))
        w.branch(self.any(running), body, after)
        w.block(body)
        w.line(f"store {running.type.ir} {running.text}, ptr {place}")
        self.mask = running
        self.inside.append((node.body, running))
        for statement in node.body:
            if ends_loop(statement):
                self._leave(place, statement, after)
                self.inside[-1] = node.body, self.mask
            else:
                self._block(w, [statement])
        self.inside.pop()
        w.repeat(test)
        w.block(after)
        self.mask = before

    def _leave(self, place: str, node: Any, after: str) -> None:
        """Lanes leave a loop in the middle of a trip."""
        w, on = self.w, self.w.label()
        left = arithmetic.truth(w, value(w, node.test))
        if node.body[:-1]:
            self._body(left, node.body[:-1])
        running = self.among(self.mask, arithmetic.negation(w, left))
        w.line(f"store {running.type.ir} {running.text}, ptr {place}")
        w.branch(self.any(running), on, after)
        w.block(on)
        self.mask = running

    def alone_for(self, node: ast.Return) -> bool:
        """Whether the loop has to run by itself to leave the kernel here: where only some lanes would, unless it is
        for Ctrl-C."""
        return bool(self.inside) and id(node) not in self._questions


def write(w: Writer, block: Block, node: ast.While) -> bool:
    """Writes a loop for lanes, its statements by `block`; False where it isn't one for them, or does something that
    lanes can't."""
    found = w.plans.get(id(node))
    if found is None or w.lanes is not None:
        return False
    kept = w.mark()
    try:
        _write(w, block, node, found)
    except Unsupported:
        w.back_to(kept)
        return False
    finally:
        w.lanes = None
    w.program.lanes.append(_width(found))
    return True


def _write(w: Writer, block: Block, node: ast.While, found: Plan) -> None:
    width = _width(found)
    w.declare_new()
    test, start, together, each, done, alone, after = (w.label() for _ in range(7))
    w.block(test)
    w.branch(condition(w, node.test), start, after)
    w.block(start)
    first = value(w, ast.Name(found.index, ast.Load()), INT64)
    left = w.op(f"sub i64 {value(w, found.limit, INT64).text}, {first.text}")
    few = w.op(f"icmp slt i64 {left}, {width}")
    active = w.op(f"select i1 {few}, i64 {left}, i64 {width}")
    pace = Pace(w)
    pace.choose(active, together, alone)
    w.block(together)
    w.lanes = Lanes(w, block, found, width, first, active, alone)
    block(w, found.apart)
    taken = {name: _kept(w, name, width) for name in found.taken}
    w.lanes = None
    lane = w.stack("i64")
    w.line(f"store i64 0, ptr {lane}")
    w.block(each)
    at = w.op(f"load i64, ptr {lane}")
    for name, place in taken.items():
        w.store(name, _taken(w, name, place, at))
    block(w, found.in_turn)
    more = w.op(f"add i64 {at}, 1")
    w.line(f"store i64 {more}, ptr {lane}")
    again = w.label()
    w.branch(w.op(f"icmp ult i64 {more}, {active}"), again, done)
    w.block(again)
    w.repeat(each)
    w.block(done)
    pace.lanes_done()
    w.jump(test)
    w.block(alone)
    block(w, node.body)
    w.jump(test)
    w.block(after)


def _kept(w: Writer, name: str, width: int) -> str:
    """A variable's lanes in memory."""
    lanes: Any = w.load(name)
    kind = lanes.type.times(1)
    memory = f"<{width} x {kind.memory}>"
    text = lanes.text if kind != BOOL else w.op(f"zext {lanes.type.ir} {lanes.text} to {memory}")
    place = w.stack(kind.memory, count=width)
    w.line(f"store {memory} {text}, ptr {place}, align 8")
    return place


def _taken(w: Writer, name: str, place: str, lane: str) -> Value:
    """One lane of them."""
    kind = w.types.variables[name]
    found = w.op(f"load {kind.memory}, ptr {w.op(f'getelementptr {kind.memory}, ptr {place}, i64 {lane}')}")
    return Value(kind, w.op(f"icmp ne i8 {found}, 0")) if kind == BOOL else Value(kind, found)
