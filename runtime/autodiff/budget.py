"""How much memory a loop may use for its gradient, and which setting decides it.

    per loop        the loop's `memory` attribute, from `set_loop_options(gradient_memory=...)` or `ag.while_loop`
    per function    the same attribute, from `ag.function(gradient_memory=...)`
    inherited       half of the budget of the loop around it
    global          `ag.config.set_gradient_memory(...)`

The first one that is set applies. The first two are strict: a loop that can't keep to them raises. The other two also
apply to loops that the user didn't have in mind, so a loop that can't keep to them saves all its residuals instead.
"""

from __future__ import annotations

from typing import Any

from runtime.dataclass import dataclass
from runtime.graph.ir import Node


@dataclass(frozen=True)
class Budget:
    """`bytes` for the residuals and checkpoints of one loop. strict: raise when they don't suffice."""

    bytes: int
    strict: bool = True

    def half(self) -> Budget:
        return Budget(self.bytes // 2, False)


def as_budget(value: Any) -> Budget | None:
    """The budget of `value` bytes; None for None. Raises TypeError or ValueError for what isn't a positive int."""
    if value is None:
        return None
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"gradient_memory must be a number of bytes, a Python int, not {value!r}")
    size = int(value.__index__())
    if size <= 0:
        raise ValueError(f"gradient_memory must be a positive number of bytes, not {size}")
    return Budget(size)


_everywhere: Budget | None = None


def set_gradient_memory(value: int | None) -> None:
    """Sets the budget, in bytes, of loops without a budget of their own; None: no limit. Applies to gradients built
    later."""
    global _everywhere
    budget = as_budget(value)
    _everywhere = None if budget is None else Budget(budget.bytes, strict=False)


def get_gradient_memory() -> int | None:
    """The budget that `set_gradient_memory` has set, in bytes; None: no limit."""
    return None if _everywhere is None else _everywhere.bytes


def memory_of_function(builder: Any) -> Budget | None:
    """The budget that the function being traced gives to its loops."""
    while builder.parent is not None:
        builder = builder.parent
    found: Budget | None = getattr(builder, "memory_of_loops", None)
    return found


def budget_of(loop: Node, builder: Any) -> Budget | None:
    """The budget of a `while` whose adjoint is being built in `builder`; None where nothing bounds it."""
    own: Budget | None = loop.attrs.get("memory")
    if own is not None:
        return own
    while builder is not None:
        around: Budget | None = getattr(builder, "memory", None)
        if around is not None:
            return around.half()
        builder = builder.parent
    return _everywhere
