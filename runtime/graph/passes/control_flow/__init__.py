"""Passes over loops and branches, for graphs that have some."""
