"""The backend that has numba compile a kernel, for text that `llvm_backend.py` refuses, and the parts of the kernel
library that only numba compiles.
"""
