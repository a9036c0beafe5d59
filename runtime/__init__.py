"""Everything that executes: tensors, ops, graph, gradients, code generation, engine.

This package never imports `autograph`; `tests/test_layers.py` keeps it so.
"""

from __future__ import annotations

import sys
from typing import Any


def __getattr__(name: str) -> Any:
    """Raises AttributeError that says whose package this is: a user may have a module of the same name."""
    raise AttributeError(
        f"module 'runtime' has no attribute '{name}': this is the package that autograph is made of "
        f"({__path__[0]}); a module of your own needs another name to be imported beside it",
        name=name,
        obj=sys.modules[__name__],
    )
