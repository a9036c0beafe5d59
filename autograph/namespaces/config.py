"""`ag.config`: devices, whether functions run eagerly, and how much memory the gradients of loops may take."""

from __future__ import annotations

from autograph.function.polymorphic import functions_run_eagerly, run_functions_eagerly
from runtime.autodiff.budget import get_gradient_memory, set_gradient_memory
from runtime.device import list_physical_devices

__all__ = [
    "functions_run_eagerly",
    "get_gradient_memory",
    "list_physical_devices",
    "run_functions_eagerly",
    "set_gradient_memory",
]
