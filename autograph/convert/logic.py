"""``and``, ``or``, ``not`` and ``in`` become operators whose later operands are evaluated on demand.

    a and b and not c      →      ag__.and_(a, lambda: b, lambda: ag__.not_(c))
    key in table           →      ag__.in_(key, table)

An operand that binds a name (``:=``) or suspends its function can't be put off; such an expression stays as it is.
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.expressions import ExpressionPass, can_defer
from autograph.convert.tree import head
from autograph.syntax import templates


def lower(tree: Any, context: Context) -> Any:
    """Rewrites the logical expressions in a tree; comparison.py must have split chains before."""
    return _Logic(context).visit(tree)


class _Logic(ExpressionPass):
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
        if len(node.ops) != 1 or not isinstance(node.ops[0], (gast.In, gast.NotIn)):
            return node
        name = "in_" if isinstance(node.ops[0], gast.In) else "not_in"
        return templates.expression(
            "ag__.name(item, container)", at=head(node), name=name, item=node.left, container=node.comparators[0]
        )
