"""What ONNX' operators compute, written with public ops: rows of `registry.OPERATORS`, in files by family."""
