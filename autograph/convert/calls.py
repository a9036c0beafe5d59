"""Called functions are converted when they are called.

    y = f(x, *rest, key=k)      →      y = ag__.converted_call(f)(x, *rest, key=k)
    names = locals()            →      names = ag__.own_names(locals(), ('ag__', 'if_body'))

Not wrapped: operators, lambdas called where they stand, and the built-in functions below, which need no conversion and
never meet a tensor's missing value -- as long as nothing shadows their names.
"""

from __future__ import annotations

import builtins
from typing import Any

import gast

from autograph.convert.context import OPERATORS, Context
from autograph.convert.expressions import ExpressionPass, is_operator_call
from autograph.syntax import templates
from autograph.syntax.walk import walk

_NAMES = """
    bin breakpoint bytearray bytes classmethod compile delattr dict dir eval exec frozenset
    globals hex locals memoryview object oct open property
    set setattr slice staticmethod super vars
"""
_TYPES = {name: value for name, value in vars(builtins).items() if isinstance(value, type)}
_EXCEPTIONS = {name for name, value in _TYPES.items() if issubclass(value, BaseException)}
LEFT_ALONE = frozenset(_NAMES.split()) | _EXCEPTIONS


def lower(tree: Any, context: Context) -> Any:
    """Wraps the calls in a tree."""
    return _Calls(context, _bound_names(tree)).visit(tree)


class _Calls(ExpressionPass):
    def __init__(self, context: Context, bound: set[str]) -> None:
        super().__init__(context)
        self.bound = bound
        self.added = (OPERATORS, *sorted(bound - context.identifiers))

    def visit_Call(self, node: Any) -> Any:
        self.generic_visit(node)
        if self.lists_locals(node):
            return templates.expression("ag__.own_names(names, added)", at=node, names=node, added=self.added)
        if is_operator_call(node) or isinstance(node.func, gast.Lambda) or self.is_left_alone(node.func):
            return node
        node.func = templates.expression("ag__.converted_call(function)", at=node.func, function=node.func)
        return node

    def lists_locals(self, node: Any) -> bool:
        """Whether a call gives the names of the frame that it stands in, among which are those of the conversion."""
        is_lister = isinstance(node.func, gast.Name) and node.func.id in ("locals", "vars", "dir")
        return is_lister and not node.args and not node.keywords and self.is_left_alone(node.func)

    def is_left_alone(self, function: Any) -> bool:
        if not isinstance(function, gast.Name) or function.id not in LEFT_ALONE:
            return False
        return function.id not in self.bound and function.id not in self.context.shadowed


def _bound_names(tree: Any) -> set[str]:
    """Every name that anything in the tree binds, in whatever scope."""
    found: set[str] = set()
    for node in walk(tree):
        if isinstance(node, gast.Name) and not isinstance(node.ctx, gast.Load):
            found.add(node.id)
        elif isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, gast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, (gast.Global, gast.Nonlocal)):
            found.update(node.names)
    return found
