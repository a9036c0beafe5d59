"""What can be set on objects: attributes, whether they lie in ``__dict__`` or in ``__slots__``, also of classes,
functions and modules; the value of a context variable."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from contextvars import ContextVar
from types import FunctionType, MemberDescriptorType
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


class ClassAttributes(MutableMapping[str, Any]):
    """The attributes of a class itself, without those that its bases have and without ``__doc__`` and the like."""

    def __init__(self, owner: type) -> None:
        self.owner = owner

    def __getitem__(self, name: str) -> Any:
        return vars(self.owner)[name]

    def __setitem__(self, name: str, value: Any) -> None:
        type.__setattr__(self.owner, name, value)

    def __delitem__(self, name: str) -> None:
        type.__delattr__(self.owner, name)

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in vars(self.owner) if not (name.startswith("__") and name.endswith("__"))])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class SomeItems(MutableMapping[str, Any]):
    """A mapping of names, seen as if it had some of them only."""

    def __init__(self, items: MutableMapping[str, Any], names: Collection[str]) -> None:
        self.items_of_all = items
        self.names = names

    def __getitem__(self, name: str) -> Any:
        return self.items_of_all[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.items_of_all[name] = value

    def __delitem__(self, name: str) -> None:
        del self.items_of_all[name]

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in self.names if name in self.items_of_all])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class ContextValue(MutableMapping[str, Any]):
    """The value of a context variable, under the key "value"; it can't be taken away."""

    def __init__(self, variable: ContextVar[Any]) -> None:
        self.variable = variable

    def __getitem__(self, name: str) -> Any:
        try:
            return self.variable.get()
        except LookupError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        self.variable.set(value)

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"the context variable {self.variable.name!r} can't lose its value")

    def __iter__(self) -> Iterator[str]:
        return iter(("value",) if "value" in self else ())

    def __len__(self) -> int:
        return sum(1 for _ in self)


def attributes_of(value: Any) -> MutableMapping[str, Any] | None:
    """An object's own attributes as a mutable mapping; None if it has none."""
    if isinstance(value, type):
        return ClassAttributes(value)
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
        shared = getattr(made, "__dict__", None)
        # A program may have said how its errors are copied, so that both have one dictionary, as `tblib` does.
        if shared is not None and shared is getattr(value, "__dict__", None):
            made.__dict__ = {}
    own, given = attributes_of(made), attributes_of(value) if attributes is None else attributes
    if own is not None and given is not None:
        own.clear()
        own.update(given)
    return made


def classes_above(value: Any) -> tuple[type, ...]:
    """The classes that an object, or a class, gets attributes from that it doesn't have itself."""
    return value.__mro__[1:] if isinstance(value, type) else type(value).__mro__


def inherited(value: Any, name: str, missing: Any) -> Any:
    """What an object, or a class, that has no attribute of its own gets from a class; ``missing`` if that is nothing.

    Functions and other descriptors aren't meant: they give something else than what the class holds.
    """
    found = next((vars(kind)[name] for kind in classes_above(value) if name in vars(kind)), missing)
    return missing if hasattr(type(found), "__get__") else found


def is_method(owner: Any, name: str) -> bool:
    """Whether an object, or a class, gets a method of a name from a class above it."""
    return isinstance(
        next((vars(kind)[name] for kind in classes_above(owner) if name in vars(kind)), None), FunctionType
    )


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
