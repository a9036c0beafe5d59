"""GPUs: what has memory and threads of its own beside the processor, and the arrays that lie there.

`interface.py` says what is asked of one, `cuda.py` is NVIDIA's driver, `emulator.py` stands for a GPU where there is
none; `memory.py` keeps account of what lies in one. Nothing here knows tensors or kernels.
"""
