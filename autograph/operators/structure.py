"""Taking apart tuples, lists and dicts of values, and putting them together again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def children(value: Any) -> Sequence[tuple[str, Any]] | None:
    """The items of a container with the text that reaches them (``[0]``, ``['k']``, ``.x``), or None for a leaf."""
    kind = type(value)
    if kind is list or kind is tuple:
        return [(f"[{index}]", item) for index, item in enumerate(value)]
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return [(f".{name}", item) for name, item in zip(kind._fields, value)]
    if isinstance(value, dict):
        return [(f"[{key!r}]", item) for key, item in value.items()]
    return None


def rebuild(like: Any, items: Sequence[Any]) -> Any:
    """A container of the same type and keys as ``like`` with other items."""
    kind = type(like)
    if isinstance(like, dict):
        made = like.copy()
        made.update(zip(like, items))
        return made
    if kind is list or kind is tuple:
        return kind(items)
    return kind._make(items)


def same_structure(one: Any, other: Any) -> bool:
    """Whether two containers have the same type, length and keys (their items may differ)."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other)
    return len(one) == len(other)


def flatten(value: Any, label: str = "") -> list[tuple[str, Any]]:
    """The leaves of a structure, each with the text that reaches it."""
    items = children(value)
    if items is None:
        return [(label, value)]
    return [leaf for key, item in items for leaf in flatten(item, label + key)]


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same structure with every leaf changed, in the order of ``flatten``."""
    items = children(value)
    if items is None:
        return change(value)
    return rebuild(value, [map_leaves(item, change) for _, item in items])
