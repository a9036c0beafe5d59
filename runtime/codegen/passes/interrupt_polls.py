"""Polls for Ctrl-C: each loop of a kernel checks regularly whether the user wants it to end.

    while i < n:                         while i < n:
        x = x * x                            x = x * x
                                             ticks = ticks + 1
                                   →         if ticks > 16777216:
                                                 ticks = 0
                                                 if lib.interrupted():
                                                     return 1, ...

All loops of a kernel share one counter of ticks. A trip adds roughly what its body costs, so that a poll happens some
ten times a second: often enough for a person, and rarely enough for the interpreter lock that it takes to cost nothing.
Counted loops poll outside their trips (`strip_mine.py`).
"""

from __future__ import annotations

from runtime.codegen.passes.kernel import Kernel, loops_inside_out


def run(kernel: Kernel) -> None:
    """Adds polls to the loops that have none yet (see `strip_mine.py`)."""
    for function in kernel.functions:
        for _, item in loops_inside_out(function.body):
            assert item.loop is not None
            item.body += kernel.ticking(function, item.loop.span, item.loop.cost)
            item.loop = None
