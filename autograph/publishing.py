"""What the public names get beyond being handed on: errors that leave them show the user's frames only, and names that
aren't there are explained.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

from autograph.absent import message
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
_SPECIAL = {"__init__", "__call__", "__getitem__", "__setitem__", "__delitem__", "__iter__", "__len__", "__hash__"}


def hide_frames(package: Any) -> None:
    """Has the functions and methods among the public names of `package` and its namespaces drop this project's frames
    from the tracebacks of errors. A function that does so by itself, which is faster, stays what it is."""
    public: dict[FunctionType, Any] = {}
    done: set[ModuleType] = set()

    def change(module: ModuleType) -> None:
        if module in done:
            return
        done.add(module)
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, ModuleType):
                if value.__name__.startswith(_PREFIX):
                    change(value)
            elif isinstance(value, FunctionType) and not is_marked(value):
                if value not in public:
                    public[value] = _found_by_pickle(shows_no_frames(value), module, name)
                setattr(module, name, public[value])
            elif isinstance(value, FunctionType):
                _found_by_pickle(value, module, name)

    change(package)
    for name, inner in _CLASSES.items():
        cls = package
        for part in name.split("."):
            cls = getattr(cls, part)
        _change_methods(cls, set(inner.split()))


def _found_by_pickle(function: Any, module: ModuleType, name: str) -> Any:
    """A public function, which says where it is found, if it isn't where it says."""
    home = sys.modules.get(function.__module__)
    is_ours = function.__module__.partition(".")[0] in ("autograph", "runtime")
    if is_ours and getattr(home, function.__qualname__, None) is not function:
        function.__module__, function.__qualname__ = module.__name__, name
    return function


def explain_absent_names(package: Any, late: Mapping[str, str] | None = None) -> None:
    """Has `package` and its namespaces say of a name that they don't have what to use instead, and list in `dir()`
    the public names only.

    late: names of `package` that are modules, each imported when it is asked for.
    """
    done: set[ModuleType] = set()

    def change(module: ModuleType, namespace: str) -> None:
        done.add(module)
        here = late or {} if module is package else {}
        module.__getattr__ = _absent(package, module, namespace, here)  # type: ignore[method-assign]
        module.__dir__ = _names(module, here)  # type: ignore[method-assign]
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, ModuleType) and value.__name__.startswith(_PREFIX) and value not in done:
                change(value, f"{namespace}{name}.")

    change(package, "")


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


def _absent(package: Any, module: ModuleType, namespace: str, late: Mapping[str, str]) -> Callable[[str], Any]:
    @shows_no_frames
    def absent(name: str) -> Any:
        if name in late:
            return importlib.import_module(late[name])
        if name.startswith("__"):  # asked for by Python and its tools
            raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'")
        raise AttributeError(message(package, namespace, name))

    return absent


def _change_methods(cls: type, inner: set[str]) -> None:
    for name, method in list(vars(cls).items()):
        if name in inner or (name.startswith("_") and name not in _SPECIAL):
            continue
        kind = type(method)
        function = method.__func__ if kind in (classmethod, staticmethod) else method
        if isinstance(function, FunctionType) and not is_marked(function):
            shown = shows_no_frames(function)
            setattr(cls, name, kind(shown) if function is not method else shown)
