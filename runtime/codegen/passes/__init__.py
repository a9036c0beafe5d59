"""Rewrites of complete kernels, listed in `pipeline.py`: loop fusion, hoisting, strip-mining, polls for Ctrl-C, scalar
replacement, parallelisation. `parallelize.is_large` is asked while a graph is lowered (`Lowering.is_large`).
"""
