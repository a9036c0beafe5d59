"""Walking gast trees without the detours of the standard library's `ast` module: conversion does little else.

Left out are the parts of a tree that say nothing by themselves: expression contexts and operators. Otherwise these do
what `ast.iter_child_nodes`, `ast.walk`, `ast.NodeVisitor` and `ast.NodeTransformer` do, in the same order.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

import gast

_SKIPPED = frozenset({"ctx", "op", "ops", "kind", "type_comment"})
# These hold text and numbers in every class of nodes.
_PLAIN = frozenset({"id", "attr", "arg", "module", "level", "asname", "simple", "is_async", "conversion"})
_fields: dict[type, tuple[str, ...]] = {}


def fields_of(kind: type) -> tuple[str, ...]:
    """The fields of a node class that may hold nodes."""
    found = _fields.get(kind)
    if found is None:
        names = () if kind is gast.Constant else kind._fields  # type: ignore[attr-defined]
        found = _fields[kind] = tuple(name for name in names if name not in _SKIPPED | _PLAIN)
    return found


def children(node: Any) -> list[Any]:
    """The nodes directly below a node."""
    found: list[Any] = []
    names = _fields.get(type(node))
    attributes = node.__dict__
    for name in fields_of(type(node)) if names is None else names:
        value = attributes.get(name)
        if value is None or type(value) is str:
            continue
        if type(value) is list:
            if value:
                found += value if None not in value and type(value[0]) is not str else _nodes_of(value)
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def _nodes_of(values: list[Any]) -> list[Any]:
    return [each for each in values if isinstance(each, ast.AST)]


def walk(node: Any) -> Iterator[Any]:
    """A node and all below it, nearer ones first."""
    level = [node]
    while level:
        yield from level
        level = [child for each in level for child in children(each)]


class Visitor:
    """Calls `visit_X` for nodes of class X, else visits what is below."""

    _methods: dict[type, Callable[[Any, Any], Any]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._methods = {}

    def visit(self, node: Any) -> Any:
        """Visits one node; gives what its method gives."""
        kind = type(node)
        method = self._methods.get(kind)
        if method is None:
            cls = type(self)
            method = self._methods[kind] = getattr(cls, "visit_" + kind.__name__, cls.generic_visit)
        return method(self, node)

    def generic_visit(self, node: Any) -> Any:
        """Visits the nodes directly below a node."""
        for child in children(node):
            self.visit(child)
        return None


class Transformer(Visitor):
    """A visitor whose methods give what to put in place: the node, another, a list of statements, or None for none."""

    def generic_visit(self, node: Any) -> Any:
        """Replaces the nodes directly below a node, and gives the node itself."""
        names = _fields.get(type(node))
        attributes = node.__dict__
        for name in fields_of(type(node)) if names is None else names:
            value = attributes.get(name)
            if value is None:
                continue
            if type(value) is list:
                if not value:
                    continue
                made: list[Any] = []
                for each in value:
                    result = self.visit(each) if isinstance(each, ast.AST) else each
                    if isinstance(result, list):
                        made.extend(result)
                    elif result is not None or each is None:
                        made.append(result)
                value[:] = made
            elif isinstance(value, ast.AST):
                attributes[name] = self.visit(value)
        return node
