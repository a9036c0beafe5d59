"""``and``, ``or`` and conditional expressions with ``:=`` in an operand become ``if`` statements.

    if a and (y := f(x)) > 0:         test = a
        z = y                  →      if test:
                                          test = (y := f(x)) > 0
                                      if test:
                                          z = y

An operand that binds a name can't be put off into a lambda (see logic.py), a statement can be put off into a block. A
``while`` loop with such a test becomes an endless one that starts with the test and a ``break``. Only what a statement
evaluates first is rewritten: the test of ``if`` and ``while``, the value that is assigned, returned or dropped.
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.pins import needs_own_frame, own_nodes, reads_frame
from autograph.convert.tree import Block, functions, map_blocks
from autograph.syntax import templates

_VALUES = (gast.Assign, gast.AnnAssign, gast.Return, gast.Expr)


def lower(tree: Any, context: Context) -> Any:
    """Rewrites the statements of a tree that aren't pinned."""
    for function in functions(tree):
        if not reads_frame(function) and any(_binds(stmt) for stmt in function.body):
            function.body = _Operands(function, context).block(function.body)
    return tree


class _Operands:
    def __init__(self, function: Any, context: Context) -> None:
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
        field = "test" if isinstance(stmt, (gast.If, gast.While)) else "value"
        if field == "value" and not isinstance(stmt, _VALUES):
            return [stmt]
        expression = getattr(stmt, field)
        if expression is None or stmt in self.pinned or not _needs(expression):
            return [stmt]
        name = self.context.new_name(self.function, field)
        before = self.into(name, expression)
        if isinstance(stmt, gast.While):
            return self.loop(stmt, name, before)
        setattr(stmt, field, templates.expression("name", at=expression, name=name))
        return [*before, stmt]

    def loop(self, stmt: Any, name: str, before: Block) -> Block:
        """A ``while`` loop whose test, ``before``, comes first in its body; the end of the loop is a ``break`` then."""
        at, after = stmt.test, stmt.orelse
        leave = templates.replace("if not name:\n    break", at=at, name=name)
        stmt.test, stmt.orelse = templates.literal(True, at=at), []
        stmt.body = [*before, *leave, *stmt.body]
        if not after:
            return [stmt]
        flag = self.context.new_name(self.function, "ended")
        leave[0].body[:0] = templates.replace("flag = True", at=at, flag=flag)
        template = """
        flag = False
        loop
        if flag:
            after
        """
        return templates.replace(template, at=at, flag=flag, loop=stmt, after=after)

    def into(self, name: str, node: Any) -> Block:
        """The statements that assign an expression to a name."""
        if not _needs(node):
            return templates.replace("name = value", at=node, name=name, value=node)
        if isinstance(node, gast.UnaryOp):
            return [*self.into(name, node.operand), *templates.replace("name = not name", at=node, name=name)]
        if isinstance(node, gast.IfExp):
            return self.statement(gast.copy_location(self.branch(node.test, name, node.body, node.orelse), node))
        first, *others = node.values
        rest = others[0] if len(others) == 1 else gast.copy_location(gast.BoolOp(node.op, others), others[0])
        template = "name" if isinstance(node.op, gast.And) else "not name"
        test = templates.expression(template, at=first, name=name)
        return [*self.into(name, first), gast.copy_location(self.branch(test, name, rest), node)]

    def branch(self, test: Any, name: str, body: Any, orelse: Any = None) -> Any:
        return gast.If(test, self.into(name, body), [] if orelse is None else self.into(name, orelse))


def _needs(node: Any) -> bool:
    """Whether an expression puts off an operand that binds a name."""
    if any(needs_own_frame(inner) for inner in own_nodes(node)):
        return False
    if isinstance(node, gast.BoolOp):
        return _needs(node.values[0]) or any(_binds(each) for each in node.values[1:])
    if isinstance(node, gast.IfExp):
        return _needs(node.test) or _binds(node.body) or _binds(node.orelse)
    return isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.Not) and _needs(node.operand)


def _binds(node: Any) -> bool:
    return any(isinstance(inner, gast.NamedExpr) for inner in own_nodes(node))
