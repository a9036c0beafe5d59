"""Graphs as ONNX models: one lowering per op of the table, in files by family."""
