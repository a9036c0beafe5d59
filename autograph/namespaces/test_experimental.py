"""`ag.test.experimental`: waiting for devices, to measure time."""

from runtime.device import sync_devices

__all__ = ["sync_devices"]
