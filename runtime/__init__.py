"""Everything that executes: tensors, ops, graph, gradients, code generation, engine.

This package never imports `autograph`; `tests/test_layers.py` keeps it so.
"""
