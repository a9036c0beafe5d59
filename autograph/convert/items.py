"""Items of Python lists and tuples whose index may be a tensor.

    y = [a, b, c][k]      →      y = ag__.item([a, b, c], k)
    y = items[1:k]        →      y = ag__.items(items)[1:k]
    box.items[k] = y      →      ag__.items(box.items)[k] = y
    table[i][k] = y       →      ag__.items(table, i)[k] = y
    del items[k]          →      del ag__.items(items)[k]
    y = table[k]          →      y = ag__.look_up(table, k)
    a, b = items          →      a, b = ag__.unpacked(items, 2, None)
    a, *b = items         →      a, b = ag__.unpacked(items, 1, 0)

Read are nearly always items of tensors and dictionaries, at an index that may be a chosen object (`choices.py`). An
index that may be a tensor is expected only in what is written as a list or tuple, in a variable that such a thing was
assigned to, and in something whose items the function sets or to which it adds some; only such a thing, an argument, or
what a call has given is unpacked by an operator, and so are the parts of a text (`a, b = text.split(":")`). Items at
constants stay as they are.
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.expressions import ExpressionPass
from autograph.convert.properties import members_in_sight
from autograph.convert.sequences import assigned_names, is_conversion, is_display
from autograph.convert.tree import head
from autograph.syntax import templates
from autograph.syntax.walk import walk

_ADDING = ("append", "extend", "insert")
_SPLITTING = ("split", "rsplit", "splitlines")


def lower(tree: Any, context: Context) -> Any:
    """Rewrites such items in a tree; comes before the passes that rewrite displays and comprehensions."""

    def is_sequence(node: Any) -> bool:
        if isinstance(node, gast.BinOp):
            return is_sequence(node.left) or is_sequence(node.right)
        return is_display(node) or isinstance(node, gast.ListComp) or is_conversion(node, context)

    joins = "__getitem__" not in members_in_sight(tree, context)
    made = _Items(context, is_sequence, assigned_names(tree, is_sequence), _changed(tree), joins)
    if isinstance(tree, gast.FunctionDef):
        made.given = frozenset(each.id for each in tree.args.args) | assigned_names(tree, _is_made)
    return made.visit(tree)


class _Items(ExpressionPass):
    def __init__(
        self, context: Context, is_sequence: Any, sequences: frozenset[str], changed: frozenset[str], joins: bool
    ) -> None:
        super().__init__(context)
        self.is_sequence = is_sequence
        self.sequences = sequences
        self.changed = changed
        self.joins = joins  # whether one operator takes several indices: no class in sight has its own `__getitem__`

    given: frozenset[str] = frozenset()  # the function's arguments, and names of what calls have given

    def visit_Subscript(self, node: Any) -> Any:
        if isinstance(node.ctx, gast.Load):
            return self.read(node)
        root, path = _ways(node.value)[0]
        if self.joins and any(map(_may_be_tensor, path)):
            node.value = self.operator("items", root, path)
        elif not _is_text(node.slice):
            node.value = self.operator("items", node.value, [])
        else:
            node.value = self.visit(node.value)
        node.slice = self.visit(node.slice)
        return node

    def read(self, node: Any) -> Any:
        for root, path in _ways(node):
            fits = self.joins or len(path) == 1
            if not (path and fits and any(map(_may_be_tensor, path)) and self.is_known(root)):
                continue
            if isinstance(node.slice, gast.Slice):
                node.value, node.slice = self.operator("items", root, []), self.visit(node.slice)
                return node
            return self.operator("item", root, path)
        self.generic_visit(node)
        if not (self.joins and _may_be_key(node.slice)):  # another pass makes `ag__.get_item` of it
            return node
        return templates.expression("ag__.look_up(x, key)", at=head(node), x=node.value, key=node.slice)

    def visit_Assign(self, node: Any) -> Any:
        self.generic_visit(node)
        target = node.targets[0]
        if len(node.targets) > 1 or not is_display(target) or not self.may_be_list(node.value):
            return node
        starred = [place for place, each in enumerate(target.elts) if isinstance(each, gast.Starred)]
        before = starred[0] if starred else len(target.elts)
        after = len(target.elts) - before - 1 if starred else None
        for place in starred:
            target.elts[place] = target.elts[place].value
        parts = {"x": node.value, "before": gast.Constant(before, None), "after": gast.Constant(after, None)}
        node.value = templates.expression("ag__.unpacked(x, before, after)", at=head(node.value), **parts)
        return node

    def may_be_list(self, node: Any) -> bool:
        """Whether an expression is an argument, what a call has given, the parts of a text, or what the function adds
        items to."""
        if isinstance(node, gast.Call) and isinstance(node.func, gast.Attribute) and node.func.attr in _SPLITTING:
            return True
        return getattr(node, "id", None) in self.given or gast.dump(node) in self.changed

    def operator(self, name: str, root: Any, path: list[Any]) -> Any:
        """``ag__.item(root, i, k)``"""
        made = templates.expression(f"ag__.{name}(root)", at=head(root), root=self.visit(root))
        made.args += map(self.visit, path)
        return made

    def is_known(self, root: Any) -> bool:
        is_known = root.id in self.sequences if isinstance(root, gast.Name) else self.is_sequence(root)
        return is_known or (bool(self.changed) and gast.dump(root) in self.changed)


def _is_made(node: Any) -> bool:
    return isinstance(node, (gast.Call, gast.ListComp))


def _ways(node: Any) -> list[tuple[Any, list[Any]]]:
    """How an expression is reached by indices: ``x[i][k]`` from ``x`` by two, from ``x[i]`` by one, from itself by
    none. Slices stand alone."""
    ways = (
        [(node, [])]
        if not (isinstance(node, gast.Subscript) and isinstance(node.slice, gast.Slice))
        else [(node.value, [node.slice])]
    )
    root, path = ways[0]
    while isinstance(root, gast.Subscript) and not (path and isinstance(path[0], gast.Slice)):
        if isinstance(root.slice, (gast.Slice, gast.Tuple)):
            break
        root, path = root.value, [root.slice, *path]
        ways.insert(0, (root, path))
    return ways


def _may_be_tensor(index: Any) -> bool:
    return not isinstance(index, gast.Tuple) and any(isinstance(each, gast.Name) for each in walk(index))


def _is_text(index: Any) -> bool:
    """Whether an index is a key that is written out: what has it is a dictionary."""
    return isinstance(index, gast.Constant) and isinstance(index.value, str)


def _may_be_key(index: Any) -> bool:
    inside = list(walk(index))
    is_slice = any(isinstance(each, (gast.Slice, gast.Starred)) for each in inside)
    return not is_slice and any(isinstance(each, gast.Name) for each in inside)


def _changed(tree: Any) -> frozenset[str]:
    """The expressions, as text, of which a function sets, deletes or adds items, or items of items."""
    items = [node for node in walk(tree) if isinstance(node, gast.Subscript) and not isinstance(node.ctx, gast.Load)]
    changed = [root for node in items for root, _ in _ways(node.value)]
    return frozenset(map(gast.dump, [*changed, *_grown(tree)]))


def _grown(tree: Any) -> list[Any]:
    """The expressions to whose values a function adds items: only lists have these methods."""
    calls = [node.func for node in walk(tree) if isinstance(node, gast.Call)]
    return [each.value for each in calls if isinstance(each, gast.Attribute) and each.attr in _ADDING]
