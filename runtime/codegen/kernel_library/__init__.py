"""The functions that kernels call, which both backends compile together with a kernel. Only kernel files import them,
since they need numba.
"""
