"""Conditional expressions become calls of an operator that evaluates one side.

    a if c else b          →      ag__.if_exp(c, lambda: a, lambda: b)

One with a side that binds a name (``:=``) or suspends its function stays as it is.
"""

from __future__ import annotations

from typing import Any

from autograph.convert.context import Context
from autograph.convert.expressions import ExpressionPass, can_defer
from autograph.convert.tree import head
from autograph.syntax import templates


def lower(tree: Any, context: Context) -> Any:
    """Rewrites the conditional expressions in a tree."""
    return _Ternaries(context).visit(tree)


class _Ternaries(ExpressionPass):
    def visit_IfExp(self, node: Any) -> Any:
        self.generic_visit(node)
        if not (can_defer(node.body, self.context) and can_defer(node.orelse, self.context)):
            return node
        template = "ag__.if_exp(test, lambda: body, lambda: orelse)"
        return templates.expression(template, at=head(node), test=node.test, body=node.body, orelse=node.orelse)
