"""`tf.distribute`: also the classes that libraries look for there and that nothing here is an instance of."""

from __future__ import annotations

from typing import Any

import autograph as ag


class _Absent:
    """A class that libraries name in `isinstance`, and that has no instances here."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        raise ag.errors.UnimplementedError(
            f"tf.distribute.{type(self).__name__} isn't supported: use tf.distribute.MirroredStrategy for a replica on "
            "each device, or tf.distribute.MultiWorkerMirroredStrategy for one in each MPI process"
        )


def _absent(name: str) -> type:
    return type(name, (_Absent,), {"__module__": "tensorflow.distribute"})


class TPUClusterResolver(_Absent):
    """Programs that run where there are TPUs, and elsewhere as well, catch TensorFlow's error where there are none."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        raise ValueError("Please provide a TPU Name to connect to. (There are no TPUs here: leave the resolver out.)")

    @classmethod
    def connect(cls, *arguments: Any, **options: Any) -> Any:
        """Raises ValueError."""
        return cls()


_STRATEGIES = ["CentralStorageStrategy", "ParameterServerStrategy", "TPUStrategy"]
_classes = {name: _absent(name) for name in _STRATEGIES}
_values = {"DistributedValues": ag.distribute.DistributedValues, "NestedValues": _absent("NestedValues")}
_resolvers = {
    "TFConfigClusterResolver": _absent("TFConfigClusterResolver"), "TPUClusterResolver": TPUClusterResolver
}  # fmt: skip

MODULES: dict[str, dict[str, Any]] = {
    "tensorflow.distribute": {**_classes, **_values, "DistributedIterator": ag.data.Iterator},
    "tensorflow.distribute.experimental": {
        **{name: _classes[name] for name in _STRATEGIES},
        "MultiWorkerMirroredStrategy": ag.distribute.MultiWorkerMirroredStrategy,
    },
    "tensorflow.distribute.cluster_resolver": _resolvers,
    "tensorflow.tpu.experimental": {},
}
