"""Machine code for calls like a function's earlier ones: the record of these calls, its encoding, and the parts of the
code: guards, the kernel's call, and the entry from Python.
"""
