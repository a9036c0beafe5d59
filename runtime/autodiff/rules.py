"""Registers the adjoints of ops with regions, by importing their modules."""

from runtime.autodiff import branches, custom, loops, recursion

__all__ = ["branches", "custom", "loops", "recursion"]
