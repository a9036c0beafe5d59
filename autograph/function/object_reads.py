"""What is read of objects by attributes, items and special methods: `ObjectReads`."""

from __future__ import annotations

import functools
import inspect
import operator
import os
import types
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from autograph.function.environment import MISSING
from autograph.function.places import (
    CONTAINERS,
    ENVIRONMENT,
    SEQUENCES,
    Attributes,
    Bag,
    Inner,
    Made,
    Method,
    Place,
    Step,
    constant,
    environment,
    is_simple,
    item_of,
    unplaced,
)
from autograph.operators.libraries import is_library_module
from runtime.api_dispatch import dispatcher_of, is_anything_registered
from runtime.ops.convert import is_tensor_like


class ObjectReads:
    """What is found so far.

    values     places of simple values, by the object that holds each, and as what
    contents   places of containers that are read as a whole
    """

    def __init__(self) -> None:
        self.values: dict[Any, Place] = {}
        self.contents: dict[int, Place] = {}
        self.made: dict[Any, Place] = {}  # what only the reader knows, so that it is found again
        self.kept: list[Any] = []  # whose ids are keys

    def call(self, target: Any, arguments: Sequence[Iterable[Place]], keywords: dict[str, list[Place]]) -> list[Place]:
        """Goes over a function of the user's for these arguments; gives what it returns."""
        raise NotImplementedError

    def value(self, owner: Any, step: Step, place: Place) -> list[Place]:
        """Notes a read; gives the place, if there is more to it than a simple value."""
        if place.is_part and is_simple(place.value):
            return []
        if place.value is MISSING or is_simple(place.value):
            try:
                self.values.setdefault((id(owner), *step), place)
            except TypeError:  # a key that isn't hashable
                return []
            self.kept.append(owner)
            return []
        return [] if is_opaque(place.value) else [place]

    def whole(self, place: Place) -> None:
        """Notes that a container is read as a whole."""
        if isinstance(place.value, CONTAINERS) and not place.is_part:
            self.contents.setdefault(id(place.value), place)

    def attribute(self, place: Place, name: str) -> list[Place]:
        """The places of the values that `x.name` may have, for an object at a place."""
        owner = place.value
        if name == "__dict__":
            return [self.made.setdefault(("vars", id(owner)), unplaced(Attributes(place)))]
        if isinstance(owner, Made):
            found = list(owner.fields.get(name, {}).values())
            member = inspect.getattr_static(owner.kind, name, MISSING)
            return found if member is MISSING else found + self.member(place, owner.kind, name, member)
        if isinstance(owner, (Bag, Attributes, Method, Inner)) or is_opaque(owner):
            return []
        if owner is os and name in ("environ", "getenv"):
            return [environment() if name == "environ" else constant(os.getenv)]
        if owner is operator and name == "attrgetter":
            return [constant(operator.attrgetter)]
        if isinstance(owner, types.ModuleType) and is_library_module(owner.__name__):
            return self.of_library(owner, name)
        if isinstance(owner, tuple) and name in getattr(owner, "_fields", ()):
            return self.item(place, owner._fields.index(name))  # type: ignore[attr-defined]
        if isinstance(owner, (*CONTAINERS, types.FunctionType)) and hasattr(type(owner), name):
            return []
        return self.member(place, owner, name, inspect.getattr_static(owner, name, MISSING))

    def of_library(self, module: types.ModuleType, name: str) -> list[Place]:
        """A public function for which the program has registered others, or the way there; else nothing."""
        value = vars(module).get(name) if is_anything_registered() else None
        is_way = isinstance(value, types.ModuleType) and is_library_module(value.__name__)
        return [constant(value)] if is_way or dispatcher_of(value) is not None else []

    def dispatched(
        self, function: types.FunctionType, arguments: Sequence[list[Place]], keywords: dict[str, list[Place]]
    ) -> list[Place] | None:
        """The places that what is registered for a public function may return; None if nothing is."""
        dispatcher = dispatcher_of(function)
        if dispatcher is None:
            return None
        label = f"what is registered for {dispatcher.name}"
        place = Place(dispatcher.revision, lambda: dispatcher.revision, (), (label, label))
        self.values.setdefault(("dispatched", id(dispatcher)), place)
        before: list[Place] = []  # what a handler gets first isn't the program's
        targets = [(each.function, [*[before] * each.operands, *arguments]) for each in dispatcher.targets]
        return [found for target, given in targets for found in self.call(target, given, keywords)]

    def member(self, place: Place, owner: Any, name: str, value: Any) -> list[Place]:
        """What ``x.name`` may be where a value stands under that name in the object or its class."""
        is_made = isinstance(place.value, Made)
        is_class = isinstance(owner, type) and not is_made
        is_own = is_class or isinstance(owner, types.ModuleType) or name in getattr(owner, "__dict__", {})
        if type(value) is types.FunctionType and (is_made or not is_own):
            return [self.made.setdefault((name, id(place.value)), unplaced(Method(value, place)))]
        if type(value) is classmethod:
            kind = place if is_class else constant(owner if isinstance(owner, type) else type(owner))
            return [self.made.setdefault((name, id(place.value)), unplaced(Method(value.__func__, kind)))]
        if type(value) is staticmethod:
            return [constant(value.__func__)]
        if type(value) is property:
            return self.call(value.fget, [[place]], {})
        if type(value) is functools.cached_property:
            return self.call(value.func, [[place]], {})
        if value is MISSING:
            if _special(owner, "__getattr__") is not None:
                return self.method(place, "__getattr__")
            return self.value(owner, (".", name), place.at((".", name), value))
        if isinstance(value, types.MemberDescriptorType):
            value = getattr(owner, name, MISSING)
        elif hasattr(type(value), "__get__") and not isinstance(value, (types.FunctionType, type)):
            return []
        if isinstance(place.value, Made):
            place = constant(owner)
        return self.value(owner, (".", name), place.at((".", name), value))

    def all_attributes(self, place: Place) -> list[Place]:
        names = list(getattr(place.value, "__dict__", ())) if not isinstance(place.value, Made) else []
        names = list(place.value.fields) if isinstance(place.value, Made) else names
        return [found for name in names if type(name) is str for found in self.attribute(place, name)]

    def item(self, place: Place, key: Any) -> list[Place]:
        owner = place.value
        if isinstance(owner, Bag):
            return list(owner.items)
        if isinstance(owner, Attributes):
            return self.attribute(owner.owner, key) if type(key) is str else []
        if isinstance(owner, (*SEQUENCES, dict, ENVIRONMENT)):
            return self.value(owner, ("[", key), place.at(("[", key), item_of(owner, key)))
        return self.method(place, "__getitem__")

    def items(self, place: Place) -> list[Place]:
        """What is in a container, which is run over."""
        owner = place.value
        if isinstance(owner, Bag):
            return list(owner.items)
        if isinstance(owner, Attributes):
            return self.all_attributes(owner.owner)
        self.whole(place)
        if isinstance(owner, SEQUENCES):
            pairs: Iterable[tuple[Any, Any]] = enumerate(owner)
        elif isinstance(owner, (dict, ENVIRONMENT)):
            pairs = owner.items()
        elif isinstance(owner, (set, frozenset)):
            return [constant(each) for each in owner if not is_simple(each)]
        else:
            return [item for each in self.method(place, "__iter__") for item in self.items(each)]
        return [place.at(("[", key), each) for key, each in pairs if not (is_simple(each) or is_opaque(each))]

    def method(self, place: Place, name: str, *arguments: list[Place]) -> list[Place]:
        """What a special method of the user's class gives."""
        function = _special(place.value, name)
        return [] if function is None else self.call(function, [[place], *arguments], {})


def _special(owner: Any, name: str) -> types.FunctionType | None:
    """The special method that an object's class has, if it is written in Python."""
    kind = owner.kind if isinstance(owner, Made) else type(owner)
    found = next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), None)
    return found if type(found) is types.FunctionType else None


def is_opaque(value: Any) -> bool:
    """Whether the attributes of a value are none of Python's state: of a tensor, variable or array."""
    return is_tensor_like(value) or isinstance(value, (np.ndarray, np.generic))
