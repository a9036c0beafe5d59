"""A variable that is returned although a branch or loop may not have set it is checked at the ``return``.

    for i in ag.range(n):         for i in ag.range(n):
        last = i             →        last = i
    return last                   return ag__.bound(last)

Any other use of such a variable is an operation of the program, which checks it at its own line (see
operators/absence.py); what is only handed out is used after the function has ended.
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.tree import CONVERTIBLE, functions, statements
from autograph.syntax import templates
from autograph.syntax.scopes import Activities


def lower(tree: Any, context: Context) -> Any:
    """Wraps the returned names in a tree that may be unbound."""
    activity = Activities()
    for function in functions(tree):
        returns = [stmt for stmt in statements(function.body) if isinstance(stmt, gast.Return) and stmt.value]
        blocks = [stmt for stmt in statements(function.body) if isinstance(stmt, CONVERTIBLE)]
        names = {name for stmt in blocks if stmt not in context.pinned(function) for name in activity(stmt).bound}
        if not (returns and names):
            continue
        doubtful = {node for node in context.unbound_reads(function) if node.id in names}
        if doubtful:
            for stmt in returns:
                stmt.value = _checked(stmt.value, doubtful)
    return tree


def _checked(node: Any, doubtful: set[Any]) -> Any:
    if isinstance(node, gast.Name) and node in doubtful:
        return templates.expression("ag__.bound(name)", at=node, name=node.id)
    if isinstance(node, (gast.Tuple, gast.List)):
        node.elts = [_checked(each, doubtful) for each in node.elts]
    elif isinstance(node, gast.Dict):
        node.values = [_checked(each, doubtful) for each in node.values]
    return node
