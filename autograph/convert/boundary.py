"""What is compiled round a converted function, and is no part of its printed form: it cleans tracebacks on the way out.

    def step(x):             def step(x):
        <body>       →           try:
                                     <body>
                                 except ag__.drop_frames():
                                     pass

Where nothing is raised this costs nothing (Python 3.11 and later).
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.tree import functions
from autograph.syntax import templates


def bound(tree: Any) -> frozenset[str]:
    """Puts the boundary into every function of a converted tree; gives the names of those that blocks became."""
    blocks: set[str] = set()
    users = []
    for node in functions(tree):
        if getattr(node, "is_block", False):
            blocks.add(node.name)
        else:
            users.append(node)
    for node in users:
        template = """
        try:
            body
        except ag__.drop_frames():
            pass
        """
        first = node.body[0]
        is_docstring = isinstance(first, gast.Expr) and isinstance(first.value, gast.Constant)
        kept, body = (node.body[:1], node.body[1:]) if is_docstring else ([], node.body)
        if body:
            node.body = [*kept, *templates.replace(template, at=first, body=body)]
    return frozenset(blocks)
