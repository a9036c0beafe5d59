"""Counted loops become loops over ranges again, whose trips may be independent (`independence.py`).

    while i < stop:                              first = i
        a[i] = x[i] * 2.0                        for trip in range(first, stop):
        i = i + 1                          →         a[trip] = x[trip] * 2.0
                                                 i = max(first, stop)

Kernels for the processor strip-mine counted loops, to poll for Ctrl-C between chunks (`passes/strip_mine.py`). Threads
that share a loop poll in the loops inside it, so all trips become one chunk again (`whole_ranges`).
"""

from __future__ import annotations

from collections.abc import Collection

from runtime.codegen.device.kernel import Kernel, fresh_name, names_of
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.accesses import has_memory_reads
from runtime.kernel_ir.analysis.loops import counter_of, jumps_out
from runtime.kernel_ir.types import INT64


def run(kernel: Kernel) -> None:
    for function in kernel.functions:
        _block(function.body, names_of(function))


def _block(block: ir.Block, names: set[str]) -> None:
    for position in reversed(range(len(block))):
        item = block[position]
        for inner in ir.blocks(item):
            _block(inner, names)
        if isinstance(item, ir.While):
            block[position : position + 1] = _range(item, names) or [item]


def _range(item: ir.While, names: set[str]) -> ir.Block | None:
    counter = None if item.loop is not None or jumps_out(item.body) else counter_of(item)
    if counter is None or has_memory_reads(counter.limit):
        return None
    index, limit, at = counter
    first, trip = (ir.size_variable(fresh_name(base, names)) for base in ("first", "trip"))
    before, after = item.body[:at], item.body[at + 1 :]
    ir.map_block(before, lambda each: trip if each == index else None)
    ir.map_block(after, lambda each: trip + 1 if each == index else None)
    stop = limit if limit.type == INT64 else ir.Convert(INT64, limit)
    return [
        ir.assign(first, index),
        ir.For(trip.name, first, stop, ir.ONE, [*before, *after]),
        ir.assign(index, ir.call("max", first, stop)),
    ]


def whole_ranges(function: ir.Function, shared: Collection[ir.Statement]) -> None:
    """Undoes the strip-mining of loops that threads share, in place."""
    for block in ir.walk_blocks(function.body):
        values = {item.targets[0]: item for item in block if isinstance(item, ir.Assign) and len(item.targets) == 1}
        for item in block:
            if not isinstance(item, ir.For) or item not in shared or not isinstance(item.stop, ir.Var):
                continue
            stop = values.get(item.stop.name)
            if stop is None or not isinstance(stop.value, ir.Binary) or not isinstance(stop.value.right, ir.Var):
                continue
            part = values.get(stop.value.right.name)
            if part is None or not isinstance(part.value, ir.Call) or part.value.function != "min":
                continue
            left, most = part.value.arguments
            if isinstance(most, ir.Const):
                block[block.index(part)] = ir.Assign(part.targets, left)
