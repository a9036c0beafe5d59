"""Text to gast, gast to the running Python's own ast.

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
    tree = ast.parse(text, filename)
    if first_line != 1:
        ast.increment_lineno(tree, first_line - 1)
    return gast.ast_to_gast(tree)


def to_ast(node: Any) -> Any:
    """The ast node of the running Python that a gast node stands for."""
    return gast.gast_to_ast(node)
