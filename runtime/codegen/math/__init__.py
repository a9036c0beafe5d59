"""Elementary functions in kernels: formulas without branches over scalars and vectors, their coefficients, and the
table of functions that both backends read.
"""
