"""Native code that lives as long as the process, and that kernels are linked with: the thread pool, the allocator of
large blocks, matrix products, and what writes and loads such code.
"""
