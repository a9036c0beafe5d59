"""`ag.linalg.LinearOperator` and the classes beside it: matrices known by their structure.

base.py          `LinearOperator`: hints, shapes, products, solutions, determinants; how operators are structures
elementary.py    identities, zeros, diagonals
matrices.py      operators of a matrix or of some of its entries
circulant.py     circulant matrices, also of blocks
combinations.py  products, inverses, adjoints, updates of operators
blocks.py        operators of blocks
sums.py          sums of operators
parts.py         what operators made of operators ask of their parts
"""

from autograph.linear_operators import blocks, circulant, combinations, sums

__all__ = ["blocks", "circulant", "combinations", "sums"]
