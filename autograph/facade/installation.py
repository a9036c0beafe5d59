"""`ag.compat.install()`: `import tensorflow` gives this project, until `uninstall()`."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from types import ModuleType

_lock = threading.RLock()
_installed: dict[str, ModuleType] = {}


class FacadeError(ImportError):
    """`import tensorflow` or Keras can't use this project, because this process has already imported TensorFlow itself,
    or Keras on another back end."""


def install() -> None:
    """Makes `import tensorflow` load this project, in this process, for programs and libraries written for TensorFlow.

    Modules named `tensorflow`, `tensorflow.compat.v2` and so on have this package's names, and the private names that
    Keras 3 and Sonnet use. An installed TensorFlow stays untouched, but can't be imported until `uninstall`.
    Calling it again does nothing.

    Raises FacadeError when TensorFlow itself has been imported in this process.
    """
    with _lock:
        if is_installed():
            return
        found = sys.modules.get("tensorflow")
        if found is not None:
            raise FacadeError(
                f"tensorflow is already imported in this process, from {getattr(found, '__file__', None)}: modules "
                "that imported it would not work with autograph. Call autograph.compat.install() before anything "
                "imports tensorflow, or start the program with `autograph run SCRIPT.py`."
            )
        tensorflow = importlib.import_module("autograph.facade.tensorflow")
        tensorflow.identity.assume()
        _installed.update(tensorflow.modules.build())
        sys.modules.update(_installed)


def uninstall() -> None:
    """Undoes `install`. Keras is unloaded, too, so that the next `import keras` loads it anew.

    Modules that have imported `tensorflow` meanwhile keep it. Does nothing if nothing is installed.
    """
    with _lock:
        if not is_installed():
            return
        for name in list(_names_of("tensorflow", "tf2onnx", "keras", "tf_keras", "autograph.keras")):
            del sys.modules[name]
        vars(sys.modules["autograph"]).pop("keras", None)  # where the import of `autograph.keras` has put it
        _installed.clear()
        sys.modules["autograph.facade.tensorflow"].identity.restore()


def is_installed() -> bool:
    """Whether `import tensorflow` loads this project."""
    return bool(_installed)


def _names_of(*packages: str) -> Iterator[str]:
    for name in sys.modules:
        if any(name == package or name.startswith(f"{package}.") for package in packages):
            yield name
