"""``and``, ``or`` and conditional expressions with ``:=`` in an operand become ``if`` statements.

    if a and (y := f(x)) > 0:         test = a
        z = y                  →      if test:
                                          test = (y := f(x)) > 0
                                      if test:
                                          z = y

An operand that binds a name can't be put off into a lambda (see logic.py), a statement can be put off into a block. A
``while`` loop with such a test, or with ``:=`` in its test and a jump in its body, becomes an endless one that starts
with the test and a ``break``. Rewritten is what a statement evaluates first: the test of ``if`` and ``while``, the
value that is assigned, returned or dropped. Where the operand stands inside of a call or display, what Python evaluates
before it is evaluated before it too:

    y = f(g(), a and (b := h()))    →    item = g()
                                         value = a
                                         if value:
                                             value = b = h()
                                         y = f(item, value)
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.expressions import added
from autograph.convert.pins import needs_own_frame, own_nodes, reads_frame
from autograph.convert.tree import Block, StatementRewriter, functions, statements
from autograph.syntax import templates

_VALUES = (gast.Assign, gast.AnnAssign, gast.Return, gast.Expr)


def lower(tree: Any, context: Context) -> Any:
    """Rewrites the statements of a tree that aren't pinned."""
    for function in functions(tree):
        if not reads_frame(function) and any(_binds(stmt) for stmt in function.body):
            function.body = _Operands(function, context).block(function.body)
    return tree


def _is_left_early(loop: Any) -> bool:
    """Whether a loop with ``:=`` in its test has a jump, which would make the test an operand behind a flag."""
    jumps = (gast.Break, gast.Return, gast.Raise)
    binds = any(isinstance(each, gast.NamedExpr) for each in own_nodes(loop.test))
    return binds and any(isinstance(each, jumps) for each in statements(loop.body))


class _Operands(StatementRewriter):
    def statement(self, stmt: Any) -> Block:
        field = "test" if isinstance(stmt, (gast.If, gast.While)) else "value"
        if field == "value" and not isinstance(stmt, _VALUES):
            return [stmt]
        expression = getattr(stmt, field)
        if expression is None or stmt in self.pinned:
            return [stmt]
        if not _needs(expression):
            if isinstance(stmt, gast.While) and not _needs_inside(expression) and _is_left_early(stmt):
                name = self.context.new_name(self.function, field)
                before = templates.replace("name = value", at=expression, name=name, value=expression)
                return self.loop(stmt, name, before)
            return self.lifted(stmt, field)
        name = self.context.new_name(self.function, field)
        before = self.into(name, expression)
        if isinstance(stmt, gast.While):
            return self.loop(stmt, name, before)
        setattr(stmt, field, templates.expression("name", at=expression, name=name))
        return [*before, stmt]

    def lifted(self, stmt: Any, field: str) -> Block:
        """A statement whose expression has operands that bind names further inside."""
        expression = getattr(stmt, field)
        if not _needs_inside(expression):
            return [stmt]
        before, changed = self.lift(expression)
        if not isinstance(stmt, gast.While):
            setattr(stmt, field, changed)
            return [*before, stmt]
        name = self.context.new_name(self.function, field)
        return self.loop(
            stmt, name, [*before, *templates.replace("name = value", at=expression, name=name, value=changed)]
        )

    def lift(self, node: Any) -> tuple[Block, Any]:
        """What must be evaluated before an expression, and what is left of it."""
        if _needs(node):
            name = self.context.new_name(self.function, "value")
            return self.into(name, node), templates.expression("name", at=node, name=name)
        before: Block = []
        parts = _parts(node)
        last = max(index for index, (holder, key) in enumerate(parts) if _needs_inside(_get(holder, key)))
        for holder, key in parts[: last + 1]:
            part = _get(holder, key)
            if _needs_inside(part):
                statements, changed = self.lift(part)
                before += statements
                _set(holder, key, changed)
            elif not isinstance(part, (gast.Constant, gast.Name)) or _is_bound_in(part, node):
                name = self.context.new_name(self.function, "item")
                before += templates.replace("name = value", at=part, name=name, value=part)
                _set(holder, key, templates.expression("name", at=part, name=name))
        return before, node

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

    def comprehension(self, name: str, node: Any) -> Block:
        """The loops that collect in a list what a list comprehension does; its variables get names of their own."""
        targets = [each.target for each in node.generators]
        bound = {inner.id for target in targets for inner in own_nodes(target) if isinstance(inner, gast.Name)}
        names = {each: self.context.new_name(self.function, each) for each in sorted(bound)}
        first = node.generators[0].iter
        for part in [node.elt, *targets, *[t for g in node.generators for t in g.ifs]]:
            _rename(part, names)
        for each in node.generators[1:]:
            _rename(each.iter, names)
        method, element = added(node)
        block = templates.replace(f"name.{method}(element)", at=element, name=name, element=element)
        for each in reversed(node.generators):
            for test in reversed(each.ifs):
                block = templates.replace("if test:\n    block", at=test, test=test, block=block)
                block = self.block(block)
            items = first if each is node.generators[0] else each.iter
            block = [gast.copy_location(gast.For(each.target, items, block, [], None), node)]
        return [*templates.replace("name = []", at=node, name=name), *block]

    def into(self, name: str, node: Any) -> Block:
        """The statements that assign an expression to a name."""
        if isinstance(node, gast.ListComp):
            return self.comprehension(name, node)
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
    if isinstance(node, gast.ListComp):
        apart = (gast.Lambda, gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)
        return _binds(node) and not any(isinstance(inner, apart) for inner in own_nodes(node) if inner is not node)
    if isinstance(node, gast.BoolOp):
        return _needs(node.values[0]) or any(_binds(each) for each in node.values[1:])
    if isinstance(node, gast.IfExp):
        return _needs(node.test) or _binds(node.body) or _binds(node.orelse)
    return isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.Not) and _needs(node.operand)


def _needs_inside(node: Any) -> bool:
    """Whether an expression, or a part of it that it always evaluates, puts off an operand that binds a name."""
    if any(needs_own_frame(inner) for inner in own_nodes(node)):
        return False
    return _needs(node) or any(_needs_inside(_get(*part)) for part in _parts(node))


def _parts(node: Any) -> list[tuple[Any, Any]]:
    """Where the parts stand that an expression always evaluates, in order: an object or list, and a name or index."""
    if isinstance(node, gast.Call):
        args = [
            (each, "value") if isinstance(each, gast.Starred) else (node.args, i) for i, each in enumerate(node.args)
        ]
        return [(node, "func"), *args, *[(each, "value") for each in node.keywords]]
    if isinstance(node, (gast.Tuple, gast.List, gast.Set)):
        return [
            (each, "value") if isinstance(each, gast.Starred) else (node.elts, i) for i, each in enumerate(node.elts)
        ]
    if isinstance(node, gast.Dict):
        pairs = [((node.keys, index), (node.values, index)) for index in range(len(node.values))]
        return [part for pair in pairs for part in pair if _get(*part) is not None]
    if isinstance(node, gast.BinOp):
        return [(node, "left"), (node, "right")]
    if isinstance(node, gast.Compare):
        return [(node, "left"), (node.comparators, 0)]
    if isinstance(node, gast.Subscript) and not isinstance(node.slice, gast.Slice):
        return [(node, "value"), (node, "slice")]
    if isinstance(node, gast.BoolOp):
        return [(node.values, 0)]
    if isinstance(node, gast.IfExp):
        return [(node, "test")]
    if isinstance(node, gast.UnaryOp):
        return [(node, "operand")]
    return [(node, "value")] if isinstance(node, (gast.Attribute, gast.NamedExpr)) else []


def _rename(node: Any, names: dict[str, str]) -> None:
    for inner in own_nodes(node):
        if isinstance(inner, gast.Name):
            inner.id = names.get(inner.id, inner.id)


def _get(holder: Any, key: Any) -> Any:
    return holder[key] if isinstance(holder, list) else getattr(holder, key)


def _set(holder: Any, key: Any, value: Any) -> None:
    if isinstance(holder, list):
        holder[key] = value
    else:
        setattr(holder, key, value)


def _is_bound_in(name: Any, node: Any) -> bool:
    """Whether an expression gives a name a new value."""
    return isinstance(name, gast.Name) and any(
        isinstance(inner, gast.NamedExpr) and inner.target.id == name.id for inner in own_nodes(node)
    )


def _binds(node: Any) -> bool:
    return any(isinstance(inner, gast.NamedExpr) for inner in own_nodes(node))
