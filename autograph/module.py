"""`Module`: an object that finds the variables and modules among its attributes, however they are nested.

    class Dense(ag.Module):
        def __init__(self, size):
            super().__init__()
            self.w = ag.Variable(ag.random.normal(size), name="w")

    class Model(ag.Module):
        def __init__(self):
            super().__init__()
            self.layers = [Dense([3, 4]), Dense([4, 2])]       Model().variables: the two w's

What a module holds is looked up when it is asked for, so attributes may be set, replaced and deleted at any time.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from runtime import nest
from runtime.context import name_scope
from runtime.variable import Variable

Method = TypeVar("Method", bound=Callable[..., Any])


class Module:
    """Base class of objects that own variables. A subclass needn't call `super().__init__()` unless it wants a name.

    name    a Python identifier; default: the class's name in snake case. Raises ValueError for another.
    """

    # Attributes of the module itself, not of the program. A subclass may add names of its own.
    _TF_MODULE_IGNORED_PROPERTIES = frozenset({"_name", "_name_scope"})

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = _snake_case(type(self).__name__)
        elif not name.isidentifier():  # a keyword may be a name, as in TensorFlow
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python identifiers (e.g. a valid "
                "class name)."
            )
        self._name = name
        with name_scope(name) as scope:
            self._name_scope = name_scope(scope)

    @property
    def name(self) -> str:
        """The name given when the module was made, or its class's in snake case."""
        return self.__dict__.get("_name") or _snake_case(type(self).__name__)

    @property
    def name_scope(self) -> name_scope:
        """A context manager: names made inside have this module's name as a prefix."""
        try:
            return self._name_scope
        except AttributeError:
            raise AttributeError(
                f"'{type(self).__name__}' has no name_scope: its __init__ doesn't call super().__init__()."
            ) from None

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of this module and of its submodules, each once: its own first, by name of the attribute."""
        return tuple(self._flatten(lambda value: isinstance(value, Variable)))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """The variables that tapes watch automatically."""
        return tuple(self._flatten(lambda value: isinstance(value, Variable) and value.trainable))

    @property
    def non_trainable_variables(self) -> tuple[Variable, ...]:
        """The other variables."""
        return tuple(self._flatten(lambda value: isinstance(value, Variable) and not value.trainable))

    @property
    def submodules(self) -> tuple[Module, ...]:
        """The modules that are attributes of this one, of those, and so on, each once."""
        return tuple(self._flatten(lambda value: isinstance(value, Module)))

    def _flatten(
        self,
        predicate: Callable[[Any], bool],
        recursive: bool = True,
        with_path: bool = False,
        attribute_traversal_key: Callable[[str], Any] | None = None,
    ) -> Iterator[Any]:
        """The attributes' parts that satisfy `predicate`; with `with_path`, as (path of names and indices, part)."""
        seen = {id(self)}
        pending: list[tuple[Module, tuple]] = [(self, ())]
        while pending:
            module, path = pending.pop()
            submodules: list[tuple[Module, tuple]] = []
            attributes = {
                key: value for key, value in vars(module).items() if key not in module._TF_MODULE_IGNORED_PROPERTIES
            }
            for key in sorted(attributes, key=attribute_traversal_key):
                for where, part in _parts(attributes[key], (*path, key)):
                    if id(part) in seen:
                        continue
                    if predicate(part):
                        seen.add(id(part))
                        yield (where, part) if with_path else part
                    if recursive and isinstance(part, Module):
                        seen.add(id(part))
                        submodules.append((part, where))
            # Depth first, in order.
            pending += reversed(submodules)

    # Libraries written for TensorFlow switch off that attributes are followed. Here they are looked up when asked for.
    _setattr_tracking = True

    def _no_dependency(self, value: Any) -> Any:
        """The value of an attribute that isn't part of the module: itself."""
        return value

    @classmethod
    def with_name_scope(cls, method: Method) -> Method:
        """A decorator: the method runs in the module's name scope, so names made in it have the module's name as a
        prefix."""

        @functools.wraps(method)
        def scoped(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return scoped  # type: ignore[return-value]


def watch_attributes(
    watch: Callable[[Module], None] | None, read: Callable[[Module, Any], None] = lambda module, value: None
) -> None:
    """Has `watch` called with each module that has got an attribute, until it is None, and `read` with each module
    whose list or dictionary is read, and with that.

    Restoring a checkpoint does while values wait for attributes; nothing is slower at other times.
    """
    if watch is None:
        if "__setattr__" in vars(Module):
            del Module.__setattr__, Module.__getattribute__
        return

    def set_attribute(self: Module, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        watch(self)

    def get_attribute(self: Module, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if isinstance(value, (list, dict)) and not name.startswith("__"):
            read(self, value)
        return value

    Module.__setattr__ = set_attribute  # type: ignore[method-assign, assignment]
    Module.__getattribute__ = get_attribute  # type: ignore[method-assign, assignment]


def _parts(value: Any, path: tuple) -> Iterator[tuple[tuple, Any]]:
    """(path, leaf) of each leaf of a structure. A module is a leaf."""
    if isinstance(value, (Module, Variable)) or not nest.is_nested(value):
        yield path, value
        return
    pairs: Any
    if isinstance(value, Mapping):
        try:
            pairs = sorted(value.items(), key=lambda item: item[0])
        except TypeError:  # keys of several types; the order of insertion will do
            pairs = value.items()
    else:
        pairs = enumerate(nest.children(value))
    for name, part in pairs:
        yield from _parts(part, (*path, name))


def _snake_case(name: str) -> str:
    """A class's name as the name of a module, as TensorFlow makes it.

    >>> _snake_case('MyDenseLayer'), _snake_case('RNNCell'), _snake_case('Conv2DTranspose')
    ('my_dense_layer', 'rnn_cell', 'conv2_d_transpose')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<!^)(?=[A-Z][a-z])", "_", name).lower()
