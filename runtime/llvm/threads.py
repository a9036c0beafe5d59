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
_DECLARATIONS = (
    f"declare void @{RUN}(ptr, ptr, i64, i64, i64)",
    "declare i64 @llvm.smin.i64(i64, i64)",
    "declare i64 @llvm.smax.i64(i64, i64)",
)


def write(w: Writer, callee: Any, threads: str, total: str, arguments: Sequence[Any]) -> None:
    """Calls `callee(first, last, *arguments)` for parts of range(total), on `threads` threads.

    The parts depend on the number of threads; the results must not.
    """
    for declaration in _DECLARATIONS:
        w.program.declare(declaration)
    values = [part for argument in arguments for part in parts(argument)]
    record = f"{{ {', '.join(['i64', 'i64', *(type_ for type_, _ in values)])} }}"
    entry = w.program.thread_entry(callee, record, [type_ for type_, _ in values])
    records = w.stack(f"[{MOST} x {record}]")
    several = w.op(f"icmp sgt i64 {threads}, 1")
    shares = w.op(f"mul i64 {threads}, {SHARE}")
    count = w.op(f"select i1 {several}, i64 {shares}, i64 1")
    for name, bound in (("smin", str(MOST)), ("smin", total), ("smax", "1")):
        count = w.op(f"call i64 @llvm.{name}.i64(i64 {count}, i64 {bound})")
    many = w.op(f"icmp sge i64 {total}, {ALIGNED * MOST}")
    mask = w.op(f"select i1 {many}, i64 {-ALIGNED}, i64 -1")
    number = w.stack("i64")
    w.line(f"store i64 0, ptr {number}")
    test, body, after = w.label(), w.label(), w.label()
    w.block(test)
    index = w.op(f"load i64, ptr {number}")
    w.branch(w.op(f"icmp slt i64 {index}, {count}"), body, after)
    w.block(body)
    following = w.op(f"add i64 {index}, 1")
    products = [w.op(f"mul i64 {total}, {n}") for n in (index, following)]
    quotients = [w.op(f"sdiv i64 {product}, {count}") for product in products]
    first, end = (w.op(f"and i64 {quotient}, {mask}") for quotient in quotients)
    is_last = w.op(f"icmp eq i64 {following}, {count}")
    last = w.op(f"select i1 {is_last}, i64 {total}, i64 {end}")
    place = w.op(f"getelementptr {record}, ptr {records}, i64 {index}")
    for position, (type_, text) in enumerate([("i64", first), ("i64", last), *values]):
        field = w.op(f"getelementptr {record}, ptr {place}, i64 0, i32 {position}")
        w.line(f"store {type_} {text}, ptr {field}")
    w.line(f"store i64 {following}, ptr {number}")
    w.jump(test)
    w.block(after)
    size = f"ptrtoint (ptr getelementptr ({record}, ptr null, i64 1) to i64)"
    w.line(f"call void @{RUN}(ptr {entry}, ptr {records}, i64 {size}, i64 {count}, i64 {threads})")
