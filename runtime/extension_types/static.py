"""What a value of an extension type is beside its parts.

Its parts are tensors and what consists of tensors: ragged tensors, other extension types. Everything else (numbers,
strings, shapes, the keys of mappings) is fixed when a function is traced; `Static` is that, with the places of the
parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from runtime import nest
from runtime.shapes import TensorShape
from runtime.spec import TensorSpec
from runtime.tensor import Tensor

_RESERVED = {"self", "Spec", "value_type", "is_compatible_with", "from_value", "_type_spec", "_keras_mask"}


def is_reserved(name: str) -> bool:
    """Whether a field can't have this name."""
    return name in _RESERVED or name.startswith(("_ag_", "_tf_extension_type"))


class ImmutableDict(Mapping):
    """A mapping that can't be changed once it is made."""

    __slots__ = ("_items",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._items = dict(*args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"ImmutableDict({self._items})"


class _Place:
    """Stands for a part in a `Static`."""

    def __repr__(self) -> str:
        return "<part>"

    def __reduce__(self) -> str:
        return "PART"  # a copy of a value has the same places


PART = _Place()


class Static:
    """The fields of a value with `PART` for each part. Equal ones have equal Python values, of the same types."""

    __slots__ = ("_key", "fields")

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        self._key = tuple([(name, _key(value)) for name, value in fields.items()])

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Static:
        def without_parts(value: Any) -> Any:
            return PART if is_part(value) else value

        return cls({name: _map(without_parts, value) for name, value in fields.items()})

    def parts(self, fields: dict[str, Any]) -> list[Any]:
        """The values in `fields` at the positions where these fields have parts, in order."""
        found: list[Any] = []
        for name, mine in self.fields.items():
            _gather(mine, fields[name], found)
        return found

    @property
    def paths(self) -> list[str]:
        """The text that reaches each part: `.values`, `.tags['a']`."""
        found: list[str] = []
        for name, mine in self.fields.items():
            _paths(mine, f".{name}", found)
        return found

    def filled(self, parts: Sequence[Any]) -> dict[str, Any]:
        """The fields with these parts. Raises ValueError for another number of them."""
        rest = iter(parts)
        made = {name: _fill(value, rest) for name, value in self.fields.items()}
        if next(rest, PART) is not PART:
            raise ValueError(f"there are more parts than the fields {list(self.fields)} have")
        return made

    def is_compatible_with(self, other: Static) -> bool:
        """Whether they are equal but for shapes, which are compatible."""
        return self._like(other, lambda one, another: one.is_compatible_with(another))

    def covers(self, other: Static) -> bool:
        """Whether they are equal but for shapes, which fit those of this one."""
        return self._like(
            other, lambda one, another: one.is_compatible_with(another) and one.merge_with(another) == another
        )

    def _like(self, other: Static, shapes_fit: Callable[[TensorShape, TensorShape], bool]) -> bool:
        if self.fields.keys() != other.fields.keys():
            return False
        return all(_alike(value, other.fields[name], shapes_fit) for name, value in self.fields.items())

    def with_shapes(self, change: Callable[[TensorShape], TensorShape]) -> Static:
        """A copy with `change` applied to every shape in it."""

        def changed(value: Any) -> Any:
            return change(value) if isinstance(value, TensorShape) else value

        return Static({name: _map(changed, value) for name, value in self.fields.items()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"Static({self.fields})"


def is_part(value: Any) -> bool:
    """Whether a value is a tensor, a composite, or a spec of either."""
    return isinstance(value, (Tensor, TensorSpec)) or hasattr(type(value), "__tf_flatten__")


def _map(change: Callable[[Any], Any], value: Any) -> Any:
    """A value in which `change` has been called of everything that isn't a tuple or mapping."""
    if type(value) is tuple:
        return tuple([_map(change, item) for item in value])
    if isinstance(value, ImmutableDict):
        return ImmutableDict((key, _map(change, item)) for key, item in value.items())
    return change(value)


def _gather(mine: Any, value: Any, found: list[Any]) -> None:
    if mine is PART:
        found.append(value)
    elif type(mine) is tuple:
        for one, item in zip(mine, value):
            _gather(one, item, found)
    elif isinstance(mine, ImmutableDict):
        for key in nest.sorted_keys(mine):
            _gather(mine[key], value[key], found)


def _paths(mine: Any, path: str, found: list[str]) -> None:
    if mine is PART:
        found.append(path)
    elif type(mine) is tuple:
        for i, item in enumerate(mine):
            _paths(item, f"{path}[{i}]", found)
    elif isinstance(mine, ImmutableDict):
        for key in nest.sorted_keys(mine):
            _paths(mine[key], f"{path}[{key!r}]", found)


def _fill(mine: Any, parts: Iterator[Any]) -> Any:
    if mine is PART:
        part = next(parts, PART)
        if part is PART:
            raise ValueError("there are fewer parts than the fields have")
        return part
    if type(mine) is tuple:
        return tuple([_fill(item, parts) for item in mine])
    if isinstance(mine, ImmutableDict):
        made = {key: _fill(mine[key], parts) for key in nest.sorted_keys(mine)}
        return ImmutableDict((key, made[key]) for key in mine)
    return mine


def _key(value: Any) -> Any:
    """Tells values apart that are equal in Python, but not to a trace: 1, 1.0 and True, and the two zeros."""
    if type(value) is tuple:
        return tuple, tuple(map(_key, value))
    if isinstance(value, ImmutableDict):
        return dict, frozenset((_key(key), _key(item)) for key, item in value.items())
    if isinstance(value, TensorShape):
        return TensorShape, None if value.rank is None else tuple(value)
    return type(value), repr(value) if isinstance(value, float) else value


def _alike(one: Any, other: Any, shapes_fit: Callable[[TensorShape, TensorShape], bool]) -> bool:
    if isinstance(one, TensorShape) and isinstance(other, TensorShape):
        return shapes_fit(one, other)
    if type(one) is tuple and type(other) is tuple and len(one) == len(other):
        return all(_alike(a, b, shapes_fit) for a, b in zip(one, other))
    if isinstance(one, ImmutableDict) and isinstance(other, ImmutableDict) and one.keys() == other.keys():
        return all(_alike(one[key], other[key], shapes_fit) for key in one)
    return _key(one) == _key(other)
