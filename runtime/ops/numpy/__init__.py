"""NumPy's functions, methods and universal functions on tensors, each by ops, and the protocols by which NumPy finds
them.
"""
