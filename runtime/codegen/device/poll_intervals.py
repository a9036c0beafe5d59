"""Loops poll for Ctrl-C after fewer ticks: a GPU's thread is slower than the processor.

if ticks > 16777216:                             if ticks > 1048576:
    ticks = 0                                        ticks = 0
    if lib.interrupted():              →             if lib.interrupted():
        …                                                …
"""

from __future__ import annotations

from runtime.codegen import cost_model
from runtime.codegen.device.kernel import Kernel
from runtime.kernel_ir import ir


def run(kernel: Kernel) -> None:
    for function in kernel.functions:
        ir.map_block(function.body, _shortened)


def _shortened(item: ir.Expr) -> ir.Expr | None:
    if isinstance(item, ir.Compare) and item.left == ir.Var(ir.TICKS) and item.op == ">":
        return item.left.compare(">", cost_model.DEVICE_POLL_TICKS)
    return None
