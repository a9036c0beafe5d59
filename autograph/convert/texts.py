"""f-strings, and literal texts that `%` formats, may show values that are known only when the program runs.

print(f"x is {x:.2f}")             →      print(ag__.text(f"x is {ag__.shown(x):.2f}"))
print("x is %.2f" % x)             →      print(ag__.percent("x is %.2f", x))
text = f"{x!r:{width}}"            →      text = ag__.text(f"{ag__.shown(ag__.formatted(x, ag__.text(...), how=114))}")
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.expressions import ExpressionPass
from autograph.syntax import templates


def lower(tree: Any, context: Context) -> Any:
    """Rewrites the f-strings in a tree; comes before asserts.py takes the messages."""
    return _Texts(context).visit(tree)


class _Texts(ExpressionPass):
    def visit_BinOp(self, node: Any) -> Any:
        self.generic_visit(node)
        if not (isinstance(node.op, gast.Mod) and _is_text(node.left)) or isinstance(node.right, gast.Constant):
            return node
        return templates.expression("ag__.percent(left, right)", at=node, left=node.left, right=node.right)

    def visit_JoinedStr(self, node: Any) -> Any:
        values = [each for each in node.values if isinstance(each, gast.FormattedValue)]
        if not values:
            return node
        for each in values:
            each.value = self._shown(each)
            each.conversion = -1
        return templates.expression("ag__.text(string)", at=node, string=node)

    def visit_Interpolation(self, node: Any) -> Any:
        """A field of a template string keeps its value as it is, and its specification is an f-string only in form."""
        node.value = self.visit(node.value)
        for each in node.format_spec.values if node.format_spec is not None else ():
            self.generic_visit(each)
        return node

    def _shown(self, node: Any) -> Any:
        """What stands in the place of a value of an f-string; a specification with values in it becomes part of it."""
        given = {"value": self.visit(node.value)}
        names = "value"
        spec = node.format_spec
        is_computed = spec is not None and not all(isinstance(each, gast.Constant) for each in spec.values)
        if is_computed:
            given["spec"], node.format_spec = self.visit(spec), None
            names = "value, spec"
        if node.conversion != -1:
            given["how"] = gast.Constant(node.conversion, None)
            names += ", how=how"
        text = f"ag__.shown(ag__.formatted({names}))" if is_computed else f"ag__.shown({names})"
        return templates.expression(text, at=node.value, **given)


def _is_text(node: Any) -> bool:
    return isinstance(node, gast.Constant) and isinstance(node.value, str)
