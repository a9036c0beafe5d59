"""Passes over complete kernels, listed in `pipeline.py`: loop fusion, hoisting, strip-mining, polls for Ctrl-C, scalar
replacement, parallelisation. Lowering calls `parallelize.is_large` as well (`Lowering.is_large`).
"""
