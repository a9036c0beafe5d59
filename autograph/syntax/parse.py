"""Text to gast, gast to the running Python's own ast, and back.

Example::

    >>> module = parse("x = 1\\n", first_line=10)
    >>> module.body[0].lineno
    10
    >>> ast.dump(to_ast(module.body[0].value))
    'Constant(value=1)'
"""

from __future__ import annotations

import _ast
import ast
import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import gast

from runtime import recursion
from runtime.python_text import python_ast

T = TypeVar("T")


class UnknownSyntaxError(SyntaxError):
    """The running Python has syntax that gast can't express."""


def parse(text: str, filename: str = "<string>", first_line: int = 1) -> Any:
    """The gast Module of ``text``, whose first line is line ``first_line`` of ``filename``. Raises SyntaxError."""
    return from_ast(positions_from_line(python_ast(text, filename), first_line))


def from_ast(node: Any) -> Any:
    """The gast node of an ast node; the ast node stays as it is and shares nothing with it.

    Raises UnknownSyntaxError, which says where, when gast has no such node.
    """
    return with_deep_stack(lambda: _FromPython().visit(node))


def to_ast(node: Any) -> Any:
    """The ast node of the running Python that a gast node stands for; shares nothing with it."""
    return with_deep_stack(lambda: _ToPython().visit(node))


_MISSING = object()


# The class of the translation, the fields that both classes have, those that only one has, and the places.
_Plan = tuple[Any, tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def _plan(node: Any, target: Any) -> _Plan:
    made = getattr(target, type(node).__name__, None)
    if made is None:
        raise _unknown(node, f"a {type(node).__name__}")
    known = tuple(name for name in node._fields if name in made._fields)
    carried = tuple(name for name in (*node._fields, *made._fields) if name not in known)
    return made, known, carried, node._attributes


def _unknown(node: Any, what: str) -> UnknownSyntaxError:
    error = UnknownSyntaxError(f"the package gast {gast.__version__} can't express {what}")
    error.lineno, error.offset = getattr(node, "lineno", None), getattr(node, "col_offset", -1) + 1
    return error


def _quick(translator: Any, target: Any) -> Any:
    """gast's translator to nodes of `target`, without asking for each node what its class has: that took most of the
    time of finding a function's source and of loading its converted form."""
    methods: dict[type, Any] = {}
    plans: dict[type, _Plan] = {}

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
            made, fields, carried, places = plans.get(kind) or plans.setdefault(kind, _plan(node, target))
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
            for name in carried:
                value = getattr(node, name, None)
                if value and isinstance(value, (ast.AST, list)):  # which no pass would look into
                    raise _unknown(node, f"a {kind.__name__} with `{name}`")
                if value is not None and value != []:
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


@functools.cache
def unknown_nodes() -> frozenset[str]:
    """The classes of nodes that the running Python's parser makes and gast can't express."""
    made = {name for name, kind in vars(_ast).items() if isinstance(kind, type) and issubclass(kind, ast.AST)}
    return frozenset(name for name in made if not (hasattr(gast, name) or hasattr(_FromPython, f"visit_{name}")))


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
