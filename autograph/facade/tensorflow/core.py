"""`tensorflow` itself: what it has beside the names of `autograph`."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

import numpy as np

import autograph as ag
from autograph.distribute.values import PerReplica
from runtime.type_specs import (
    CompositeTensor,
    TypeSpec,
    register_type_spec_from_value_converter,
    type_spec_from_value,
)

# The version whose names and contracts ours follow.
VERSION = "2.21.0"


for _cls in (ag.IndexedSlices, ag.experimental.Optional, ag.TensorArray, PerReplica):
    CompositeTensor.register(_cls)
for _spec in (ag.OptionalSpec, ag.data.DatasetSpec):
    TypeSpec.register(_spec)
register_type_spec_from_value_converter(
    ag.experimental.Optional, lambda value: ag.OptionalSpec(value.element_spec), allow_subclass=True
)


class DeviceSpec:
    """A device by its parts, as in "/job:worker/task:1/device:GPU:0"."""

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        self.job, self.replica, self.task = job, replica, task
        self.device_type, self.device_index = device_type, device_index

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """The parts of a device's name. Raises ValueError for a part that isn't known."""
        found = cls()
        for part in filter(None, spec.split("/")):
            kind, _, rest = part.partition(":")
            if kind == "job":
                found.job = rest
            elif kind in ("replica", "task"):
                setattr(found, kind, int(rest))
            elif kind == "device":
                name, _, index = rest.partition(":")
                found.device_type = name.upper()
                found.device_index = None if index in ("", "*") else int(index)
            elif kind.lower() in ("cpu", "gpu"):
                found.device_type, found.device_index = kind.upper(), int(rest) if rest else None
            else:
                raise ValueError(f"Unknown attribute {part!r} is encountered while parsing the device spec {spec!r}")
        return found

    def to_string(self) -> str:
        """The name that `from_string` reads."""
        parts = [("job", self.job), ("replica", self.replica), ("task", self.task)]
        text = "".join(f"/{name}:{value}" for name, value in parts if value is not None)
        if self.device_type is None:
            return text
        return f"{text}/device:{self.device_type}:{'*' if self.device_index is None else self.device_index}"


class AbsentType:
    """A dtype of TensorFlow's that no tensor has here: libraries name it in tables."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"tf.{self.name}"


_ABSENT_TYPES = ("qint8", "qint16", "qint32", "quint8", "quint16", "resource", "variant")


def xla_compile(computation: Callable[..., Any], inputs: Any = None) -> Any:
    """The results of a function, compiled before it runs, in a list; raises what `function(jit_compile=True)` does."""
    found = ag.function(computation, jit_compile=True)(*(inputs or ()))
    return list(found) if isinstance(found, (list, tuple)) else [] if found is None else [found]


# Names in saved models: keys of signatures, tags, parts of paths.
_SAVED_MODEL = {
    "ASSETS_DIRECTORY": "assets", "ASSETS_KEY": "saved_model_assets", "CLASSIFY_INPUTS": "inputs",
    "CLASSIFY_METHOD_NAME": "tensorflow/serving/classify", "CLASSIFY_OUTPUT_CLASSES": "classes",
    "CLASSIFY_OUTPUT_SCORES": "scores", "DEFAULT_SERVING_SIGNATURE_DEF_KEY": "serving_default", "GPU": "gpu",
    "PREDICT_INPUTS": "inputs", "PREDICT_METHOD_NAME": "tensorflow/serving/predict", "PREDICT_OUTPUTS": "outputs",
    "REGRESS_INPUTS": "inputs", "REGRESS_METHOD_NAME": "tensorflow/serving/regress", "REGRESS_OUTPUTS": "outputs",
    "SERVING": "serve", "TPU": "tpu", "TRAINING": "train",
}  # fmt: skip

MODULES: dict[str, dict[str, Any]] = {
    "tensorflow": {
        "CompositeTensor": CompositeTensor,
        "DeviceSpec": DeviceSpec,
        "TypeSpec": TypeSpec,
        "__git_version__": f"autograph-{ag.__version__}",
        "__version__": VERSION,
        "get_logger": lambda: logging.getLogger("tensorflow"),
        "type_spec_from_value": type_spec_from_value,
        **{name: AbsentType(name) for name in _ABSENT_TYPES},
    },
    "tensorflow.xla.experimental": {
        "compile": xla_compile,
        "jit_scope": lambda compile_ops=True, separate_compiled_gradients=False: contextlib.nullcontext(),
    },
    "tensorflow.config": {
        "experimental_functions_run_eagerly": ag.config.functions_run_eagerly,
        "experimental_run_functions_eagerly": ag.config.run_functions_eagerly,
    },
    "tensorflow.experimental.dtensor": {},
    "tensorflow.experimental.numpy": {
        "complex_": np.complex128,
        "float_": np.float64,
        "int_": np.int64,
        "object_": np.object_,
        "string_": np.bytes_,
        "unicode_": np.str_,
    },
    "tensorflow.saved_model": _SAVED_MODEL,
    "tensorflow.version": {"GIT_VERSION": f"autograph-{ag.__version__}", "VERSION": VERSION},
    "tensorflow.sysconfig": {
        "get_build_info": lambda: {"is_cuda_build": False, "is_rocm_build": False, "is_tensorrt_build": False}
    },
}
