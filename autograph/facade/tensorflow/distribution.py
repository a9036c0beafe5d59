"""`tf.distribute`: classes for several machines or devices, of which nothing here is an instance."""

from __future__ import annotations

from typing import Any

import autograph as ag


class _Absent:
    """A class that libraries name in `isinstance`, and that has no instances here."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        raise ag.errors.UnimplementedError(
            f"tf.distribute.{type(self).__name__} isn't there: programs run as one replica on one device"
        )


def _absent(name: str) -> type:
    return type(name, (_Absent,), {"__module__": "tensorflow.distribute"})


_STRATEGIES = [
    "CentralStorageStrategy", "MultiWorkerMirroredStrategy", "ParameterServerStrategy", "TPUStrategy",
]  # fmt: skip
_classes = {name: _absent(name) for name in [*_STRATEGIES, "DistributedDataset", "DistributedIterator"]}
_values = {name: _absent(name) for name in ["DistributedValues", "NestedValues"]}
_resolvers = {name: _absent(name) for name in ["TPUClusterResolver", "TFConfigClusterResolver"]}

MODULES: dict[str, dict[str, Any]] = {
    "tensorflow.distribute": {**_classes, **_values},
    "tensorflow.distribute.experimental": {name: _classes[name] for name in _STRATEGIES},
    "tensorflow.distribute.cluster_resolver": _resolvers,
    "tensorflow.tpu.experimental": {},
}
