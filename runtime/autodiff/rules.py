"""Imported for its effect: the adjoints of ops with regions register themselves."""

from runtime.autodiff import branches, custom, loops

__all__ = ["branches", "custom", "loops"]
