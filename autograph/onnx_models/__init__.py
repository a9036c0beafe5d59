"""`ag.onnx`: functions as ONNX models, and ONNX models as functions."""
