"""Items of Python lists and tuples whose index may be a tensor.

    y = [a, b, c][k]      →      y = ag__.item([a, b, c], k)
    y = items[1:k]        →      y = ag__.items(items)[1:k]
    box.items[k] = y      →      ag__.items(box.items)[k] = y
    del items[k]          →      del ag__.items(items)[k]

Read are nearly always items of tensors and dictionaries, which stay as they are: only what is written as a list or
tuple is rewritten, or is a variable that such a thing was assigned to, or something whose items the function sets.
Items at constants stay as they are, too.
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

    return _Items(context, is_sequence, assigned_names(tree, is_sequence), _changed(tree)).visit(tree)


class _Items(ExpressionPass):
    def __init__(self, context: Context, is_sequence: Any, sequences: frozenset[str], changed: frozenset[str]) -> None:
        super().__init__(context)
        self.is_sequence = is_sequence
        self.sequences = sequences
        self.changed = changed

    def visit_Subscript(self, node: Any) -> Any:
        owner, is_read = node.value, isinstance(node.ctx, gast.Load)
        is_known = owner.id in self.sequences if isinstance(owner, gast.Name) else self.is_sequence(owner)
        may_stage = _may_be_tensor(node.slice) and (not is_read or is_known or self.is_changed(owner))
        self.generic_visit(node)
        if not may_stage:
            return node
        if is_read and not isinstance(node.slice, gast.Slice):
            return templates.expression("ag__.item(owner, index)", at=head(node), owner=node.value, index=node.slice)
        node.value = templates.expression("ag__.items(owner)", at=head(node.value), owner=node.value)
        return node

    def is_changed(self, owner: Any) -> bool:
        return bool(self.changed) and gast.dump(owner) in self.changed


def _may_be_tensor(index: Any) -> bool:
    return not isinstance(index, gast.Tuple) and any(isinstance(each, gast.Name) for each in walk(index))


def _changed(tree: Any) -> frozenset[str]:
    """The expressions, as text, whose items a function sets or deletes."""
    items = [node for node in walk(tree) if isinstance(node, gast.Subscript)]
    return frozenset(gast.dump(node.value) for node in items if not isinstance(node.ctx, gast.Load))
