"""Native code that lives as long as the process, and with which kernels are linked: the thread pool, the allocator of
large blocks, matrix products, and the loader of such code.
"""
