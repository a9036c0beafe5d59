"""Transformations of printed loops: fusion of neighbouring nests, scalar replacement, hoisted allocations, reuse of
buffers, parallel parts, strip-mining, and polls for Ctrl-C.
"""
