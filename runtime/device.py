"""Devices: what there is, and the `device` block that says where ops should run. Only the CPU so far."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from runtime.context import ctx
from runtime.errors import InvalidArgumentError


@dataclass(frozen=True)
class PhysicalDevice:
    """A device of this machine."""

    name: str
    device_type: str

    def __repr__(self) -> str:
        return f"PhysicalDevice(name='{self.name}', device_type='{self.device_type}')"


@dataclass(frozen=True)
class LogicalDevice:
    """What a program places operations on: a physical device, or a part of one."""

    name: str
    device_type: str

    def __repr__(self) -> str:
        return f"LogicalDevice(name='{self.name}', device_type='{self.device_type}')"


_soft_placement = True


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of this machine, of one type ("CPU", "GPU") if given."""
    devices = [PhysicalDevice("/physical_device:CPU:0", "CPU")]
    return [d for d in devices if device_type is None or d.device_type == device_type]


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that `device` takes, of one type ("CPU", "GPU") if given."""
    found: list[LogicalDevice] = []
    for physical in list_physical_devices(device_type):
        count = len(_logical.get(physical.name, ())) or 1
        found += [LogicalDevice(f"/device:{physical.device_type}:{i}", physical.device_type) for i in range(count)]
    return found


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The physical devices that are used: all that there are."""
    return list_physical_devices(device_type)


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Says which devices are to be used. They can't be hidden here.

    Raises ValueError for something that is none of `list_physical_devices()`, or for a list that leaves out the CPU.
    """
    wanted = list(devices) if isinstance(devices, (list, tuple)) else [] if devices is None else [devices]
    there = list_physical_devices(device_type)
    for each in wanted:
        if each not in there:
            raise ValueError(f"Unrecognized device: {each!r}; there are {there}")
    if set(there) - set(wanted):
        raise ValueError(f"Devices can't be hidden: {sorted(d.name for d in set(there) - set(wanted))}")


def get_soft_device_placement() -> bool:
    """Whether a device that this machine lacks is replaced by the CPU (as it is unless told otherwise)."""
    return _soft_placement


def set_soft_device_placement(enabled: bool) -> None:
    """With False a `device` block for a device that this machine lacks raises InvalidArgumentError."""
    global _soft_placement
    _soft_placement = bool(enabled)


@dataclass(frozen=True)
class LogicalDeviceConfiguration:
    """How large a logical device is. The CPU's memory isn't divided, so the limit is only remembered."""

    memory_limit: float | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


_logical: dict[str, list[LogicalDeviceConfiguration]] = {}


def set_logical_device_configuration(device: PhysicalDevice, logical_devices: list[LogicalDeviceConfiguration]) -> None:
    """Divides a device into logical ones (`CPU:0`, `CPU:1`, ...), all of which run on it.

    Raises ValueError for a device that isn't there.
    """
    if device not in list_physical_devices():
        raise ValueError(f"Unrecognized device: {device!r}")
    _logical[device.name] = list(logical_devices)


def get_logical_device_configuration(device: PhysicalDevice) -> list[LogicalDeviceConfiguration] | None:
    """What `set_logical_device_configuration` set, or None."""
    return _logical.get(getattr(device, "name", ""))


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

    Raises ValueError for a malformed name, InvalidArgumentError for a device that isn't there if
    `set_soft_device_placement(False)` was called.
    """
    if device_name is not None:
        kind, index = parse(device_name)
        if not _soft_placement and f"/device:{kind}:{index}" not in [d.name for d in list_logical_devices()]:
            raise InvalidArgumentError(
                f"Could not satisfy device specification '{device_name}': there are {list_logical_devices()}, and soft "
                "placement is off"
            )
    before = ctx.device
    ctx.device = device_name
    try:
        yield
    finally:
        ctx.device = before


class VariableSynchronization(enum.Enum):
    """How copies of a variable on several devices would be kept equal. All variables are in one place here."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How updates of a variable from several devices would be put together."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
