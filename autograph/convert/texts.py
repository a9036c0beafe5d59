"""f-strings, and literal texts that `%` formats, may show values that are known only when the program runs.

print(f"x is {x:.2f}")             →      print(ag__.text(f"x is {ag__.shown(x):.2f}"))
print("x is {:.2f}".format(x))     →      print(ag__.text("x is {:.2f}".format(ag__.shown(x))))
print("x is %.2f" % x)             →      print(ag__.percent("x is %.2f", x))
"""

from __future__ import annotations

import string
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
        self.generic_visit(node)
        if not (self.in_message and _formats_literal(node)):
            return node
        node.args = [templates.expression("ag__.shown(value)", at=each, value=each) for each in node.args]
        for each in node.keywords:
            each.value = templates.expression("ag__.shown(value)", at=each.value, value=each.value)
        return templates.expression("ag__.text(string)", at=node, string=node)

    def visit_BinOp(self, node: Any) -> Any:
        self.generic_visit(node)
        if not (isinstance(node.op, gast.Mod) and _is_text(node.left)):
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

    def _shown(self, node: Any) -> Any:
        """What stands in the place of a value of an f-string; a specification with values in it becomes part of it."""
        value = self.visit(node.value)
        spec = node.format_spec
        conversion = gast.Constant(chr(node.conversion), None) if node.conversion != -1 else None
        if spec is None or all(isinstance(each, gast.Constant) for each in spec.values):
            if conversion is None:
                return templates.expression("ag__.shown(value)", at=node.value, value=value)
            return templates.expression("ag__.shown(value, how)", at=node.value, value=value, how=conversion)
        node.format_spec = None
        if conversion is not None:
            value = templates.expression(
                "ag__.converted_call(how)(value)",
                at=node.value,
                value=value,
                how=gast.Name({"s": "str", "r": "repr", "a": "ascii"}[conversion.value], gast.Load(), None, None),
            )
        spec = self.visit(spec)
        return templates.expression("ag__.shown(ag__.formatted(value, spec))", at=node.value, value=value, spec=spec)


def _formats_literal(call: Any) -> bool:
    """Whether a call is ``"...".format(...)`` with plain arguments whose fields show the arguments themselves."""
    function = call.func
    if not (isinstance(function, gast.Attribute) and function.attr == "format"):
        return False
    text = function.value
    if not _is_text(text):
        return False
    starred = any(isinstance(each, gast.Starred) for each in call.args) or any(not each.arg for each in call.keywords)
    try:
        fields = [name or "" for _, name, _, _ in string.Formatter().parse(text.value)]
    except ValueError:
        return False
    return not starred and not any("." in name or "[" in name for name in fields)


def _is_text(node: Any) -> bool:
    return isinstance(node, gast.Constant) and isinstance(node.value, str)
