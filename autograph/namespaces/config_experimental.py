"""`ag.config.experimental`: determinism, memory of GPUs, and the older names of what `ag.config` has."""

from __future__ import annotations

from runtime.device import (
    LogicalDeviceConfiguration as VirtualDeviceConfiguration,
)
from runtime.device import (
    get_device_details,
    get_memory_growth,
    get_memory_info,
    get_transfer_info,
    get_visible_devices,
    list_logical_devices,
    list_physical_devices,
    reset_memory_stats,
    set_memory_growth,
    set_visible_devices,
)
from runtime.device import (
    get_logical_device_configuration as get_virtual_device_configuration,
)
from runtime.device import (
    set_logical_device_configuration as set_virtual_device_configuration,
)
from runtime.engine.options import enable_op_determinism
from runtime.gpu.cublas import enable_tensor_float_32_execution, tensor_float_32_execution_enabled

__all__ = [
    "VirtualDeviceConfiguration", "enable_op_determinism", "enable_tensor_float_32_execution", "get_device_details",
    "get_memory_growth", "get_memory_info", "get_transfer_info", "get_virtual_device_configuration",
    "get_visible_devices", "list_logical_devices", "list_physical_devices", "reset_memory_stats", "set_memory_growth",
    "set_virtual_device_configuration", "set_visible_devices", "tensor_float_32_execution_enabled",
]  # fmt: skip
