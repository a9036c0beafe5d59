"""`ag.config`: devices, optimisation, threads, and whether functions run eagerly."""

from __future__ import annotations

from autograph.function.polymorphic import functions_run_eagerly, run_functions_eagerly
from autograph.namespaces import config_experimental as experimental
from autograph.namespaces import config_optimizer as optimizer
from autograph.namespaces import config_threading as threading
from runtime.autodiff.budget import get_gradient_memory, set_gradient_memory
from runtime.device import (
    LogicalDevice,
    LogicalDeviceConfiguration,
    PhysicalDevice,
    emulate_gpus,
    get_logical_device_configuration,
    get_soft_device_placement,
    get_visible_devices,
    list_logical_devices,
    list_physical_devices,
    set_logical_device_configuration,
    set_soft_device_placement,
    set_visible_devices,
)
from runtime.engine.options import enable_op_determinism
from runtime.progress import show_progress, shows_progress

__all__ = [
    "LogicalDevice", "LogicalDeviceConfiguration", "PhysicalDevice", "emulate_gpus", "enable_op_determinism",
    "experimental", "functions_run_eagerly", "get_gradient_memory", "get_logical_device_configuration",
    "get_soft_device_placement",
    "get_visible_devices", "list_logical_devices", "list_physical_devices", "optimizer", "run_functions_eagerly",
    "set_gradient_memory", "set_logical_device_configuration", "set_soft_device_placement", "set_visible_devices",
    "show_progress", "shows_progress", "threading",
]  # fmt: skip
