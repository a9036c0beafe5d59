"""Loops of scalars and of small steps: what they would be in numba or C."""
