"""`ag.config.experimental`: determinism, and the older names of what `ag.config` has."""

from __future__ import annotations

from runtime.device import (
    LogicalDeviceConfiguration as VirtualDeviceConfiguration,
)
from runtime.device import (
    get_logical_device_configuration as get_virtual_device_configuration,
)
from runtime.device import (
    list_logical_devices,
    list_physical_devices,
)
from runtime.device import (
    set_logical_device_configuration as set_virtual_device_configuration,
)
from runtime.engine.options import enable_op_determinism

__all__ = [
    "VirtualDeviceConfiguration", "enable_op_determinism", "get_virtual_device_configuration", "list_logical_devices",
    "list_physical_devices", "set_virtual_device_configuration",
]  # fmt: skip
