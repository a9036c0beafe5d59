"""Aliases: variables that may name the same memory.

    b = lib.flat(a)         b is a view of a: one memory
    c = lib.copied(a, n)    c has memory of its own
    a, c = c, a             an exchange: they never name the same memory, but which is which changes

Which functions return memory of their arguments stands in their rows (`functions.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.uses import assignment_counts
from runtime.kernel_ir.functions import effect_of, row_of


def sources(value: ir.Expr) -> set[str]:
    """The variables whose memory a value may be, or be a view of."""
    if isinstance(value, ir.Var):
        return {value.name}
    if isinstance(value, ir.Select):
        return sources(value.yes) | sources(value.no)
    if isinstance(value, ir.Call):
        keeps = effect_of(value.function).keeps
        return {name for at, argument in enumerate(value.arguments) if at in keeps for name in sources(argument)}
    if isinstance(value, ir.Tuple):
        return {name for each in value.items for name in sources(each)}
    return set()


def viewed(value: ir.Expr) -> ir.Expr:
    """What an expression is a view of; the expression itself if it is none."""
    while isinstance(value, ir.Call):
        row = row_of(value.function)
        if row is None or row.view is None:
            break
        value = value.arguments[row.view]
    return value


def copied_from(item: ir.Statement) -> str | None:
    """The variable whose value a statement `target = source` gives to another one; None for other statements."""
    if isinstance(item, ir.Assign) and len(item.targets) == 1 and isinstance(item.value, ir.Var):
        return item.value.name
    return None


def _named(item: ir.Assign, arrays: set[str]) -> tuple[set[str], set[str]]:
    """The arrays that an assignment rebinds, and the arrays whose memory they may share afterwards."""
    targets = arrays.intersection(item.targets)
    return targets, sources(item.value) & arrays if targets else set()


def _is_exchange(targets: set[str], given: set[str]) -> bool:
    return len(targets) > 1 and given == targets


def memory_classes(body: ir.Block, arrays: set[str], exchanges: bool) -> dict[str, str]:
    """Array → a name for its memory, the same for all that may be aliases (B. Steensgaard, "Points-to analysis in
    almost linear time", 1996). exchanges: arrays that exchange their memory count as aliases, too."""
    parents = {name: name for name in arrays}

    def root(name: str) -> str:
        while parents[name] != name:
            name = parents[name]
        return name

    for item in ir.walk(body):
        if not isinstance(item, ir.Assign):
            continue
        targets, given = _named(item, arrays)
        if not targets or (not exchanges and _is_exchange(targets, given)):
            continue
        for name in given | targets if given else ():
            parents[root(name)] = root(next(iter(targets)))
    return {name: root(name) for name in arrays}


def possible_sources(body: ir.Block, names: Iterable[str]) -> set[str]:
    """The variables whose memory these may name, themselves included."""
    found = set(names)
    copies = [(item.targets, sources(item.value)) for item in ir.walk(body) if isinstance(item, ir.Assign)]
    while True:
        more = {name for targets, given in copies if not found.isdisjoint(targets) for name in given} - found
        if not more:
            return found
        found |= more


def parameters_named(function: ir.Function) -> set[str]:
    """The variables, other than parameters, that are assigned once: a parameter that is never assigned, or a view of
    one."""
    items = list(ir.walk(function.body))
    times = assignment_counts(items)
    given = {name for name in function.parameters if name not in times}
    times.subtract(function.parameters)
    found: set[str] = set()
    for item in items:
        if isinstance(item, ir.Assign) and len(item.targets) == 1 and times[item.targets[0]] == 1:
            value = viewed(item.value) if isinstance(item.value, ir.Call) else item.value
            if isinstance(value, ir.Var) and value.name in given:
                found.add(item.targets[0])
    return found


class Unaliased:
    """Arrays whose memory was made in the function and has one name, followed along its statements.

    arrays    the array variables of the function
    names     those with this property at the current statement
    """

    def __init__(self, arrays: set[str], names: set[str] | None = None) -> None:
        self.arrays, self.names = arrays, names or set()

    def branch(self) -> Unaliased:
        """A copy of the state, to walk a block with that may or may not run."""
        return Unaliased(self.arrays, set(self.names))

    def join(self, *branches: Unaliased) -> None:
        """Continues after blocks of which exactly one has run: keeps what holds after each of them."""
        for branch in branches:
            self.names &= branch.names

    def enter_loop(self, body: ir.Block) -> None:
        """Goes on where any trip of a loop may begin."""
        for item in ir.walk(body):
            if isinstance(item, ir.Alloc):
                self.names.discard(item.name)
            elif isinstance(item, ir.Assign):
                targets, given = _named(item, self.arrays)
                if targets and not _is_exchange(targets, given):
                    self.names -= targets | given

    def step(self, item: ir.Statement) -> None:
        """Continues after a statement without blocks."""
        if isinstance(item, ir.Alloc):
            self.names.add(item.name)
            return
        if not isinstance(item, ir.Assign):
            return
        targets, given = _named(item, self.arrays)
        if not targets:
            return
        if _is_exchange(targets, given):
            values = item.value.items if isinstance(item.value, ir.Tuple) else (item.value,)
            before = dict(zip(item.targets, (value.name for value in values if isinstance(value, ir.Var))))
            kept = {name for name, source in before.items() if source in self.names}
            self.names -= targets
            self.names |= kept
            return
        self.names -= given | targets
        if not given and isinstance(item.value, ir.Call):
            self.names |= targets
