"""Kernels for GPUs: kernel IR is rewritten to SPMD form, in which many threads run one program.

`independence.py` finds the loops whose trips threads may share. `spmd.py` rewrites a kernel. `device_module.py`
compiles it to PTX, or to machine code for this computer. `launch.py` runs it on a device: a GPU (`cuda.py`), or threads
of this computer (`emulator.py`). `entry.py` generates the code of its calls. `device_kernel.py`
has what the engine sees of a kernel.
"""
