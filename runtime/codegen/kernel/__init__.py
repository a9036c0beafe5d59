"""The material of lowering: representations of a graph's values, names, conversions; and the finished kernel with its
calling convention.
"""
