"""Kernels for the many threads of a device, a GPU: kernel IR becomes kernel IR in SPMD form.

`independence.py` finds the loops whose trips threads may share, `spmd.py` rewrites a kernel, `device_module.py` makes
PTX of it, or machine code of this computer, and `launch.py` runs that on a device: `cuda.py`, or `emulator.py`, whose
threads are this computer's.
"""
