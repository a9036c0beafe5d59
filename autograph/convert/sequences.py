"""Which expressions are written so that their value is a Python list or tuple."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gast

from autograph.convert.context import Context
from autograph.syntax.walk import walk

DISPLAYS = (gast.Tuple, gast.List)


def is_display(node: Any) -> bool:
    """Whether an expression is a tuple or list display."""
    return isinstance(node, DISPLAYS)


def assigned_names(tree: Any, is_sequence: Callable[[Any], bool] = is_display) -> frozenset[str]:
    """The names in a tree that such an expression is assigned to somewhere."""
    assigned = [(target, node.value) for node in walk(tree) if isinstance(node, gast.Assign) for target in node.targets]
    return frozenset(name for pair in assigned for name in _names(*pair, is_sequence))


def is_conversion(node: Any, context: Context) -> bool:
    """Whether an expression is ``tuple(...)`` or ``list(...)``."""
    called = isinstance(node, gast.Call) and isinstance(node.func, gast.Name) and node.func.id in ("tuple", "list")
    return called and node.func.id not in context.shadowed


def _names(target: Any, value: Any, is_sequence: Callable[[Any], bool]) -> list[str]:
    if isinstance(target, gast.Name):
        return [target.id] if is_sequence(value) else []
    if isinstance(target, DISPLAYS) and is_display(value):
        return [name for pair in zip(target.elts, value.elts) for name in _names(*pair, is_sequence)]
    return []
