"""`ag.config`: devices, and whether functions run eagerly."""

from __future__ import annotations

from autograph.function.polymorphic import functions_run_eagerly, run_functions_eagerly
from runtime.device import list_physical_devices

__all__ = ["functions_run_eagerly", "list_physical_devices", "run_functions_eagerly"]
