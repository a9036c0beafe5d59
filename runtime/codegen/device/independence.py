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

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field

from runtime.codegen.device.counted_loops import leaves
from runtime.codegen.symbolic.polynomial import Polynomial
from runtime.dataclass import dataclass
from runtime.kernel_ir import ir
from runtime.kernel_ir.functions import row_of
from runtime.kernel_ir.types import INT64, Array, Type
from runtime.llvm.optimize.outer_loop_plan import Uses

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


def analysed(function: ir.Function, types: Mapping[str, Type | None], writes: Callable[[str], bool]) -> Loops:
    """types: the types of the function's variables. writes: whether a called function makes or writes arrays."""
    found = Loops()
    _Liveness(found.live).block(function.body, set(), None, None)
    arrays = {name for name, type_ in types.items() if isinstance(type_, Array)}
    found.memory = _memory(function, arrays, exchanges=True)
    memory = _memory(function, arrays, exchanges=False)
    _Search(found, arrays, writes, memory, _invariants(function)).block(function.body, set(), False)
    return found


# --- liveness --------------------------------------------------------------------------------------------------------


class _Liveness:
    """Liveness: walks backward over blocks."""

    def __init__(self, live: dict[ir.Statement, set[str]]) -> None:
        self._live = live

    def block(self, block: ir.Block, after: set[str], end: set[str] | None, again: set[str] | None) -> set[str]:
        """The live variables before a block. end, again: those at the targets of `break` and `continue`."""
        for item in reversed(block):
            after = self._statement(item, after, end, again)
        return after

    def _statement(self, item: ir.Statement, after: set[str], end: set[str] | None, again: set[str] | None) -> set[str]:
        if isinstance(item, (ir.Return, ir.Fail)):
            return ir.variables(item)
        if isinstance(item, ir.Break):
            return set(end or ())
        if isinstance(item, ir.Continue):
            return set(again or ())
        if isinstance(item, ir.If):
            body, orelse = (self.block(block, after, end, again) for block in (item.body, item.orelse))
            return body | orelse | ir.variables(item)
        if isinstance(item, (ir.For, ir.While)):
            self._live[item] = set(after)
            head = after | ir.variables(item)
            while True:
                body = self.block(item.body, head, after, head) - set(ir.targets(item))
                if body <= head:
                    return head
                head = head | body
        return (after - set(ir.targets(item))) | ir.variables(item)


# --- memory ----------------------------------------------------------------------------------------------------------


def _memory(function: ir.Function, arrays: set[str], exchanges: bool) -> dict[str, str]:
    """Array variable -> one name for all variables that may alias it. exchanges: variables that exchange their memory
    (`a, b = b, a`), and so never alias each other, count as one."""
    parents = {name: name for name in arrays}

    def root(name: str) -> str:
        while parents[name] != name:
            name = parents[name]
        return name

    for item in ir.walk(function.body):
        if not isinstance(item, ir.Assign):
            continue
        sources = {name for value in _values(item) for name in _aliases(value)} & arrays
        targets = set(item.targets) & arrays
        if not exchanges and len(targets) > 1 and sources == targets:
            continue
        for name in sources | targets if sources else ():
            parents[root(name)] = root(next(iter(targets))) if targets else root(name)
    return {name: root(name) for name in arrays}


def _values(item: ir.Assign) -> tuple[ir.Expr, ...]:
    return item.value.items if isinstance(item.value, ir.Tuple) else (item.value,)


def _aliases(value: ir.Expr) -> set[str]:
    """The variables that an expression may be an alias of."""
    if isinstance(value, ir.Var):
        return {value.name}
    if isinstance(value, ir.Select):
        return _aliases(value.yes) | _aliases(value.no)
    if isinstance(value, ir.Call):
        row = row_of(value.function)
        kept = value.arguments if row is None else [value.arguments[at] for at in row.keeps]
        return {name for argument in kept for name in _aliases(argument)}
    if isinstance(value, ir.Tuple):
        return {name for each in value.items for name in _aliases(each)}
    return set()


# --- loops -----------------------------------------------------------------------------------------------------------


class _Search:
    def __init__(
        self, found: Loops, arrays: set[str], writes: Callable[[str], bool], memory: dict[str, str],
        invariants: Mapping[str, Polynomial],
    ) -> None:  # fmt: skip
        self._found, self._arrays, self._writes, self._memory = found, arrays, writes, memory
        self._invariants = invariants
        self._uses = Uses()

    def block(self, block: ir.Block, fresh: set[str], in_nest: bool) -> None:
        """fresh: arrays that were allocated before and have no second name; it is changed."""
        for item in block:
            if isinstance(item, ir.Alloc):
                fresh.add(item.name)
            elif isinstance(item, ir.Assign):
                self._assign(item, fresh)
            elif isinstance(item, ir.If):
                sides = [set(fresh), set(fresh)]
                for side, inner in zip(sides, (item.body, item.orelse)):
                    self.block(inner, side, in_nest)
                fresh &= sides[0] & sides[1]
            elif isinstance(item, (ir.For, ir.While)):
                fresh -= self._named_again(item.body)
                inside = isinstance(item, ir.For) and (item.nest or in_nest)
                if isinstance(item, ir.For):
                    shared = self._shared(item, fresh, inside)
                    if isinstance(shared, Shared):
                        self._found.shared[item] = shared
                    else:
                        self._found.refused[item] = shared
                        if shared in (_SAME_ELEMENTS, _LAST_TRIP) and self._can_be_owned(item, fresh):
                            self._found.owned.add(item)
                self.block(item.body, set(fresh), inside)

    def _assign(self, item: ir.Assign, fresh: set[str]) -> None:
        targets = set(item.targets) & self._arrays
        if not targets:
            return
        sources = set().union(*(_aliases(value) for value in _values(item))) & self._arrays
        if sources == targets and len(targets) > 1:
            before = dict(zip(item.targets, (value.name for value in _values(item) if isinstance(value, ir.Var))))
            kept = {name for name, source in before.items() if source in fresh}
            fresh -= targets
            fresh |= kept
            return
        fresh -= sources | targets
        if not sources and isinstance(item.value, ir.Call):
            fresh |= targets

    def _named_again(self, block: ir.Block) -> set[str]:
        """The arrays that get a second name, or another memory, somewhere in a loop's body, exchanges apart."""
        found: set[str] = set()
        for item in ir.walk(block):
            if isinstance(item, ir.Assign):
                targets = set(item.targets) & self._arrays
                sources = set().union(*(_aliases(value) for value in _values(item))) & self._arrays
                if not (sources == targets and len(targets) > 1):
                    found |= sources | targets
            elif isinstance(item, ir.Alloc):
                found.add(item.name)
        return found

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
        if leaves(loop.body):
            return "a trip may end it"
        # Each thread has ticks of its own.
        carried = self._uses.exposed(loop.body, {loop.index}) & assigned - {ir.TICKS}
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
        return not any(isinstance(each, ir.Call) and self._writes(each.function) for each in ir.expressions(item))

    def _is_independent(self, loop: ir.For, fresh: set[str], in_nest: bool) -> bool:
        """Whether no trip reads or writes an element that another trip writes."""
        if loop.independent:
            return True
        stores: dict[str, list[ir.Expr]] = {}
        for item in ir.walk(loop.body):
            if isinstance(item, ir.Store):
                if not isinstance(item.array, ir.Var):
                    return False
                stores.setdefault(item.array.name, []).append(item.index)
        if not stores:
            return True
        subscripts = _Subscripts(loop, self._invariants)
        for indices in stores.values():
            found = [subscripts.terms(index) for index in indices]
            first = found[0]
            if any(each is None for each in found) or first is None:
                return False
            if not all(subscripts.depends(each) for each in found if each is not None):
                return False
            if not in_nest and not subscripts.are_apart([each for each in found if each is not None]):
                return False
        whole, reads = _reads(ir.walk(loop.body))
        for name, indices in reads.items():
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
        return not any(self._may_meet(name, stored, fresh) for name in whole for stored in stores)

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
        times = Counter(name for item in items for name in ir.targets(item))
        written_here = {name for item in stores for name in written([item])}
        if any(isinstance(each.index, ir.Tuple) or not isinstance(each.array, ir.Var) for each in stores):
            return False
        if any(times[name] > 1 for each in stores for name in ir.variables(each.index)):
            return False
        whole, _ = _reads(items)

        def is_written(name: str) -> bool:
            return any(self._may_meet(name, stored, fresh) for stored in written_here)

        if any(is_written(name) for name in whole):
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


def _reads(items: Iterable[ir.Statement]) -> tuple[set[str], dict[str, list[ir.Expr]]]:
    """The arrays that functions are given as a whole, and array -> the subscripts at which statements, without their
    blocks, read it."""
    whole: set[str] = set()
    found: dict[str, list[ir.Expr]] = {}

    def visit(each: ir.Expr) -> None:
        if isinstance(each, ir.Load) and isinstance(each.array, ir.Var):
            found.setdefault(each.array.name, []).append(each.index)
            visit(each.index)
        elif isinstance(each, ir.Call):
            row = row_of(each.function)
            for at, argument in enumerate(each.arguments):
                items = argument.items if isinstance(argument, ir.Tuple) else (argument,)
                if row is None or at in row.reads or at in row.writes:
                    whole.update(item.name for item in items if isinstance(item, ir.Var))
                for item in items:
                    visit(item)
        elif not isinstance(each, (ir.Size, ir.Dim, ir.Var)):
            for operand in ir.operands(each):
                visit(operand)

    for item in items:
        for operand in ir.operands(item)[isinstance(item, ir.Store) :]:
            visit(operand)
    return whole, found


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
    stored = written(block)
    depending = {name}
    before: list[ir.Assign] = []
    for item in block:
        if item is step or not isinstance(item, ir.Assign):
            continue
        if not ir.variables(item).isdisjoint(depending):
            depending |= set(item.targets)
        elif block.index(item) < block.index(step):
            before.append(item)
    reads = set(_reads([step, *before])[1])
    if not ir.variables(added).isdisjoint(depending) or not reads.isdisjoint(stored):
        return None
    return Scan(total, added, tuple(before))


# --- subscripts ------------------------------------------------------------------------------------------------------


def _polynomial(item: ir.Expr, of_other: Callable[[ir.Expr], Polynomial | None]) -> Polynomial | None:
    """A sum of products as a polynomial; None if a part isn't one. of_other: gives those of other expressions."""
    if isinstance(item, ir.Const) and isinstance(item.value, int):
        return Polynomial.of(int(item.value))
    if isinstance(item, ir.Binary) and item.op in "+-*":
        left, right = _polynomial(item.left, of_other), _polynomial(item.right, of_other)
        if left is None or right is None:
            return None
        return left * right if item.op == "*" else left + right if item.op == "+" else left - right
    return of_other(item)


def _invariants(function: ir.Function) -> dict[str, Polynomial]:
    """The sizes that a function computes outside of loops and branches, once, as polynomials of others."""
    times = Counter(name for item in ir.walk(function.body) for name in ir.targets(item))
    found: dict[str, Polynomial] = {}

    def of_variable(item: ir.Expr) -> Polynomial | None:
        if not isinstance(item, ir.Var):
            return None
        is_fixed = times[item.name] == (item.name not in function.parameters)
        return found.get(item.name) or (Polynomial.of(item) if is_fixed else None)

    for item in function.body:
        if isinstance(item, ir.Assign) and len(item.targets) == 1 and times[item.targets[0]] == 1:
            sums = [each for each in ir.subexpressions(item.value) if isinstance(each, ir.Binary)]
            wraps = any(each.type != INT64 for each in sums)
            value = None if wraps else _polynomial(item.value, of_variable)
            if value is not None and item.targets[0] not in function.parameters:
                found[item.targets[0]] = value
    return found


class _Subscripts:
    """Offsets in arrays as polynomials of loop invariants and of the indices of inner loops."""

    def __init__(self, loop: ir.For, invariants: Mapping[str, Polynomial]) -> None:
        """invariants: see `_invariants`."""
        self._index, self._loop, self._invariants = loop.index, loop, invariants
        self._inner: dict[str, list[ir.For]] = {}
        self._values: dict[str, ir.Expr | None] = {}
        for item in ir.walk(loop.body):
            if isinstance(item, ir.For):
                self._inner.setdefault(item.index, []).append(item)
            for name in ir.targets(item):
                once = isinstance(item, ir.Assign) and len(item.targets) == 1 and name not in self._values
                self._values[name] = item.value if once else None  # type: ignore[union-attr]

    def terms(self, item: ir.Expr) -> Polynomial | None:
        """An offset as a polynomial; None if it isn't one."""
        return _polynomial(item, self._term)

    def _term(self, item: ir.Expr) -> Polynomial | None:
        if isinstance(item, ir.Var):
            if item.name == self._index or item.name in self._inner:
                return Polynomial.of(item)
            if item.name not in self._values:
                return self._invariants.get(item.name) or Polynomial.of(item)
            value = self._values[item.name]
            return None if value is None else self.terms(value)
        if isinstance(item, ir.Convert) and item.target.kind in "iu" and item.target.bits == 64:
            return self.terms(item.operand)
        is_known = not self._changes(item) and not _loads(item)
        return Polynomial.of(f"({item})") if is_known else None

    def _changes(self, item: ir.Expr) -> bool:
        names = ir.variables(item)
        return self._index in names or not names.isdisjoint(self._inner) or not names.isdisjoint(self._values)

    def depends(self, terms: Polynomial) -> bool:
        """Whether an offset depends on the index, and on nothing that other loops' indices are multiplied by."""
        factor = terms.factor_of(self._index)
        return factor is not None and bool(factor.terms) and factor.variables.isdisjoint(self._inner)

    def are_apart(self, found: Sequence[Polynomial]) -> bool:
        """Whether two trips never have an offset in common: the range of the inner loops' terms, and the constants in
        which the offsets differ, are less than the distance between trips."""
        terms = found[0]
        step = terms.factor_of(self._index)
        offsets = [(each - terms).number for each in found]
        numbers = [offset for offset in offsets if offset is not None]
        if step is None or len(numbers) < len(offsets):
            return False
        spread = max(numbers) - min(numbers)
        if spread and abs(step.number or 0) <= spread:
            return False
        inner = {name: terms.factor_of(name) for name in terms.variables & self._inner.keys()}
        span = Polynomial.of(1)
        if spread and inner:
            return False
        # As with the digits of a number, an index's factor has to be the product of the sizes of the indices before it.
        while inner:
            name = next((name for name, factor in inner.items() if factor == span), None)
            if name is None:
                if step is None or step != span:
                    return False
                loops, step = [self._loop], None
            else:
                del inner[name]
                loops = self._inner[name]
            sizes = [self.terms(loop.stop) for loop in loops]
            size = sizes[0]
            if (
                size is None
                or any(each != size for each in sizes)
                or any(loop.start != ir.ZERO or loop.step != ir.ONE for loop in loops)
            ):
                return False
            span = span * size
        return step is None or step == span or (span.number == 1 and bool(step.number))


def _name(item: ir.Load) -> str:
    return item.array.name if isinstance(item.array, ir.Var) else ""


def unit_stride_store(loop: ir.For) -> tuple[str, ir.Expr] | None:
    """The array to which all stores of an innermost loop go, and the offset of the first trip's store, if each trip
    stores one element behind the trip before it."""
    stores = [item for item in loop.body if isinstance(item, ir.Store)]
    if not stores or not all(isinstance(item, (ir.Store, ir.Assign)) for item in loop.body) or loop.step != ir.ONE:
        return None
    array, index = stores[0].array, stores[0].index
    if not isinstance(array, ir.Var) or any((each.array, each.index) != (array, index) for each in stores):
        return None
    terms = _Subscripts(loop, {}).terms(index)
    factor = None if terms is None else terms.factor_of(loop.index)
    if factor is None or factor.number != 1 or not ir.variables(index).isdisjoint(ir.assigned(loop.body)):
        return None
    return array.name, ir.substituted(index, {loop.index: ir.ZERO})


def _loads(item: ir.Expr) -> bool:
    return any(isinstance(each, (ir.Load, ir.Call)) for each in ir.subexpressions(item))


def written(block: Iterable[ir.Statement]) -> set[str]:
    """The arrays that a block stores to."""
    return {item.array.name for item in ir.walk(block) if isinstance(item, ir.Store) and isinstance(item.array, ir.Var)}


def read(block: Iterable[ir.Statement]) -> set[str]:
    """The arrays whose elements a block reads."""
    return read_by(*ir.walk(block))


def read_by(*items: ir.Statement) -> set[str]:
    """The same for statements without their blocks."""
    whole, found = _reads(items)
    return whole | set(found)
