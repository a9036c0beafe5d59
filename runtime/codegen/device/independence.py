"""Finds the loops that the threads of a device may share: those whose trips are independent.

    for i in range(n):                 threads share the trips
        a[i] = x[i] * 2.0

    for i in range(n):                 they share them, and add up their partial results
        total = lib.add(total, x[i])

    for i in range(1, n):              not shared
        a[i] = a[i - 1] + x[i]

A trip may write elements that no other trip reads or writes. In a nest over elements (`ir.For.nest`), lowering
guarantees that no two positions share an element, so an offset only has to depend on the loop's index. In other loops,
arithmetic has to show that offsets differ: `i * n + j` with `j` in range(n); or lowering says that trips are
independent (`ir.For.independent`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from runtime.dataclass import dataclass
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.accesses import accesses, read_by, written_by
from runtime.kernel_ir.analysis.aliases import Unaliased, memory_classes
from runtime.kernel_ir.analysis.effects import Effects
from runtime.kernel_ir.analysis.liveness import Liveness
from runtime.kernel_ir.analysis.loops import jumps_out
from runtime.kernel_ir.analysis.polynomial import Polynomial
from runtime.kernel_ir.analysis.subscripts import Subscripts, fixed_sizes
from runtime.kernel_ir.analysis.uses import assignment_counts
from runtime.kernel_ir.functions import row_of
from runtime.kernel_ir.types import Array, Type

_NUMBERS = "its trips hand numbers on"
_SAME_ELEMENTS, _LAST_TRIP = "its trips may use the same elements", "its last trip's numbers are used"
# Commutative operators.
_OPERATORS = frozenset({"+", "*", "|", "&"})


@dataclass(frozen=True)
class Total:
    """A variable to which each trip adds something. join: a library function, an operator, '>' or '<'."""

    name: str
    join: str


@dataclass(frozen=True)
class Shared:
    """A loop that threads may share. totals: the variables to which its trips add. fails: whether a trip may leave the
    kernel."""

    totals: tuple[Total, ...] = ()
    fails: bool = False


@dataclass(frozen=True)
class Scan:
    """A loop with a running total that its trips also read. value: what a trip adds to it. before: the statements that
    compute that."""

    total: Total
    value: ir.Expr
    before: tuple[ir.Assign, ...]


@dataclass
class Loops:
    """What `analysed` finds in a function.

    shared    the loops whose trips are independent
    refused   other loops -> the reason
    scans     those of the others that have a running total
    owned     those of the others whose stores threads share, in order (see `_Search._can_be_owned`)
    live      by loop, the variables that are live after it
    memory    array variable -> a name for its memory, which arrays that may alias share
    """

    shared: dict[ir.For, Shared] = field(default_factory=dict)
    refused: dict[ir.Statement, str] = field(default_factory=dict)
    scans: dict[ir.Statement, Scan] = field(default_factory=dict)
    owned: set[ir.Statement] = field(default_factory=set)
    live: dict[ir.Statement, set[str]] = field(default_factory=dict)
    memory: dict[str, str] = field(default_factory=dict)


def analysed(function: ir.Function, types: Mapping[str, Type | None], effects: Effects) -> Loops:
    """types: the types of the function's variables. effects: those of the functions that it calls."""
    arrays = {name for name, type_ in types.items() if isinstance(type_, Array)}
    liveness = Liveness()
    found = Loops(
        live=liveness.behind_loops(function.body), memory=memory_classes(function.body, arrays, exchanges=True)
    )
    memory = memory_classes(function.body, arrays, exchanges=False)
    search = _Search(found, arrays, effects, memory, fixed_sizes(function), liveness)
    search.block(function.body, Unaliased(arrays), False)
    return found


# --- loops -----------------------------------------------------------------------------------------------------------


class _Search:
    def __init__(
        self, found: Loops, arrays: set[str], effects: Effects, memory: dict[str, str],
        sizes: Mapping[str, Polynomial], liveness: Liveness,
    ) -> None:  # fmt: skip
        self._found, self._arrays, self._effects, self._memory = found, arrays, effects, memory
        self._sizes, self._liveness = sizes, liveness

    def block(self, block: ir.Block, fresh: Unaliased, in_nest: bool) -> None:
        """fresh: arrays that were made before and have no second name; it is changed."""
        for item in block:
            if isinstance(item, ir.If):
                sides = fresh.branch(), fresh.branch()
                for side, inner in zip(sides, (item.body, item.orelse)):
                    self.block(inner, side, in_nest)
                fresh.join(*sides)
            elif isinstance(item, (ir.For, ir.While)):
                fresh.enter_loop(item.body)
                inside = isinstance(item, ir.For) and (item.nest or in_nest)
                if isinstance(item, ir.For):
                    shared = self._shared(item, fresh.names, inside)
                    if isinstance(shared, Shared):
                        self._found.shared[item] = shared
                    else:
                        self._found.refused[item] = shared
                        if shared in (_SAME_ELEMENTS, _LAST_TRIP) and self._can_be_owned(item, fresh.names):
                            self._found.owned.add(item)
                self.block(item.body, fresh.branch(), inside)
            else:
                fresh.step(item)

    # --- one loop ----------------------------------------------------------------------------------------------------

    def _shared(self, loop: ir.For, fresh: set[str], in_nest: bool) -> Shared | str:
        """How threads share a loop, or the reason why they can't."""
        if loop.step != ir.ONE:
            return "it takes larger steps"
        assigned = ir.assigned(loop.body)
        if assigned & self._arrays or loop.index in assigned:
            return "its trips exchange arrays"
        if (ir.variables(loop.start) | ir.variables(loop.stop)) & (assigned | {loop.index}):
            return "its bounds change"
        fails = False
        for item in ir.walk(loop.body):
            if isinstance(item, (ir.Alloc, ir.Run, ir.Fail)) or not self._reads_only(item):
                return "its trips make arrays"
            if isinstance(item, ir.Return):
                if not item.values or not isinstance(item.values[0], ir.Const) or not item.values[0].value:
                    return "a trip may end the kernel"
                fails = True
        if jumps_out(loop.body):
            return "a trip may end it"
        # Each thread has ticks of its own.
        carried = self._liveness.exposed(loop.body) & assigned - {ir.TICKS}
        totals = [_total(name, loop.body) for name in sorted(carried)]
        hands_on = any(total is None for total in totals)
        scan = _scan(next(iter(carried)), loop.body) if hands_on and len(carried) == 1 else None
        if hands_on and scan is None:
            return _NUMBERS
        if self._found.live[loop] & (assigned | {loop.index}) - carried - {ir.TICKS}:
            return _LAST_TRIP
        if not self._is_independent(loop, fresh, in_nest):
            return _SAME_ELEMENTS
        if scan is not None:
            self._found.scans[loop] = scan
            return _NUMBERS
        if fails and carried:
            return "a trip may fail, and others add up numbers"  # totals up to the failure aren't used
        return Shared(tuple(total for total in totals if total is not None), fails)

    def _reads_only(self, item: ir.Statement) -> bool:
        calls = (each for each in ir.expressions(item) if isinstance(each, ir.Call))
        return not any(self._effects.of(each.function).changes_memory for each in calls)

    def _is_independent(self, loop: ir.For, fresh: set[str], in_nest: bool) -> bool:
        """Whether no trip reads or writes an element that another trip writes."""
        if loop.independent:
            return True
        used = accesses(ir.walk(loop.body))
        stores = used.stores
        if used.of_views:
            return False
        if not stores:
            return True
        subscripts = Subscripts(loop, self._sizes)
        for indices in stores.values():
            found = [subscripts.terms(index) for index in indices]
            first = found[0]
            if any(each is None for each in found) or first is None:
                return False
            if not all(subscripts.depends(each) for each in found if each is not None):
                return False
            if not in_nest and not subscripts.are_apart([each for each in found if each is not None]):
                return False
        for name, indices in used.loads.items():
            for stored in stores:
                if not self._may_meet(name, stored, fresh):
                    continue
                written = [subscripts.terms(index) for index in stores[stored]]
                if any(subscripts.terms(index) not in written for index in indices):
                    return False
                if any(each != written[0] for each in written) and not in_nest:
                    return False
        names = list(stores)
        if any(self._may_meet(a, b, fresh) for at, a in enumerate(names) for b in names[at + 1 :]):
            return False
        return not any(self._may_meet(name, stored, fresh) for name in used.read for stored in stores)

    def _can_be_owned(self, loop: ir.For, fresh: set[str]) -> bool:
        """Whether each thread can run all trips and do only the stores to its own part of an array. Each element then
        gets its values in the order of the trips:

            for i in range(n):                  for i in range(n):
                k = rows[i]                         k = rows[i]
                a[k] = a[k] + x[i]       →          if first <= k < last:
                                                        a[k] = a[k] + x[i]

        The loop may read an array that it writes only to store to the same element.
        """
        items = list(ir.walk(loop.body))
        stores = [item for item in items if isinstance(item, ir.Store)]
        times = assignment_counts(items)
        used = accesses(items)
        if any(isinstance(each.index, ir.Tuple) or not isinstance(each.array, ir.Var) for each in stores):
            return False
        if any(times[name] > 1 for each in stores for name in ir.variables(each.index)):
            return False

        def is_written(name: str) -> bool:
            return any(self._may_meet(name, stored, fresh) for stored in used.stores)

        if any(is_written(name) for name in used.read):
            return False
        loaded: dict[str, list[ir.Load]] = {}  # by the variable that gets the loaded value
        for item in items:
            parts = ir.expressions(item)
            loads = [each for each in parts if isinstance(each, ir.Load) and is_written(_name(each))]
            if isinstance(item, ir.Store):
                if any(each in loads for each in ir.subexpressions(item.index)):
                    return False
                if any((each.array, each.index) != (item.array, item.index) for each in loads):
                    return False
            elif loads:
                if not isinstance(item, ir.Assign) or len(item.targets) != 1 or times[item.targets[0]] > 1:
                    return False
                loaded[item.targets[0]] = loads
        for item in items:
            for name in ir.variables(item) & loaded.keys():
                elements = {(each.array, each.index) for each in loaded[name]}
                if not isinstance(item, ir.Store) or elements != {(item.array, item.index)}:
                    return False
                if name in ir.variables(item.index):
                    return False
        return not self._found.live[loop] & loaded.keys()

    def _may_meet(self, a: str, b: str, fresh: set[str]) -> bool:
        if a == b:
            return True
        return a not in fresh and b not in fresh and self._memory.get(a) == self._memory.get(b)


def _joins(item: ir.Call) -> bool:
    row = row_of(item.function)
    return row is not None and row.joins


def _total(name: str, block: ir.Block) -> Total | None:
    """The total that a loop-carried variable is, if trips only add to it; else None."""
    steps = [item for item in ir.walk(block) if name in ir.targets(item)]
    uses = sum(
        isinstance(each, ir.Var) and each.name == name for item in ir.walk(block) for each in ir.expressions(item)
    )
    if len(steps) != 1 or not isinstance(steps[0], ir.Assign) or len(steps[0].targets) != 1:
        return None
    value, own = steps[0].value, ir.Var(name)
    while isinstance(value, ir.Convert):
        value = value.operand
    if isinstance(value, ir.Call) and _joins(value) and value.arguments[0] == own and uses == 1:
        return Total(name, value.function)
    if isinstance(value, ir.Binary) and value.op in _OPERATORS and value.left == own and uses == 1:
        return Total(name, value.op)
    if isinstance(value, ir.Select) and isinstance(value.test, ir.Compare) and uses == 2:
        test = value.test
        if test.op in "<>" and test.right == own == value.no and value.yes == test.left:
            return Total(name, test.op)
    return None


def _scan(name: str, block: ir.Block) -> Scan | None:
    """The running total that a variable is in a block without branches, if what is added doesn't depend on it."""
    steps = [item for item in block if name in ir.targets(item)]
    if len(steps) != 1 or not all(isinstance(item, (ir.Assign, ir.Store)) for item in block):
        return None
    (step,) = steps
    own = ir.Var(name)
    if not isinstance(step, ir.Assign) or len(step.targets) != 1:
        return None
    value = step.value
    while isinstance(value, ir.Convert):
        value = value.operand
    if isinstance(value, ir.Call) and _joins(value) and value.arguments[0] == own:
        total, added = Total(name, value.function), value.arguments[1]
    elif isinstance(value, ir.Binary) and value.op in _OPERATORS and value.left == own:
        total, added = Total(name, value.op), value.right
    else:
        return None
    stored = written_by(block)
    depending = {name}
    before: list[ir.Assign] = []
    for item in block:
        if item is step or not isinstance(item, ir.Assign):
            continue
        if not ir.variables(item).isdisjoint(depending):
            depending |= set(item.targets)
        elif block.index(item) < block.index(step):
            before.append(item)
    reads = read_by([step, *before])
    if not ir.variables(added).isdisjoint(depending) or not reads.isdisjoint(stored):
        return None
    return Scan(total, added, tuple(before))


def _name(item: ir.Load) -> str:
    return item.array.name if isinstance(item.array, ir.Var) else ""
