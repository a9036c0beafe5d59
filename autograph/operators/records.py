"""Objects of plain classes as elements of staged lists: a record of their attributes, from which a copy is made.

Classes with fields (dataclasses and the like) are structures by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autograph.operators.structure import New, is_opened, open_class, stands_for
from runtime.context import ctx

_LEAVES = frozenset({bool, int, float, str, bytes, type(None)})


class Record:
    """The attributes of an object: a composite of their values."""

    __ag_exact__ = True  # records of two classes are two structures

    __slots__ = ("kind", "names", "values")

    def __init__(self, kind: type, names: tuple[str, ...], values: Sequence[Any]) -> None:
        self.kind = kind
        self.names = names
        self.values = tuple(values)

    def __tf_flatten__(self) -> tuple[Any, tuple[Any, ...]]:
        return (self.kind, self.names), self.values

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> Record:
        kind, names = metadata
        return cls(kind, names, components)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self.__tf_flatten__() == other.__tf_flatten__()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<attributes {', '.join(self.names)} of a {self.kind.__name__}>"

    def made(self) -> Any:
        """An object with these attributes. Which object of Python's it stands for, isn't known."""
        made: Any = object.__new__(self.kind)
        made.__dict__.update(zip(self.names, map(put_together, self.values)))
        if ctx.builder is not None and is_opened(made):
            stands_for(made, New(lambda _: False))
        return made


def take_apart(value: Any) -> Any:
    """A structure with records for its objects."""
    kind = type(value)
    if kind in _LEAVES:
        return value
    if kind in (list, tuple):
        return kind([take_apart(each) for each in value])
    if kind is dict:
        return {key: take_apart(each) for key, each in value.items()}
    if not (is_opened(value) or open_class(value, value)):
        return value
    items = vars(value)
    return Record(kind, tuple(items), [take_apart(each) for each in items.values()])


def put_together(structure: Any) -> Any:
    """A structure with the objects that its records stand for."""
    kind = type(structure)
    if kind is Record:
        return structure.made()
    if kind in (list, tuple):
        return kind([put_together(each) for each in structure])
    if kind is dict:
        return {key: put_together(each) for key, each in structure.items()}
    return structure
