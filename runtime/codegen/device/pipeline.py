"""The passes that make a kernel one that all threads of a GPU run, in order. A pass is a file with `run(kernel)`, which
changes the kernel in place, and a line here. `autograph graph FILE:f --device-passes` shows what each one changes.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.codegen.device import counted_loops, poll_intervals, several_trips, spmd
from runtime.codegen.device.kernel import Kernel, printed
from runtime.kernel_ir.verify import verify
from runtime.pass_log import run_pass

PASSES: tuple[tuple[str, Callable[[Kernel], None]], ...] = (
    ("poll intervals", poll_intervals.run),
    # Threads share only loops over ranges.
    ("counted loops", counted_loops.run),
    ("SPMD form", spmd.run),
    ("several trips", several_trips.run),
)


def run_passes(kernel: Kernel, last: str | None = None) -> None:
    """Runs the passes up to the one of this name. With AUTOGRAPH_STRICT=1, raises InvalidKernel if one breaks a rule of
    the kernel IR. Raises NotOnDevice."""
    for name, run in PASSES:
        run_pass("device", name, run, kernel, printed)
        verify(kernel.functions, stage=name)
        if name == last:
            return
