"""Walking statements of one function: its blocks, without entering the functions and classes nested in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gast

LOOPS = (gast.For, gast.While, gast.AsyncFor)
FUNCTIONS = (gast.FunctionDef, gast.AsyncFunctionDef)
SCOPES = (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef, gast.Lambda)
# Compound statements that become functions, unless they are pinned (see pins.py).
CONVERTIBLE = (gast.If, gast.For, gast.While)

Block = list[Any]


def blocks(stmt: Any) -> Iterator[Block]:
    """The statement lists directly inside a statement; none for function and class definitions."""
    if isinstance(stmt, SCOPES):
        return
    for holder in (stmt, *getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(holder, field, None)
            if isinstance(block, list) and block:
                yield block


def map_blocks(stmt: Any, change: Callable[[Block], Block]) -> None:
    """Replace each non-empty block directly inside a statement by ``change(block)``."""
    if isinstance(stmt, SCOPES):
        return
    for holder in (stmt, *getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(holder, field, None)
            if isinstance(block, list) and block:
                setattr(holder, field, change(block))


class StatementRewriter:
    """Replaces statements of a function by others, the inner ones first. `statement` says by which."""

    def __init__(self, function: Any, context: Any) -> None:
        self.function = function
        self.context = context
        self.pinned = context.pinned(function)

    def block(self, block: Block) -> Block:
        made: Block = []
        for stmt in block:
            map_blocks(stmt, self.block)
            made += self.statement(stmt)
        return made

    def statement(self, stmt: Any) -> Block:
        raise NotImplementedError


def statements(block: Block) -> Iterator[Any]:
    """Every statement of a block and of the blocks in it, outer ones first."""
    for stmt in block:
        yield stmt
        for inner in blocks(stmt):
            yield from statements(inner)


def holders(block: Block, kind: type) -> set[Any]:
    """The statements of a block, and of the blocks in it, that hold a statement of some kind at any depth."""
    found: set[Any] = set()
    _add_holders(block, kind, found)
    return found


def _add_holders(block: Block, kind: type, found: set[Any]) -> bool:
    holds = False
    for stmt in block:
        if any([_add_holders(inner, kind, found) for inner in blocks(stmt)]):  # noqa: C419  all of them, not up to one
            found.add(stmt)
            holds = True
        holds = holds or isinstance(stmt, kind)
    return holds


def functions(tree: Any) -> Iterator[Any]:
    """Every function definition in a tree, the tree itself included, outer ones first."""
    level = [tree]
    while level:
        found: list[Any] = []
        for node in level:
            if isinstance(node, FUNCTIONS):
                yield node
            if isinstance(node, SCOPES):
                found.extend(node.body if isinstance(node.body, list) else ())
            else:
                for block in blocks(node):
                    found.extend(block)
        level = found


def own_jumps(block: Block) -> list[Any]:
    """The ``break`` and ``continue`` statements of a loop's body that belong to that loop."""
    found: list[Any] = []
    for stmt in block:
        if isinstance(stmt, (gast.Break, gast.Continue)):
            found.append(stmt)
        elif isinstance(stmt, LOOPS):
            found.extend(own_jumps(stmt.orelse))
        else:
            for inner in blocks(stmt):
                found.extend(own_jumps(inner))
    return found


def head(node: Any) -> Any:
    """A location for what replaces a node: its start, or as much of its header as stands on its first line.

    Python takes a method call to happen on the last line of the method's name, so that must not be the block's last.
    """
    place = gast.copy_location(gast.Pass(), node)
    if getattr(node, "end_lineno", None) not in (None, node.lineno):
        test = getattr(node, "test", getattr(node, "iter", None))
        place.end_lineno, place.end_col_offset = node.lineno, node.col_offset + 1
        if test is not None and test.end_lineno == node.lineno:
            place.end_col_offset = test.end_col_offset
    return place


def is_true(node: Any) -> bool:
    """Whether an expression is a constant that always holds."""
    return isinstance(node, gast.Constant) and bool(node.value)


def is_endless(stmt: Any) -> bool:
    """Whether a statement is a loop that only ``return`` or an exception can leave."""
    if not isinstance(stmt, gast.While) or not is_true(stmt.test):
        return False
    return not any(isinstance(jump, gast.Break) for jump in own_jumps(stmt.body))


def leaves(block: Block, *, loop: bool = False) -> bool:
    """Whether control can't run off the end of a block: it surely returns or raises, or with ``loop`` jumps."""
    # The last one first: it is the one that leaves, if any does and the rest isn't dead.
    return any(_leaves(stmt, loop) for stmt in reversed(block))


def _leaves(stmt: Any, loop: bool) -> bool:
    if isinstance(stmt, (gast.Return, gast.Raise)):
        return True
    if isinstance(stmt, (gast.Break, gast.Continue)):
        return loop
    if isinstance(stmt, gast.If):
        return leaves(stmt.body, loop=loop) and leaves(stmt.orelse, loop=loop)
    if isinstance(stmt, (gast.Try, gast.TryStar)):
        if leaves(stmt.finalbody, loop=loop):
            return True
        body = leaves(stmt.body, loop=loop) or leaves(stmt.orelse, loop=loop)
        return body and all(leaves(handler.body, loop=loop) for handler in stmt.handlers)
    if isinstance(stmt, gast.Match):
        last = stmt.cases[-1]
        complete = last.guard is None and isinstance(last.pattern, gast.MatchAs) and last.pattern.pattern is None
        return complete and all(leaves(case.body, loop=loop) for case in stmt.cases)
    # A `with` never counts: its context manager may swallow the exception that kept the body from returning.
    return is_endless(stmt)
