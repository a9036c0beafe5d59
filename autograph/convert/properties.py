"""Properties of the user's classes are converted when they are read.

    y = self.area      →      y = ag__.attribute(self, 'area')

Only attributes are rewritten whose name is a property's of a class that the function can see by a name of its module
or of a function around it (`property_names` in api.py): nearly all others are plain values, and stay as they are.
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.expressions import ExpressionPass
from autograph.convert.tree import head
from autograph.syntax import templates


def lower(tree: Any, context: Context) -> Any:
    """Rewrites the attributes in a tree that may be properties."""
    return _Properties(context).visit(tree) if context.properties else tree


class _Properties(ExpressionPass):
    def visit_Attribute(self, node: Any) -> Any:
        self.generic_visit(node)
        private = node.attr.startswith("__") and not node.attr.endswith("__")  # its name depends on the class
        if not isinstance(node.ctx, gast.Load) or node.attr not in self.context.properties or private:
            return node
        name = templates.literal(node.attr, at=head(node))
        return templates.expression("ag__.attribute(owner, name)", at=head(node), owner=node.value, name=name)
