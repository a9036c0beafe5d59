"""The graph of objects that a checkpoint is of: what an object holds under which name, and what its own value is.

Objects with values are variables, iterators over datasets and tables that change. Others hold such objects: modules,
checkpoints, random generators, lists, tuples, dictionaries, objects of other libraries that say what they hold
(`_trackable_children`), and objects of the user's classes, by their attributes.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from autograph.data.iterators import DatasetIterator
from autograph.module import Module
from runtime import dtypes
from runtime.context import init_scope
from runtime.dtypes import DType
from runtime.errors import InvalidArgumentError
from runtime.generator import Generator
from runtime.lookup import MutableHashTable
from runtime.ops.convert import convert_to_tensor
from runtime.shapes import format_shape, merge
from runtime.tensor import Tensor
from runtime.variable import Variable

# What the values of variables, iterators and tables are called in files, as TensorFlow calls them.
VARIABLE_VALUE, ITERATOR_STATE = "VARIABLE_VALUE", "ITERATOR_STATE"
TABLE_KEYS, TABLE_VALUES = "table-keys", "table-values"


class Holder:
    """Base of classes whose instances hold what their attributes are; `_held()` gives those."""

    def _held(self) -> dict[str, Any]:
        raise NotImplementedError

    def stands_for(self) -> Any:
        """The object that this one stands for in the graph, with its children; None if there is none."""


# --- which objects there are -----------------------------------------------------------------------------------------


def has_value(thing: Any) -> bool:
    """Whether an object has a value of its own."""
    return isinstance(thing, (Variable, DatasetIterator)) or (isinstance(thing, MutableHashTable) and thing.is_saved)


def _is_plain(thing: Any) -> bool:
    """Whether this is an instance of a class that somebody has written in Python, with attributes to look at."""
    kind = type(thing)
    package = kind.__module__.partition(".")[0] if isinstance(kind.__module__, str) else ""
    if package in sys.stdlib_module_names or _is_installed(package):
        return False
    has_attributes = isinstance(getattr(thing, "__dict__", None), dict)
    return has_attributes and not isinstance(thing, (type, ModuleType, FunctionType, Tensor))


@functools.cache
def _is_installed(package: str) -> bool:
    """Whether a package is a library: what its objects hold, they must say."""
    if package in ("autograph", "runtime"):
        return True
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return not _LIBRARIES.isdisjoint(file.replace("\\", "/").split("/"))


_LIBRARIES = frozenset({"site-packages", "dist-packages"})


def variable_of(thing: Any) -> Any:
    """The variable that an object of another library is a form of, such as Keras' variables; else the object."""
    if isinstance(thing, Variable) or not hasattr(type(thing), "_serialize_to_tensors"):
        return thing
    inner = getattr(thing, "_value", None)
    return inner if isinstance(inner, Variable) else thing


def _says(thing: Any) -> Callable[[], Any] | None:
    """The method of an object of another library that lists its children for checkpoints."""
    if isinstance(thing, type) or type(thing).__module__.startswith("autograph.function."):
        return None
    return getattr(thing, "_trackable_children", None) if hasattr(type(thing), "_trackable_children") else None


def is_certain(thing: Any) -> bool:
    """Whether an object belongs to the graph even if it holds nothing."""
    return has_value(thing) or isinstance(thing, (Module, Holder, Generator)) or _says(thing) is not None


def is_container(thing: Any) -> bool:
    return isinstance(thing, (list, tuple, dict))


def may_hold(thing: Any) -> bool:
    """Whether an object is one that may be part of the graph."""
    if is_certain(thing) or is_container(thing) or isinstance(thing, (Mapping, MutableHashTable)):
        return True
    return _is_plain(thing)


def children(thing: Any) -> dict[Any, Any]:
    """What an object holds, by name. The keys of a dictionary are as they are."""
    if has_value(thing) or isinstance(thing, MutableHashTable):
        return {}
    if isinstance(thing, Generator):
        return {"_state_var": thing.state}
    if isinstance(thing, Holder):
        found: Any = thing._held()
    elif (says := _says(thing)) is not None:
        found = says()
    elif isinstance(thing, Module):
        found = {key: value for key, value in vars(thing).items() if key not in thing._TF_MODULE_IGNORED_PROPERTIES}
    elif isinstance(thing, Mapping):
        found = thing
    elif isinstance(thing, (list, tuple)):
        names = getattr(thing, "_fields", None) or map(str, range(len(thing)))
        found = dict(zip(names, thing))
    else:
        found = vars(thing)
    held = {key: variable_of(value) for key, value in list(found.items())}
    return {key: value for key, value in held.items() if may_hold(value)}


def settled_children(thing: Any) -> dict[Any, Any]:
    """What an object holds whose name will stay the same. A model of Keras puts an input layer before the others in its
    list when it is built, so that lists of what isn't built yet don't count."""
    held = children(thing)
    model = (thing.stands_for() if isinstance(thing, Holder) else None) or thing
    if _says(model) is None or getattr(model, "built", True):
        return held
    return {name: value for name, value in held.items() if not isinstance(value, list)}


class Graph:
    """The objects that can be reached from one: `things`, each once, the first one first; `edges`, for each of them
    (name, number of the other); `paths`, the shortest way to each, as names."""

    def __init__(self, root: Any) -> None:
        self.things: list[Any] = [root]
        self.edges: list[list[tuple[Any, int]]] = []
        self.paths: list[tuple] = [()]
        numbers = {id(root): 0}
        while len(self.edges) < len(self.things):
            index = len(self.edges)
            found: list[tuple[Any, int]] = []
            for name, thing in children(self.things[index]).items():
                # Another key than a text is an error where the value surely belongs to the graph.
                if not isinstance(name, str) and not is_certain(thing):
                    continue
                if id(thing) not in numbers:
                    numbers[id(thing)] = len(self.things)
                    self.things.append(thing)
                    self.paths.append((*self.paths[index], name))
                found.append((name, numbers[id(thing)]))
            self.edges.append(found)

    def needed(self) -> list[bool]:
        """For each object, whether the checkpoint must save it: it is the root, its kind is always saved
        (`is_certain`), or such an object can be reached from it."""
        holders: list[list[int]] = [[] for _ in self.things]
        for index, found in enumerate(self.edges):
            for _, other in found:
                holders[other].append(index)
        marks = [index == 0 or is_certain(thing) for index, thing in enumerate(self.things)]
        pending = [index for index, mark in enumerate(marks) if mark]
        while pending:
            for holder in holders[pending.pop()]:
                if not marks[holder]:
                    marks[holder] = True
                    pending.append(holder)
        return marks


def leaves(root: Any) -> Iterator[tuple[tuple, Any]]:
    """Yields the objects with values that can be reached from `root`, each after its path: a tuple of names."""
    graph = Graph(root)
    for path, thing in zip(graph.paths, graph.things):
        if has_value(thing):
            yield path, thing


# --- values ----------------------------------------------------------------------------------------------------------


Values = dict[str, tuple[Any, DType]]  # arrays that nobody writes to, by what they are called


def values_of(thing: Any) -> Values:
    """The value of an object: one array, of a table two."""
    if isinstance(thing, Variable):
        return {VARIABLE_VALUE: (thing.array_to_save(), thing.dtype)}
    if isinstance(thing, MutableHashTable):
        keys, values = thing.content()
        return {TABLE_KEYS: (keys, thing.key_dtype), TABLE_VALUES: (values, thing.value_dtype)}
    return {ITERATOR_STATE: (np.array(thing.state(), np.int64), dtypes.int64)}


def check(thing: Any, values: Values, path: str) -> None:
    """Raises ValueError or InvalidArgumentError where `assign` would for a value from a file."""
    expected, saved = _kind(thing), next((known for known in _CALLED if known == set(values)), None)
    if saved != expected:
        was = "something else" if saved is None else _CALLED[saved]
        raise InvalidArgumentError(f"{path} is {_CALLED[expected]}, but the saved object is {was}")
    if isinstance(thing, MutableHashTable):
        _check_table(thing, values, path)
        return
    ((array, dtype),) = values.values()
    if not isinstance(thing, Variable):
        thing.check_state(array)
        return
    if dtype is not thing.dtype:
        raise InvalidArgumentError(
            f"{path}: the variable {thing.name!r} is {thing.dtype.name}, but the saved value is {dtype.name}"
        )
    try:
        merge(thing._shape, array.shape)
    except ValueError:
        raise ValueError(
            f"Received incompatible tensor with shape {format_shape(array.shape)} when attempting to restore variable "
            f"with shape {format_shape(thing._shape)} and name {thing.name}. (In the checkpoint it is {path}.)"
        ) from None


def _check_table(table: MutableHashTable, values: Values, path: str) -> None:
    (keys, key_dtype), (rows, value_dtype) = values[TABLE_KEYS], values[TABLE_VALUES]
    if (key_dtype, value_dtype) != (table.key_dtype, table.value_dtype):
        raise InvalidArgumentError(
            f"{path}: the table {table.name!r} maps {table.key_dtype.name} to {table.value_dtype.name}, but the "
            f"saved one maps {key_dtype.name} to {value_dtype.name}"
        )
    if keys.ndim != 1 or rows.shape != (len(keys), *table.value_shape):
        raise ValueError(
            f"{path}: the table {table.name!r} has values of shape {format_shape(table.value_shape)}, but the saved "
            f"one has keys of shape {format_shape(keys.shape)} and values of shape {format_shape(rows.shape)}"
        )


_CALLED = {
    frozenset({VARIABLE_VALUE}): "a variable",
    frozenset({ITERATOR_STATE}): "an iterator over a dataset",
    frozenset({TABLE_KEYS, TABLE_VALUES}): "a table",
}


def _kind(thing: Any) -> frozenset[str]:
    if isinstance(thing, Variable):
        return frozenset({VARIABLE_VALUE})
    return frozenset({TABLE_KEYS, TABLE_VALUES} if isinstance(thing, MutableHashTable) else {ITERATOR_STATE})


def assign(thing: Any, values: Values) -> None:
    """Gives an object a value that `check` has accepted."""
    if isinstance(thing, MutableHashTable):
        thing.set_content(values[TABLE_KEYS][0], values[TABLE_VALUES][0])
        return
    ((array, dtype),) = values.values()
    if isinstance(thing, Variable):
        with init_scope():
            thing.assign(convert_to_tensor(array, dtype))
    else:
        thing.set_state(array)


class TrackableView:
    """The parts of an object that checkpoints save. `children(thing)` returns an object's parts by name,
    `descendants()` all objects that can be reached from the root, which comes first."""

    def __init__(self, root: Any) -> None:
        self._root = root

    @property
    def root(self) -> Any:
        """The object that the view is of."""
        return self._root

    @classmethod
    def children(cls, obj: Any, save_type: str = "checkpoint", **options: Any) -> dict[str, Any]:
        """What an object holds, by name."""
        return children(obj)

    def descendants(self) -> list[Any]:
        """The objects that can be reached, each once."""
        found, seen = [self._root], {id(self._root)}
        for thing in found:
            for other in self.children(thing).values():
                if id(other) not in seen:
                    seen.add(id(other))
                    found.append(other)
        return found
