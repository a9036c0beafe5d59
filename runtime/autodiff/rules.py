"""Imported for its effect: the adjoints of ops with regions register themselves."""

from runtime.autodiff import branches, custom, loops, recursion

__all__ = ["branches", "custom", "loops", "recursion"]
