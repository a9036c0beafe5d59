"""The passes over kernels, in order. A pass is a file with `run(kernel)`, which changes the kernel in place, and a line
here. `autograph graph FILE:f --kernel-passes` shows what each one changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime.codegen.passes import (
    coalesce_copies,
    hoist_allocations,
    interrupt_polls,
    loop_fusion,
    merge_functions,
    parallelize,
    scalar_replacement,
    strip_mine,
)
from runtime.codegen.passes.kernel import Kernel
from runtime.kernel_ir.print_python import function as printed
from runtime.kernel_ir.verify import verify
from runtime.pass_log import run_pass

PASSES: tuple[tuple[str, Callable[[Kernel], None]], ...] = (
    ("loop fusion", loop_fusion.run),
    # Before strip-mining: what is hoisted has to leave all loops that the loop becomes.
    ("hoisting", hoist_allocations.run),
    ("strip-mining", strip_mine.run),
    ("interrupt polls", interrupt_polls.run),
    ("scalar replacement", scalar_replacement.run),
    # After the passes that need the names of loop carries.
    ("copy coalescing", coalesce_copies.run),
    # Late: the passes before it needn't look into the functions that threads run.
    ("parallelisation", parallelize.run),
    ("function merging", merge_functions.run),
)


def run_passes(kernel: Kernel) -> None:
    """Runs all passes. With AUTOGRAPH_STRICT=1, raises InvalidKernel if one breaks a rule of the kernel IR."""
    _verify(kernel, "lowering")
    for name, run in PASSES:
        run_pass("kernel", name, run, kernel, _text)
        _verify(kernel, name)


def _verify(kernel: Kernel, stage: str) -> None:
    constants = {name for name, _ in kernel.constants}
    given = {name: {*known, *kernel.starts[name], *constants} for name, known in kernel.given.items()}
    verify(kernel.functions, len(kernel.sites), stage, given)


def _text(kernel: Kernel, names: dict[Any, Any]) -> str:
    return "\n\n\n".join(printed(function) for function in kernel.functions)
