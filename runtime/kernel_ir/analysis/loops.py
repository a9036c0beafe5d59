"""Loops: jumps out of them, and their counters."""

from __future__ import annotations

from typing import NamedTuple

from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.uses import assignment_counts


class Counter(NamedTuple):
    """The counter of a loop: `while variable < limit`, and a statement of its body that adds 1, number `step`."""

    variable: ir.Var
    limit: ir.Expr
    step: int


def counter_of(loop: ir.While) -> Counter | None:
    """The counter of a loop, if its trips don't change it otherwise, nor the limit."""
    test = loop.test
    if not isinstance(test, ir.Compare) or test.op != "<" or not isinstance(test.left, ir.Var):
        return None
    index = test.left
    times = assignment_counts(ir.walk(loop.body))
    if times[index.name] != 1 or any(times[name] for name in ir.variables(test.right)):
        return None
    for position, item in enumerate(loop.body):
        if isinstance(item, ir.Assign) and item.targets == (index.name,):
            return Counter(index, test.right, position) if item.value == ir.Binary("+", index, ir.ONE) else None
    return None


def has_loops(block: ir.Block) -> bool:
    return any(isinstance(item, (ir.While, ir.For)) for item in ir.walk(block))


def jumps_out(block: ir.Block) -> bool:
    """Whether a block has a `break` or `continue` of the loop around it."""
    for item in block:
        if isinstance(item, (ir.Break, ir.Continue)):
            return True
        if isinstance(item, ir.If) and (jumps_out(item.body) or jumps_out(item.orelse)):
            return True
    return False
