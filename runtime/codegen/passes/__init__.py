"""Rewrites of complete kernels, listed in `pipeline.py`: loop fusion, hoisting, strip-mining, polls for Ctrl-C, scalar
replacement, parallelisation. `buffer_reuse.py` and `parallelize.is_large` are asked while a graph is lowered.
"""
