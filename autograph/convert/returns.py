"""``return`` inside a block that is to become a function.

Where all ways through an ``if`` leave the function, its branches keep their ``return`` and later become functions that
return; the statements after an ``if`` whose one branch returns move into the other branch to make that so::

    if x > 0:                 if x > 0:
        return x                  return x
    y = -x            →       else:
    return y                      y = -x
                                  return y

Elsewhere, above all in loops, a flag takes its place::

    for x in xs:              do_return = False
        if x > k:             for x in xs:
            return x              if x > k:
    return -1         →               retval = x
                                      do_return = True
                                      break
                              if do_return:
                                  return retval
                              else:
                                  return -1
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.tree import CONVERTIBLE, Block, blocks, functions, is_endless, leaves, map_blocks, statements
from autograph.syntax import templates

_CLEANING = (gast.Try, gast.TryStar, gast.With)


def lower(tree: Any, context: Context) -> Any:
    """After this pass an ``if`` that isn't pinned holds a ``return`` only if it surely leaves; loops hold none."""
    for function in list(functions(tree)):
        lowering = _Lowering(function, context)
        if lowering.needed:
            function.body = lowering.real(function.body, tail=True)
    return tree


class _Lowering:
    def __init__(self, function: Any, context: Context) -> None:
        self.function = function
        self.context = context
        self.returning: set[Any] = set()  # every statement that is or holds a `return`
        self.needed = False
        self._find(function.body)
        self._flag: str | None = None
        self._value: str | None = None

    def _find(self, block: Block) -> bool:
        found = False
        for stmt in block:
            inside = [self._find(inner) for inner in blocks(stmt)]
            if isinstance(stmt, gast.Return) or any(inside):
                self.returning.add(stmt)
                found = True
                self.needed = self.needed or self.converts(stmt)
        return found

    @property
    def pinned(self) -> frozenset[Any]:
        return self.context.pinned(self.function)

    def converts(self, stmt: Any) -> bool:
        return isinstance(stmt, CONVERTIBLE) and stmt not in self.pinned

    def around(self, block: Block, stmt: Any) -> Any:
        """Tells that ``block`` has come into ``stmt``: what is pinned in it pins what is around it."""
        if self.pinned and any(inner in self.pinned for inner in statements(block)):
            self.context.pin(self.function, stmt)
        return stmt

    @property
    def flag(self) -> str:
        if self._flag is None:
            self._flag = self.context.new_name(self.function, "do_return")
        return self._flag

    @property
    def value(self) -> str:
        if self._value is None:
            self._value = self.context.new_name(self.function, "retval")
            self.context.mark_covered(self.function, self._value)
        return self._value

    # --- where `return` still leaves the function ------------------------------------------------------------------

    def real(self, block: Block, *, tail: bool) -> Block:
        """Rewrites a block that ``return`` may leave; ``tail``: running off its end leaves the function too."""
        for index, stmt in enumerate(block):
            if stmt not in self.returning:
                continue
            before, rest = block[:index], block[index + 1 :]
            if isinstance(stmt, gast.Return):
                return block
            if self.converts(stmt):
                if isinstance(stmt, gast.If) and self._make_returning(stmt, rest, tail):
                    return [*before, stmt]
                return [*before, *self._by_flag(stmt, rest)]
            if not all(self._stays_real(inner) for inner in blocks(stmt)):
                return [*before, *self._by_flag(stmt, rest)]
            map_blocks(stmt, lambda inner: self.real(inner, tail=False))
        return block

    def _stays_real(self, block: Block) -> bool:
        """Whether a block inside a ``with``, ``try`` ... can keep its ``return`` statements."""
        for index, stmt in enumerate(block):
            if isinstance(stmt, gast.Return):
                return True
            if stmt in self.returning:
                if self.converts(stmt):
                    return leaves(block[index:])
                if not all(self._stays_real(inner) for inner in blocks(stmt)):
                    return False
        return True

    def _make_returning(self, stmt: Any, rest: Block, tail: bool) -> bool:
        """Makes both branches leave, the statements after the ``if`` moving into the one that runs on, if possible."""
        body_leaves, else_leaves = leaves(stmt.body), leaves(stmt.orelse)
        if not (body_leaves and else_leaves):
            if not (body_leaves or else_leaves) or not (tail or leaves(rest)):
                return False
            if body_leaves:
                stmt.orelse = self._closed([*stmt.orelse, *rest], stmt)
            else:
                stmt.body = self._closed([*stmt.body, *rest], stmt)
            self.around(rest, stmt)
        map_blocks(stmt, lambda inner: self.real(inner, tail=True))
        return True

    def _closed(self, block: Block, at: Any) -> Block:
        return block if leaves(block) else [*block, *templates.replace("return None", at=block[-1] if block else at)]

    def _by_flag(self, stmt: Any, rest: Block) -> Block:
        """Replaces the ``return`` statements in ``stmt`` by a flag, on which the function returns after it."""
        endless = is_endless(stmt)
        self._set_flags(stmt)
        made = templates.replace("flag = False", at=stmt, flag=self.flag)
        made.append(stmt)
        if endless:
            return [*made, *templates.replace("return value", at=stmt, value=self.value)]
        template = """
        if flag:
            return value
        else:
            rest
        """
        rest = self.real(self._closed(rest, stmt), tail=True)
        made += templates.replace(template, at=stmt, flag=self.flag, value=self.value, rest=rest)
        return [*made[:-1], self.around(rest, made[-1])]

    # --- where a flag stands for it --------------------------------------------------------------------------------

    def _set_flags(self, stmt: Any) -> None:
        if self.converts(stmt) and not isinstance(stmt, gast.If):
            stmt.body = self._in_loop(stmt.body)
            return
        self._reset_in_handlers(stmt)
        skipped_else = isinstance(stmt, (gast.Try, gast.TryStar)) and any(s in self.returning for s in stmt.body)
        map_blocks(stmt, self._flagged)
        if skipped_else and stmt.orelse:
            stmt.orelse = self._unless_returned(stmt.orelse)

    def _flagged(self, block: Block) -> Block:
        for index, stmt in enumerate(block):
            if stmt not in self.returning:
                continue
            before, rest = block[:index], block[index + 1 :]
            if isinstance(stmt, gast.Return):
                return [*before, *self._assign(stmt)]
            if isinstance(stmt, gast.If) and self.converts(stmt) and (leaves(stmt.body) or leaves(stmt.orelse)):
                if not leaves(stmt.body):
                    stmt.body = [*stmt.body, *rest]
                elif not leaves(stmt.orelse):
                    stmt.orelse = [*stmt.orelse, *rest]
                rest = []
                self.around(block[index + 1 :], stmt)
            elif stmt in self.pinned and all(self._stays_real(inner) for inner in blocks(stmt)):
                # All statements around a pinned one are Python statements, which `return` may leave.
                map_blocks(stmt, lambda inner: self.real(inner, tail=False))
                return [*before, stmt, *self._flagged(rest)]
            self._set_flags(stmt)
            return [*before, stmt, *self._unless_returned(self._flagged(rest))]
        return block

    def _in_loop(self, block: Block) -> Block:
        made: Block = []
        for stmt in block:
            if stmt not in self.returning:
                made.append(stmt)
            elif isinstance(stmt, gast.Return):
                return [*made, *self._assign(stmt), self._break(stmt)]
            elif self.converts(stmt) and not isinstance(stmt, gast.If):
                endless = is_endless(stmt)
                stmt.body = self._in_loop(stmt.body)
                jump = self._break(stmt)
                made.append(stmt)
                if endless:
                    return [*made, jump]
                made.extend(templates.replace("if flag:\n    jump", at=stmt, flag=self.flag, jump=jump))
            else:
                self._reset_in_handlers(stmt)
                map_blocks(stmt, self._in_loop)
                made.append(stmt)
        return made

    def _reset_in_handlers(self, stmt: Any) -> None:
        """An error on the way out (of ``finally``, of a context manager) undoes a ``return`` if it is caught."""
        if not isinstance(stmt, (gast.Try, gast.TryStar)):
            return
        tried = [*statements(stmt.body), *statements(stmt.orelse)]
        if any(each in self.returning and isinstance(each, _CLEANING) for each in tried):
            for handler in stmt.handlers:
                at = handler.body[0]
                handler.body = [*templates.replace("flag = False", at=at, flag=self.flag), *handler.body]

    def _assign(self, stmt: Any) -> Block:
        template = """
        value = result
        flag = True
        """
        result = stmt.value if stmt.value is not None else templates.literal(None, at=stmt)
        return templates.replace(template, at=stmt, flag=self.flag, value=self.value, result=result)

    def _break(self, at: Any) -> Any:
        """A ``break`` that says which flag is set when it runs."""
        jump = gast.copy_location(gast.Break(), at)
        jump.flag = self.flag
        return jump

    def _unless_returned(self, block: Block) -> Block:
        if not block:
            return []
        made = templates.replace("if not flag:\n    block", at=block[0], flag=self.flag, block=block)
        return [self.around(block, made[0])]
