"""``super()`` is spelled out, because Python's shorthand looks at the frame that it stands in.

super().forward(x)      →      super(__class__, self).forward(x)
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.expressions import ExpressionPass
from autograph.convert.tree import FUNCTIONS
from autograph.syntax import templates
from autograph.syntax.scopes import parameters


def lower(tree: Any, context: Context) -> Any:
    """Rewrites the zero-argument calls of ``super`` in a tree; must run before blocks become functions."""
    return tree if "super" in context.shadowed else _SuperCalls(context).visit(tree)


class _SuperCalls(ExpressionPass):
    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.first: str | None = None

    def _body(self, node: Any) -> None:
        outside = self.first
        if isinstance(node, (*FUNCTIONS, gast.Lambda)):
            names = parameters(node.args)
            positional = bool(node.args.posonlyargs or node.args.args)
            self.first = names[0] if positional else None
        super()._body(node)
        self.first = outside

    def visit_Call(self, node: Any) -> Any:
        self.generic_visit(node)
        is_super = isinstance(node.func, gast.Name) and node.func.id == "super"
        if not is_super or node.args or node.keywords or self.first is None:
            return node
        return templates.expression("super(__class__, first)", at=node, first=self.first)
