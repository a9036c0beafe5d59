"""Linear algebra: matrix products, norms, diagonals, solutions of linear systems, factorisations, functions of
matrices.
"""
