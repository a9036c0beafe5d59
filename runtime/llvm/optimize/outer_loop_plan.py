"""Outer-loop vectorisation, the plan: which loops' trips can run side by side in the lanes of vectors.

    while index < n:                            lanes of  index = index + 0, 1, 2, ...
        x = a[index]                                      x = a[index]
        while abs(x) > 1e-9:              →               while any lane's abs(x) > 1e-9:
            x = x - f(x) / g(x)                               x = x - f(x) / g(x)  in those lanes
        index = index + 1                       each lane in turn
        total = total + x                                 index = index + 1
                                                          total = total + x

A trip has two parts. Statements that don't depend on earlier trips (`parallel`) run in lanes; lanes whose inner loops
have ended wait for the others. The rest (`serial`: sums of floats, stores to arrays) runs lane by lane, unchanged, so
that every result has the same bits as without lanes. Integer sums, which wrap around, may be split: inside an inner
loop, `total = total + 1` counts from zero, and the serial part adds the count.

LLVM vectorises innermost loops; this pass is for the others. A loop that is left in the middle doesn't qualify, since
lanes may only begin trips that would be made. (Errors are an exception: a trip that never ends, a few trips after one
that fails, hides the error.)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

from runtime.dataclass import dataclass
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.accesses import accesses
from runtime.kernel_ir.analysis.liveness import Liveness
from runtime.kernel_ir.analysis.loops import counter_of
from runtime.kernel_ir.analysis.uses import Uses
from runtime.kernel_ir.types import BOOL, INT64, Array, Scalar, Unsupported

_LARGEST = 1500  # the most statements and expressions in a trip
_FEWEST = 5  # trips: with fewer, most lanes would have no work


@dataclass
class Plan:
    """A loop `while index < limit` as lanes run it.

    parallel  statements that the lanes run together; variables of theirs outside `varying` are the same in all lanes
    serial    statements that run afterwards, for one lane after the other
    stored    variables of the lanes that the serial statements, or statements after the loop, read
    hot       the bits of the widest number that inner loops assign
    names     how often the function mentions each variable
    """

    uses: Uses
    liveness: Liveness
    index: str
    limit: ir.Expr
    parallel: ir.Block
    serial: ir.Block
    varying: set[str] = field(default_factory=set)
    stored: list[str] = field(default_factory=list)
    hot: int = 64
    names: Counter[str] = field(default_factory=Counter)
    _local: dict[int, tuple[ir.Block, set[str]]] = field(default_factory=dict)

    def differs(self, item: ir.Expr) -> bool:
        """Whether an expression may differ between lanes."""
        return not self.varying.isdisjoint(self.uses.variables(item))

    def diverges(self, item: ir.While | ir.If) -> bool:
        """Whether only some lanes may run the blocks of a statement."""
        tests = [item.test, *(each.test for each in item.body if isinstance(each, ir.If) and ends_loop(each))]
        return any(self.differs(test) for test in tests)

    def is_local(self, name: str, block: ir.Block) -> bool:
        """Whether only the statements of a block use a variable, and assign it before they read it."""
        local = self._local.get(id(block))
        if local is None:
            here = self.uses.counts(block)
            own = {each for each, count in here.items() if count == self.names[each]}
            local = self._local[id(block)] = block, own - self.liveness.exposed(block)
        return name in local[1]


def plans(types: Any) -> dict[ir.Statement, Plan]:
    """The plans of the loops of a function that can run in lanes and gain by it; of nested ones, of the innermost."""
    found: dict[ir.Statement, Plan] = {}

    def visit(block: ir.Block) -> bool:
        """Whether there is such a loop among statements, at any depth."""
        some = False
        for item in block:
            within = [visit(inner) for inner in ir.blocks(item)]
            if isinstance(item, ir.While) and not any(within):
                plan = _plan(types, item)
                if plan is not None:
                    found[item] = plan
                    some = True
            some |= any(within)
        return some

    visit(types.function.body)
    return found


def _plan(types: Any, original: ir.While) -> Plan | None:
    if not any(isinstance(item, ir.While) for item in ir.walk(original.body)):
        return None
    index = _counter(types, original)
    if index is None:
        return None
    if sum(1 + sum(1 for _ in ir.expressions(item)) for item in ir.walk(original.body)) > _LARGEST:
        return None
    uses = Uses()
    outside = uses.counts(types.function.body)
    outside.subtract(uses.counts([original]))
    (loop,) = ir.copied([original])
    assert isinstance(loop, ir.While)
    assert isinstance(loop.test, ir.Compare)
    loop.body = _with_split_sums(types, loop.body)
    plan = Plan(Uses(), Liveness(), index, loop.test.right, [], [])
    if not _partition(types, loop, plan, outside):
        return None
    _find_varying(plan, outside, loop)
    if not _is_worthwhile(types, plan):
        return None
    uses = plan.uses
    wanted = uses.reads(plan.serial) | {name for name, count in outside.items() if count}
    plan.stored = sorted((uses.assigned(plan.parallel) & wanted & plan.varying) - {ir.TICKS})
    return plan


def _counter(types: Any, loop: ir.While) -> str | None:
    """The counter of a loop `while i < n: ...; i = i + 1; ...` over int64."""
    counter = counter_of(loop)
    if counter is None or not isinstance(counter.limit, (ir.Var, ir.Const, ir.Size, ir.Dim)):
        return None
    index, limit, _ = counter
    trips = types.constant(limit)
    if isinstance(trips, int) and trips < _FEWEST:
        return None
    return index.name if types.of(index) == types.of(limit) == INT64 else None


def ends_loop(item: ir.Statement) -> bool:
    """Whether a statement is `if ...: ...; break`."""
    return isinstance(item, ir.If) and bool(item.body) and isinstance(item.body[-1], ir.Break) and not item.orelse


# --- sums ------------------------------------------------------------------------------------------------------------


def _with_split_sums(types: Any, body: ir.Block) -> ir.Block:
    """The body with integer sums in its inner loops counted from zero and added after these loops."""
    result: ir.Block = []
    uses = Uses()
    for item in body:
        if not isinstance(item, ir.While):
            result.append(item)
            continue
        before: ir.Block = []
        after: ir.Block = []
        counts = uses.counts([item])
        assignments: dict[str, list[ir.Assign]] = defaultdict(list)
        for each in ir.walk([item]):
            if isinstance(each, ir.Assign) and len(each.targets) == 1:
                assignments[each.targets[0]].append(each)
        for name in sorted(uses.assigned([item]) - {ir.TICKS}):
            type_ = types.variables[name]
            if not isinstance(type_, Scalar) or type_.is_float or type_ == BOOL:
                continue
            additions = [each for each in assignments[name] if _is_addition(each)]
            if not additions or counts[name] != 2 * len(additions):
                continue  # it is read elsewhere
            partial = ir.Var(f"{name}.sum")
            types.variables[partial.name] = type_
            for addition in additions:
                addition.targets = (partial.name,)
                addition.value = ir.substituted(addition.value, {name: partial})
            before.append(ir.Assign((partial.name,), ir.ZERO))
            total: ir.Expr = ir.Binary("+", ir.Var(name), partial)
            after.append(ir.Assign((name,), total if type_ == INT64 else ir.Convert(type_, total)))
        result += [*before, item, *after]
    return result


def _is_addition(item: ir.Assign) -> bool:
    """Whether an assignment to one variable is `name = name + e`, perhaps with a conversion."""
    value = item.value.operand if isinstance(item.value, ir.Convert) else item.value
    return isinstance(value, ir.Binary) and value.op == "+" and value.left == ir.Var(item.targets[0])


# --- the two parts of a trip -----------------------------------------------------------------------------------------


def _partition(types: Any, loop: ir.While, plan: Plan, outside: Counter[str]) -> bool:
    """Sorts the statements of a trip into parallel and serial ones; False if their order forbids that."""
    uses, body = plan.uses, loop.body
    breaks = continues = exits = 0
    for item in ir.walk(body):
        breaks += isinstance(item, ir.Break)
        continues += isinstance(item, ir.Continue)
        exits += sum(ends_loop(each) for each in item.body) if isinstance(item, ir.While) else 0
    if continues or breaks != exits:
        return False
    exposed, defined = plan.liveness.exposed(body), plan.liveness.surely_assigned(body)
    assigned = uses.assigned(body)
    later = {name for name in assigned if outside[name] and name not in defined}
    tainted = ((exposed | later) & assigned) - {ir.TICKS, plan.index}
    inner = [list(ir.walk([item])) for item in body]
    on_arrays = [_works_on_arrays(types, items) for items in inner]
    stores = any(on_arrays)
    together = [not own and _may_be_parallel(types, items, stores) for own, items in zip(on_arrays, inner)]
    serial: set[int] = set()
    before = -1
    while before != len(serial):
        before = len(serial)
        for position, item in enumerate(body):
            if position in serial:
                continue
            own = uses.assigned([item]) - {ir.TICKS}
            depends = (own | uses.reads([item])) & tainted
            if depends or plan.index in own or not together[position]:
                serial.add(position)
                tainted |= own - {plan.index}
    for position in serial:
        seen = uses.reads([body[position]])
        following = (item for at, item in enumerate(body) if at not in serial and at > position)
        if any(seen & uses.assigned([item]) - {ir.TICKS} for item in following):
            return False
    plan.parallel = [item for position, item in enumerate(body) if position not in serial]
    plan.serial = [item for position, item in enumerate(body) if position in serial]
    # A statement that reads the counter after its step would see another value in lanes.
    step = next(at for at, item in enumerate(body) if plan.index in uses.assigned([item]))
    return not any(plan.index in uses.reads([item]) for at, item in enumerate(body) if at not in serial and at > step)


def _works_on_arrays(types: Any, items: Sequence[ir.Statement]) -> bool:
    """Whether statements, without their blocks, store elements or give functions arrays, and the loop goes on."""
    used = accesses([item for item in items if not isinstance(item, (ir.Return, ir.Fail))])
    if used.stores:
        return True
    return any(isinstance(types.variables.get(name), Array) for name in used.read | used.written | used.kept)


def _may_be_parallel(types: Any, items: Sequence[ir.Statement], stores: bool) -> bool:
    """Whether lanes may run statements, without their blocks, together, judging by their kinds. stores: whether the
    trip changes any array."""
    for item in items:
        if isinstance(item, (ir.Run, ir.For, ir.Alloc)):
            return False
        if any(isinstance(types.variables.get(name), Array) or name in types.tuples for name in ir.targets(item)):
            return False
        for each in ir.expressions(item):
            if isinstance(each, ir.Var) and each.name in types.tuples:
                return False
            # Kernels don't write to their arguments; two other arrays may share memory.
            if isinstance(each, ir.Load) and stores and isinstance(each.array, ir.Var):
                name = each.array.name
                if name not in types.parameters or name in types.assigned:
                    return False
    return True


# --- what differs between lanes --------------------------------------------------------------------------------------


def _find_varying(plan: Plan, outside: Counter[str], loop: ir.While) -> None:
    """The variables of the parallel statements that differ between lanes: those computed from the counter, and those
    that only some lanes assign but others see."""
    plan.names = outside + plan.uses.counts([loop])
    plan.varying = {plan.index}
    before = 0
    while before != len(plan.varying):
        before = len(plan.varying)
        _propagate(plan, plan.parallel, None)


def _propagate(plan: Plan, block: ir.Block, inside: ir.Block | None) -> None:
    """inside: the innermost block around this one that only some lanes run; None if all do."""
    for item in block:
        if isinstance(item, (ir.While, ir.If)):
            diverges = plan.diverges(item)
            for inner in ir.blocks(item):
                if inner:
                    _propagate(plan, inner, inner if diverges else inside)
        elif isinstance(item, ir.Assign):
            for target, value in _pairs(item):
                seen = inside is not None and not plan.is_local(target, inside)
                if target != ir.TICKS and (plan.differs(value) or seen):
                    plan.varying.add(target)


def _pairs(item: ir.Assign) -> Iterator[tuple[str, ir.Expr]]:
    """The targets of an assignment, each with the expressions that it may depend on."""
    if isinstance(item.value, ir.Tuple) and len(item.targets) == len(item.value.items) > 1:
        return zip(item.targets, item.value.items)
    return ((name, item.value) for name in item.targets)


# --- what it gains ---------------------------------------------------------------------------------------------------


def _is_worthwhile(types: Any, plan: Plan) -> bool:
    """Whether LLVM leaves some inner loop unvectorised, and nothing in that loop is slow in lanes."""
    loops = [item for item in ir.walk(plan.parallel) if isinstance(item, ir.While)]
    if not any(plan.diverges(loop) or _is_recurrence(types, plan, loop) for loop in loops):
        return False
    hot: set[Scalar] = set()
    for loop in loops:
        for name in plan.uses.assigned(loop.body) & plan.varying:
            type_ = types.variables.get(name)
            if isinstance(type_, Scalar) and type_ != BOOL:
                hot.add(type_)
        if any(_is_long_division(types, each) for item in ir.walk([loop]) for each in ir.expressions(item)):
            return False
    plan.hot = max((type_.bits for type_ in hot), default=64)
    return bool(hot)


def _is_recurrence(types: Any, plan: Plan, loop: ir.While) -> bool:
    """Whether each trip needs a float of the trip before, other than for a reorderable sum."""
    carried = plan.liveness.exposed(loop.body) & plan.uses.assigned(loop.body) - {ir.TICKS}
    return any(isinstance(t := types.variables.get(name), Scalar) and t.is_float for name in carried)


def _is_long_division(types: Any, item: ir.Expr) -> bool:
    """Whether an operator divides 64-bit integers by anything but a constant."""
    if not isinstance(item, ir.Binary) or item.op not in ("//", "%"):
        return False
    if types.constant(item.right) is not None:
        return False
    try:
        sides = [types.scalar(side) for side in (item.left, item.right)]
    except Unsupported:
        return True
    return not any(side.is_float for side in sides) and max(side.bits for side in sides) == 64
