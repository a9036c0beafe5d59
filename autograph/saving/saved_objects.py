"""What a saved model is of: the objects that can be reached, with functions, tensors and files among them."""

from __future__ import annotations

import os
from typing import Any

from autograph.function.concrete import ConcreteFunction
from autograph.function.polymorphic import Function
from autograph.module import Module
from autograph.saving import objects
from runtime.generator import Generator
from runtime.ops.convert import convert_to_tensor
from runtime.tensor import EagerTensor, Tensor
from runtime.variable import Variable


class Asset:
    """A file that is saved along with a model, such as a vocabulary, if it is an attribute of a saved module.

    `asset_path` is its path, a string tensor; after loading, the path of the copy in the model's folder, also in
    functions.

    Raises FileNotFoundError if there is no such file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        text = os.fspath(path)
        if not os.path.isfile(text):
            raise FileNotFoundError(f"There is no file {text}")
        self._path = convert_to_tensor(text)

    @property
    def asset_path(self) -> Tensor:
        """The path, a string tensor."""
        return self._path

    def __fspath__(self) -> str:
        return self._path.numpy().decode()

    def __repr__(self) -> str:
        return f"Asset({self.__fspath__()!r})"


def children(thing: Any) -> dict[Any, Any]:
    """What an object holds, by name. Functions of a class count as the object's."""
    if isinstance(thing, (Variable, Function, ConcreteFunction, EagerTensor, Asset)):
        return {}
    if isinstance(thing, (list, tuple)):
        inside = {index: objects.variable_of(value) for index, value in enumerate(thing)}
        return {index: value for index, value in inside.items() if is_leaf(value) or _is_holder(value)}
    found = objects.children(thing)
    if not isinstance(thing, (dict, Generator)):
        for kind in reversed(type(thing).__mro__):
            for name, value in vars(kind).items():
                if isinstance(value, Function):
                    found[name] = getattr(thing, name)
    if isinstance(thing, Module) or objects.may_hold(thing):
        attributes = thing if isinstance(thing, dict) else getattr(thing, "__dict__", {})
        found.update({name: value for name, value in attributes.items() if is_leaf(value)})
    return {name: value for name, value in found.items() if is_leaf(value) or _is_holder(value)}


def is_leaf(value: Any) -> bool:
    """Whether an object is saved by itself."""
    return isinstance(value, (Variable, Function, ConcreteFunction, EagerTensor, Asset))


def can_be_saved(value: Any) -> bool:
    """Whether an object can be a saved model."""
    return is_leaf(value) or objects.may_hold(value)


def _is_holder(value: Any) -> bool:
    return not objects.has_value(value) and objects.may_hold(value)


class Things:
    """The objects of a saved model, each once, the root first: `things`, and what each holds, in `held`."""

    def __init__(self, root: Any) -> None:
        self.things: list[Any] = [root]
        self.held: list[list[tuple[Any, int]]] = []
        numbers = {id(root): 0}
        keep = [root]
        while len(self.held) < len(self.things):
            found: list[tuple[Any, int]] = []
            for name, thing in children(self.things[len(self.held)]).items():
                if id(thing) not in numbers:
                    numbers[id(thing)] = len(self.things)
                    self.things.append(thing)
                    keep.append(thing)
                found.append((name, numbers[id(thing)]))
            self.held.append(found)
        self._drop_empty()
        self.numbers = {id(thing): number for number, thing in enumerate(self.things)}

    def _drop_empty(self) -> None:
        """Leaves out what leads to nothing that is saved."""
        holders: list[list[int]] = [[] for _ in self.things]
        for index, found in enumerate(self.held):
            for _, other in found:
                holders[other].append(index)
        marks = [
            index == 0 or is_leaf(thing) or objects.is_certain(thing) or objects.is_container(thing)
            for index, thing in enumerate(self.things)
        ]
        pending = [index for index, mark in enumerate(marks) if mark]
        while pending:
            for holder in holders[pending.pop()]:
                if not marks[holder]:
                    marks[holder] = True
                    pending.append(holder)
        kept = {old: new for new, old in enumerate(index for index, mark in enumerate(marks) if mark)}
        self.things = [self.things[old] for old in kept]
        self.held = [[(name, kept[other]) for name, other in self.held[old] if other in kept] for old in kept]
