"""Values that a trace may read, and where they are: a path of attributes and items from a name or an argument."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from autograph.function.environment import GONE, MISSING, weakly
from runtime import nest

SIMPLE = frozenset({int, float, complex, bool, str, bytes, type(None)})
SEQUENCES = (list, tuple, deque)
ENVIRONMENT = type(os.environ)
CONTAINERS = (*SEQUENCES, dict, set, frozenset, ENVIRONMENT)

Step = tuple[str, Any]


class Place:
    """A value and where it is read.

    root      reads what the path starts from
    steps     attributes (".", name) and items ("[", key)
    label     the path, and what its root is called
    is_part   whether it is a structure among the arguments: its parts are in the key of a call
    """

    __slots__ = ("is_part", "label", "root", "steps", "value")

    def __init__(
        self,
        value: Any,
        root: Callable[[], Any],
        steps: tuple[Step, ...],
        label: tuple[str, str],
        is_part: bool = False,
    ) -> None:
        self.value = value
        self.root = root
        self.steps = steps
        self.label = label
        self.is_part = is_part

    def at(self, step: Step, value: Any) -> Place:
        """The place one step further."""
        text, root = self.label
        label = (f"{text}.{step[1]}" if step[0] == "." else f"{text}[{step[1]!r}]"), root
        if self.is_part and nest.is_nested(self.value):
            if nest.is_nested(value) or is_simple(value):
                return Place(value, self.root, self.steps, label, True)
            return Place(value, weakly(value), (), label)
        return Place(value, self.root, (*self.steps, step), label)

    @property
    def is_placed(self) -> bool:
        """Whether it is a place of the program's, rather than something that only the reader knows."""
        return bool(self.label[1])

    @property
    def name(self) -> str:
        """What it is called in messages."""
        text, root = self.label
        return root if not self.steps and "." not in text and "[" not in text else f"'{text}' ({root})"

    @property
    def holder(self) -> tuple[Callable[[], Any], Step]:
        """How to read the object that holds the value, and as what it does."""
        if not self.steps:
            container, key = getattr(self.root, "place", (self.root, None))
            return (lambda: container), (".", key)
        return follow(self.root, self.steps[:-1]), self.steps[-1]

    @property
    def read(self) -> Callable[[], Any]:
        return follow(self.root, self.steps) if self.steps else self.root


class Bag:
    """A container that the function itself makes, with the places that its items come from, in any order."""

    def __init__(self, items: Iterable[Place]) -> None:
        self.items = list(items)


class Attributes:
    """``vars(x)``."""

    def __init__(self, owner: Place) -> None:
        self.owner = owner


class Made:
    """An instance that the function makes of a class."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.fields: dict[str, dict[int, Place]] = {}


class Method:
    """A function with the place of the object that it is a method of."""

    def __init__(self, function: Any, owner: Place) -> None:
        self.function = function
        self.owner = owner


class Inner:
    """A function that the function defines: its names are those of the reader."""

    def __init__(self, node: Any) -> None:
        self.node = node


def follow(root: Callable[[], Any], steps: Sequence[Step]) -> Callable[[], Any]:
    """How to read a path: each step from what the one before it gives now."""

    def read() -> Any:
        value = root()
        for kind, key in steps:
            if value is MISSING or value is GONE:
                break
            value = getattr(value, key, MISSING) if kind == "." else item_of(value, key)
        return value

    return read


def item_of(container: Any, key: Any) -> Any:
    """An item of a list, tuple or dictionary, or MISSING. It makes none, as that of a `defaultdict` would."""
    try:
        if isinstance(container, ENVIRONMENT):
            return container.get(key, MISSING)
        return dict.get(container, key, MISSING) if isinstance(container, dict) else container[key]
    except (LookupError, TypeError):
        return MISSING


def is_simple(value: Any) -> bool:
    """Whether a value is a number, string, bool or None, or a tuple of these: it can be compared."""
    return type(value) in SIMPLE or (type(value) is tuple and all(map(is_simple, value)))


def unplaced(value: Any) -> Place:
    """The place of what only the reader knows."""
    return Place(value, lambda: value, (), ("", ""))


def environment() -> Place:
    """The place of the process's environment."""
    return Place(os.environ, lambda: os.environ, (), ("os.environ", "the environment"))


def constant(value: Any) -> Place:
    """The place of an object that is always found where it is, such as a class."""
    name = getattr(value, "__qualname__", type(value).__name__)
    return Place(value, weakly(value), (), ("", f"'{name}'"))
