"""Taking apart tuples, lists, dicts, dataclasses and composites of values, and putting them together again.

Instances of dataclasses (and of attrs classes) count by their fields, unless they refer to themselves. So do those of
other classes by their attributes, once a program has exchanged one for another (`open_class`); until then they are
leaves, objects that stay themselves. Members of an enum always are leaves: there is one object for each.

A composite is an object with ``__tf_flatten__`` and ``__tf_unflatten__``, such as a TensorArray; a component that is
None has no value yet and counts as unset.
"""

from __future__ import annotations

import builtins
import dataclasses
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, EnumMeta
from types import FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref

from autograph.operators.attributes import twin
from autograph.operators.libraries import package_of
from autograph.operators.state import UNSET
from runtime.context import ctx
from runtime.extension_types.static import Static
from runtime.extension_types.values import ExtensionType
from runtime.ops.staged_number import StagedNumber
from runtime.staged_array import ArrayView, StagedArray
from runtime.staged_list import StagedList
from runtime.tensor import EagerTensor, SymbolicTensor

_Kinds = tuple[type[Mapping[Any, Any]], ...]
_FROZEN_DICTS: _Kinds = (frozendict,) if (frozendict := getattr(builtins, "frozendict", None)) else ()  # Python 3.15 on
_DICTS: _Kinds = (dict, *_FROZEN_DICTS)
_MUTABLE = (list, dict, set, deque, bytearray, StagedList, StagedArray)
# Types of leaves, which most values are; asking the others takes longer.
_LEAVES = frozenset({bool, int, float, str, bytes, type(None), FunctionType, SymbolicTensor, EagerTensor, StagedNumber})
# Classes of the user's whose instances have been exchanged.
_opened: WeakSet[type] = WeakSet()


def open_class(one: Any, other: Any) -> bool:
    """Makes the class of two objects count by its attributes, if they have one class and the same attributes.

    Gives whether that is new. Classes with slots, of C code and of this project, and errors, never do.
    """
    kind = type(one)
    attributes = [getattr(each, "__dict__", None) for each in (one, other)]
    if type(other) is not kind or kind in _opened or not all(isinstance(each, dict) for each in attributes):
        return False
    if isinstance(one, (type, BaseException, Enum, FunctionType, ModuleType)) or any(
        vars(base).get("__slots__") for base in kind.__mro__
    ):
        return False
    if package_of(kind.__module__) in ("autograph", "runtime", "numpy", "builtins") or children(one) is not None:
        return False
    if list(attributes[0]) != list(attributes[1]):  # type: ignore[arg-type]
        return False
    _opened.add(kind)
    return True


def is_opened(value: Any) -> bool:
    """Whether an object of a class without fields counts by its attributes."""
    return type(value) in _opened


# --- which object it is --------------------------------------------------------------------------------------------


# The label of the leaf that tells which object something is.
IDENTITY = " as an object"


class Which:
    """An object by its identity: a leaf beside its attributes, which tells for which object of Python's it stands."""

    __slots__ = ("object",)

    def __init__(self, value: Any) -> None:
        self.object = value


class New(Which):
    """Objects that a loop makes: another one in each of its iterations.

    is_outside: tells of an object whether it was there before the loop.
    """

    __slots__ = ("is_outside",)

    def __init__(self, is_outside: Callable[[Any], bool]) -> None:
        super().__init__(None)
        self.is_outside = is_outside


# By root builder and id the objects of a trace with what they stand for: a `Which`, or a choice of some. Copies live no
# longer than the program uses them: elements.py counts their references.
_identities: WeakKeyDictionary[Any, dict[int, tuple[Any, Any]]] = WeakKeyDictionary()


def _known_identities() -> dict[int, tuple[Any, Any]]:
    builder = ctx.builder
    while builder.parent is not None:
        builder = builder.parent
    return _identities.setdefault(builder, {})


def known_objects() -> set[int]:
    """The ids of the objects of which the trace has asked so far which they are."""
    return {id(identity.object) for _, identity in _known_identities().values() if type(identity) is Which}


def is_told_apart(value: Any) -> bool:
    """Whether an object may be a copy that stands for others, from which Python tells it by its identity."""
    return ctx.builder is not None and is_opened(value)


def which(value: Any) -> Any:
    """The identity of an object: a `Which`, or a choice of objects if it is a copy that stands for one of several."""
    known = _known_identities()
    found = known.get(id(value))
    if found is None or found[0]() is not value:
        found = known[id(value)] = ref(value), Which(value)
    return found[1]


def stands_for(copy: Any, identity: Any) -> None:
    """Notes which object a copy stands for."""
    _known_identities()[id(copy)] = ref(copy), identity


def children(value: Any) -> Sequence[tuple[str, Any]] | None:
    """The items of a container with the text that reaches them (``[0]``, ``['k']``, ``.x``), or None for a leaf."""
    kind = type(value)
    if kind in _LEAVES:
        return None
    if kind is list or kind is tuple:
        return [(f"[{index}]", item) for index, item in enumerate(value)]
    if isinstance(kind, EnumMeta):
        return None
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return [(f".{name}", item) for name, item in zip(kind._fields, value)]
    if isinstance(value, _DICTS):
        return [(f"[{key!r}]", item) for key, item in value.items()]
    if hasattr(kind, "__tf_flatten__"):
        metadata, components = value.__tf_flatten__()
        paths = metadata.paths if isinstance(metadata, Static) else [f".{index}" for index in range(len(components))]
        return [(path, UNSET if item is None else item) for path, item in zip(paths, components)]
    names = _field_names(value)
    if names is None or not _is_tree(value, ()):
        return None
    items = [(f".{name}", getattr(value, name, UNSET)) for name in names]
    return [*items, (IDENTITY, which(value))] if is_told_apart(value) else items


def _field_names(value: Any) -> list[str] | None:
    """The fields of an object that is made of fields, or None."""
    kind = type(value)
    if isinstance(kind, EnumMeta):
        return None
    if kind in _opened:
        return list(value.__dict__)
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    attributes = getattr(kind, "__attrs_attrs__", None)
    return None if attributes is None else [each.name for each in attributes]


def _is_tree(value: Any, around: tuple[Any, ...]) -> bool:
    if any(each is value for each in around):
        return False
    inside = (*around, value)
    names = _field_names(value)
    if names is not None:
        items = [getattr(value, name, None) for name in names]
    elif isinstance(value, (list, tuple)):
        items = list(value)
    elif isinstance(value, _DICTS):
        items = list(value.values())
    else:
        return True
    return all(_is_tree(item, inside) for item in items)


def is_frozen(value: Any) -> bool:
    """Whether nothing can be assigned to a container: a tuple, a frozendict, or an instance of a frozen dataclass."""
    parameters = getattr(type(value), "__dataclass_params__", None)
    return isinstance(value, (tuple, *_FROZEN_DICTS)) or (parameters is not None and parameters.frozen)


def is_mutable(value: Any) -> bool:
    """Whether a container's items can be exchanged."""
    kind = type(value)
    has_fields = (dataclasses.is_dataclass(kind) and not isinstance(kind, EnumMeta)) or is_opened(value)
    return isinstance(value, _MUTABLE) or (has_fields and not is_frozen(value))


def is_composite(value: Any) -> bool:
    """Whether a value is made of components, of which one may be unset although the value exists."""
    return hasattr(type(value), "__tf_flatten__")


def rebuild(like: Any, items: Sequence[Any]) -> Any:
    """A container of the same type and keys as ``like`` with other items."""
    kind = type(like)
    if isinstance(like, dict):
        made = like.copy()
        made.update(zip(like, items))
        return made
    if isinstance(like, _FROZEN_DICTS):
        return kind(zip(like, items))
    if kind is list or kind is tuple:
        return kind(items)
    if hasattr(kind, "__tf_flatten__"):
        return kind.__tf_unflatten__(like.__tf_flatten__()[0], [None if item is UNSET else item for item in items])
    if hasattr(kind, "_make"):
        return kind._make(items)
    names = _field_names(like) or ()
    is_told = len(items) > len(names)
    is_same = not is_told or items[-1] is which(like)
    if is_same and all(getattr(like, name, UNSET) is item for name, item in zip(names, items)):
        return like
    made = twin(like)
    if is_told:
        stands_for(made, items[-1])
    for name, item in zip(names, items):
        if item is not UNSET:
            object.__setattr__(made, name, item)  # frozen ones too
    return made


def same_structure(one: Any, other: Any) -> bool:
    """Whether two containers have the same type, length and keys (their items may differ)."""
    if type(one) is not type(other):
        return False
    if isinstance(one, _DICTS):
        return list(one) == list(other)
    if hasattr(type(one), "__tf_flatten__"):
        return one.__tf_flatten__()[0] == other.__tf_flatten__()[0]
    names = _field_names(one)
    return len(one) == len(other) if names is None else names == _field_names(other)


def same_fixed_parts(one: Any, other: Any) -> bool:
    """Whether extension types and views that are in the same places of two structures agree in all but their
    tensors."""
    is_fixed = isinstance(one, (ExtensionType, ArrayView)) or isinstance(other, ArrayView)
    if is_fixed and not same_structure(one, other):
        return False
    items, others = children(one) or (), children(other) or ()
    return all(same_fixed_parts(item, another) for (_, item), (_, another) in zip(items, others))


def flatten(value: Any, label: str = "") -> list[tuple[str, Any]]:
    """The leaves of a structure, each with the text that reaches it."""
    items = children(value)
    if items is None:
        return [(label, value)]
    return [leaf for key, item in items for leaf in flatten(item, label + key)]


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """A structure like `value` with `change` applied to every leaf, in the order of `flatten`."""
    items = children(value)
    if items is None:
        return change(value)
    return rebuild(value, [map_leaves(item, change) for _, item in items])
