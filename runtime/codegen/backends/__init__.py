"""From a kernel's text to a callable: the backends that compile it, the driver that chooses between them and keeps
what they give, the Python stub around a kernel, and the index from graphs to kernels.
"""
