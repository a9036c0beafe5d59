"""Special methods and setters of the user's classes are converted where operators call them.

    z = x + y             →      z = ag__.operate(x, '+', y)
    z = -x                →      z = ag__.operate_alone('-', x)
    z += y                →      z = ag__.operate(z, '+=', y)
    z = box[k]            →      z = ag__.get_item(box, k)
    box[k] = z            →      ag__.set_item(z, box, k)
    box.size = z          →      ag__.set_attribute(z, box, 'size')
    with box: ...         →      with ag__.manager(box): ...

Only operators are rewritten whose method a class has that the function defines, or can see by a name of its module or
of a function around it (`operators/property_names.py`): most programs have no such class, and stay as they are. So do
slices, assignments to several targets, and `+=` to anything but a variable.
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.expressions import ExpressionPass
from autograph.convert.properties import members_in_sight
from autograph.convert.tree import head
from autograph.syntax import templates
from autograph.syntax.walk import walk

_BINARY = {
    gast.Add: ("+", "add"), gast.Sub: ("-", "sub"), gast.Mult: ("*", "mul"), gast.Div: ("/", "truediv"),
    gast.FloorDiv: ("//", "floordiv"), gast.Mod: ("%", "mod"), gast.Pow: ("**", "pow"), gast.MatMult: ("@", "matmul"),
    gast.LShift: ("<<", "lshift"), gast.RShift: (">>", "rshift"), gast.BitAnd: ("&", "and"), gast.BitOr: ("|", "or"),
    gast.BitXor: ("^", "xor"),
}  # fmt: skip
_UNARY = {gast.USub: ("-", "neg"), gast.UAdd: ("+", "pos"), gast.Invert: ("~", "invert")}
_COMPARISONS = {
    gast.Lt: ("<", "lt", "gt"), gast.LtE: ("<=", "le", "ge"), gast.Gt: (">", "gt", "lt"), gast.GtE: (">=", "ge", "le"),
    gast.Eq: ("==", "eq", "eq"), gast.NotEq: ("!=", "ne", "eq"),
}  # fmt: skip


def lower(tree: Any, context: Context) -> Any:
    """Rewrites the operators in a tree that may call special methods; comes after logic.py, which takes its own."""
    names = members_in_sight(tree, context)
    return _Operators(context, names).visit(tree) if names else tree


class _Operators(ExpressionPass):
    def __init__(self, context: Context, names: frozenset[str]) -> None:
        super().__init__(context)
        self.names = names

    def has(self, *names: str) -> bool:
        return any(f"__{name}__" in self.names for name in names)

    def visit_BinOp(self, node: Any) -> Any:
        self.generic_visit(node)
        symbol, name = _BINARY[type(node.op)]
        return self.operate(node, node.left, symbol, node.right) if self.has(name, f"r{name}") else node

    def visit_Compare(self, node: Any) -> Any:
        self.generic_visit(node)
        known = _COMPARISONS.get(type(node.ops[0])) if len(node.ops) == 1 else None
        if known is None or not self.has(*known[1:]):
            return node
        return self.operate(node, node.left, known[0], node.comparators[0])

    def visit_UnaryOp(self, node: Any) -> Any:
        self.generic_visit(node)
        symbol, name = _UNARY.get(type(node.op), ("", ""))
        if not self.has(name) or isinstance(node.operand, gast.Constant):
            return node
        symbol = templates.literal(symbol, at=head(node))
        return templates.expression("ag__.operate_alone(symbol, x)", at=head(node), symbol=symbol, x=node.operand)

    def operate(self, node: Any, left: Any, symbol: str, right: Any) -> Any:
        if isinstance(left, gast.Constant) and isinstance(right, gast.Constant):
            return node
        parts = {"left": left, "symbol": templates.literal(symbol, at=head(node)), "right": right}
        return templates.expression("ag__.operate(left, symbol, right)", at=head(node), **parts)

    def visit_AugAssign(self, node: Any) -> Any:
        self.generic_visit(node)
        symbol, name = _BINARY[type(node.op)]
        if not isinstance(node.target, gast.Name) or not self.has(name, f"r{name}", f"i{name}"):
            return node
        value = templates.expression("name", at=head(node), name=node.target.id)
        made = self.operate(node, value, f"{symbol}=", node.value)
        return templates.replace("name = value", at=head(node), name=node.target.id, value=made)

    def visit_Subscript(self, node: Any) -> Any:
        self.generic_visit(node)
        if not (isinstance(node.ctx, gast.Load) and self.has("getitem") and _is_index(node.slice)):
            return node
        return templates.expression("ag__.get_item(x, index)", at=head(node), x=node.value, index=node.slice)

    def visit_Assign(self, node: Any) -> Any:
        self.generic_visit(node)
        target = node.targets[0]
        if len(node.targets) > 1:
            return node
        if isinstance(target, gast.Subscript) and self.has("setitem") and _is_index(target.slice):
            parts = {"value": node.value, "x": target.value, "index": target.slice}
            return templates.replace("ag__.set_item(value, x, index)", at=head(node), **parts)
        if isinstance(target, gast.Attribute) and target.attr in self.names and not target.attr.startswith("__"):
            parts = {"value": node.value, "x": target.value, "name": templates.literal(target.attr, at=head(node))}
            return templates.replace("ag__.set_attribute(value, x, name)", at=head(node), **parts)
        return node

    def visit_With(self, node: Any) -> Any:
        self.generic_visit(node)
        if self.has("enter", "exit"):
            for each in node.items:
                x = each.context_expr
                each.context_expr = templates.expression("ag__.manager(x)", at=head(x), x=x)
        return node


def _is_index(node: Any) -> bool:
    return not any(isinstance(each, (gast.Slice, gast.Starred)) for each in walk(node))
