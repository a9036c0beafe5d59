"""f-strings in ``print``, ``raise`` and ``assert`` may show values that are known only when the program runs.

print(f"x is {x:.2f}")      →      print(ag__.text(f"x is {ag__.shown(x):.2f}"))
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.expressions import ExpressionPass
from autograph.syntax import templates


def lower(tree: Any, context: Context) -> Any:
    """Rewrites the f-strings of messages in a tree; comes before asserts.py takes the messages."""
    return _Texts(context).visit(tree)


class _Texts(ExpressionPass):
    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.in_message = False

    def message(self, node: Any) -> Any:
        outside, self.in_message = self.in_message, True
        made = self.visit(node)
        self.in_message = outside
        return made

    def visit_Raise(self, node: Any) -> Any:
        if node.exc is not None:
            node.exc = self.message(node.exc)
        return node

    def visit_Assert(self, node: Any) -> Any:
        node.test = self.visit(node.test)
        if node.msg is not None:
            node.msg = self.message(node.msg)
        return node

    def visit_Call(self, node: Any) -> Any:
        if isinstance(node.func, gast.Name) and node.func.id == "print":
            node.args = [self.message(each) for each in node.args]
            return node
        return self.generic_visit(node)

    def visit_JoinedStr(self, node: Any) -> Any:
        if not self.in_message:
            return self.generic_visit(node)
        values = [each for each in node.values if isinstance(each, gast.FormattedValue)]
        if not values:
            return node
        for each in values:
            each.value = templates.expression("ag__.shown(value)", at=each.value, value=each.value)
        return templates.expression("ag__.text(string)", at=node, string=node)
