"""What the passes over expressions share: where they may rewrite, and what may be put off into a lambda.

Left alone are decorators (they run once, natively), annotations, and everything evaluated directly in a class body: a
lambda there couldn't see the names of the class. Functions in class bodies are rewritten like any other.
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import OPERATORS, Context
from autograph.convert.pins import needs_own_frame, own_nodes
from autograph.syntax.walk import Transformer, children


class ExpressionPass(Transformer):
    """Rewrites expressions bottom-up; a pass defines ``visit_X`` for its nodes and calls ``generic_visit`` first."""

    def __init__(self, context: Context) -> None:
        self.context = context
        # Inside the iterable of a comprehension Python forbids assignment expressions.
        self.in_iterable = False

    def _function(self, node: Any) -> Any:
        self._defaults(node.args)
        self._body(node)
        return node

    visit_FunctionDef = _function
    visit_AsyncFunctionDef = _function

    def _defaults(self, args: Any) -> None:
        args.defaults = [self.visit(each) for each in args.defaults]
        args.kw_defaults = [each if each is None else self.visit(each) for each in args.kw_defaults]

    def _body(self, node: Any) -> None:
        outside, self.in_iterable = self.in_iterable, False
        if isinstance(node.body, list):
            made: list[Any] = []
            for stmt in node.body:
                result = self.visit(stmt)
                made.extend(result if isinstance(result, list) else [result])
            node.body = made
        else:
            node.body = self.visit(node.body)
        self.in_iterable = outside

    def visit_Lambda(self, node: Any) -> Any:
        self._defaults(node.args)
        self._body(node)
        return node

    def visit_ClassDef(self, node: Any) -> Any:
        node.bases = [self.visit(each) for each in node.bases]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        for stmt in node.body:
            self._class_level(stmt)
        return node

    def _class_level(self, stmt: Any) -> None:
        if isinstance(stmt, (gast.FunctionDef, gast.AsyncFunctionDef)):
            self._body(stmt)
            return
        for inner in children(stmt):
            self._class_level(inner)

    def visit_AnnAssign(self, node: Any) -> Any:
        node.target = self.visit(node.target)
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_comprehension(self, node: Any) -> Any:
        outside, self.in_iterable = self.in_iterable, True
        node.iter = self.visit(node.iter)
        self.in_iterable = outside
        node.target = self.visit(node.target)
        node.ifs = [self.visit(each) for each in node.ifs]
        return node

    def visit_MatchValue(self, node: Any) -> Any:
        return node

    def visit_TypeAlias(self, node: Any) -> Any:
        return node


def can_defer(node: Any, context: Context) -> bool:
    """Whether an expression means the same inside a lambda: it binds no name and doesn't need its function's frame."""
    for inner in own_nodes(node):
        if isinstance(inner, gast.NamedExpr) and inner.target.id not in context.temporaries:
            return False
        if needs_own_frame(inner):
            return False
    return True


def added(node: Any) -> tuple[str, Any]:
    """The method that adds to a list what a comprehension has for an item, and its argument.

    ``[*x for x in xs]``, of Python 3.15 on, adds the items of each ``x``.
    """
    return ("extend", node.elt.value) if isinstance(node.elt, gast.Starred) else ("append", node.elt)


def is_operator_call(node: Any) -> bool:
    """Whether a call goes to the operators already (``ag__.name(...)``)."""
    owner = node.func.value if isinstance(node.func, gast.Attribute) else None
    return isinstance(owner, gast.Name) and owner.id == OPERATORS
