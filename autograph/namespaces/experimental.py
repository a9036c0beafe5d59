"""`ag.experimental`: what TensorFlow keeps under this name."""

from __future__ import annotations

from autograph.namespaces import experimental_dlpack as dlpack
from autograph.namespaces import experimental_numpy as numpy

__all__ = ["dlpack", "numpy"]
