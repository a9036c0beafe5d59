"""``and``, ``or``, ``not``, ``in`` and ``is`` become operators, later operands being evaluated on demand.

    a and b and not c      →      ag__.and_(a, lambda: b, lambda: ag__.not_(c))
    key in table           →      ag__.in_(key, table)
    best is None           →      ag__.is_none(best)
    best == None           →      ag__.equals_none(best)
    phase is Phase.BUSY    →      ag__.is_(phase, Phase.BUSY)
    (a, b) < best          →      ag__.compare((a, b), '<', best)
    heap[i] < heap[k]      →      ag__.operate(heap[i], '<', heap[k])

An operand that binds a name (``:=``) or suspends its function can't be put off; such an expression stays as it is.
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.expressions import ExpressionPass, can_defer
from autograph.convert.sequences import assigned_names, is_conversion, is_display
from autograph.convert.tree import head
from autograph.syntax import templates


def lower(tree: Any, context: Context) -> Any:
    """Rewrites the logical expressions in a tree; comparison.py must have split chains before."""
    return _Logic(context, assigned_names(tree), assigned_names(tree, _is_item)).visit(tree)


# Functions and methods that give an item of a list.
_TAKING = frozenset({"heappop", "max", "min", "pop", "popleft"})
_SYMBOLS = {gast.Lt: "<", gast.LtE: "<=", gast.Eq: "==", gast.NotEq: "!=", gast.Gt: ">", gast.GtE: ">="}


class _Logic(ExpressionPass):
    def __init__(self, context: Context, sequences: frozenset[str], items: frozenset[str]) -> None:
        super().__init__(context)
        self.sequences = sequences  # names that a tuple or list is assigned to somewhere
        self.items = items  # names that an item of something is assigned to somewhere

    def visit_BoolOp(self, node: Any) -> Any:
        self.generic_visit(node)
        first, *others = node.values
        if not all(can_defer(each, self.context) for each in others):
            return node
        name = "and_" if isinstance(node.op, gast.And) else "or_"
        deferred = [templates.expression("lambda: value", at=each, value=each) for each in others]
        return templates.expression("ag__.name(operands)", at=head(node), name=name, operands=[first, *deferred])

    def visit_UnaryOp(self, node: Any) -> Any:
        self.generic_visit(node)
        if not isinstance(node.op, gast.Not):
            return node
        return templates.expression("ag__.not_(value)", at=head(node), value=node.operand)

    def visit_Compare(self, node: Any) -> Any:
        self.generic_visit(node)
        if len(node.ops) != 1:
            return node
        if isinstance(node.ops[0], (gast.Is, gast.IsNot)) and _is_none(node.comparators[0]):
            name = "is_none" if isinstance(node.ops[0], gast.Is) else "is_not_none"
            return templates.expression("ag__.name(value)", at=head(node), name=name, value=node.left)
        operands = (node.left, node.comparators[0])
        if isinstance(node.ops[0], (gast.Eq, gast.NotEq)) and any(map(_is_none, operands)):
            name = "equals_none" if isinstance(node.ops[0], gast.Eq) else "differs_from_none"
            value = operands[1] if _is_none(operands[0]) else operands[0]
            return templates.expression("ag__.name(value)", at=head(node), name=name, value=value)
        if isinstance(node.ops[0], (gast.Is, gast.IsNot)):
            name = "is_" if isinstance(node.ops[0], gast.Is) else "is_not"
            parts = {"left": node.left, "right": node.comparators[0]}
            return templates.expression("ag__.name(left, right)", at=head(node), name=name, **parts)
        symbol = _SYMBOLS.get(type(node.ops[0]))
        if symbol is not None and any(self.is_sequence(each) for each in (node.left, node.comparators[0])):
            symbol = templates.literal(symbol, at=head(node))
            template = "ag__.compare(left, symbol, right)"
            parts = {"left": node.left, "symbol": symbol, "right": node.comparators[0]}
            return templates.expression(template, at=head(node), **parts)
        is_equality = isinstance(node.ops[0], (gast.Eq, gast.NotEq))
        may_be_items = symbol is not None and any(map(self.may_be_item, operands))
        if (is_equality or may_be_items) and all(map(_may_be_object, operands)):
            symbol = templates.literal(_SYMBOLS[type(node.ops[0])], at=head(node))
            parts = {"left": node.left, "symbol": symbol, "right": node.comparators[0]}
            return templates.expression("ag__.operate(left, symbol, right)", at=head(node), **parts)
        if not isinstance(node.ops[0], (gast.In, gast.NotIn)):
            return node
        name = "in_" if isinstance(node.ops[0], gast.In) else "not_in"
        return templates.expression(
            "ag__.name(item, container)", at=head(node), name=name, item=node.left, container=node.comparators[0]
        )

    def is_sequence(self, node: Any) -> bool:
        return is_display(node) or is_conversion(node, self.context) or getattr(node, "id", None) in self.sequences

    def may_be_item(self, node: Any) -> bool:
        """Whether an expression is written as an item of a list, or is the name of one: that may be a tuple."""
        return _is_item(node) or getattr(node, "id", None) in self.items


def _is_item(node: Any) -> bool:
    if isinstance(node, gast.Call):
        return getattr(node.func, "attr", None) in _TAKING or getattr(node.func, "id", None) in _TAKING
    return isinstance(node, gast.Subscript)


def _is_none(node: Any) -> bool:
    return isinstance(node, gast.Constant) and node.value is None


def _may_be_object(node: Any) -> bool:
    """Whether an expression may give an object that is equal to nothing but itself."""
    return isinstance(node, (gast.Name, gast.Attribute, gast.Subscript, gast.Call))
