"""Text to gast, gast to the running Python's own ast, and back.

Example::

    >>> module = parse("x = 1\\n", first_line=10)
    >>> module.body[0].lineno
    10
    >>> ast.dump(to_ast(module.body[0].value))
    'Constant(value=1)'
"""

from __future__ import annotations

import ast
from typing import Any

import gast


def parse(text: str, filename: str = "<string>", first_line: int = 1) -> Any:
    """The gast Module of ``text``, whose first line is line ``first_line`` of ``filename``. Raises SyntaxError."""
    return from_ast(positions_from_line(ast.parse(text, filename), first_line))


def from_ast(node: Any) -> Any:
    """The gast node of an ast node; the ast node stays as it is and shares nothing with it."""
    return gast.ast_to_gast(node)


def to_ast(node: Any) -> Any:
    """The ast node of the running Python that a gast node stands for; shares nothing with it."""
    return gast.gast_to_ast(node)


def positions_from_line(tree: Any, first_line: int) -> Any:
    """Move the positions of a tree whose text was taken to begin at line 1, in place; returns the tree."""
    return tree if first_line == 1 else ast.increment_lineno(tree, first_line - 1)
