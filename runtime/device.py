"""Devices: what there is, and the `device` block that says where ops should run. Only the CPU so far."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from runtime.context import ctx


@dataclass(frozen=True)
class PhysicalDevice:
    """A device of this machine."""

    name: str
    device_type: str

    def __repr__(self) -> str:
        return f"PhysicalDevice(name='{self.name}', device_type='{self.device_type}')"


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of this machine, of one type ("CPU", "GPU") if given."""
    devices = [PhysicalDevice("/physical_device:CPU:0", "CPU")]
    return [d for d in devices if device_type is None or d.device_type == device_type]


_NAME = re.compile(r"^(/job:\w+)?(/replica:\d+)?(/task:\d+)?/?(device:)?(?P<type>[A-Za-z_]+)(:(?P<index>\d+|\*))?$")


def parse(name: str) -> tuple[str, int]:
    """Type and index of a device name such as "/gpu:0", "CPU:0" or TensorFlow's long form.

    Raises ValueError for a name that isn't one.
    """
    found = _NAME.match(name)
    if found is None:
        raise ValueError(f"Malformed device specification '{name}': expected a name such as '/CPU:0' or '/GPU:0'.")
    index = found["index"]
    return found["type"].upper(), 0 if index in (None, "*") else int(index)


@contextmanager
def device(device_name: Any) -> Iterator[None]:
    """A block whose ops should run on a device. A device that this machine lacks is replaced by the CPU.

    Raises ValueError for a malformed name.
    """
    if device_name is not None:
        parse(device_name)
    before = ctx.device
    ctx.device = device_name
    try:
        yield
    finally:
        ctx.device = before
