"""What the public names get beyond being handed on: errors that leave them show the user's frames only, docstrings have
examples, and names that aren't there are explained.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

from autograph import documentation
from autograph.absent import message
from autograph.elementwise_names import ELEMENTWISE
from runtime.api_dispatch import register_elementwise_api
from runtime.tracebacks import is_marked, shows_no_frames

_PREFIX = ("autograph.namespaces.", "runtime.array_api")
# Public classes whose methods do so, each with the methods that are called for every operation: they stay as they are.
_CLASSES = {
    "GradientTape": "leave assigned record record_read extend is_tracking is_watching reads_of",
    "IndexedSlices": "",
    "Module": "with_name_scope",
    "RaggedTensor": "get_shape",
    "SparseTensor": "get_shape",
    "TensorArray": "",
    "Variable": "read_value value set_array current_array facts ref get_shape",
    "autodiff.ForwardAccumulator": "leave assigned record record_read extend is_tracking",
    "data.Dataset": "",
    "io.gfile.GFile": "",
    "lookup.StaticHashTable": "",
    "lookup.StaticVocabularyTable": "",
    "lookup.experimental.DenseHashTable": "",
    "lookup.experimental.MutableHashTable": "",
    "random.Generator": "",
    "summary.SummaryWriter": "",
    "train.Checkpoint": "stands_for",
    "train.CheckpointManager": "",
}
# What notebooks show of public classes: functions of `autograph.display`.
_DISPLAYS = {"data.Dataset": "dataset"}
_SPECIAL = {"__init__", "__call__", "__getitem__", "__setitem__", "__delitem__", "__iter__", "__len__", "__hash__"}

_lock = threading.RLock()  # held while a namespace is published


def publish(package: Any, late: Mapping[str, str]) -> None:
    """Publishes the names of `package` and its namespaces: functions and methods drop this project's frames from the
    tracebacks of errors (one that does so by itself, which is faster, stays what it is), modules say of a name that
    they don't have what to use instead and list in `dir()` the public names only, and docstrings get examples.

    late: names of `package` that are modules, each imported, and published, when it is asked for. A room of the same
    name has to be imported before, else its import takes the name over.
    """
    for name in late:
        vars(package).pop(name, None)
    _Publisher(package, late).publish(package)


class _Publisher:
    def __init__(self, package: Any, late: Mapping[str, str]) -> None:
        self._package = package
        self._late = late
        self._shown: dict[FunctionType, Any] = {}  # public functions, and what stands for them
        self._done: set[ModuleType] = set()

    def publish(self, module: Any, late_name: str = "") -> None:
        """Publishes the package, or one of its late modules, under this name."""

        def is_here(name: str) -> bool:
            first = name.partition(".")[0]
            return late_name == (first if first in self._late else "")

        @functools.cache
        def owner(name: str) -> Any:
            return module if name == late_name else find(name, None)

        def find(name: str, *missing: None) -> Any:
            first, _, last = name.rpartition(".")
            return getattr(owner(first), last, *missing)

        self._publish(module, f"{late_name}." if late_name else "", {} if late_name else self._late)
        for name in filter(is_here, _CLASSES):
            _change_methods(find(name), set(_CLASSES[name].split()))
        for name in filter(is_here, _DISPLAYS):
            find(name)._repr_html_ = _display(_DISPLAYS[name])
        documentation.add_examples(lambda name: find(name, None) if is_here(name) else None)

    def _publish(self, module: Any, namespace: str, late: Mapping[str, str]) -> None:
        if module in self._done:
            return
        self._done.add(module)
        for name in module.__all__:
            if name in late:
                continue
            value = getattr(module, name)
            if isinstance(value, ModuleType):
                if value.__name__.startswith(_PREFIX):
                    self._publish(value, f"{namespace}{name}.", {})
            elif isinstance(value, FunctionType) and not is_marked(value):
                if value not in self._shown:
                    self._shown[value] = _found_by_pickle(shows_no_frames(value), module, name)
                setattr(module, name, self._shown[value])
            elif isinstance(value, FunctionType):
                _found_by_pickle(value, module, name)
            family = ELEMENTWISE.get(namespace + name)
            if family is not None:
                register_elementwise_api(family, getattr(module, name))
        module.__getattr__ = self._absent(module, namespace, late)
        module.__dir__ = _names(module, late)

    def _absent(self, module: ModuleType, namespace: str, late: Mapping[str, str]) -> Callable[[str], Any]:
        @shows_no_frames
        def absent(name: str) -> Any:
            if name in late:
                return self._imported(name)
            if name.startswith("__"):  # asked for by Python and its tools
                raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'")
            raise AttributeError(message(self._package, namespace, name))

        return absent

    def _imported(self, name: str) -> Any:
        found = importlib.import_module(self._late[name])
        with _lock:
            # Another thread may have done the same meanwhile.
            if name not in vars(self._package):
                if found.__name__.startswith(_PREFIX):
                    self.publish(found, name)
                setattr(self._package, name, found)
        return found


def _found_by_pickle(function: Any, module: ModuleType, name: str) -> Any:
    """A public function, which says where it is found, if it isn't where it says."""
    home = sys.modules.get(function.__module__)
    is_ours = function.__module__.partition(".")[0] in ("autograph", "runtime")
    if is_ours and getattr(home, function.__qualname__, None) is not function:
        function.__module__, function.__qualname__ = module.__name__, name
    return function


def show_in_notebooks(package: Any, displays: Mapping[type, str]) -> None:
    """Gives classes `_repr_html_`, each by a function of `autograph.display`, and `package` the way in of
    `%load_ext autograph`. Both are imported when a notebook asks for them."""
    for cls, name in displays.items():
        cls._repr_html_ = _display(name)  # type: ignore[attr-defined]
    package.load_ipython_extension = lambda shell: importlib.import_module("autograph.notebook").load(shell)


def _display(name: str) -> Callable[[Any], str | None]:
    def _repr_html_(self: Any) -> str | None:
        return getattr(importlib.import_module("autograph.display"), name)(self)

    return _repr_html_


def _names(module: ModuleType, late: Mapping[str, str]) -> Callable[[], list[str]]:
    """What `dir()` and the completion of names show of a module: its public names, and those that Python asks for."""

    def names() -> list[str]:
        special = [name for name in vars(module) if name.startswith("__") and name.endswith("__")]
        return sorted({*module.__all__, *late, *special})

    return names


def _change_methods(cls: type, inner: set[str]) -> None:
    for name, method in list(vars(cls).items()):
        if name in inner or (name.startswith("_") and name not in _SPECIAL):
            continue
        kind = type(method)
        function = method.__func__ if kind in (classmethod, staticmethod) else method
        if isinstance(function, FunctionType) and not is_marked(function):
            shown = shows_no_frames(function)
            setattr(cls, name, kind(shown) if function is not method else shown)
