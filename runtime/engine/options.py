"""What `ag.config.optimizer` and `ag.config.threading` get and set. Nothing is accepted silently that has no effect."""

from __future__ import annotations

from collections.abc import Mapping

from runtime.codegen.passes import parallelize
from runtime.engine import settings
from runtime.graph.passes import options as passes
from runtime.ops.random.stateful import STREAMS
from runtime.tracebacks import warn


def get_jit() -> bool | None:
    """When functions that don't say it themselves are compiled: True before the first run, False never, None aside."""
    return settings.jit_mode(None)


def set_jit(enabled: bool | str | None) -> None:
    """How functions run that have no `jit_compile` of their own: it has the meanings of that argument.

    enabled: True (or TensorFlow's "autoclustering"), False, or None, the default. Raises ValueError for others.
    """
    mode = True if enabled == "autoclustering" else enabled
    if mode not in (True, False, None) or isinstance(mode, str):
        raise ValueError(f"set_jit takes True, False, None or 'autoclustering', got {enabled!r}")
    settings.set_jit(mode)


def enable_op_determinism() -> None:
    """Makes the results of a program the same on each call and in each process of this machine, to the last bit.

    Operations are deterministic anyway, on any number of threads. But the interpreter and native code differ in the
    last bits of sums, products and functions like `exp`, and which of them answers is a matter of time: from here on
    it no longer is. Functions that don't say `jit_compile` are compiled before they first run; what has no native form
    is always interpreted, and a loop inside of it is native from its second trip on. Random operations without a seed
    raise RuntimeError. It can't be undone in the process.
    """
    settings.set_deterministic(True)
    STREAMS.needs_seed = True


def disable_op_determinism() -> None:
    """Takes `enable_op_determinism` back, for tests."""
    settings.set_deterministic(False)
    STREAMS.needs_seed = False


def is_deterministic() -> bool:
    """Whether `enable_op_determinism` has been called."""
    return settings.is_deterministic()


def get_intra_op_parallelism_threads() -> int:
    """How many threads a large elementwise nest or reduction runs on; 0: as many as there are cores.

    NumPy's linear algebra has threads of its own.
    """
    return parallelize.chosen_thread_count()


def get_inter_op_parallelism_threads() -> int:
    """1: operations of a program run one after another."""
    return 1


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """How many threads a large elementwise nest or reduction runs on; 0: as many as there are cores.

    Results don't depend on it. It holds for functions that are compiled already, too. Raises ValueError for negative
    numbers.
    """
    parallelize.set_thread_count(num_threads)


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Warns unless `num_threads` is 0 (as the system likes) or 1: operations run one after another."""
    if num_threads not in (0, 1):
        warn(f"{num_threads} threads were asked for, but one is used", UserWarning)


# TensorFlow's options for passes that this runtime doesn't have, or that can't be switched.
_OF_TENSORFLOW = frozenset(
    [
        "auto_mixed_precision", "auto_parallel", "debug_stripper", "dependency_optimization", "function_optimization",
        "implementation_selector", "layout_optimizer", "min_graph_nodes", "pin_to_host_optimization",
        "scoped_allocator_optimization",
    ]
)  # fmt: skip


def set_experimental_options(options: dict[str, bool]) -> None:
    """Switches graph passes for functions that are traced from now on.

    options: a dict of names to bools. On by default: "constant_folding", "common_subgraph_elimination",
    "dead_code_elimination" (native code leaves dead code out anyway), "arithmetic_optimization" (algebra that keeps
    every bit; its parts "strength_reduction" and "move_optimization", for reshapes and transposes, can be switched off
    alone), "conditional_optimization", "loop_optimization" (invariants and idle carries leave loops, products over rows
    become one), "shape_optimization", and of native code, when it is made, "remapping" (ops share loops over elements
    and rows) and "memory_optimization" (results in the memory of operands, allocations outside of loops). Off by
    default: "fast_math" (algebra as if numbers were real: signs of zero, infinities, NaN and last bits may change),
    "disable_meta_optimizer" (no passes over graphs but the removal of dead code).

    TensorFlow's other options warn that they have no effect. Raises ValueError for unknown names and TypeError for
    values that aren't bools.
    """
    if not isinstance(options, Mapping):
        raise TypeError(f"options must be a dictionary from names to bools, got {options!r}")
    known = {name: value for name, value in options.items() if name not in _OF_TENSORFLOW}
    passes.set_options(known)
    for name in options.keys() - known.keys():
        warn(f"option {name!r} has no effect here", UserWarning)


def get_experimental_options() -> dict[str, bool]:
    """The options that `set_experimental_options` has set."""
    return passes.chosen()
