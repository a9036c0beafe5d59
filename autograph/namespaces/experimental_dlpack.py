"""`ag.experimental.dlpack`: tensors handed to and from other libraries in the exchange format of arrays, DLPack."""

from __future__ import annotations

from runtime.ops.numpy.protocol import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
