"""``assert`` becomes a call of an operator that checks a tensor when the program runs.

    assert x > 0, f"x is {x}"      →      ag__.assert_stmt(x > 0, lambda: f"x is {x}")

Under ``python -O`` Python drops assertions, and so they are left for it to drop.
"""

from __future__ import annotations

from typing import Any

from autograph.convert.context import Context
from autograph.convert.expressions import ExpressionPass, can_defer
from autograph.convert.tree import head
from autograph.syntax import templates


def lower(tree: Any, context: Context) -> Any:
    """Rewrites the assertions in a tree."""
    return _Asserts(context).visit(tree) if __debug__ else tree


class _Asserts(ExpressionPass):
    def visit_Assert(self, node: Any) -> Any:
        if node.msg is None:
            return templates.replace("ag__.assert_stmt(test)", at=head(node), test=node.test)[0]
        if not can_defer(node.msg, self.context):
            return node
        template = "ag__.assert_stmt(test, lambda: message)"
        return templates.replace(template, at=head(node), test=node.test, message=node.msg)[0]
