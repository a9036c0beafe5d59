"""Symbolic integers at compile time: dimensions as polynomials of the arguments' sizes, ranges of indices and
counters, and the assumptions about sizes that a kernel checks when it is entered.
"""
