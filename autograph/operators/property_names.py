"""Which attributes may be properties, and which operators special methods, of the user's classes, as far as a function
can see these by name."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from autograph.operators.calls import is_library
from autograph.operators.libraries import LIBRARIES
from autograph.operators.swallowing import tree_of

COMPARISONS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})
_THIRD_PARTY = ("site-packages", "dist-packages")


def property_names(values: Iterable[Any]) -> frozenset[str]:
    """The names of the properties and special methods of the user's classes among some values.

    Also those in the user's modules among them, and of the classes of instances among the values.
    """
    found: set[str] = set()
    for value in values:
        for each in _classes(value):
            for base in each.__mro__:
                if base.__module__ != "builtins":
                    members = vars(base).items()
                    found.update(name for name, member in members if _is_users(name, member) or is_generated(member))
    return frozenset(found)


def own_names(filename: str, line: int) -> frozenset[str]:
    """The names of the properties and special methods that a class defines itself: the innermost class around a line of
    a file."""
    classes = [
        node
        for node in ast.walk(tree_of(filename))
        if isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not classes:
        return frozenset()
    methods = [each for each in classes[-1].body if isinstance(each, ast.FunctionDef)]
    return frozenset(
        each.name
        for each in methods
        if (each.name.startswith("__") and each.name.endswith("__"))
        or any(isinstance(mark, ast.Name) and mark.id == "property" for mark in each.decorator_list)
    )


def _is_users(name: str, member: Any) -> bool:
    if type(member) is property:
        member = member.fget
    elif not (name.startswith("__") and name.endswith("__")):
        return False
    # What `dataclass` and `namedtuple` generate has no source.
    return type(member) is FunctionType and not member.__code__.co_filename.startswith("<s") and not is_library(member)


def is_generated(member: Any) -> bool:
    """Whether it is a method that `dataclass` or attrs has made: it has no source, and compares tuples of fields."""
    if type(member) is not FunctionType or member.__name__ not in COMPARISONS:
        return False
    return member.__code__.co_filename.startswith(("<string>", "<attrs generated"))


def _classes(value: Any) -> Iterator[type]:
    if isinstance(value, ModuleType):
        if _is_users_module(value):
            yield from [each for each in vars(value).values() if isinstance(each, type)]
    else:
        yield value if isinstance(value, type) else type(value)


def _is_users_module(module: ModuleType) -> bool:
    """Whether a module is the user's own, and no library."""
    root = module.__name__.partition(".")[0]
    place = getattr(module, "__file__", None) or ""
    is_library_module = root in LIBRARIES or root in sys.stdlib_module_names or not place
    return not is_library_module and not any(part in place for part in _THIRD_PARTY)
