"""Collective operations: sums and the like over the workers of a program, be they processes or threads."""
