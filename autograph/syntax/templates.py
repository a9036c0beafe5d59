"""Quoted Python with placeholder names, so that no pass builds syntax trees by hand.

A placeholder is an identifier of the template that is also a keyword argument. Its value may be

- a gast expression: put in the identifier's place (with the right context, also as an assignment target),
- a gast statement or a list of statements: put in place of an expression statement that is only the placeholder,
- a list of expressions or identifiers: spliced into call arguments, tuples, lists, parameters, decorators,
  ``nonlocal``/``global`` (an empty list there removes the statement),
- a gast ``arguments`` node: the whole parameter list of ``def f(placeholder): ...`` or ``lambda placeholder: ...``,
- a string: an identifier, wherever identifiers stand (names, attributes, definitions, parameters, keywords),
- a tuple, number, boolean, bytes or None: quoted as a literal (strings inside a tuple are string literals).

Example::

    replace(
        '''
        def body_name():
            nonlocal state
            body
        ag__.while_stmt(test_name, body_name, names)
        ''',
        at=loop, body_name="loop_body", test_name="loop_test", state=["i", "x"], body=loop.body, names=("i", "x"),
    )
"""

from __future__ import annotations

import copy
import functools
import textwrap
from typing import Any

import gast

from runtime.python_text import python_ast

_LOCATION = ("lineno", "col_offset", "end_lineno", "end_col_offset")
_BLOCKS = frozenset({"body", "orelse", "finalbody"})


class TemplateError(ValueError):
    """A template was used wrongly: an unknown placeholder, or a value that doesn't fit where the placeholder stands."""


def replace(template: str, *, at: Any = None, **nodes: Any) -> list[Any]:
    """Statements made from ``template`` with its placeholders replaced.

    Every new node gets the location of the node ``at``; nodes passed in keep their own. A node used for a placeholder
    that occurs several times is copied for every use after the first. Raises TemplateError.
    """
    tree, identifiers = _parsed(textwrap.dedent(template))
    filler = _filler(template, identifiers, at, nodes)
    return filler.block(tree.body, required=False)


def expression(template: str, *, at: Any = None, **nodes: Any) -> Any:
    """An expression made from ``template``; see ``replace``."""
    tree, identifiers = _parsed(textwrap.dedent(template).strip())
    if len(tree.body) != 1 or not isinstance(tree.body[0], gast.Expr):
        raise TemplateError(f"not an expression: {template!r}")
    return _filler(template, identifiers, at, nodes).fill(tree.body[0].value)


def literal(value: Any, *, at: Any = None) -> Any:
    """The expression node of a Python constant, or of a tuple, list or dict of literals."""
    return _located(_literal(value), at)


def with_context(node: Any, ctx: Any) -> Any:
    """A copy of an expression as a load, store or delete target; ``ctx`` is a gast context node."""
    if isinstance(node, (gast.Tuple, gast.List)):
        return gast.copy_location(type(node)([with_context(item, ctx) for item in node.elts], ctx), node)
    if isinstance(node, gast.Starred):
        return gast.copy_location(gast.Starred(with_context(node.value, ctx), ctx), node)
    if isinstance(node, (gast.Name, gast.Attribute, gast.Subscript)):
        changed = copy.copy(node)
        changed.ctx = ctx
        return changed
    if isinstance(ctx, gast.Load):
        return node
    raise TemplateError(f"a {type(node).__name__} can't be assigned to or deleted")


@functools.cache
def _parsed(text: str) -> tuple[Any, frozenset[str]]:
    tree = gast.ast_to_gast(python_ast(text))
    identifiers: set[str] = set()
    for node in gast.walk(tree):
        for field in ("id", "attr", "name", "arg"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                identifiers.add(value)
        if isinstance(node, (gast.Global, gast.Nonlocal)):
            identifiers.update(node.names)
    return tree, frozenset(identifiers)


def _filler(template: str, identifiers: frozenset[str], at: Any, nodes: dict[str, Any]) -> _Filler:
    unknown = nodes.keys() - identifiers
    if unknown:
        raise TemplateError(f"{', '.join(sorted(unknown))}: no such placeholder in the template {template!r}")
    return _Filler(at, nodes)


def _literal(value: Any) -> Any:
    if isinstance(value, tuple):
        return gast.Tuple([_literal(item) for item in value], gast.Load())
    if isinstance(value, list):
        return gast.List([_literal(item) for item in value], gast.Load())
    if isinstance(value, dict):
        return gast.Dict([_literal(key) for key in value], [_literal(item) for item in value.values()])
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value < 0:
        return gast.UnaryOp(gast.USub(), gast.Constant(-value, None))
    if value is None or value is Ellipsis or isinstance(value, (str, bytes, bool, int, float, complex)):
        return gast.Constant(value, None)
    raise TemplateError(f"a {type(value).__name__} has no literal: {value!r}")


def _located(tree: Any, at: Any) -> Any:
    """Give the nodes of a new tree that have no location yet the one of ``at``."""
    if at is not None:
        for node in gast.walk(tree):
            if "lineno" in node._attributes and not hasattr(node, "lineno"):
                gast.copy_location(node, at)
    return tree


class _Filler:
    """Copies a template tree, putting in the values of the placeholders."""

    def __init__(self, at: Any, nodes: dict[str, Any]) -> None:
        self.nodes = nodes
        self.used: set[int] = set()
        self.location: dict[str, int] = {}
        if at is not None:
            self.location = {name: getattr(at, name) for name in _LOCATION if hasattr(at, name)}

    def fill(self, node: Any) -> Any:
        """The copy of one template node."""
        if isinstance(node, gast.Name) and node.id in self.nodes:
            return self.name(node)
        made = type(node)()
        for field in node._fields:
            setattr(made, field, self.field(node, field, getattr(node, field, None)))
        if node._attributes:
            made.__dict__.update(self.location)
        return made

    def field(self, node: Any, field: str, value: Any) -> Any:
        if isinstance(value, gast.AST):
            return self.parameters(value) if isinstance(value, gast.arguments) else self.fill(value)
        if isinstance(value, list):
            if field in _BLOCKS:
                return self.block(value, required=field != "orelse" and field != "finalbody")
            if field == "names" and isinstance(node, (gast.Global, gast.Nonlocal)):
                return [name for item in value for name in self.identifiers(item)]
            return [made for item in value for made in self.items(item)]
        if isinstance(value, str) and field in ("name", "attr", "arg", "id", "asname", "rest"):
            replacement = self.nodes.get(value)
            return replacement if isinstance(replacement, str) else value
        return value

    def name(self, node: Any) -> Any:
        value = self.nodes[node.id]
        if isinstance(value, str):
            annotation = None if node.annotation is None else self.fill(node.annotation)
            return self.here(gast.Name(value, node.ctx, annotation, None))
        if isinstance(value, gast.AST):
            if not isinstance(value, gast.expr):
                raise TemplateError(f"{node.id}: a {type(value).__name__} can't stand inside an expression")
            return self.in_context(self.once(value), node.ctx)
        if isinstance(value, list):
            raise TemplateError(f"{node.id}: a list can't stand here; a tuple is quoted as a literal")
        return _placed(_literal(value), self.location)

    def items(self, item: Any) -> list[Any]:
        """The copies of one element of a list field, which may be a placeholder for several."""
        if not isinstance(item, gast.AST):
            return [item]
        value = self.nodes.get(item.id) if isinstance(item, gast.Name) else None
        if not isinstance(value, list):
            return [self.fill(item)]
        names = [self.here(gast.Name(each, item.ctx, None, None)) if isinstance(each, str) else each for each in value]
        return [self.in_context(self.once(each), item.ctx) for each in names]

    def parameters(self, args: Any) -> Any:
        if len(args.args) == 1 and isinstance(self.nodes.get(args.args[0].id), gast.arguments):
            return self.once(self.nodes[args.args[0].id])
        return self.fill(args)

    def identifiers(self, name: str) -> list[str]:
        value = self.nodes.get(name, name)
        names = value if isinstance(value, list) else [value]
        if not all(isinstance(each, str) for each in names):
            raise TemplateError(f"{name}: only identifiers can be declared global or nonlocal")
        return names

    def block(self, stmts: list[Any], *, required: bool) -> list[Any]:
        made: list[Any] = []
        for stmt in stmts:
            made.extend(self.statement(stmt))
        if required and not made:
            made.append(self.here(gast.Pass()))
        return made

    def statement(self, stmt: Any) -> list[Any]:
        if isinstance(stmt, gast.Expr) and isinstance(stmt.value, gast.Name):
            value = self.nodes.get(stmt.value.id)
            if isinstance(value, gast.stmt):
                value = [value]
            if isinstance(value, list):
                strays = [each for each in value if not isinstance(each, gast.stmt)]
                if strays:
                    raise TemplateError(f"{stmt.value.id}: not a statement: {strays[0]!r}")
                return [self.once(each) for each in value]
        made = self.fill(stmt)
        if isinstance(made, (gast.Global, gast.Nonlocal)) and not made.names:
            return []
        return [made]

    def once(self, node: Any) -> Any:
        """The node itself the first time, a copy later: a tree must not hold a node twice."""
        if id(node) in self.used:
            return copy.deepcopy(node)
        self.used.add(id(node))
        return node

    def here(self, node: Any) -> Any:
        node.__dict__.update(self.location)
        return node

    def in_context(self, node: Any, ctx: Any) -> Any:
        if not hasattr(node, "lineno"):
            _placed(node, self.location)
        if isinstance(ctx, gast.Load) and not isinstance(getattr(node, "ctx", ctx), (gast.Store, gast.Del)):
            return node
        return with_context(node, ctx)


def _placed(tree: Any, location: dict[str, int]) -> Any:
    """Give a new tree's nodes without a location this one."""
    for node in gast.walk(tree):
        if node._attributes and not hasattr(node, "lineno"):
            node.__dict__.update(location)
    return tree
