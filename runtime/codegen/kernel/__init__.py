"""What lowering works with: what stands for a graph's values, names, conversions; and the finished kernel, with how it
is called.
"""
