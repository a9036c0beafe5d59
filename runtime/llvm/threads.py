"""Calls of parallel loops. The thread pool runs their parts (`codegen/native_runtime/thread_pool.py`). Kernels find it
in the global `autograph_pool`, which is null until the pool has been compiled: the caller runs the loop itself then.
`codegen/backends/numba_backend/threading_library.py` does the same for numba, with the symbol `autograph_run_parts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.llvm.function_builder import UNOPTIMISED, FunctionBuilder, defined
from runtime.llvm.writer import Writer, parts

RUN = "autograph_run_parts"
POOL = "autograph_pool"
MOST = 128  # the most parts of one loop
SHARE = 4  # parts per thread, so that other threads can take those of a slow one
ALIGNED = 64  # elements: parts of long loops start at multiples of it, for aligned vectors
IN_PARTS = "@in_parts"
# The record of a part, in bytes from its start: its first trip, the trip after its last, the arguments of all parts.
FIRST, END, ARGUMENTS = 0, 8, 16
_RECORD = 24  # bytes


def _in_parts(f: FunctionBuilder) -> None:
    """Divides a loop's trips into parts and runs them."""
    records = f.stack(f"[{MOST * _RECORD} x i8]")
    shares = f.binary("mul", "%threads", SHARE)
    wanted = f.select(f.binary("icmp sgt", "%threads", 1), shares, 1)
    possible = f.min(f.min(wanted, MOST), "%total")
    pool = f.load_atomic("ptr", f"@{POOL}")
    is_alone = f.is_null(pool)
    count = f.select(is_alone, 1, f.max(possible, 1))
    mask = f.select(f.binary("icmp sge", "%total", ALIGNED * MOST), -ALIGNED, -1)
    with f.loop(0, count, carried=[("i64", "0")]) as loop:
        following = f.binary("add", loop.index, 1)
        share = f.binary("sdiv", f.binary("mul", "%total", following), count)
        is_last = f.binary("icmp eq", following, count)
        end = f.select(is_last, "%total", f.binary("and", share, mask))
        record = f.at(records, f.binary("mul", loop.index, _RECORD))
        f.store("i64", loop.values[0], f.at(record, FIRST))
        f.store("i64", end, f.at(record, END))
        f.store("ptr", "%arguments", f.at(record, ARGUMENTS))
        loop.following[0] = end

    def alone() -> None:
        f.call("ptr", "%entry", f"ptr {records}")

    def together() -> None:
        f.run(pool, "ptr %entry", f"ptr {records}", f"i64 {_RECORD}", f"i64 {count}", "i64 %threads")

    f.if_else(is_alone, alone, together)


SUPPORT = "\n".join([
    f"@{POOL} = external global ptr",
    defined(
        f"internal void {IN_PARTS}(ptr %entry, ptr %arguments, i64 %total, i64 %threads) {UNOPTIMISED}",
        _in_parts,
    ),
])  # fmt: skip


def write(w: Writer, callee: Any, threads: str, total: str, arguments: Sequence[Any]) -> None:
    """Calls `callee(first, last, *arguments)` for parts of range(total), on `threads` threads.

    The parts depend on the number of threads; the results must not.
    """
    w.program.need(IN_PARTS)
    values = [part for argument in arguments for part in parts(argument)]
    types = [type_ for type_, _ in values]
    entry = w.program.thread_entry(callee, types)
    record = f"{{ {', '.join(types)} }}"
    slot = w.stack(record)
    for position, (type_, text) in enumerate(values):
        w.store(type_, text, w.member(record, slot, position))
    w.run(IN_PARTS, f"ptr {entry}", f"ptr {slot}", f"i64 {total}", f"i64 {threads}")
