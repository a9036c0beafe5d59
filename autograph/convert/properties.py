"""Properties of the user's classes are converted when they are read.

    y = self.area      →      y = ag__.attribute(self, 'area')

Only attributes are rewritten whose name is a property's of a class that the function defines, or can see by a name of
its module or of a function around it (`operators/property_names.py`): nearly all others are plain values, and stay as
they are.
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.expressions import ExpressionPass
from autograph.convert.tree import head
from autograph.syntax import templates
from autograph.syntax.walk import walk


def lower(tree: Any, context: Context) -> Any:
    """Rewrites the attributes in a tree that may be properties."""
    methods = [each for node in walk(tree) if isinstance(node, gast.ClassDef) for each in node.body]
    defined = {each.name for each in methods if any(map(_is_property, getattr(each, "decorator_list", ())))}
    names = context.properties | defined
    return _Properties(context, names).visit(tree) if names else tree


def _is_property(decorator: Any) -> bool:
    return isinstance(decorator, gast.Name) and decorator.id == "property"


class _Properties(ExpressionPass):
    def __init__(self, context: Context, names: frozenset[str]) -> None:
        super().__init__(context)
        self.names = names

    def visit_Attribute(self, node: Any) -> Any:
        self.generic_visit(node)
        private = node.attr.startswith("__") and not node.attr.endswith("__")  # its name depends on the class
        if not isinstance(node.ctx, gast.Load) or node.attr not in self.names or private:
            return node
        name = templates.literal(node.attr, at=head(node))
        return templates.expression("ag__.attribute(owner, name)", at=head(node), owner=node.value, name=name)
