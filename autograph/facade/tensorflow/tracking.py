"""`tf.__internal__.tracking`: objects that know what they consist of, for checkpoints."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import autograph as ag
from autograph.convert.api import converted
from autograph.operators.calls import CONVERTING
from autograph.operators.libraries import LIBRARIES
from autograph.saving.restoring import changed
from runtime.context import ctx

# The attribute with what an object consists of. Keras' files leave out the one that has TensorFlow's name for it.
_DEPENDENCIES = "_self_unconditional_dependency_names"


class Trackable(abc.ABC):  # noqa: B024 (for `isinstance`)
    """Base of objects that others can depend on. Ours that TensorFlow counts among them are instances of it."""

    _setattr_tracking = True

    def _track_trackable(self, trackable: Any, name: str, overwrite: bool = False) -> Any:
        """Notes that this object consists, among others, of another one. Raises ValueError for a name twice."""
        known = self.__dict__.setdefault(_DEPENDENCIES, {})
        if not overwrite and known.get(name, trackable) is not trackable:
            raise ValueError(
                f"Called Trackable._track_trackable() with name='{name}', but that name is tracked already"
            )
        known[name] = trackable
        changed(self)  # what a checkpoint holds for it is restored
        return trackable

    def _lookup_dependency(self, name: str, cached_dependencies: Any = None) -> Any:
        return self._trackable_children().get(name)

    def _trackable_children(self, save_type: str = "checkpoint", **options: Any) -> dict[str, Any]:
        """What the object consists of, by name."""
        return dict(self.__dict__.get(_DEPENDENCIES) or {})


# Methods of Keras' layers and models that users write, and Keras calls.
_USERS_METHODS = ("call", "train_step", "test_step", "predict_step", "compute_loss", "compute_metrics")


def _converted_in_traces(method: FunctionType) -> Callable[..., Any]:
    """A method whose `if`, `for` and `while` are staged while a function is traced, though a library calls it.

    It stays as it is where its source isn't to be had.
    """

    @functools.wraps(method)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        if ctx.builder is None:
            return method(self, *arguments, **options)
        try:
            function = converted(method)
        except ag.errors.ConversionError:
            function = method
        before = CONVERTING.set(True)
        try:
            return function(self, *arguments, **options)
        finally:
            CONVERTING.reset(before)

    return call


for _cls in (
    ag.Variable, ag.Module, ag.lookup.StaticHashTable, ag.lookup.StaticVocabularyTable,
    ag.lookup.experimental.MutableHashTable,
):  # fmt: skip
    Trackable.register(_cls)


class AutoTrackable(Trackable):
    """A `Trackable` that consists of the variables, modules, trackable objects and containers among its attributes.

    Layers and models of Keras are such. Keras 3 leaves their methods as they are, so that a condition on a tensor in
    `call` would be an error in `fit`; those that users write are converted here.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.partition(".")[0] not in LIBRARIES:
            for name in _USERS_METHODS:
                method = vars(cls).get(name)
                if isinstance(method, FunctionType):
                    setattr(cls, name, _converted_in_traces(method))

    def _trackable_children(self, save_type: str = "checkpoint", **options: Any) -> dict[str, Any]:
        children = {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, (Trackable, list, tuple, dict)) and not name.startswith("_self_")
        }
        return {**children, **super()._trackable_children(save_type, **options)}

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if not name.startswith("_self_"):
            changed(self)  # a checkpoint that was restored may hold weights that layers make in `build`, later

    def __delattr__(self, name: str) -> None:
        self.__dict__.get(_DEPENDENCIES, {}).pop(name, None)
        super().__delattr__(name)


class TrackableResource(Trackable):
    """What a saved model would make again by code, such as a table. Saved models here hold none."""


def no_automatic_dependency_tracking(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that sets attributes which don't count as parts of the object."""

    @functools.wraps(method)
    def untracked(self: Any, *arguments: Any, **options: Any) -> Any:
        before = getattr(self, "_self_setattr_tracking", True)
        self._self_setattr_tracking = False
        try:
            return method(self, *arguments, **options)
        finally:
            self._self_setattr_tracking = before

    return untracked


class ListWrapper(list):
    """A list that TensorFlow's tracking would put in a list's place; ours leaves lists alone."""


class _DictWrapper(dict):
    """The same of dictionaries."""


MODULES: dict[str, dict[str, Any]] = {
    "tensorflow.__internal__.tracking": {
        "AutoTrackable": AutoTrackable,
        "Trackable": Trackable,
        "no_automatic_dependency_tracking": no_automatic_dependency_tracking,
    },
    "tensorflow.saved_model.experimental": {"TrackableResource": TrackableResource},
    "tensorflow.python.trackable.data_structures": {"ListWrapper": ListWrapper, "_DictWrapper": _DictWrapper},
}
