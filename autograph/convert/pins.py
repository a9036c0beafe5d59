"""Which statements must stay Python statements because a function made of them would mean something else.

A compound statement is *pinned*, never made into a block function, when in its own function scope it holds

- ``yield`` or ``await`` (or ``async for``, ``async with``, an asynchronous comprehension),
- a call of ``locals``, ``vars``, ``dir``, ``eval`` or ``exec``, which look at the frame they run in, or of
  ``sys._getframe`` and its like, which count the frames around it,
- a ``break``, ``continue`` or ``return`` that leaves a ``finally`` clause (it swallows exceptions, a flag doesn't),
  unless it is a ``return`` in an ``if`` of a clause that returns on all ways,
- a ``break`` or ``continue`` of a pinned loop, or a ``return`` out of one, of a generator, of a reader of frames.

Example (the loop and the first ``if`` are pinned, the second ``if`` isn't)::

    for x in xs:
        if x is None:
            break
        yield x
        if x > 0:
            total += x
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.tree import LOOPS, SCOPES, Block, blocks, leaves
from autograph.syntax.walk import children

FRAME_READERS = frozenset({"locals", "vars", "dir", "eval", "exec"})
FRAME_COUNTERS = frozenset({"_getframe", "_getframemodulename", "currentframe"})

_SUSPENDS = (gast.Yield, gast.YieldFrom, gast.Await, gast.AsyncFor, gast.AsyncWith)


def pinned(function: Any) -> frozenset[Any]:
    """The pinned statements of a function, as a set of nodes."""
    scan = _Pins(function)
    if scan.nothing_special:
        return frozenset()
    before = -1
    while len(scan.pinned) != before:  # a pinned loop pins its jumps, whose other ancestors may be loops again
        before = len(scan.pinned)
        scan.block(function.body, (), None)
    return frozenset(scan.pinned)


def reads_frame(function: Any) -> bool:
    """Whether the function looks at its own frame (``locals()``, ``eval`` ...)."""
    return any(_reads_frame(node) for stmt in function.body for node in own_nodes(stmt))


def needs_own_frame(node: Any) -> bool:
    """Whether a node by itself means something else in a function of its own."""
    return _suspends(node) or _reads_frame(node)


def own_nodes(node: Any) -> list[Any]:
    """A node and what is below it in the same function scope (decorators and defaults of nested functions included)."""
    found, waiting = [], [node]
    while waiting:
        current = waiting.pop()
        found.append(current)
        waiting.extend(_own_children(current))
    return found


def _own_children(node: Any) -> list[Any]:
    if isinstance(node, gast.Lambda):
        return [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]
    if isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef)):
        defaults = [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]
        return [*node.decorator_list, *defaults]
    if isinstance(node, gast.ClassDef):
        return [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]
    return children(node)


def _suspends(node: Any) -> bool:
    return isinstance(node, _SUSPENDS) or (isinstance(node, gast.comprehension) and bool(node.is_async))


def _reads_frame(node: Any) -> bool:
    if not isinstance(node, gast.Call):
        return False
    if isinstance(node.func, gast.Attribute):
        return node.func.attr in FRAME_COUNTERS
    if not isinstance(node.func, gast.Name):
        return False
    if node.func.id in ("vars", "dir") and (node.args or node.keywords):  # of an object
        return False
    return node.func.id in FRAME_READERS or node.func.id in FRAME_COUNTERS


class _Pins:
    def __init__(self, function: Any) -> None:
        nodes = [node for stmt in function.body for node in own_nodes(stmt)]
        suspending = any(_suspends(node) for node in nodes)
        self.keeps_returns = suspending or isinstance(function, gast.AsyncFunctionDef)
        tries = [node for node in nodes if isinstance(node, (gast.Try, gast.TryStar)) and node.finalbody]
        finals = [inner for node in tries for stmt in node.finalbody for inner in own_nodes(stmt)]
        escapes = any(isinstance(node, (gast.Break, gast.Continue, gast.Return)) for node in finals)
        # To take a `return` out of a block, the statements after it are moved into blocks.
        self.keeps_returns |= any(_reads_frame(node) for node in nodes)
        self.nothing_special = not (self.keeps_returns or escapes)
        self.pinned: set[Any] = set()
        # The try statements whose `finally` clause is being looked at, with the ancestors around them.
        self.finals: list[tuple[Any, ...]] = []

    def block(self, block: Block, ancestors: tuple[Any, ...], loop: Any) -> None:
        for stmt in block:
            self.statement(stmt, ancestors, loop)

    def statement(self, stmt: Any, ancestors: tuple[Any, ...], loop: Any) -> None:
        if isinstance(stmt, SCOPES):
            if any(_suspends(node) or _reads_frame(node) for node in own_nodes(stmt)):
                self.pinned.update(ancestors)
            return
        if isinstance(stmt, gast.Return):
            self.returns(ancestors)
        elif isinstance(stmt, (gast.Break, gast.Continue)):
            inside = ancestors[ancestors.index(loop) + 1 :]
            if loop in self.pinned:
                self.pinned.update(inside)
            elif any(isinstance(each, tuple) and each[0] in inside for each in self.finals):
                self.pinned.update([loop, *inside])
        here = (*ancestors, stmt)
        if _suspends(stmt) or any(self.pins_around(node) for node in _header(stmt)):
            self.pinned.update(here)
        inner_loop = stmt if isinstance(stmt, LOOPS) else loop
        for inner in blocks(stmt):
            # A loop's `else` belongs to the loop around it.
            its_loop = loop if inner is getattr(stmt, "orelse", None) and isinstance(stmt, LOOPS) else inner_loop
            if inner is getattr(stmt, "finalbody", None):
                self.finals.append((stmt,))
                self.block(inner, here, its_loop)
                self.finals.pop()
            else:
                self.block(inner, here, its_loop)

    def returns(self, ancestors: tuple[Any, ...]) -> None:
        out_of_pinned_loop = any(isinstance(each, LOOPS) and each in self.pinned for each in ancestors)
        if self.keeps_returns or out_of_pinned_loop:
            self.pinned.update(ancestors)
        elif self.finals:
            self.pinned.update(ancestors[: self._last_kept(ancestors)])

    def _last_kept(self, ancestors: tuple[Any, ...]) -> int:
        """How many of the statements around a ``return`` in a ``finally`` clause must stay: all, or those outside the
        clause if it surely leaves and only conditions lie between; an ``if`` of it becomes a ``return`` itself."""
        within = self.finals[-1][0]
        position = ancestors.index(within) + 1
        conditions = all(isinstance(each, gast.If) for each in ancestors[position:])
        return position if conditions and leaves(within.finalbody) else len(ancestors)

    def pins_around(self, node: Any) -> bool:
        return any(_suspends(inner) or _reads_frame(inner) for inner in own_nodes(node))


def _header(stmt: Any) -> list[Any]:
    """The parts of a statement outside its blocks."""
    inside = {id(each) for block in blocks(stmt) for each in block}
    parts: list[Any] = []
    for child in children(stmt):
        if id(child) in inside:
            continue
        if isinstance(child, gast.ExceptHandler):
            parts.extend([child.type] if child.type is not None else [])
        elif isinstance(child, gast.match_case):
            parts.extend([child.pattern] + ([child.guard] if child.guard is not None else []))
        else:
            parts.append(child)
    return parts
