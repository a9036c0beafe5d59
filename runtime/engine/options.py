"""The settings of `ag.config.optimizer` and `ag.config.threading`. A setting without effect warns or raises."""

from __future__ import annotations

from collections.abc import Mapping

from runtime.codegen.passes import parallelize
from runtime.engine import settings
from runtime.graph.passes import options as passes
from runtime.ops.random.stateful import STREAMS
from runtime.tracebacks import warn


def get_jit() -> bool | None:
    """When functions without a `jit_compile` argument are compiled: True: before the first run; False: never; None: in
    the background."""
    return settings.jit_mode(None)


def set_jit(enabled: bool | str | None) -> None:
    """Sets the `jit_compile` of functions that have none of their own.

    enabled: True (or TensorFlow's "autoclustering"), False, or None, the default. Raises ValueError for others.
    """
    mode = True if enabled == "autoclustering" else enabled
    if mode not in (True, False, None) or isinstance(mode, str):
        raise ValueError(f"set_jit takes True, False, None or 'autoclustering', got {enabled!r}")
    settings.set_jit(mode)


def enable_op_determinism() -> None:
    """Makes a program's results the same to the last bit, on each call and in each process of this machine.

    Operations are deterministic anyway, on any number of threads. But the interpreter and native code differ in the
    last bits of sums, products and functions like `exp`, and by default timing decides which of them runs. After this
    call it no longer does: functions without a `jit_compile` argument are compiled before they first run; operations
    that can't be compiled are always interpreted, and a loop inside of one is native from its second iteration on.
    Random operations without a seed raise RuntimeError. It can't be undone in the process.
    """
    settings.set_deterministic(True)
    STREAMS.needs_seed = True


def disable_op_determinism() -> None:
    """Undoes `enable_op_determinism`, for tests."""
    settings.set_deterministic(False)
    STREAMS.needs_seed = False


def is_deterministic() -> bool:
    """Whether `enable_op_determinism` has been called."""
    return settings.is_deterministic()


def get_intra_op_parallelism_threads() -> int:
    """The number of threads for a large elementwise pass or reduction; 0: one for each core. NumPy's linear algebra has

    its own threads.
    """
    return parallelize.chosen_thread_count()


def get_inter_op_parallelism_threads() -> int:
    """Always 1: operations of a program run one after another."""
    return 1


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Sets the number of threads for a large elementwise pass or reduction; 0: one for each core.

    Results don't depend on it. It also applies to functions that are compiled already. Raises ValueError for negative
    numbers.
    """
    parallelize.set_thread_count(num_threads)


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Warns unless `num_threads` is 0 (the system's choice) or 1: operations run one after another."""
    if num_threads not in (0, 1):
        warn(f"{num_threads} threads were requested, but one is used: operations run one after another", UserWarning)


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
    "dead_code_elimination" (native code contains no dead code anyway), "arithmetic_optimization" (algebra that keeps
    every bit; its parts "strength_reduction" and "move_optimization", for reshapes and transposes, can be switched off
    alone), "conditional_optimization", "loop_optimization" (invariants and idle carries leave loops, products over rows
    become one), "shape_optimization", "communication_overlap" (replicas reduce gradients while they compute others),
    and of native code, when it is made, "remapping" (ops share loops over elements and rows) and "memory_optimization"
    (results in the memory of operands, allocations outside of loops). Off by default: "fast_math" (algebra as if
    numbers were real: signs of zero, infinities, NaN and last bits may change), "disable_meta_optimizer" (no graph
    passes except the removal of dead code).

    TensorFlow's other options have no effect and give a warning. Raises ValueError for unknown names and TypeError for
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
