"""Which attributes may be properties of the user's classes, as far as a function can see these by name."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from autograph.operators.calls import LIBRARIES, is_library

_THIRD_PARTY = ("site-packages", "dist-packages")


def property_names(values: Iterable[Any]) -> frozenset[str]:
    """The names of the properties of the user's classes among some values and in the user's modules among them.

    Also those of the classes of instances among the values.
    """
    found: set[str] = set()
    for value in values:
        for each in _classes(value):
            for base in each.__mro__:
                if base.__module__ != "builtins":
                    found.update(name for name, member in vars(base).items() if _is_users_property(member))
    return frozenset(found)


def _is_users_property(member: Any) -> bool:
    return type(member) is property and type(member.fget) is FunctionType and not is_library(member.fget)


def _classes(value: Any) -> Iterator[type]:
    if isinstance(value, ModuleType):
        if _is_users(value):
            yield from [each for each in vars(value).values() if isinstance(each, type)]
    else:
        yield value if isinstance(value, type) else type(value)


def _is_users(module: ModuleType) -> bool:
    """Whether a module is the user's own, and no library."""
    root = module.__name__.partition(".")[0]
    place = getattr(module, "__file__", None) or ""
    is_library_module = root in LIBRARIES or root in sys.stdlib_module_names or not place
    return not is_library_module and not any(part in place for part in _THIRD_PARTY)
