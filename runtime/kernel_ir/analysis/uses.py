"""Uses: which statements mention a variable, and how often; which functions they call."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from runtime.kernel_ir import ir


class Uses:
    """The variables that statements read and assign, including those in their blocks; each is visited once.

    For blocks that don't change meanwhile.
    """

    def __init__(self) -> None:
        self._reads: dict[ir.Statement, Counter[str]] = {}
        self._assigned: dict[ir.Statement, Counter[str]] = {}
        self._variables: dict[int, tuple[ir.Expr, frozenset[str]]] = {}

    def variables(self, item: ir.Expr) -> frozenset[str]:
        """The variables in an expression."""
        known = self._variables.get(id(item))
        if known is None:
            known = self._variables[id(item)] = item, frozenset(ir.variables(item))
        return known[1]

    def _of(self, item: ir.Statement) -> tuple[Counter[str], Counter[str]]:
        """How often a statement reads and assigns each variable."""
        reads = self._reads.get(item)
        if reads is None:
            reads = self._reads[item] = Counter(each.name for each in ir.expressions(item) if isinstance(each, ir.Var))
            assigned = self._assigned[item] = Counter(ir.targets(item))
            for block in ir.blocks(item):
                for inner in block:
                    inner_reads, inner_assigned = self._of(inner)
                    reads.update(inner_reads)
                    assigned.update(inner_assigned)
        return reads, self._assigned[item]

    def counts(self, block: Iterable[ir.Statement]) -> Counter[str]:
        """How often statements mention each variable."""
        found: Counter[str] = Counter()
        for item in block:
            for part in self._of(item):
                found.update(part)
        return found

    def reads(self, block: Iterable[ir.Statement]) -> set[str]:
        return {name for item in block for name in self._of(item)[0]}

    def assigned(self, block: Iterable[ir.Statement]) -> set[str]:
        return {name for item in block for name in self._of(item)[1]}


def called(items: Iterable[ir.Statement]) -> set[str]:
    """The functions that statements, without their blocks, call."""
    return {each.function for item in items for each in ir.expressions(item) if isinstance(each, ir.Call)}


def assignment_counts(items: Iterable[ir.Statement]) -> Counter[str]:
    """How often statements, without their blocks, assign each variable."""
    return Counter([name for item in items for name in ir.targets(item)])


def mentions(items: Iterable[ir.Statement]) -> dict[str, list[ir.Statement]]:
    """Variable → the statements that read or assign it, without their blocks, in the given order."""
    found: dict[str, list[ir.Statement]] = defaultdict(list)
    for item in items:
        for name in ir.variables(item).union(ir.targets(item)):
            found[name].append(item)
    return found
