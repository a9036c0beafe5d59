"""The functions that a file defines, found in its tree without running it.

class Cell:
    def call(self, x):            Cell.call
        def inner(y): ...         Cell.call.inner
square = lambda x: x * x          square
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gast

from autograph.syntax.scopes import activity, function_scope
from runtime.dataclass import dataclass

_FUNCTIONS = (gast.FunctionDef, gast.AsyncFunctionDef)


@dataclass(frozen=True)
class Definition:
    """A function in a file.

    name          dotted: the classes and functions around it, then its own
    class_name    the innermost class around it, for private names, or None
    outer_names   what the file and the functions around it bind: these names don't mean built-ins
    """

    name: str
    node: Any
    class_name: str | None
    outer_names: frozenset[str]


def definitions(module: Any) -> Iterator[Definition]:
    """Every function of a file, lambdas that are given a name at once included."""
    return _definitions_in(module.body, "", None, frozenset(activity(module.body).bound))


def _definitions_in(
    body: list[Any], prefix: str, class_name: str | None, outer: frozenset[str]
) -> Iterator[Definition]:
    for node in body:
        if isinstance(node, _FUNCTIONS):
            yield Definition(prefix + node.name, node, class_name, outer)
            inner = outer | function_scope(node).locals
            yield from _definitions_in(node.body, f"{prefix}{node.name}.", class_name, inner)
        elif isinstance(node, gast.ClassDef):
            # A class's own names are not seen from inside its methods.
            yield from _definitions_in(node.body, f"{prefix}{node.name}.", node.name, outer)
        elif isinstance(node, gast.Assign) and isinstance(node.value, gast.Lambda):
            for target in node.targets:
                if isinstance(target, gast.Name):
                    yield Definition(prefix + target.id, node.value, class_name, outer)
        else:
            for inner_body in _bodies(node):
                yield from _definitions_in(inner_body, prefix, class_name, outer)


def _bodies(node: Any) -> Iterator[list[Any]]:
    """The statement lists of a compound statement: `if`, `try`, `with`, loops, `match`."""
    for field in ("body", "orelse", "finalbody"):
        statements = getattr(node, field, None)
        if isinstance(statements, list):
            yield statements
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body
