"""Outer-loop vectorisation: writes the loops that `outer_loop_plan.py` has planned.

A variable that differs between lanes has a second stack slot, which holds a vector. Under a condition that differs, a
mask says which lanes are active; in the others, a variable that is used elsewhere keeps its value. Costly statements
(loops, calls, loads of elements) are skipped if no lane is active.

If a lane would leave the kernel with an error, nothing has been changed yet: the loop runs the next trip alone, without
lanes, and so finds the first error in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.kernel_ir import ir
from runtime.kernel_ir.types import BOOL, INT64, Scalar, Unsupported
from runtime.llvm import arithmetic, processor
from runtime.llvm.expressions import any_value, condition, is_cheap, value
from runtime.llvm.optimize.outer_loop_plan import Plan, ends_loop
from runtime.llvm.optimize.version_select import VersionSelect
from runtime.llvm.writer import Value, Writer, literal


def _width(plan: Plan) -> int:
    """The number of lanes. With the 32 registers of AVX-512, two vectors are used for each value, to hide latencies."""
    bits = processor.vector_bits()
    return max(bits * (2 if bits == 512 else 1) // plan.hot, 2)


_COSTLY = (ir.While, ir.Store, ir.Return, ir.Fail, ir.Load, ir.Dim, ir.Call)


def _is_harmless(item: ir.Statement | ir.Expr) -> bool:
    """Whether a statement or expression may be computed without active lanes: that is cheaper than a branch."""
    if isinstance(item, _COSTLY) or (isinstance(item, ir.Convert) and item.target == BOOL):
        return False
    if isinstance(item, ir.Binary) and item.op in ("/", "**"):
        return False
    if isinstance(item, ir.Binary) and item.op in ("//", "%") and ir.variables(item.right):
        return False
    if not all(_is_harmless(operand) for operand in ir.operands(item)):
        return False
    return not isinstance(item, ir.If) or all(_is_harmless(inner) for inner in (*item.body, *item.orelse))


WriteBlock = Callable[[Writer, Sequence[ir.Statement]], None]
_INTERRUPTED = ir.Call("lib.interrupted", ())


class Lanes:
    """Writes statements for lanes.

    mask    which lanes are active
    inside  the blocks around these statements that only some lanes run, with the condition of each, innermost last
    alone   the label at which the loop runs one trip without lanes
    """

    def __init__(
        self, w: Writer, block: WriteBlock, plan: Plan, width: int, first: Value, active: str, alone: str
    ) -> None:
        self.w = w
        self._block = block
        self.plan = plan
        self.width = width
        self.inside: list[tuple[ir.Block, Value]] = []
        self.alone = alone
        self._interrupts = {
            inner
            for item in ir.walk(plan.parallel)
            if isinstance(item, ir.If) and item.test == _INTERRUPTED
            for inner in item.body
        }
        steps = "<" + ", ".join(f"i64 {lane}" for lane in range(width)) + ">"
        line, counts = INT64.times(width), arithmetic.splat(w, Value(INT64, active), width)
        self.mask = Value(BOOL.times(width), w.binary("icmp ult", steps, counts.text, line.ir))
        base = arithmetic.splat(w, first, width)
        self._index = Value(line, w.binary("add", base.text, steps, line.ir), first.text)
        self._places: dict[str, str] = {}
        for name in sorted(plan.varying - {plan.index}):
            type_ = w.types.variables[name]
            if not isinstance(type_, Scalar):
                raise Unsupported("a vector of values that aren't numbers")
            self._places[name] = place = w.stack(type_.times(width).ir)
            # Every lane holds a number, so that operations in inactive lanes are defined.
            w.store(type_.times(width).ir, "zeroinitializer", place)

    def holds(self, name: str) -> bool:
        return name in self.plan.varying

    def load(self, name: str) -> Value:
        """The value of a variable as a vector."""
        if name == self.plan.index:
            return self._index
        type_ = self.w.types.variables[name].times(self.width)
        return Value(type_, self.w.load(type_.ir, self._places[name]))

    def store(self, name: str, found: Value) -> None:
        """Writes the active lanes of a variable."""
        w = self.w
        found = arithmetic.splat(w, found, self.width)
        # For a variable that is used nowhere else, only the conditions between its statements matter.
        conditions = []
        for body, condition_ in reversed(self.inside):
            if self.plan.is_local(name, body):
                break
            conditions.append(condition_)
        else:
            conditions = [self.mask] if self.inside else []
        if conditions:
            among = conditions[0] if len(conditions) == 1 else self.mask
            found = arithmetic.select(w, among, found, self.load(name))
        w.store(found.type.ir, found.text, self._places[name])

    def elements(self, item: ir.Load) -> Value:
        """Loads the elements of an array at an index that differs between lanes."""
        w = self.w
        whole: Any = any_value(w, item.array)
        kind = whole.type.element
        index = value(w, item.index)
        if index.type.is_float or index.type.kind == "b":
            raise Unsupported("an index that isn't an integer")
        memory = Scalar("uint8", "u", 8, self.width) if kind == BOOL else kind.times(self.width)
        mask = f"{self.mask.type.ir} {self.mask.text}"
        one = memory.times(1).ir
        if index.first is not None:
            place = w.at(whole.data, index.first, f"inbounds {one}")
            text = w.masked_load(memory.ir, place, kind.size, mask)
        else:
            wide = arithmetic.cast(w, index, INT64)
            place = w.op(f"getelementptr {one}, ptr {whole.data}, {wide.type.ir} {wide.text}")
            operands = f"<{self.width} x ptr> {place}", f"i32 {kind.size}", mask, f"{memory.ir} zeroinitializer"
            text = w.intrinsic("masked.gather", memory.ir, *operands)
        return arithmetic.truth(w, Value(memory, text)) if kind == BOOL else Value(kind.times(self.width), text)

    def one_by_one(self, rule: Any, operands: list[Any], type_: Any) -> Value:
        """Calls a function that takes no vectors once for each lane."""
        w = self.w
        if not isinstance(type_, Scalar) or not all(isinstance(operand, Value) for operand in operands):
            raise Unsupported("vectors as arguments of a function of arrays")
        result = f"{type_.times(self.width).ir}"
        found = "poison"
        for lane in range(self.width):
            given = []
            for operand in operands:
                one = operand.type.times(1)
                if operand.type.lanes > 1:
                    operand = Value(one, w.lane(operand.type.ir, operand.text, lane))
                given.append(operand)
            answer = rule.write(w, given, type_)
            found = w.with_lane(result, found, f"{type_.ir} {answer.text}", lane)
        return Value(type_.times(self.width), found)

    # --- under conditions --------------------------------------------------------------------------------------------

    def any(self, mask: Value) -> str:
        """Whether any lane of a mask is set."""
        whole = self.w.convert("bitcast", mask.type.ir, mask.text, f"i{self.width}")
        return self.w.binary("icmp ne", whole, 0, f"i{self.width}")

    def among(self, mask: Value, condition: Value) -> Value:
        """The lanes of a mask in which a condition holds; its value in other lanes doesn't matter."""
        return arithmetic.select(self.w, mask, condition, literal(False, mask.type))

    def under(self, mask: Value, item: ir.Expr, kind: Scalar, other: Value) -> Value:
        """An expression in the lanes of a mask, `other` in the rest. It isn't computed if the mask is empty."""
        w = self.w
        place = w.stack(other.type.ir)
        w.store(other.type.ir, other.text, place)
        some, after = w.label(), w.label()
        w.branch(self.any(mask), some, after)
        w.block(some)
        before, self.mask = self.mask, mask
        found = arithmetic.cast(w, value(w, item), kind)
        self.mask = before
        found = arithmetic.select(w, mask, found, other)
        w.store(found.type.ir, found.text, place)
        w.block(after)
        return Value(other.type, w.load(other.type.ir, place))

    def logic(self, item: ir.Logic) -> Value:
        """`and`, `or`: an operand is computed in the lanes that the operands before it leave undecided."""
        w, is_and = self.w, item.op == "and"
        result = arithmetic.splat(w, arithmetic.truth(w, value(w, item.operands[0])), self.width)
        for operand in item.operands[1:]:
            if is_cheap(operand):
                other = arithmetic.truth(w, value(w, operand))
                sides = (other, literal(False, BOOL)) if is_and else (literal(True, BOOL), other)
                result = arithmetic.select(w, result, *sides)
                continue
            undecided = result if is_and else arithmetic.negation(w, result)
            result = self.under(self.among(self.mask, undecided), operand, BOOL, result)
        return result

    def select(self, item: ir.Select) -> Value:
        w = self.w
        kind = w.types.scalar(item)
        test = arithmetic.splat(w, arithmetic.truth(w, value(w, item.test)), self.width)
        if is_cheap(item.yes) and is_cheap(item.no):
            return arithmetic.select(w, test, value(w, item.yes, kind), value(w, item.no, kind))
        yes = self.among(self.mask, test)
        no = self.among(self.mask, arithmetic.negation(w, test))
        found = self.under(no, item.no, kind, literal(0, kind.times(self.width)))
        return self.under(yes, item.yes, kind, found)

    def if_(self, item: ir.If) -> None:
        """An `if` whose condition differs between lanes."""
        w = self.w
        test = arithmetic.truth(w, value(w, item.test))
        if item.body and isinstance(item.body[-1], (ir.Return, ir.Fail)):
            right = w.label()
            w.branch(self.any(self.among(self.mask, test)), self.alone, right, unlikely=True)
            w.block(right)
        else:
            self._body(test, item.body)
        if item.orelse:
            self._body(arithmetic.negation(w, test), item.orelse)

    def _body(self, test: Value, body: ir.Block) -> None:
        """Writes statements for the lanes in which a test holds; costly ones are skipped if it holds in none."""
        w, after = self.w, None
        mask = self.among(self.mask, test)
        if not all(_is_harmless(item) for item in body):
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

    def while_(self, item: ir.While) -> None:
        """Writes a loop that some lanes leave before others."""
        w = self.w
        place = w.stack(self.mask.type.ir)
        w.store(self.mask.type.ir, self.mask.text, place)
        test, body, after = w.label(), w.label(), w.label()
        before = self.mask
        w.block(test)
        self.mask = Value(before.type, w.load(before.type.ir, place))
        running = self.among(self.mask, arithmetic.truth(w, value(w, item.test)))
        w.branch(self.any(running), body, after)
        w.block(body)
        w.store(running.type.ir, running.text, place)
        self.mask = running
        self.inside.append((item.body, running))
        for inner in item.body:
            if isinstance(inner, ir.If) and ends_loop(inner):
                self._break(place, inner, after)
                self.inside[-1] = item.body, self.mask
            else:
                self._block(w, [inner])
        self.inside.pop()
        w.repeat(test)
        w.block(after)
        self.mask = before

    def _break(self, place: str, item: ir.If, after: str) -> None:
        """Writes a `break` that only some lanes may reach."""
        w, on = self.w, self.w.label()
        left = arithmetic.truth(w, value(w, item.test))
        if item.body[:-1]:
            self._body(left, item.body[:-1])
        running = self.among(self.mask, arithmetic.negation(w, left))
        w.store(running.type.ir, running.text, place)
        w.branch(self.any(running), on, after)
        w.block(on)
        self.mask = running

    def must_run_alone(self, item: ir.Return | ir.Fail) -> bool:
        """Whether the loop has to run a trip without lanes to leave the kernel here: if only some lanes would leave it,
        and not for Ctrl-C."""
        return bool(self.inside) and item not in self._interrupts


def write(w: Writer, block: WriteBlock, item: ir.While) -> bool:
    """Writes a loop for lanes, its statements by `block`; False if it has no plan or does what lanes can't."""
    plan = w.plans.get(item)
    if plan is None or w.lanes is not None:
        return False
    kept = w.mark()
    try:
        _write(w, block, item, plan)
    except Unsupported:
        w.back_to(kept)
        return False
    finally:
        w.lanes = None
    w.program.lanes.append(_width(plan))
    return True


def _write(w: Writer, block: WriteBlock, item: ir.While, plan: Plan) -> None:
    width = _width(plan)
    w.declare_new()
    test, start, together, each, done, alone, after = (w.label() for _ in range(7))
    w.block(test)
    w.branch(condition(w, item.test), start, after)
    w.block(start)
    first = value(w, ir.Var(plan.index), INT64)
    left = w.binary("sub", value(w, plan.limit, INT64).text, first.text)
    few = w.binary("icmp slt", left, width)
    active = w.select(few, left, width)
    versions = VersionSelect(w)
    versions.choose(active, together, alone)
    w.block(together)
    w.lanes = Lanes(w, block, plan, width, first, active, alone)
    block(w, plan.parallel)
    stored = {name: _stored(w, name, width) for name in plan.stored}
    w.lanes = None
    lane = w.stack("i64")
    w.store("i64", 0, lane)
    w.block(each)
    at = w.load("i64", lane)
    for name, place in stored.items():
        w.write(name, _lane(w, name, place, at))
    block(w, plan.serial)
    more = w.binary("add", at, 1)
    w.store("i64", more, lane)
    again = w.label()
    w.branch(w.binary("icmp ult", more, active), again, done)
    w.block(again)
    w.repeat(each)
    w.block(done)
    versions.lanes_done()
    w.jump(test)
    w.block(alone)
    block(w, item.body)
    w.jump(test)
    w.block(after)


def _stored(w: Writer, name: str, width: int) -> str:
    """Stores the lanes of a variable in memory."""
    lanes: Any = w.read(name)
    kind = lanes.type.times(1)
    memory = f"<{width} x {kind.memory}>"
    text = lanes.text if kind != BOOL else w.convert("zext", lanes.type.ir, lanes.text, memory)
    place = w.stack(kind.memory, count=width)
    w.store(memory, text, place, 8)
    return place


def _lane(w: Writer, name: str, place: str, lane: str) -> Value:
    """Loads one of these lanes."""
    kind = w.types.variables[name]
    found = w.load(kind.memory, w.at(place, lane, kind.memory))
    return Value(kind, w.binary("icmp ne", found, 0, "i8")) if kind == BOOL else Value(kind, found)
