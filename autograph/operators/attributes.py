"""The attributes of objects, whether they lie in ``__dict__`` or in ``__slots__``."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, MutableMapping
from types import MemberDescriptorType
from typing import Any
from weakref import WeakKeyDictionary


class SlotAttributes(MutableMapping[str, Any]):
    """The attributes of an object whose class has ``__slots__``, and those in its ``__dict__`` if it has one too."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.slots = _slots(type(owner))
        self.others: dict[str, Any] = getattr(owner, "__dict__", {})

    def __getitem__(self, name: str) -> Any:
        if name not in self.slots:
            return self.others[name]
        try:
            return object.__getattribute__(self.owner, name)
        except AttributeError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self.slots:
            object.__setattr__(self.owner, name, value)
        else:
            self.others[name] = value

    def __delitem__(self, name: str) -> None:
        if name in self.slots:
            object.__delattr__(self.owner, name)
        else:
            del self.others[name]

    def __iter__(self) -> Iterator[str]:
        yield from [name for name in self.slots if name in self]
        yield from list(self.others)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def attributes_of(value: Any) -> MutableMapping[str, Any] | None:
    """What can be set on an object; None if it has no attributes of its own."""
    if _slots(type(value)):
        return SlotAttributes(value)
    attributes = getattr(value, "__dict__", None)
    return attributes if isinstance(attributes, dict) else None


def twin(value: Any, attributes: Mapping[str, Any] | None = None) -> Any:
    """Another object of the same class with the same attributes, or with some that are given.

    It doesn't ask the class for it, whose ``__copy__`` or ``__new__`` may give an object that the program has already:
    to set its attributes would change that one. A class derived from one of C code must be asked. Raises TypeError if
    such a class gives the object itself.
    """
    try:
        made = object.__new__(type(value))
    except TypeError:
        made = copy.copy(value)
        if made is value:
            raise
    own, given = attributes_of(made), attributes_of(value) if attributes is None else attributes
    if own is not None and given is not None:
        own.clear()
        own.update(given)
    return made


def identity(value: Any) -> int:
    """The id of what holds the attributes of an object: of its ``__dict__``, which several may share, or its own."""
    attributes = attributes_of(value)
    return id(attributes) if isinstance(attributes, dict) else id(value)


def _slots(kind: type) -> tuple[str, ...]:
    """The names of a class's slots."""
    found = _known.get(kind)
    if found is None:
        members = {name: member for base in reversed(kind.__mro__) for name, member in vars(base).items()}
        own = {id(member) for base in kind.__mro__ if "__slots__" in vars(base) for member in vars(base).values()}
        found = _known[kind] = tuple(
            [name for name, each in members.items() if isinstance(each, MemberDescriptorType) and id(each) in own]
        )
    return found


_known: WeakKeyDictionary[type, tuple[str, ...]] = WeakKeyDictionary()
