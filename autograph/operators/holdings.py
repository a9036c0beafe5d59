"""What holds attributes: instances, classes, functions, modules, context variables, each with those that it had.

To these belong the variables of a module that functions declare ``global``, or may reach through ``globals()``.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterator, MutableMapping
from contextvars import ContextVar
from dataclasses import field
from types import CodeType, FunctionType, ModuleType
from typing import Any

from autograph.operators.attributes import ContextValue, identity, inherited
from autograph.operators.iterators import Positioned
from autograph.operators.libraries import LIBRARIES, package_of
from autograph.operators.makeup import makeup_of
from autograph.operators.restored_numbers import note_number
from autograph.operators.state import UNSET, Slot
from runtime.bytecode import attributes_set, globals_set
from runtime.code_memos import remembered
from runtime.dataclass import dataclass

# Code that names one of these can set a variable of its module whose name isn't written there.
_GIVE_NAMESPACES = frozenset({"globals", "exec", "eval", "modules"})
# And with one of these an attribute of any name of an object.
_GIVE_ATTRIBUTES = _GIVE_NAMESPACES | {"setattr", "delattr", "__setattr__", "__delattr__", "__dict__", "vars"}


_SINGLE = (type, ModuleType, FunctionType, ContextVar, Positioned)


class Way:
    """How a value is reached, as text that is made when it is asked for: ways may be long, and there are many."""

    __slots__ = ("before", "step")

    def __init__(self, before: str | Way, step: str) -> None:
        self.before = before
        self.step = step

    def __str__(self) -> str:
        steps: list[str] = []
        way: str | Way = self
        while isinstance(way, Way):
            steps.append(way.step)
            way = way.before
        return way + "".join(reversed(steps))


class AttributeSlot(Slot):
    """An attribute of one object, whatever the way to it.

    is_always_there  that it was None doesn't mean that it had yet to be made
    """

    is_always_there = False

    def __init__(self, label: str, owner: Any, attributes: MutableMapping[str, Any], name: str) -> None:
        super().__init__(label)
        self.owner = owner
        self.attributes = attributes
        self.name = name

    @property
    def place(self) -> Any:
        return identity(self.owner), self.name

    def get(self) -> Any:
        found = self.attributes.get(self.name, UNSET)
        return inherited(self.owner, self.name, UNSET) if found is UNSET else found

    def set(self, value: Any) -> None:
        if value is UNSET:
            self.attributes.pop(self.name, None)
        else:
            note_number(self.owner, self.name, value)
            self.attributes[self.name] = value


@dataclass
class Holding:
    """An object and the attributes that it had.

    way       how it is reached; None for a module's variables, which are reached by their own names
    makeup    what it was made of beside them, see `makeup_of`
    is_whole  whether it always has all of these attributes
    """

    way: str | Way | None
    owner: Any
    attributes: MutableMapping[str, Any]
    before: dict[str, Any]
    makeup: dict[str, Any] = field(default_factory=dict)
    is_whole: bool = False

    def label(self, key: str) -> str:
        """How an attribute is reached."""
        if self.way is None:
            return key
        return str(self.way) if isinstance(self.attributes, ContextValue) else f"{self.way}.{key}"

    def slot(self, key: str) -> AttributeSlot:
        """An attribute as state."""
        slot = AttributeSlot(self.label(key), self.owner, self.attributes, key)
        slot.is_always_there = self.is_whole
        return slot

    def is_changed(self) -> bool:
        """Whether an attribute is another object than before."""
        attributes, before = self.attributes, self.before
        return len(attributes) != len(before) or any(
            attributes.get(key, UNSET) is not item for key, item in before.items()
        )

    def changed(self) -> Iterator[tuple[str, Any, Any]]:
        """The attributes that are other objects than before: their names, what they were and what they are."""
        if self.is_changed():
            for key in dict.fromkeys([*self.before, *self.attributes]):
                before, now = self.before.get(key, UNSET), self.attributes.get(key, UNSET)
                if now is not before:
                    yield key, before, now

    def exchanged(self) -> list[str]:
        """The parts of its makeup that are others than before."""
        makeup = self.makeup
        if not makeup:
            return []
        now = makeup_of(self.owner)
        found = [name for name, part in makeup.items() if not _is_one(now.get(name, UNSET), part)]
        # Python itself adds some to a class when it is asked for them, but no methods.
        return found + [name for name, part in now.items() if name not in makeup and type(part) is FunctionType]

    def put_makeup_back(self) -> None:
        """Gives the object the makeup that it had."""
        for name in self.exchanged():
            give = type.__setattr__ if isinstance(self.owner, type) else object.__setattr__
            if name in self.makeup:
                give(self.owner, name, self.makeup[name])
            else:
                type.__delattr__(self.owner, name)

    @property
    def is_single(self) -> bool:
        """Whether there is one of it, whose copies aren't looked at: no instance of a class of the program's."""
        return self.way is None or isinstance(self.owner, _SINGLE)


def _is_one(now: Any, before: Any) -> bool:
    """Whether part of a makeup is still what it was; classes of C code make a new text of their name each time."""
    return now is before or (type(before) is str and now == before)


@dataclass
class Names:
    """The names in a function's code, and in that of the functions in it.

    read        those of global variables and attributes
    stored      the variables of its module that it sets; None if these may be any
    attributes  the attributes that it may set; None if these may be any
    assigned    those that it does set, as far as their names stand there
    """

    read: tuple[str, ...]
    stored: frozenset[str] | None
    attributes: frozenset[str] | None
    assigned: frozenset[str]


@remembered(4096)
def names_of(code: CodeType) -> Names:
    """The names of global variables and attributes in some code."""
    read = dict.fromkeys(code.co_names)
    stored: frozenset[str] | None = globals_set(code)
    assigned = attributes_set(code)
    if "setattr" in read:
        assigned |= {each for each in code.co_consts if type(each) is str and each.isidentifier()}
    for nested in code.co_consts:
        if isinstance(nested, CodeType):
            inner = names_of(nested)
            read.update(dict.fromkeys(inner.read))
            assigned |= inner.assigned
            stored = None if stored is None or inner.stored is None else stored | inner.stored
    if not _GIVE_NAMESPACES.isdisjoint(code.co_names):
        stored = None
    return Names(tuple(read), stored, frozenset(read) if _GIVE_ATTRIBUTES.isdisjoint(read) else None, assigned)


def is_library(module: Any) -> bool:
    """Whether a module, by its name, is one of a library's whose functions run as they are, or unknown."""
    return not isinstance(module, str) or package_of(module) in LIBRARIES or module == "builtins"


def is_ours(module: Any) -> bool:
    """Whether a module, by its name, is one of this project's."""
    return isinstance(module, str) and package_of(module) in ("autograph", "runtime")


def is_users(module: Any) -> bool:
    """Whether a module, by its name, is neither such a library's nor the standard library's."""
    return not is_library(module) and package_of(module) not in sys.stdlib_module_names


def is_internal(owner: Any, name: str) -> bool:
    """Whether an attribute is what Python keeps in a class of enum members, which grows as it meets combinations."""
    return isinstance(owner, enum.EnumMeta) and name.startswith("_")
