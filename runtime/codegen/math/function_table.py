"""The table of all elementary functions that are built here: name → `vector_functions.Function`."""

from __future__ import annotations

from runtime.codegen.math.elementary_functions import exp
from runtime.codegen.math.power import pow
from runtime.codegen.math.vector_functions import FORMULAS

__all__ = ["FORMULAS"]

# The modules add their functions when they are imported.
assert exp is FORMULAS["exp"]
assert pow is FORMULAS["pow"]
