"""Items of Python lists and tuples whose index may be a tensor.

    y = [a, b, c][k]      →      y = ag__.item([a, b, c], k)

Only what is written as a list or tuple, or is a variable that such a thing was assigned to, is rewritten: nearly all
other items are of tensors and dictionaries, and stay as they are. So do those at constants, slices, and the variables
of loops and comprehensions: where these are tensors, the loop is staged, and sees to its lists.
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.expressions import ExpressionPass
from autograph.convert.sequences import assigned_names, is_conversion, is_display
from autograph.convert.tree import head
from autograph.syntax import templates
from autograph.syntax.walk import walk


def lower(tree: Any, context: Context) -> Any:
    """Rewrites such items in a tree; comes before the passes that rewrite displays and comprehensions."""

    def is_sequence(node: Any) -> bool:
        if isinstance(node, gast.BinOp):
            return is_sequence(node.left) or is_sequence(node.right)
        return is_display(node) or isinstance(node, gast.ListComp) or is_conversion(node, context)

    return _Items(context, is_sequence, assigned_names(tree, is_sequence)).visit(tree)


class _Items(ExpressionPass):
    def __init__(self, context: Context, is_sequence: Any, sequences: frozenset[str]) -> None:
        super().__init__(context)
        self.is_sequence = is_sequence
        self.sequences = sequences

    def visit_Subscript(self, node: Any) -> Any:
        owner = node.value
        is_known = owner.id in self.sequences if isinstance(owner, gast.Name) else self.is_sequence(owner)
        may_stage = isinstance(node.ctx, gast.Load) and is_known and self.may_be_tensor(node.slice)
        self.generic_visit(node)
        if not may_stage:
            return node
        return templates.expression("ag__.item(owner, index)", at=head(node), owner=node.value, index=node.slice)

    def may_be_tensor(self, index: Any) -> bool:
        if isinstance(index, (gast.Slice, gast.Tuple)):
            return False
        names = {each.id for each in walk(index) if isinstance(each, gast.Name)}
        return bool(names - self.context.run_over)
