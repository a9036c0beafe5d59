"""Ctrl-C in native loops: each loop of a kernel asks now and then whether the user wants it to end.

    while i < n:                         while i < n:
        x = x * x                            x = x * x
                                             ticks = ticks + 1
                                   →         if ticks > 16777216:
                                                 ticks = 0
                                                 if lib.interrupted():
                                                     return 1, ...

All loops of a kernel share one counter of ticks. A trip counts for what its body costs, roughly, so that the question
comes some ten times a second: often enough for a person, and rarely enough that taking Python's lock for it costs
nothing. Loops that count ask outside of their trips (see `lower/counted_loops.py`).
"""

from __future__ import annotations

from runtime.codegen.passes.kernel import Kernel, loops_inside_out


def run(kernel: Kernel) -> None:
    """Has the loops ask that don't ask yet (see `strip_mine.py`)."""
    for function in kernel.functions:
        for _, item in loops_inside_out(function.body):
            assert item.loop is not None
            item.body += kernel.ticking(function, item.loop.span, item.loop.cost)
            item.loop = None
