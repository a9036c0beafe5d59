"""Elementwise functions: how a row of them is defined, arithmetic, comparison, elementary and special functions,
complex numbers.
"""
