"""`dataclass` as in the standard library, in a tenth of the time that making a class takes there.

    @dataclass(frozen=True)
    class Span:
        first: int
        last: int

Importing this project makes a hundred dataclasses. The standard library compiles a text for each method of each class,
which took a fifth of the import. Here a text is compiled once for each number of fields; a class gets a copy of the
code in which the names are its own. To `dataclasses` and other tools, these classes are dataclasses like any.

Classes that need `kw_only`, `InitVar` or values of `field(init=False)` are made by the standard library; all are where
names in code objects can't be changed (`interpreter.RENAMES`).
"""

from __future__ import annotations

import dataclasses
import functools
import reprlib
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType, MemberDescriptorType, SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, get_origin

from runtime.interpreter import RENAMES, renamed

_MISSING = dataclasses.MISSING
_set = object.__setattr__  # how objects that are frozen get their values


class _Factory:
    """The default of a parameter for which each object gets a new value."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def __repr__(self) -> str:
        return "<factory>"


@dataclasses.dataclass
class _Example:
    field: int


# How `dataclasses` tells fields from class variables.
_IS_FIELD = _Example.__dataclass_fields__["field"]._field_type  # type: ignore[attr-defined]


def _dataclass(
    cls: type | None = None, /, *, eq: bool = True, frozen: bool = False, slots: bool = False
) -> type | Callable[[type], type]:
    """The class with the methods of a dataclass; the parameters are those of `dataclasses.dataclass`."""
    if cls is None:
        return lambda cls: _made(cls, eq, frozen, slots)
    return _made(cls, eq, frozen, slots)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass if RENAMES else dataclasses.dataclass


def _made(cls: type, eq: bool, frozen: bool, slots: bool) -> type:
    own = {name: _field(cls, name, kind) for name, kind in cls.__annotations__.items() if not _is_class_variable(kind)}
    fields: dict[str, dataclasses.Field[Any]] = {}
    for base in cls.__mro__[:0:-1]:
        fields |= vars(base).get("__dataclass_fields__", {})
    fields |= own
    if slots:
        cls = _with_slots(cls, own)

    parameters = {name: each for name, each in fields.items() if each.init}
    shared = {"__repr__": _repr, "__replace__": _replace, "__match_args__": tuple(parameters)}
    made: dict[str, Callable[..., Any]] = {"__init__": _init(cls, parameters, frozen)}
    if eq:
        made["__eq__"] = _function(_equality, [name for name, each in fields.items() if each.compare])
    if frozen:
        made["__setattr__"], made["__delattr__"] = _refusals(cls, fields)
        if slots:  # pickles of other objects set attributes
            shared |= {"__getstate__": _getstate, "__setstate__": _setstate}
    # Python has set `__hash__` to None where the class defines `__eq__`.
    if eq and vars(cls).get("__hash__") is None:
        hashed = [name for name, each in fields.items() if (each.compare if each.hash is None else each.hash)]
        cls.__hash__ = _named(_function(_hash, hashed), cls, "__hash__") if frozen else None  # type: ignore[assignment]
    for name, method in made.items():
        if name not in vars(cls):
            setattr(cls, name, _named(method, cls, name))
    for name, value in shared.items():
        if name not in vars(cls):
            setattr(cls, name, value)
    cls.__dataclass_fields__ = fields  # type: ignore[attr-defined]
    cls.__dataclass_params__ = SimpleNamespace(  # type: ignore[attr-defined]
        init=True, repr=True, eq=eq, order=False, unsafe_hash=False, frozen=frozen, match_args=True, kw_only=False,
        slots=slots, weakref_slot=False,
    )  # fmt: skip
    return cls


def _is_class_variable(kind: Any) -> bool:
    if isinstance(kind, str):
        return kind.startswith(("ClassVar", "typing.ClassVar"))
    return kind is ClassVar or get_origin(kind) is ClassVar


def _field(cls: type, name: str, kind: Any) -> dataclasses.Field[Any]:
    """The field of a name that the class annotates. The class keeps a default as its attribute."""
    default: Any = getattr(cls, name, _MISSING)
    if isinstance(default, dataclasses.Field):
        found = default
        if found.default is _MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, found.default)
    else:
        is_slot = isinstance(default, MemberDescriptorType)
        found = dataclasses.field() if is_slot else dataclasses.field(default=default)
    if found.kw_only is True or (not found.init and found.default_factory is not _MISSING):
        raise TypeError(f"field '{name}' needs dataclasses.dataclass: kw_only=True and init=False with a factory do")
    if type(found.default).__hash__ is None:
        raise ValueError(f"mutable default {type(found.default)} for field '{name}': use default_factory")
    found.name, found.type, found.kw_only = name, kind, False
    found._field_type = _IS_FIELD  # type: ignore[attr-defined]
    return found


def _with_slots(cls: type, own: Mapping[str, Any]) -> type:
    """The class once more, with slots for its fields: Python makes them for new classes only."""
    inherited = {slot for base in cls.__mro__[1:-1] for slot in vars(base).get("__slots__", ())}
    content = {name: value for name, value in vars(cls).items() if name not in own}
    del content["__dict__"], content["__weakref__"]
    content["__slots__"] = tuple(name for name in own if name not in inherited)
    made = type(cls)(cls.__name__, cls.__bases__, content)
    made.__qualname__ = cls.__qualname__
    return made


def _init(cls: type, fields: Mapping[str, dataclasses.Field[Any]], frozen: bool) -> FunctionType:
    defaults: list[Any] = []
    values = []
    for i, each in enumerate(fields.values()):
        is_made = each.default_factory is not _MISSING
        if is_made:
            defaults.append(_Factory(each.default_factory))  # type: ignore[arg-type]
        elif each.default is not _MISSING:
            defaults.append(each.default)
        elif defaults:
            raise TypeError(f"non-default argument '{each.name}' follows default argument")
        values.append(f"_{i}.make() if type(_{i}) is _Factory else _{i}" if is_made else f"_{i}")
    form = "_set(self, '_{}', {})" if frozen else "self._{} = {}"
    lines = [form.format(i, value) for i, value in enumerate(values)]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = "".join(f", _{i}" for i in range(len(values)))
    text = f"def __init__(self{parameters}):\n " + "\n ".join(lines or ["pass"])
    made = _function(text, list(fields))
    made.__defaults__ = tuple(defaults)
    made.__annotations__ = {**{name: each.type for name, each in fields.items()}, "return": None}
    return made


@functools.cache
def _equality(number: int) -> str:
    mine, others = ("".join(f"{value}._{i}, " for i in range(number)) for value in ("self", "other"))
    return (
        "def __eq__(self, other):\n"
        " if other.__class__ is self.__class__:\n"
        f"  return ({mine}) == ({others})\n"
        " return NotImplemented"
    )


@functools.cache
def _hash(number: int) -> str:
    return f"def __hash__(self):\n return hash(({''.join(f'self._{i}, ' for i in range(number))}))"


def _function(text: str | Callable[[int], str], names: Sequence[str]) -> FunctionType:
    """The function of this text, with these names for `_0`, `_1` and so on: parameters, attributes and strings."""
    code = _code(text if isinstance(text, str) else text(len(names)))
    return FunctionType(renamed(code, {f"_{i}": name for i, name in enumerate(names)}), globals())


@functools.cache
def _code(text: str) -> CodeType:
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    return next(each.__code__ for each in namespace.values() if type(each) is FunctionType)


def _named(function: Any, cls: type, name: str) -> Any:
    function.__module__ = cls.__module__
    function.__qualname__ = f"{cls.__qualname__}.{name}"
    return function


def _refusals(cls: Any, fields: Mapping[str, Any]) -> tuple[Callable[..., None], Callable[..., None]]:
    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in fields:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in fields:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    parts = (f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(parts)})"


def _replace(self: Any, /, **changes: Any) -> Any:
    return dataclasses.replace(self, **changes)


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__dataclass_fields__]


def _setstate(self: Any, state: Sequence[Any]) -> None:
    for name, value in zip(self.__dataclass_fields__, state, strict=True):
        _set(self, name, value)
