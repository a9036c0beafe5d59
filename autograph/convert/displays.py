"""List displays with starred items: what is starred may be a list whose length is known only at run time.

[*items, x]      →      ag__.list_display([*ag__.spread(items), x])
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.expressions import ExpressionPass
from autograph.convert.tree import head
from autograph.syntax import templates


def lower(tree: Any, context: Context) -> Any:
    """Rewrites the list displays in a tree."""
    return _Displays(context).visit(tree)


class _Displays(ExpressionPass):
    def visit_List(self, node: Any) -> Any:
        self.generic_visit(node)
        starred = [item for item in node.elts if isinstance(item, gast.Starred)]
        if not starred or not isinstance(node.ctx, gast.Load):
            return node
        for item in starred:
            item.value = templates.expression("ag__.spread(items)", at=item.value, items=item.value)
        return templates.expression("ag__.list_display(display)", at=head(node), display=node)
