"""Calls of parallel loops, whose parts run on the thread pool (`codegen/native_runtime/thread_pool.py`) by the symbol
`autograph_run_parts`. `codegen/backends/numba_backend/threading_library.py` has the same for numba.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.llvm.writer import Writer, parts

RUN = "autograph_run_parts"
MOST = 128  # parts of one loop
SHARE = 4  # parts per thread, so that the others can take those of a slow one
ALIGNED = 64  # elements: parts of long loops start at multiples of it, for aligned vectors
IN_PARTS = "@in_parts"

# Divides a loop's trips into parts, each a record of its first trip, the one after its last, and the arguments of all.
# It runs once in a loop, so LLVM translates it as it is.
SUPPORT = f"""
%part = type {{ i64, i64, ptr }}
declare void @{RUN}(ptr, ptr, i64, i64, i64)

define internal void {IN_PARTS}(ptr %entry, ptr %arguments, i64 %total, i64 %threads) noinline optnone nounwind {{
  %records = alloca [{MOST} x %part]
  %several = icmp sgt i64 %threads, 1
  %shares = mul i64 %threads, {SHARE}
  %wanted = select i1 %several, i64 %shares, i64 1
  %fewer = icmp slt i64 %wanted, {MOST}
  %allowed = select i1 %fewer, i64 %wanted, i64 {MOST}
  %short = icmp slt i64 %total, %allowed
  %possible = select i1 %short, i64 %total, i64 %allowed
  %some = icmp sgt i64 %possible, 1
  %count = select i1 %some, i64 %possible, i64 1
  %many = icmp sge i64 %total, {ALIGNED * MOST}
  %mask = select i1 %many, i64 {-ALIGNED}, i64 -1
  br label %record
record:
  %index = phi i64 [ 0, %0 ], [ %following, %record ]
  %first = phi i64 [ 0, %0 ], [ %last, %record ]
  %following = add i64 %index, 1
  %product = mul i64 %total, %following
  %quotient = sdiv i64 %product, %count
  %aligned = and i64 %quotient, %mask
  %more = icmp slt i64 %following, %count
  %last = select i1 %more, i64 %aligned, i64 %total
  %place = getelementptr %part, ptr %records, i64 %index
  store i64 %first, ptr %place
  %place1 = getelementptr %part, ptr %place, i64 0, i32 1
  store i64 %last, ptr %place1
  %place2 = getelementptr %part, ptr %place, i64 0, i32 2
  store ptr %arguments, ptr %place2
  br i1 %more, label %record, label %run
run:
  %end = getelementptr %part, ptr null, i64 1
  %size = ptrtoint ptr %end to i64
  call void @{RUN}(ptr %entry, ptr %records, i64 %size, i64 %count, i64 %threads)
  ret void
}}
"""


def write(w: Writer, callee: Any, threads: str, total: str, arguments: Sequence[Any]) -> None:
    """Calls `callee(first, last, *arguments)` for parts of range(total), on `threads` threads.

    The parts depend on the number of threads; the results must not.
    """
    w.program.need(IN_PARTS)
    values = [part for argument in arguments for part in parts(argument)]
    types = [type_ for type_, _ in values]
    entry = w.program.thread_entry(callee, types)
    record = f"{{ {', '.join(types)} }}"
    place = w.stack(record)
    for position, (type_, text) in enumerate(values):
        w.line(f"store {type_} {text}, ptr {w.op(f'getelementptr {record}, ptr {place}, i64 0, i32 {position}')}")
    w.line(f"call void {IN_PARTS}(ptr {entry}, ptr {place}, i64 {total}, i64 {threads})")
