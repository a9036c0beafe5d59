"""Which block function each local variable lives in.

A variable that is only used inside one block, and always set there before it is read, becomes a local variable of the
function made of that block. Every other variable stays with the converted function and is shared through its closure
cell. Here ``step`` lives in the loop's body, ``x`` and ``i`` in the function::

    while i < n:
        step = x / n
        x = x - step
        i += 1

A block is named by its *place*: the path of (statement, field) pairs that leads to it; the function itself is ``()``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import gast

from autograph.convert.pins import own_nodes, reads_frame
from autograph.convert.tree import CONVERTIBLE, SCOPES, Block, blocks, leaves
from autograph.syntax.scopes import Activities, activity, own_scope
from autograph.syntax.walk import children

Place = tuple[tuple[Any, str], ...]

_KEPT_ALIVE = (*SCOPES, gast.GeneratorExp)


def homes(
    function: Any, pinned: frozenset[Any], covered: Collection[str] = (), activity: Activities | None = None
) -> dict[str, Place]:
    """The place of every local variable of a function; ``covered`` ones are never read before they are set."""
    scope = own_scope(function)
    found: dict[str, Place] = dict.fromkeys(scope.locals, ())
    if reads_frame(function):
        return found
    uses = _Uses(function, pinned, activity or Activities())
    for name in scope.locals - set(scope.params) - uses.captured:
        place = uses.place.get(name, ())
        # A value that a block may read before setting it comes from outside, or from the previous trip of a loop.
        while place and name not in covered and name in uses.exposed(place):
            place = place[:-1]
        found[name] = place
    return found


def exposed(block: Block, activity: Activities, leaving: dict[Any, bool]) -> set[str]:
    """The names that a block may read (or delete) before it sets them."""
    scan = _Exposed(activity, leaving)
    scan.block(block, set())
    return scan.found


def surely_set(function: Any, activity: Activities | None = None) -> dict[Any, set[str]]:
    """For each statement of a function the variables that surely have a value after it; a lower bound."""
    scan = _Exposed(activity or Activities(), {})
    scan.block(function.body, set(own_scope(function).params))
    return scan.after


def always_covered(function: Any, unbound_reads: list[Any]) -> frozenset[str]:
    """The local variables that no statement of a function can read while they have no value.

    unbound_reads: what ``maybe_unbound`` found in it.
    """
    scope = own_scope(function)
    doubtful = {node.id for node in unbound_reads}
    for stmt in function.body:
        for node in own_nodes(stmt):
            if isinstance(node, _KEPT_ALIVE):  # who knows when it runs
                doubtful |= activity(node).read
    return scope.locals - doubtful


class _Uses:
    """Where names occur: for each the innermost place that holds all its uses."""

    def __init__(self, function: Any, pinned: frozenset[Any], activity: Activities) -> None:
        self.pinned = pinned
        self.activity = activity
        self.place: dict[str, Place] = {}
        self.captured: set[str] = set()  # by nested functions, which may run at any later time
        self._contents: dict[Place, Block] = {(): function.body}
        self._exposed: dict[Place, set[str]] = {}
        self._leaving: dict[Any, bool] = {}
        self.block(function.body, ())

    def exposed(self, place: Place) -> set[str]:
        if place not in self._exposed:
            self._exposed[place] = exposed(self._contents[place], self.activity, self._leaving)
        return self._exposed[place]

    def block(self, block: Block, place: Place) -> None:
        for stmt in block:
            if isinstance(stmt, CONVERTIBLE) and stmt not in self.pinned:
                self.convertible(stmt, place)
            else:
                self.header(stmt, place)
                for inner in blocks(stmt):
                    self.block(inner, place)

    def convertible(self, stmt: Any, place: Place) -> None:
        body = (*place, (stmt, "body"))
        self._contents[body] = stmt.body
        if isinstance(stmt, gast.If):
            self.expression(stmt.test, place)
            other = (*place, (stmt, "orelse"))
            self._contents[other] = stmt.orelse
            self.block(stmt.orelse, other)
            self.block(stmt.body, body)
            return
        test = (*place, (stmt, "test"))
        if isinstance(stmt, gast.While):
            self._contents[test] = [gast.Expr(stmt.test)]
            self.expression(stmt.test, test)
            self.block(stmt.body, body)
            return
        self.expression(stmt.iter, place)
        self.expression(stmt.target, body)
        self._contents[body] = [gast.Assign([stmt.target], gast.Constant(None, None), None), *stmt.body]
        statements, extra_test = split_extra_test(stmt)
        if extra_test is not None:
            self._contents[test] = [gast.Expr(extra_test)]
            self.expression(extra_test, test)
        self.block(statements, body)

    def header(self, stmt: Any, place: Place) -> None:
        """The parts of a Python statement that aren't blocks."""
        inside = {id(each) for block in blocks(stmt) for each in block}
        if not inside:
            self.expression(stmt, place)
            return
        waiting = [child for child in children(stmt) if id(child) not in inside]
        while waiting:
            child = waiting.pop()
            if isinstance(child, (gast.ExceptHandler, gast.match_case)):
                waiting.extend(each for each in children(child) if id(each) not in inside)
            else:
                self.expression(child, place)

    def expression(self, node: Any, place: Place) -> None:
        seen = self.activity(node)
        for name in seen.read | seen.bound | seen.deleted | seen.declared:
            before = self.place.get(name)
            self.place[name] = place if before is None else _common(before, place)
        for inner in own_nodes(node):
            if isinstance(inner, _KEPT_ALIVE):
                nested = self.activity(inner)
                self.captured |= nested.read | nested.deleted | (nested.bound - {getattr(inner, "name", None)})


def split_extra_test(loop: Any) -> tuple[Block, Any]:
    """A ``for`` loop's body without the ``if flag: break`` that breaks.py puts at its end, and that flag."""
    last = loop.body[-1]
    if isinstance(last, gast.If) and not last.orelse and len(last.body) == 1 and isinstance(last.body[0], gast.Break):
        return loop.body[:-1], last.test
    return loop.body, None


def _common(one: Place, other: Place) -> Place:
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return one[:count]


class _Exposed:
    """Walks a block in program order with the set of names that are surely set."""

    def __init__(self, activity: Activities, leaving: dict[Any, bool]) -> None:
        self.activity = activity
        self.leaving = leaving  # whether control can't run off the end of a statement, as far as is known
        self.found: set[str] = set()
        self.after: dict[Any, set[str]] = {}

    def block(self, block: Block, given: set[str]) -> set[str]:
        """The names surely set after the block."""
        have = set(given)
        for stmt in block:
            have = self.after[stmt] = self.statement(stmt, have)
        return have

    def use(self, node: Any, have: set[str]) -> None:
        if node is not None:
            seen = self.activity(node)
            self.found |= (seen.read | seen.deleted) - have

    def statement(self, stmt: Any, have: set[str]) -> set[str]:
        if isinstance(stmt, gast.If):
            self.use(stmt.test, have)
            return self.either([(each, self.block(each, have)) for each in (stmt.body, stmt.orelse)], have)
        if isinstance(stmt, gast.While):
            self.use(stmt.test, have)
            self.block(stmt.body, have)
            self.block(stmt.orelse, have)
            return have
        if isinstance(stmt, (gast.For, gast.AsyncFor)):
            self.use(stmt.iter, have)
            self.use(stmt.target, have)
            self.block(stmt.body, have | self.activity(stmt.target).bound)
            self.block(stmt.orelse, have)
            return have
        if isinstance(stmt, (gast.With, gast.AsyncWith)):
            for item in stmt.items:
                self.use(item.context_expr, have)
                if item.optional_vars is not None:
                    self.use(item.optional_vars, have)
                    have = have | self.activity(item.optional_vars).bound
            self.block(stmt.body, have)
            return have
        if isinstance(stmt, (gast.Try, gast.TryStar)):
            return self.attempt(stmt, have)
        if isinstance(stmt, gast.Match):
            self.use(stmt.subject, have)
            for case in stmt.cases:
                inside = have | self.activity(case.pattern).bound
                self.use(case.pattern, have)
                self.use(case.guard, inside)
                self.block(case.body, inside)
            return have
        self.use(stmt, have)
        return (have | self.surely_bound(stmt)) - self.activity(stmt).deleted

    def attempt(self, stmt: Any, have: set[str]) -> set[str]:
        body = self.block(stmt.orelse, self.block(stmt.body, have))
        ways = [([*stmt.body, *stmt.orelse], body)]
        for handler in stmt.handlers:
            self.use(handler.type, have)
            caught = have | ({handler.name.id} if handler.name is not None else set())
            after = self.block(handler.body, caught)
            ways.append((handler.body, after - ({handler.name.id} if handler.name is not None else set())))
        after = self.either(ways, have)
        return after | self.block(stmt.finalbody, have)

    def surely_bound(self, stmt: Any) -> set[str]:
        if isinstance(stmt, gast.Assign):
            return set().union(*(self.activity(target).bound for target in stmt.targets))
        if isinstance(stmt, (gast.AugAssign, gast.AnnAssign)):
            return set(self.activity(stmt).bound & self.activity(stmt.target).bound)
        if isinstance(stmt, (gast.Import, gast.ImportFrom)):
            return set(self.activity(stmt).bound)
        if isinstance(stmt, (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef)):
            return {stmt.name}
        return set()

    def either(self, ways: list[tuple[Block, set[str]]], before: set[str]) -> set[str]:
        """What is surely set when one of several blocks has run to its end."""
        ends = [after for block, after in ways if not self.leaves(block)]
        return set.intersection(*ends) if ends else before

    def leaves(self, block: Block) -> bool:
        for stmt in reversed(block):
            found = self.leaving.get(stmt)
            if found is None:
                found = self.leaving[stmt] = leaves([stmt], loop=True)
            if found:
                return True
        return False
