"""Kernels as they are printed: the values that stand for a graph's, names, literals, and the finished text with what
its caller needs to know.
"""
