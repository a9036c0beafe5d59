"""`tf_keras`: the name under which libraries look for Keras 2. Keras 3 answers.

Keras 2 builds TensorFlow's graphs by hand, hundreds of names of which have no meaning here. What libraries take of it
(optimizers, initializers, layers, models) Keras 3 has as well.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from autograph.facade.keras import LazyKeras

_MODULES: dict[str, dict[str, Any]] = {
    "__internal__": {},
    # Symbolic tensors of Keras 3 are of a class of its own.
    "__internal__.utils": {"register_symbolic_tensor_type": lambda cls: None},
    "api": {},
    "api._v1": {},
    "api._v1.keras.__internal__": {},
    "api._v1.keras.__internal__.legacy": {},
    "api._v1.keras.__internal__.legacy.layers": {},
}


def build() -> dict[str, ModuleType]:
    """The modules, by their full names."""
    made: dict[str, ModuleType] = {"tf_keras": LazyKeras("tf_keras")}
    for name, values in _MODULES.items():
        module = made[f"tf_keras.{name}"] = ModuleType(f"tf_keras.{name}")
        vars(module).update(values)
    made["tf_keras.api._v1.keras"] = LazyKeras("tf_keras.api._v1.keras")
    for path in sorted(made):
        parent, _, leaf = path.rpartition(".")
        if parent:
            setattr(made[parent], leaf, made[path])
    for module in made.values():
        module.__path__ = []
    return made
