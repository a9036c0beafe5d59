"""`ag.types`: types of the public interface; those that TensorFlow has are in `experimental`."""

from __future__ import annotations

from autograph.namespaces import types_experimental as experimental

__all__ = ["experimental"]
