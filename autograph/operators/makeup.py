"""What an object is made of beside its attributes: its class, a function's code, a class's bases and special methods.

box.__class__ = Other          refused in a staged block: what an object is decides what is traced
f.__defaults__ = (f() + v,)    state, like an attribute of the function
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextvars import ContextVar
from types import FunctionType, ModuleType
from typing import Any

from autograph.errors import StagingError, user_location

_FIXES = {
    "__class__": "keep what differs in an attribute, and let the methods look at that",
    "__code__": "keep the functions in a variable, and call that",
    "__dict__": "set the attributes themselves, or use vars(x).update(...)",
}
# Parts that aren't state.
_OF_FUNCTIONS = ("__code__", "__name__", "__doc__")
_OF_CLASSES = ("__bases__", "__name__")


class Parts(MutableMapping[str, Any]):
    """Parts of an object of C code that are state as its attributes are: the default arguments of a function, what an
    exception was made with."""

    def __init__(self, owner: FunctionType | type | BaseException, names: tuple[str, ...]) -> None:
        self.owner = owner
        self.names = names

    def __getitem__(self, name: str) -> Any:
        if name not in self.names:
            raise KeyError(name)
        return getattr(self.owner, name)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self.owner, name, value)

    def __delitem__(self, name: str) -> None:
        delattr(self.owner, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def makeup_of(owner: Any) -> dict[str, Any]:
    """What an object is made of beside its attributes: its class and the dictionary of its attributes; the code of a
    function; the bases of a class, and its special methods."""
    if isinstance(owner, FunctionType):
        return {name: getattr(owner, name) for name in _OF_FUNCTIONS}
    if isinstance(owner, type):
        special = {name: part for name, part in vars(owner).items() if name.startswith("__") and name.endswith("__")}
        return {**special, **{name: type.__dict__[name].__get__(owner) for name in _OF_CLASSES}}
    if isinstance(owner, (ModuleType, ContextVar)):
        return {}
    attributes = getattr(owner, "__dict__", None)
    # Some classes make another dictionary whenever they are asked.
    is_its_own = type(attributes) is dict and getattr(owner, "__dict__", None) is attributes
    return {"__class__": type(owner), "__dict__": attributes} if is_its_own else {"__class__": type(owner)}


def is_of_makeup(owner: Any, name: str) -> bool:
    """Whether an attribute is part of an object's makeup."""
    return name.startswith("__") and name.endswith("__") and name in makeup_of(owner)


def refuse_exchange(label: str, name: str) -> Any:
    """Raises the StagingError for a part of an object's makeup that a staged block exchanges."""
    raise StagingError(
        f"'{label}' is exchanged in a branch or loop on tensors",
        location=user_location(),
        cause="whether and how often that happens is known only at run time, but what an object is made of decides "
        "what is traced",
        fix=_FIXES.get(name, f"set '{label}' outside of the staged code, and let an attribute say what is meant there"),
    )


def refuse_first_value(label: str) -> Any:
    """Raises the StagingError for what a loop gives its first value, and changes in the next iterations."""
    raise StagingError(
        f"'{label}' gets its first value in a loop on tensors, and changes in the next iterations",
        location=user_location(),
        cause="the loop's body is traced for all iterations at once, but in the first one there is no value yet",
        fix=f"give '{label}' a value before the loop",
    )


def refuse_change_of_new(label: str) -> Any:
    """Raises the StagingError for a change of what a staged block makes when it needs it first."""
    raise StagingError(
        f"'{label}' belongs to what a branch or loop on tensors makes when it is first needed, and changes there",
        location=user_location(),
        cause="the block is traced at once for all times that it runs, of which only the first makes the object",
        fix="make the object before the branch or loop",
    )
