"""Chained comparisons become ``and``, each operand still evaluated once.

    a < b < c              →      a < b and b < c
    0 <= f(x) < 1          →      0 <= (middle := f(x)) and middle < 1

A chain that can't be split so (in a class body, in the iterable of a comprehension) stays as it is.
"""

from __future__ import annotations

import copy
from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.expressions import ExpressionPass, can_defer
from autograph.convert.tree import FUNCTIONS
from autograph.syntax import templates


def lower(tree: Any, context: Context) -> Any:
    """Splits the chained comparisons in a tree."""
    return _Chains(context).visit(tree)


class _Chains(ExpressionPass):
    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.function: Any = None

    def _body(self, node: Any) -> None:
        outside = self.function
        if isinstance(node, FUNCTIONS) or outside is None:
            self.function = node
        super()._body(node)
        self.function = outside

    def visit_Compare(self, node: Any) -> Any:
        self.generic_visit(node)
        middles = node.comparators[:-1]
        if not middles or not all(can_defer(each, self.context) for each in node.comparators[1:]):
            return node
        if self.in_iterable and not all(_is_plain(each) for each in middles):
            return node
        operands = [node.left]
        links: list[Any] = []
        for operator, right in zip(node.ops, node.comparators):
            left = operands[-1]
            if right is node.comparators[-1] or _is_plain(right):
                operands.append(copy.copy(right))
            else:
                name = self.context.new_temporary(self.function, "middle")
                operands.append(templates.expression("name", at=right, name=name))
                right = templates.expression("(name := right)", at=right, name=name, right=right)
            links.append(gast.copy_location(gast.Compare(left, [operator], [right]), node))
        # Once its operand is put off, a temporary is seen only further inside.
        while any(_binds(link) for link in links[1:]):
            *links, left, right = links
            links.append(gast.copy_location(gast.BoolOp(gast.And(), [left, right]), node))
        return gast.copy_location(gast.BoolOp(gast.And(), links), node)


def _binds(link: Any) -> bool:
    return isinstance(link, gast.Compare) and isinstance(link.comparators[0], gast.NamedExpr)


def _is_plain(node: Any) -> bool:
    return isinstance(node, (gast.Name, gast.Constant))
