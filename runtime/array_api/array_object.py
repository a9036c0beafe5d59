"""The methods and attributes that the array API standard requires of arrays and that tensors don't have otherwise."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from runtime.array_api.data_types import check_device
from runtime.array_api.linalg import matrix_transpose
from runtime.ops.convert import convert_to_tensor
from runtime.tensor import Tensor
from runtime.tracebacks import shows_no_frames
from runtime.variable import Variable

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def install(namespace: ModuleType) -> None:
    """Gives tensors and variables `__array_namespace__`, `to_device` and `mT`."""

    def array_namespace(self: Any, /, *, api_version: str | None = None) -> ModuleType:
        """The namespace of the array API standard. Raises ValueError for a version that isn't one of its versions."""
        if api_version not in (None, *_VERSIONS):
            raise ValueError(
                f"Unsupported version {api_version!r} of the array API standard; the versions are {_VERSIONS}."
            )
        return namespace

    def to_device(self: Any, device: Any, /, *, stream: Any = None) -> Tensor:
        """This tensor on `device`, which can only be the CPU. Raises ValueError for another device, or for a stream."""
        check_device(device)
        if stream is not None:
            raise ValueError("The CPU has no streams: to_device(stream=None).")
        return convert_to_tensor(self)

    for cls in (Tensor, Variable):
        members: dict[str, Any] = {
            "__array_namespace__": shows_no_frames(array_namespace),
            "to_device": shows_no_frames(to_device),
            "mT": property(matrix_transpose, doc="The last two axes exchanged."),
        }
        for name, member in members.items():
            setattr(cls, name, member)
