"""`ag.onnx`: functions as ONNX models, and ONNX models as functions."""

from __future__ import annotations

from autograph.onnx_models.export import OnnxModel, export
from autograph.onnx_models.load import OnnxFunction, load

__all__ = ["OnnxFunction", "OnnxModel", "export", "load"]
