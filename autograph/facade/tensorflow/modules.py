"""Makes the modules that stand in `sys.modules` as `tensorflow` and `tensorflow.*`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import autograph as ag
from autograph.facade import keras
from autograph.facade.tensorflow import (
    compat_v1,
    core,
    distribution,
    events,
    identity,
    internal,
    legacy_keras,
    linear_operators,
    logs,
    onnx_export,
    private,
    pyct,
    python_util,
    raw_ops,
    testing,
    tracking,
)

_PARTS = (
    core, tracking, internal, distribution, raw_ops, linear_operators, logs, private, pyct, python_util, identity,
    testing, events,
)  # fmt: skip
# Another name of the whole, whose parts have names in it, too.
_SAME = "tensorflow.compat.v2"
_NOT_IN_IT = ("compat", "compiler", "core", "python")
# Where `keras` is.
_WITH_KERAS = ("", "compat.v1.", "compat.v2.")
# Parts of Keras that TensorFlow has at its top.
_OF_KERAS = ("initializers", "losses", "metrics", "optimizers")


class FacadeModule(ModuleType):
    """A module `tensorflow.*`: a namespace of ours with other names beside it."""

    def __init__(self, name: str, ours: ModuleType | None = None) -> None:
        super().__init__(name, None if ours is None else ours.__doc__)
        self.__path__: list[str] = []
        self.__file__ = __file__
        self.__spec__ = ModuleSpec(name, None, origin="autograph", is_package=True)
        self._ours = ours
        self._late: dict[str, Callable[[], Any]] = {}
        for public in [] if ours is None else ours.__all__:
            value = getattr(ours, public)
            if not isinstance(value, ModuleType):
                setattr(self, public, value)

    def __getattr__(self, name: str) -> Any:
        late = self.__dict__.get("_late", {})
        if name in late:
            value = late[name]()
            setattr(self, name, value)
            return value
        ours = self.__dict__.get("_ours")
        if ours is not None and not name.startswith("__"):
            return getattr(ours, name)  # says what to use instead
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}: autograph doesn't have it")

    def __dir__(self) -> list[str]:
        return sorted({*(name for name in vars(self) if name not in ("_ours", "_late")), *self._late})

    @property
    def __all__(self) -> list[str]:
        return [name for name in dir(self) if not name.startswith("_") and name not in self._late]


def build() -> dict[str, ModuleType]:
    """All modules, by their full names."""
    made: dict[str, FacadeModule] = {}
    _mirror(made, "tensorflow", ag)
    made["tf2onnx"] = FacadeModule("tf2onnx")
    for part in (*_PARTS, onnx_export):
        for path, names in part.MODULES.items():
            _add(made, path, names)
    for path, names in compat_v1.modules(made["tensorflow"]).items():
        _add(made, path, names)
    for path, late in (*testing.LATE.items(), *events.LATE.items()):
        made[path]._late.update(late)
    root = made["tensorflow"]
    _add(made, _SAME, {})
    _stand_for(made[_SAME], root)
    _add(made, _SAME, {"enable_v2_behavior": lambda: None})
    for path in list(made):
        if path.count(".") and path.split(".")[1] not in _NOT_IN_IT:
            made.setdefault(path.replace("tensorflow", _SAME, 1), made[path])
    root._late["keras"] = lambda: _registered("tensorflow.keras", keras.load())
    for name in _OF_KERAS:
        root._late[name] = functools.partial(_part_of_keras, name)
    in_keras = {f"tensorflow.{path}keras": _LazyKeras(f"tensorflow.{path}keras") for path in _WITH_KERAS}
    return {**made, **in_keras, **legacy_keras.build()}


class _LazyKeras(keras.LazyKeras):
    """`tensorflow.keras` in `sys.modules`, until it is used: importing TensorFlow imports no Keras."""

    def load(self) -> Any:
        return _registered(self.__name__, keras.load())


def _part_of_keras(name: str) -> Any:
    return _registered(f"tensorflow.{name}", getattr(keras.load(), name))


def _registered(name: str, module: Any) -> Any:
    """A module, now also found by another name."""
    if isinstance(module, ModuleType):
        sys.modules[name] = module
    return module


def _mirror(made: dict[str, FacadeModule], name: str, ours: ModuleType) -> FacadeModule:
    module = made[name] = FacadeModule(name, ours)
    for public in ours.__all__:
        value = getattr(ours, public)
        if isinstance(value, ModuleType) and value.__name__.startswith("autograph.namespaces."):
            setattr(module, public, _mirror(made, f"{name}.{public}", value))
    return module


def _add(made: dict[str, FacadeModule], path: str, names: dict[str, Any]) -> None:
    """Adds names to a module, which is made with its parents where it isn't there."""
    if path not in made:
        made[path] = FacadeModule(path)
        parent, _, leaf = path.rpartition(".")
        if parent not in made:
            _add(made, parent, {})
        setattr(made[parent], leaf, made[path])
    for name, value in names.items():
        setattr(made[path], name, value)


def _stand_for(module: FacadeModule, whole: FacadeModule) -> None:
    for name in (*whole.__all__, "__internal__", "__version__", "__git_version__"):
        if name not in vars(module):
            setattr(module, name, getattr(whole, name))
    module._ours, module._late = ag, whole._late
