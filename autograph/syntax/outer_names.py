"""What a function's text takes from outside, as paths: what it reads, and what it writes there.

>>> reads, writes = outer_names(parse("def f(x):\\n    global n\\n    n += 1\\n    self.k = x * cfg.rate\\n").body[0])
>>> sorted(map(str, reads)), sorted(map(str, writes))
(['cfg.rate', 'n', 'x'], ['n', 'self.k'])

Local names are among the reads; who knows the function's scope tells them apart. Functions defined inside count too.
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.syntax.names import Path


def outer_names(function: Any) -> tuple[set[Path], set[Path]]:
    """(paths read, paths written) of a gast function definition or lambda."""
    collector = _Collector()
    body = function.body if isinstance(function.body, list) else [function.body]
    for statement in body:
        collector.visit(statement)
    written = collector.written | {Path(name) for name in collector.declared & collector.stored}
    return collector.read, written


class _Collector(gast.NodeVisitor):
    def __init__(self) -> None:
        self.read: set[Path] = set()
        self.written: set[Path] = set()
        self.declared: set[str] = set()  # global and nonlocal names
        self.stored: set[str] = set()

    def visit_Global(self, node: Any) -> None:
        self.declared.update(node.names)

    visit_Nonlocal = visit_Global

    def visit_Name(self, node: Any) -> None:
        if isinstance(node.ctx, gast.Load):
            self.read.add(Path(node.id))
        else:
            self.stored.add(node.id)

    def visit_Attribute(self, node: Any) -> None:
        path = Path.of(node)
        if path is None:
            self.generic_visit(node)
        elif isinstance(node.ctx, gast.Load):
            self.read.add(path)
        else:
            self.written.add(path)

    def visit_AugAssign(self, node: Any) -> None:
        self.generic_visit(node)
        path = Path.of(node.target)
        if path is not None and path.is_name:
            self.read.add(path)
