"""Lowers a graph to the IR of one kernel: the state of one lowering, the walk over the nodes, counted loops and
recursive functions.
"""
