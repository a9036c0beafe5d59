"""From groups of fused nodes to loop nests: which nodes share a nest, how its operands are indexed, reductions, and
arrays that exist only as views or as scalars.
"""
