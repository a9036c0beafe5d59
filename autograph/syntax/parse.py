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
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import gast

from runtime import recursion

T = TypeVar("T")


def parse(text: str, filename: str = "<string>", first_line: int = 1) -> Any:
    """The gast Module of ``text``, whose first line is line ``first_line`` of ``filename``. Raises SyntaxError."""
    return from_ast(positions_from_line(python_ast(text, filename), first_line))


def python_ast(text: str, filename: str = "<string>", mode: str = "exec") -> Any:
    """`ast.parse`, which may be called while other threads do so. Raises SyntaxError.

    CPython 3.11 counts the depth of the trees of all threads together, and says SystemError when the count is wrong.
    """
    for _ in range(10):
        try:
            return ast.parse(text, filename, mode)
        except SystemError:
            continue
    return ast.parse(text, filename, mode)


def from_ast(node: Any) -> Any:
    """The gast node of an ast node; the ast node stays as it is and shares nothing with it."""
    return with_deep_stack(lambda: _FromPython().visit(node))


def to_ast(node: Any) -> Any:
    """The ast node of the running Python that a gast node stands for; shares nothing with it."""
    return with_deep_stack(lambda: _ToPython().visit(node))


_MISSING = object()


def _quick(translator: Any, target: Any) -> Any:
    """gast's translator to nodes of `target`, without asking for each node what its class has: that took most of the
    time of finding a function's source and of loading its converted form."""
    methods: dict[type, Any] = {}
    plans: dict[type, tuple[Any, tuple[str, ...], tuple[str, ...]]] = {}

    class Quick(translator):
        def visit(self, node: Any) -> Any:
            kind = type(node)
            method: Any = methods.get(kind)
            if method is None:
                method = getattr(Quick, f"visit_{kind.__name__}", Quick.generic_visit)
                if method is Quick.generic_visit and not (node._fields or node._attributes):
                    method = _always(method(self, node))  # an operator or a context says nothing but its class
                methods[kind] = method
            return method(self, node)

        def _visit(self, node: Any) -> Any:
            if isinstance(node, ast.AST):
                return self.visit(node)
            return [self._visit(each) for each in node] if isinstance(node, list) else node

        def generic_visit(self, node: Any) -> Any:
            kind = type(node)
            plan = plans.get(kind)
            if plan is None:
                plan = plans[kind] = getattr(target, kind.__name__, None), node._fields, node._attributes
            made, fields, places = plan
            if made is None:
                return None  # not a part of that language
            result = made.__new__(made)
            attributes = result.__dict__
            for name in fields:
                value = getattr(node, name, _MISSING)
                if isinstance(value, ast.AST):
                    value = self.visit(value)
                elif type(value) is list:
                    value = [self._visit(each) for each in value]
                if value is not _MISSING:
                    attributes[name] = value
            for name in places:
                value = getattr(node, name, _MISSING)
                if value is not _MISSING:
                    attributes[name] = value
            return result

    return Quick


def _always(result: Any) -> Callable[[Any, Any], Any]:
    return lambda translator, node: result


_FromPython = _quick(gast.ast3.Ast3ToGAst, gast)
_ToPython = _quick(gast.ast3.GAstToAst3, ast)


def is_gast(node: Any) -> bool:
    """Whether a node is gast's rather than the running Python's own."""
    return type(node).__module__.partition(".")[0] == "gast"


def with_deep_stack(work: Callable[[], T]) -> T:
    """The result of ``work``, done again with a deeper stack allowed if the usual one is too shallow.

    Long chains of operators make trees that are hundreds of levels deep, and walking a level takes several calls.
    """
    try:
        return work()
    except RecursionError:
        with recursion.room(sys.getrecursionlimit()):
            return work()


def positions_from_line(tree: Any, first_line: int) -> Any:
    """Move the positions of a tree whose text was taken to begin at line 1, in place; returns the tree."""
    return tree if first_line == 1 else ast.increment_lineno(tree, first_line - 1)
