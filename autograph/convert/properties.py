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
from autograph.convert.tree import FUNCTIONS, head
from autograph.syntax import templates
from autograph.syntax.walk import walk


def lower(tree: Any, context: Context) -> Any:
    """Rewrites the attributes in a tree that may be properties."""
    names = members_in_sight(tree, context)
    return _Properties(context, names).visit(tree) if names else tree


def members_in_sight(tree: Any, context: Context) -> frozenset[str]:
    """The names of properties and special methods of the user's classes that a tree defines or can see."""
    methods = [each for node in walk(tree) if isinstance(node, gast.ClassDef) for each in node.body]
    return context.properties | {each.name for each in methods if isinstance(each, FUNCTIONS) and _is_member(each)}


def _is_member(method: Any) -> bool:
    is_property = any(isinstance(each, gast.Name) and each.id == "property" for each in method.decorator_list)
    return is_property or (method.name.startswith("__") and method.name.endswith("__"))


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
