"""Keras 3 on this project: what `ag.keras` and `tf.keras` are."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from autograph.facade.installation import FacadeError, install

_BACKEND = "KERAS_BACKEND"
_lock = threading.RLock()


def load() -> ModuleType:
    """Keras, with its TensorFlow back end on this project: the package that TensorFlow has as `tf.keras`.

    Raises FacadeError when Keras isn't installed, runs on another back end already, or is told to by KERAS_BACKEND.
    """
    with _lock:
        _check()
        install()
        chosen = os.environ.get(_BACKEND)
        os.environ[_BACKEND] = "tensorflow"  # more than what a user's `keras.json` says
        try:
            found = importlib.import_module("keras._tf_keras.keras")
            _without_cudnn()
            importlib.import_module("autograph.facade.tensorflow.optimizers").take_in_programs_for_keras_2(found)
            return found
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] != "keras":
                raise
            raise FacadeError(
                "Keras 3 isn't installed: python -m pip install 'keras>=3.15,<3.16'", name="keras"
            ) from None
        finally:
            if chosen is None:
                del os.environ[_BACKEND]
            else:
                os.environ[_BACKEND] = chosen


class LazyKeras(ModuleType):
    """A module that is Keras, which is imported when it is used."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None, origin="autograph", is_package=True)

    def load(self) -> ModuleType:
        """Keras itself."""
        return load()

    def __getattr__(self, name: str) -> Any:
        if name in ("__file__", "__wrapped__"):
            raise AttributeError(name)
        if name == "__all__":
            return [public for public in dir(self.load()) if not public.startswith("_")]
        return getattr(self.load(), name)


def _without_cudnn() -> None:
    """Keeps recurrent layers from asking for cuDNN where there is a GPU. They would find that it is missing, but only
    after adding an assertion to the program: that masks are such as cuDNN can take."""
    importlib.import_module("keras.src.backend.tensorflow.rnn")._is_gpu_available = lambda: False  # type: ignore[attr-defined]


def _check() -> None:
    config = sys.modules.get("keras.src.backend.config")
    if config is not None:
        running = config.backend()
        if running != "tensorflow":
            raise FacadeError(
                f"Keras already runs on {running} in this process. Use autograph.keras before anything imports keras, "
                f"or set {_BACKEND}=tensorflow and call autograph.compat.install() first."
            )
        return
    wanted = os.environ.get(_BACKEND, "tensorflow")
    if wanted != "tensorflow":
        raise FacadeError(
            f"{_BACKEND} is {wanted!r}, but Keras runs on autograph through its TensorFlow back end: unset it, or set "
            "it to 'tensorflow'."
        )
