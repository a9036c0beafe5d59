"""Nested structures: lists, tuples, dictionaries (keys sorted), named tuples, dataclasses, attrs classes, and
composites: objects with `__tf_flatten__() -> (metadata, components)` and the class method
`__tf_unflatten__(metadata, components)`.

Everything else is a leaf (an "atom"). None is a leaf too.

>>> flatten({'b': 1, 'a': (2, [3])})
[2, 3, 1]
>>> pack_sequence_as([1, (2, 3)], 'xyz')
['x', ('y', 'z')]
"""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

_Class = TypeVar("_Class", bound=type)
_LEAVES: set[type] = {int, float, bool, str, bytes, type(None)}


def leaf(kind: _Class) -> _Class:
    """A class decorator: instances (not those of subclasses) are known to be leaves, without a look at the class."""
    _LEAVES.add(kind)
    return kind


def is_nested(structure: Any) -> bool:
    """Whether the value is a structure, as against a leaf."""
    kind = type(structure)
    if kind in _LEAVES:
        return False
    return kind in (list, tuple, dict) or _is_structure_type(kind)


def _is_structure_type(kind: type) -> bool:
    known = _structure_types.get(kind)
    if known is None:
        known = _structure_types[kind] = _look_at_type(kind)
    return known


# Whether a type is a structure, without keeping the type alive.
_structure_types: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def _look_at_type(kind: type) -> bool:
    if issubclass(kind, Enum):  # there is one object for each member, which nothing may stand for
        return False
    if issubclass(kind, (list, tuple, Mapping)) or hasattr(kind, "__tf_flatten__"):
        return True
    # A type that says how it is traced (`__tf_tracing_type__`) is taken as a whole.
    return field_names(kind) is not None and not hasattr(kind, "__tf_tracing_type__")


_fields: dict[type, tuple[str, ...] | None] = {}


def field_names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass or attrs class, else None."""
    try:
        return _fields[kind]
    except KeyError:
        pass
    names: tuple[str, ...] | None = None
    # Exactly this class: a subclass that isn't decorated itself still has the fields.
    if dataclasses.is_dataclass(kind):
        names = tuple(f.name for f in dataclasses.fields(kind) if f.init)
    elif hasattr(kind, "__attrs_attrs__"):
        names = tuple(a.name for a in kind.__attrs_attrs__)
    _fields[kind] = names
    return names


def sorted_keys(mapping: Mapping) -> list[Any]:
    """Keys in sorted order. Raises TypeError when they can't be compared, as TensorFlow does."""
    try:
        return sorted(mapping)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def children(structure: Any) -> list[Any]:
    """The direct parts of a structure, in order. Raises TypeError for a leaf."""
    kind = type(structure)
    if kind is list or kind is tuple:
        return list(structure)
    if isinstance(structure, Mapping):
        return [structure[key] for key in sorted_keys(structure)]
    if isinstance(structure, (list, tuple)):
        return list(structure)
    if hasattr(kind, "__tf_flatten__"):
        return list(structure.__tf_flatten__()[1])
    names = field_names(kind)
    if names is None:
        raise TypeError(f"{structure!r} is not a nested structure")
    return [getattr(structure, name) for name in names]


def rebuild(structure: Any, parts: Sequence[Any]) -> Any:
    """A structure of the same type with other direct parts."""
    kind = type(structure)
    if kind is list:
        return list(parts)
    if kind is tuple:
        return tuple(parts)
    if isinstance(structure, Mapping):
        by_key = dict(zip(sorted_keys(structure), parts))
        ordered = [(key, by_key[key]) for key in structure]
        if hasattr(structure, "default_factory"):
            return kind(structure.default_factory, ordered)
        return kind(ordered)
    if hasattr(structure, "_fields"):
        return kind(*parts)
    if isinstance(structure, (list, tuple)):
        return kind(parts)
    if hasattr(kind, "__tf_flatten__"):
        return kind.__tf_unflatten__(structure.__tf_flatten__()[0], parts)
    names = field_names(kind) or ()
    if dataclasses.is_dataclass(structure):
        return dataclasses.replace(structure, **dict(zip(names, parts)))  # type: ignore[type-var]
    return kind(**{name.lstrip("_"): part for name, part in zip(names, parts)})


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves, in order. A leaf gives a list of itself."""
    kind = type(structure)
    if kind in _LEAVES:
        return [structure]
    result: list[Any] = []
    _flatten_into(structure, result)
    return result


def _flatten_into(structure: Any, result: list[Any]) -> None:
    kind = type(structure)
    if kind is list or kind is tuple:
        for part in structure:
            if type(part) in _LEAVES:
                result.append(part)
            else:
                _flatten_into(part, result)
    elif kind is dict:
        for key in sorted_keys(structure):
            _flatten_into(structure[key], result)
    elif kind not in _LEAVES and _is_structure_type(kind):
        for part in children(structure):
            _flatten_into(part, result)
    else:
        result.append(structure)


def pack_sequence_as(structure: Any, flat_sequence: Iterable[Any], expand_composites: bool = False) -> Any:
    """`structure` with its leaves replaced by those of `flat_sequence`.

    Raises ValueError when their number differs.
    """
    leaves = list(flat_sequence)
    if not is_nested(structure):
        if len(leaves) != 1:
            raise ValueError(
                f"The target structure is of type `{type(structure)}`\n  {structure!r}\n"
                f"However the input is a sequence ({type(flat_sequence)}) of length {len(leaves)}.\n  {leaves}\n"
                "nest cannot guarantee that it is safe to map one to the other."
            )
        return leaves[0]
    rest = iter(leaves)
    try:
        packed = _built(structure, rest)
        fits = next(rest, _END) is _END
    except IndexError:
        fits = False
    if not fits:
        raise ValueError(
            f"Could not pack sequence. Structure had {len(flatten(structure))} atoms, but flat_sequence had "
            f"{len(leaves)} items.  Structure: {structure!r}, flat_sequence: {leaves!r}."
        )
    return packed


def packer(structure: Any) -> Callable[[Sequence[Any]], Any]:
    """A function that packs a list of leaves into this structure: `pack_sequence_as`, prepared for many calls."""
    return _packer(structure)[1] if is_nested(structure) else _only


def _only(leaves: Sequence[Any]) -> Any:
    return leaves[0]


def _packer(structure: Any) -> tuple[int, Callable[[Sequence[Any]], Any]]:
    """How many leaves a structure has, and what makes it of them."""
    parts = [_packer(part) if is_nested(part) else (1, None) for part in children(structure)]
    build = _builder(structure)
    total = sum(count for count, _ in parts)
    if all(make is None for _, make in parts):
        return total, build

    def whole(leaves: Sequence[Any]) -> Any:
        made = []
        at = 0
        for count, make in parts:
            made.append(leaves[at] if make is None else make(leaves[at : at + count]))
            at += count
        return build(made)

    return total, whole


def _builder(structure: Any) -> Callable[[Sequence[Any]], Any]:
    """A function that makes a structure of this kind from its direct parts: `rebuild`, prepared for many calls."""
    kind = type(structure)
    if kind is list or kind is tuple:
        return kind
    if is_namedtuple(kind):
        return lambda parts: kind(*parts)
    if kind is dict:
        places = {key: place for place, key in enumerate(sorted_keys(structure))}
        order = [(key, places[key]) for key in structure]
        return lambda parts: {key: parts[place] for key, place in order}
    if hasattr(kind, "__tf_flatten__") and not isinstance(structure, (list, tuple, Mapping)):
        return functools.partial(kind.__tf_unflatten__, structure.__tf_flatten__()[0])
    return functools.partial(rebuild, structure)


def is_namedtuple(kind: type) -> bool:
    """Whether a type was made by `collections.namedtuple`, or inherits from one that was."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


_END = object()


# Not a function within the other: that would be part of a circle, and its leaves would wait for the garbage collector.
def _built(part: Any, leaves: Iterator[Any]) -> Any:
    if is_nested(part):
        return rebuild(part, [_built(p, leaves) for p in children(part)])
    leaf = next(leaves, _END)
    if leaf is _END:
        raise IndexError
    return leaf


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """func applied to the corresponding leaves of one or several structures, in the shape of the first.

    Raises ValueError or TypeError when the structures differ.
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    kwargs.pop("expand_composites", None)
    check_types = kwargs.pop("check_types", True)
    if kwargs:
        raise ValueError(f"Only valid keyword arguments are check_types and expand_composites, not: {list(kwargs)}")
    first = structure[0]
    for other in structure[1:]:
        assert_same_structure(first, other, check_types)
    if not is_nested(first):
        return func(*structure)
    flat = [flatten(s) for s in structure]
    return pack_sequence_as(first, [func(*leaves) for leaves in zip(*flat)])


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Raises ValueError when the structures have different shapes, TypeError when sequence types or keys differ."""
    problem = _difference(nest1, nest2, check_types)
    if problem is not None:
        error, detail = problem
        raise error(
            "The two structures don't have the same nested structure.\n\n"
            f"First structure: type={type(nest1).__name__} str={nest1}\n\n"
            f"Second structure: type={type(nest2).__name__} str={nest2}\n\n"
            f"More specifically: {detail}"
        )


def _difference(a: Any, b: Any, check_types: bool) -> tuple[type[Exception], str] | None:
    nested_a, nested_b = is_nested(a), is_nested(b)
    shown = f"First structure: type={type(a).__name__} str={a}. Second structure: type={type(b).__name__} str={b}"
    if nested_a != nested_b:
        which = "first" if nested_a else "second"
        return ValueError, f"Substructure of the {which} structure is a sequence and the other is not. {shown}"
    if not nested_a:
        return None
    if check_types and not same_kind(a, b):
        return TypeError, (
            "The two structures don't have the same sequence type. First structure has type "
            f"{type(a).__name__}, while second structure has type {type(b).__name__}."
        )
    parts_a, parts_b = children(a), children(b)
    if len(parts_a) != len(parts_b):
        return ValueError, f"The two structures don't have the same number of elements. {shown}"
    if isinstance(a, Mapping) and isinstance(b, Mapping) and set(a) != set(b):
        return ValueError, f"The two dictionaries don't have the same set of keys. {set(a)} and {set(b)}"
    for part_a, part_b in zip(parts_a, parts_b):
        problem = _difference(part_a, part_b, check_types)
        if problem is not None:
            return problem
    return None


def _has_same_elements(a: Any, b: Any) -> bool:
    """Of composites whose metadata say what they hold; None is not known yet."""
    one, other = a.__tf_flatten__()[0], b.__tf_flatten__()[0]
    return one is None or other is None or one == other


def same_kind(a: Any, b: Any) -> bool:
    # A composite and its spec have a name in common.
    if getattr(type(a), "__ag_composite__", None) == getattr(type(b), "__ag_composite__", False):
        return not getattr(type(a), "__ag_exact__", False) or _has_same_elements(a, b)
    if type(a) is type(b):
        return True
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return True
    if hasattr(a, "_fields") and hasattr(b, "_fields"):
        return type(a).__name__ == type(b).__name__ and a._fields == b._fields
    return False
