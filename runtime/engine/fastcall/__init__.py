"""Calls of settled functions in machine code: what a function's earlier calls have been, how they are encoded for the
machine code, and its parts: guards, the kernel's call, and the entry from Python.
"""
