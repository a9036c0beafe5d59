"""Which graph passes run, and how: what `ag.config.optimizer.set_experimental_options` sets.

Options are read when a function is traced; functions that are traced already stay as they are. Those of native code
(`remapping`: fusion; `memory_optimization`: results in the memory of operands, allocations that leave loops) are read
when it is made.
"""

from __future__ import annotations

_DEFAULTS = {
    "constant_folding": True,
    "common_subgraph_elimination": True,
    "arithmetic_optimization": True,
    "loop_optimization": True,
    "conditional_optimization": True,
    "shape_optimization": True,
    # Parts of arithmetic_optimization.
    "strength_reduction": True,
    "move_optimization": True,
    "dead_code_elimination": True,
    # What workers send each other, beside what they compute.
    "communication_overlap": True,
    # Of native code.
    "remapping": True,
    "memory_optimization": True,
    # Rules that hold for real numbers but not for every floating-point number (see `algebra.py`).
    "fast_math": False,
    "disable_meta_optimizer": False,
}
_chosen: dict[str, bool] = {}
# What `disable_meta_optimizer` leaves as it is.
_APART = frozenset({"fast_math", "dead_code_elimination", "remapping", "memory_optimization"})


def get(name: str) -> bool:
    """Whether an option is on."""
    if name not in _APART and _chosen.get("disable_meta_optimizer"):
        return name == "disable_meta_optimizer"
    return _chosen.get(name, _DEFAULTS[name])


def names() -> tuple[str, ...]:
    """The options that mean something here."""
    return tuple(_DEFAULTS)


def chosen() -> dict[str, bool]:
    """The options that were set."""
    return dict(_chosen)


def set_options(values: dict[str, bool]) -> None:
    """Sets options. Raises ValueError for a name that means nothing here, TypeError for a value that isn't a bool."""
    for name, value in values.items():
        if name not in _DEFAULTS:
            raise ValueError(f"unknown option {name!r}; the options are {', '.join(_DEFAULTS)}")
        if not isinstance(value, bool):
            raise TypeError(f"option {name!r} must be a bool, not {value!r}")
    _chosen.update(values)
