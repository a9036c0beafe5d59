"""Liveness: the variables whose values are read later.

    while i < n:          exposed  i, n, x, y       it reads them before it assigns them
        t = x * y
        x = t + 1.0
        i = i + 1         live behind it, if `return x` follows: x

A statement is summarised once: what it may read first, and what it surely assigns on its way to its end, to a `break`
or to a `continue`. All questions are answered from the summaries, so that nests cost no more than their statements.
"""

from __future__ import annotations

from typing import NamedTuple

from runtime.kernel_ir import ir

_Names = frozenset[str]
_NO_NAMES: _Names = frozenset()


class Summary(NamedTuple):
    """What a statement or a block does to variables.

    exposed        those that it may read before it assigns them
    end            those that it surely assigns before what follows it; None if nothing does
    breaks         the same where it leaves the loop around it
    continues      the same where it begins that loop's next trip
    """

    exposed: _Names
    end: _Names | None
    breaks: _Names | None = None
    continues: _Names | None = None


class Liveness:
    """For blocks that don't change meanwhile."""

    def __init__(self) -> None:
        self._summaries: dict[ir.Statement, Summary] = {}

    def exposed(self, block: ir.Block) -> _Names:
        """The variables that a block may read before it assigns them."""
        return self.summary(block).exposed

    def surely_assigned(self, block: ir.Block) -> _Names:
        """The variables that a block assigns on every path to its end."""
        return self.summary(block).end or _NO_NAMES

    def summary(self, block: ir.Block) -> Summary:
        exposed: set[str] = set()
        assigned: set[str] = set()
        breaks: _Names | None = None
        continues: _Names | None = None
        for item in block:
            known = self._of(item)
            exposed |= known.exposed - assigned
            if known.breaks is not None:
                breaks = _common(breaks, known.breaks | assigned)
            if known.continues is not None:
                continues = _common(continues, known.continues | assigned)
            if known.end is None:
                return Summary(frozenset(exposed), None, breaks, continues)
            assigned |= known.end
        return Summary(frozenset(exposed), frozenset(assigned), breaks, continues)

    def _of(self, item: ir.Statement) -> Summary:
        found = self._summaries.get(item)
        if found is not None:
            return found
        reads = frozenset(ir.variables(item))
        if isinstance(item, ir.If):
            yes, no = self.summary(item.body), self.summary(item.orelse)
            found = Summary(
                reads | yes.exposed | no.exposed,
                _common(yes.end, no.end),
                _common(yes.breaks, no.breaks),
                _common(yes.continues, no.continues),
            )
        elif isinstance(item, (ir.For, ir.While)):  # which may make no trip
            found = Summary(reads | (self.exposed(item.body) - frozenset(ir.targets(item))), _NO_NAMES)
        elif isinstance(item, (ir.Return, ir.Fail)):
            found = Summary(reads, None)
        elif isinstance(item, ir.Break):
            found = Summary(_NO_NAMES, None, breaks=_NO_NAMES)
        elif isinstance(item, ir.Continue):
            found = Summary(_NO_NAMES, None, continues=_NO_NAMES)
        else:
            found = Summary(reads, frozenset(ir.targets(item)))
        self._summaries[item] = found
        return found

    def behind_loops(self, body: ir.Block) -> dict[ir.Statement, set[str]]:
        """Loop → the variables that are live after it, for all loops in a function's body."""
        found: dict[ir.Statement, set[str]] = {}
        self._visit(body, set(), set(), set(), found)
        return found

    def _visit(
        self, block: ir.Block, end: set[str], breaks: set[str], continues: set[str], found: dict[ir.Statement, set[str]]
    ) -> None:
        """end, breaks, continues: the variables that are live behind a block, and at the targets of jumps out of it."""
        live = end
        for item in reversed(block):
            if isinstance(item, (ir.For, ir.While)):
                found[item] = live
                head = live | self._of(item).exposed
                self._visit(item.body, head, live, head, found)
            elif isinstance(item, ir.If):
                self._visit(item.body, live, breaks, continues, found)
                self._visit(item.orelse, live, breaks, continues, found)
            live = _before(self._of(item), live, breaks, continues)


def _before(item: Summary, end: set[str], breaks: set[str], continues: set[str]) -> set[str]:
    """The variables that are live before a statement."""
    live = set(item.exposed)
    for names, assigned in ((end, item.end), (breaks, item.breaks), (continues, item.continues)):
        if assigned is not None:
            live |= names - assigned
    return live


def _common(one: _Names | None, other: _Names | None) -> _Names | None:
    return other if one is None else one if other is None else one & other
