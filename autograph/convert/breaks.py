"""``break`` and ``continue`` become flags, and only where falling off the end of the loop's body isn't enough.

    while c(x):               did_break = False
        if x > 9:             while not did_break and c(x):
            break         →       if x > 9:
        x += 1                        did_break = True
                                  else:
                                      x += 1

When one branch of an ``if`` surely jumps, the statements after it move into the other branch: most jumps need no guard,
and a last ``continue`` needs nothing at all. A ``for`` loop tests its flag at the end of its body, so that
a ``break`` pulls no further element; control_flow.py takes that last statement for the loop's extra test::

    for x in xs:              did_break = False
        if x > 9:             for x in xs:
            break         →       if x > 9:
        s += x                        did_break = True
                                  else:
                                      s += x
                                  if did_break:
                                      break
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.swallowed import jumps_may_be_undone
from autograph.convert.tree import LOOPS, Block, functions, is_true, leaves, map_blocks, own_jumps
from autograph.syntax import templates


def lower(tree: Any, context: Context) -> Any:
    """Rewrites the loops of every function, except pinned ones."""
    for function in list(functions(tree)):
        function.body = _Function(function, context).block(function.body)
    return tree


class _Function:
    def __init__(self, function: Any, context: Context) -> None:
        self.function = function
        self.context = context
        self.pinned = context.pinned(function)

    def block(self, block: Block) -> Block:
        """A block whose own jumps, if any, belong to a pinned loop."""
        return [made for stmt in block for made in self.statement(stmt)]

    def statement(self, stmt: Any) -> Block:
        if isinstance(stmt, LOOPS) and stmt not in self.pinned and own_jumps(stmt.body):
            return _Loop(self, stmt).lowered()
        map_blocks(stmt, self.block)
        return [stmt]


class _Loop:
    """One loop with jumps of its own."""

    def __init__(self, owner: _Function, loop: Any) -> None:
        self.owner = owner
        self.loop = loop
        jumps = own_jumps(loop.body)
        breaks = [jump for jump in jumps if isinstance(jump, gast.Break)]
        known = {getattr(jump, "flag", None) for jump in breaks}
        self.break_flag: str | None = None
        self.sets_flag = False  # whether a `break` has to set the flag, or the statements before it have done so
        if breaks:
            (name,) = known if len(known) == 1 else (None,)
            self.sets_flag = name is None
            self.break_flag = name or owner.context.new_name(owner.function, "did_break")
        self._continue_flag: str | None = None

    @property
    def continue_flag(self) -> str:
        if self._continue_flag is None:
            self._continue_flag = self.owner.context.new_name(self.owner.function, "did_continue")
        return self._continue_flag

    def lowered(self) -> Block:
        loop = self.loop
        loop.body = self.block(loop.body, tail=True)
        if self._continue_flag is not None:
            loop.body = [*templates.replace("flag = False", at=loop, flag=self._continue_flag), *loop.body]
        if self.break_flag is None:
            loop.body = loop.body or templates.replace("pass", at=loop)
            return [loop]
        if isinstance(loop, gast.While):
            template = "not flag" if is_true(loop.test) else "not flag and test"
            parts = {} if is_true(loop.test) else {"test": loop.test}
            loop.test = templates.expression(template, at=loop.test, flag=self.break_flag, **parts)
        else:
            loop.body += templates.replace("if flag:\n    break", at=loop, flag=self.break_flag)
        loop.body = loop.body or templates.replace("pass", at=loop)
        before = templates.replace("flag = False", at=loop, flag=self.break_flag) if self.sets_flag else []
        return [*before, loop]

    def block(self, block: Block, *, tail: bool) -> Block:
        """Rewrites jumps in a block; ``tail``: running off its end ends the loop's body."""
        made: Block = []
        for index, stmt in enumerate(block):
            jumps = _jumps_in(stmt)
            if not jumps:
                made.extend(self.owner.statement(stmt))
                continue
            if isinstance(stmt, gast.Break):
                return [*made, *(self._set(stmt, self.break_flag) if self.sets_flag else [])]
            if isinstance(stmt, gast.Continue):
                return [*made, *([] if tail else self._set(stmt, self.continue_flag))]
            return [*made, *self._compound(stmt, jumps, block[index + 1 :], tail)]
        return made

    def _compound(self, stmt: Any, jumps: list[Any], rest: Block, tail: bool) -> Block:
        if isinstance(stmt, gast.If) and stmt not in self.owner.pinned:
            if leaves(stmt.body, loop=True):
                stmt.orelse, rest = [*stmt.orelse, *rest], []
            elif leaves(stmt.orelse, loop=True):
                stmt.body, rest = [*stmt.body, *rest], []
        ends_body = tail and not rest
        undone: list[Any] = []
        if isinstance(stmt, (gast.Try, gast.TryStar)) and jumps_may_be_undone([*stmt.body, *stmt.orelse]):
            undone = [jump for inner in (*stmt.body, *stmt.orelse) for jump in _jumps_in(inner)]
        if isinstance(stmt, (gast.Try, gast.TryStar)) and stmt.orelse:
            in_body = [jump for inner in stmt.body for jump in _jumps_in(inner)]
            stmt.body = self.block(stmt.body, tail=False) or [_pass(stmt)]
            if in_body:
                stmt.orelse = self._guarded(stmt.orelse, in_body, ends_body)
            else:
                stmt.orelse = self.block(stmt.orelse, tail=ends_body)
            for handler in stmt.handlers:
                handler.body = self.block(handler.body, tail=ends_body) or [_pass(stmt)]
            stmt.finalbody = self.owner.block(stmt.finalbody)
            self._take_back(stmt, undone)
            return [stmt, *self._guarded(rest, jumps, tail)]
        if isinstance(stmt, LOOPS):  # its `else` clause holds the jumps; only a pinned loop still has one
            stmt.body = self.owner.block(stmt.body)
            stmt.orelse = self.block(stmt.orelse, tail=ends_body) or [_pass(stmt)]
        else:
            map_blocks(stmt, lambda inner: self.block(inner, tail=ends_body) or [_pass(inner[0])])
        self._take_back(stmt, undone)
        return [*_tidy(stmt, jumps), *self._guarded(rest, jumps, tail)]

    def _take_back(self, stmt: Any, undone: list[Any]) -> None:
        """Resets the flags of jumps that an error has undone, which the handlers of ``stmt`` catch."""
        flags = {self.break_flag if isinstance(jump, gast.Break) else self._continue_flag for jump in undone}
        for flag in sorted(flag for flag in flags if flag is not None):
            for handler in stmt.handlers:
                handler.body = [*templates.replace("flag = False", at=stmt, flag=flag), *handler.body]

    def _guarded(self, rest: Block, jumps: list[Any], tail: bool) -> Block:
        """The statements that run unless one of the jumps did."""
        if not rest:
            return []
        breaks = any(isinstance(jump, gast.Break) for jump in jumps)
        continues = any(isinstance(jump, gast.Continue) for jump in jumps)
        at = rest[0]
        rest = self.block(rest, tail=tail) or [_pass(at)]
        if breaks and continues:
            template = "if not (stopped or skipped):\n    rest"
            return templates.replace(template, at=at, stopped=self.break_flag, skipped=self.continue_flag, rest=rest)
        flag = self.break_flag if breaks else self.continue_flag
        return templates.replace("if not flag:\n    rest", at=at, flag=flag, rest=rest)

    def _set(self, at: Any, flag: str | None) -> Block:
        return templates.replace("flag = True", at=at, flag=flag)


def _jumps_in(stmt: Any) -> list[Any]:
    """The ``break`` and ``continue`` statements in ``stmt`` that belong to the loop around it."""
    return own_jumps([stmt])


def _pass(at: Any) -> Any:
    return gast.copy_location(gast.Pass(), at)


def _is_empty(block: Block) -> bool:
    return all(isinstance(stmt, gast.Pass) for stmt in block)


def _tidy(stmt: Any, jumps: list[Any]) -> Block:
    """``if c: pass else: s`` reads better as ``if not c: s``, and a test of a flag that guards nothing can go."""
    if not isinstance(stmt, gast.If):
        return [stmt]
    if _is_empty(stmt.orelse):
        stmt.orelse = []
    if _is_empty(stmt.body):
        if stmt.orelse:
            negated = isinstance(stmt.test, gast.UnaryOp) and isinstance(stmt.test.op, gast.Not)
            stmt.test = stmt.test.operand if negated else templates.expression("not test", at=stmt.test, test=stmt.test)
            stmt.body, stmt.orelse = stmt.orelse, []
        elif isinstance(stmt.test, gast.Name) and stmt.test.id in {getattr(jump, "flag", None) for jump in jumps}:
            return []
    return [stmt]
