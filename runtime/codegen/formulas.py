"""All functions over floats that kernels have of their own: name → how it is written (`lane_functions.Function`)."""

from __future__ import annotations

from runtime.codegen.lane_functions import FORMULAS
from runtime.codegen.vector_math import exp
from runtime.codegen.vector_pow import pow

__all__ = ["FORMULAS"]

# The modules are imported for what they add to it.
assert exp is FORMULAS["exp"]
assert pow is FORMULAS["pow"]
