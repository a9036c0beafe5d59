"""GEMM: matrix products of float32 and float64, machine code for the process that kernels call by the symbols
`SYMBOLS`.

    void autograph_product_float32(a, b, out, rows, inner, columns, transposed, threads)

writes a @ b into `out`, all contiguous and row-major, on at most `threads` threads of the pool (`thread_pool.py`).
transposed: 1, `a` is stored transposed; 2, `b` is; 3, both are.

OpenBLAS isn't used because its threads spin while they wait for work: in a program that computes between its products
they take processors from our pool, and on a busy machine a product waits for a thread that the system has suspended.
Products of 64 x 128 x 256 ran slower on two threads of OpenBLAS than on one, and now and then twenty times slower. Here
any free thread takes the next part.

`out` is computed in register tiles, over `DEPTH` of the inner dimension at a time. A tile is two vectors wide; for many
rows, the panel of `b` that it reads is packed first, so that it stays in the first-level cache (Goto, van de Geijn,
"Anatomy of high-performance matrix multiplication", 2008). `a` is read in place unless its rows are long, since a tile
needs little of it. Products by a vector, which reuse nothing, are dot products of rows or sums of rows.

Each element is one chain of fused multiply-adds for each `DEPTH` (by a vector along rows: for each lane), whatever part
and tile it belongs to, so results don't depend on the number of threads.
"""

from __future__ import annotations

import functools

from runtime import system
from runtime.codegen.native_runtime import thread_pool
from runtime.codegen.native_runtime.gemm_pack import DEPTH, LINE_PADDING, VECTORS
from runtime.codegen.native_runtime.gemm_tiles import Tiles, provided
from runtime.llvm.function_builder import FunctionBuilder
from runtime.llvm.products import SYMBOLS
from runtime.llvm.threads import RUN, SHARE

_MIN_PACKED_ROWS = 16  # packing doesn't pay for fewer
# Multiplications from which threads share a product, and from which they share one by a vector, which waits for memory:
# some 20 us. Smaller ones, as in the steps of an RNN, gain a fifth at best, for twice the processor time.
_MIN_SHARED_WORK, _MIN_SHARED_VECTOR = 1 << 21, 1 << 19
_MIN_PART_WORK = 1 << 17  # multiplications that a part has at least
_MAX_PARTS = 128  # at most
_LONG_LINE = 1024  # bytes from which on rows evict each other from the caches
_ROWS_AT_ONCE = 4  # rows whose dot products are computed together
_SOURCES = ("gemm.py", "gemm_tiles.py", "gemm_pack.py")  # what the LLVM code depends on, besides runtime.llvm


class _Gemm(Tiles):
    """The functions for one type of elements."""

    # The record that parts read. height, width: of a part; across: the number of parts side by side.
    _FIELDS = ("a", "b", "out", "rows", "inner", "columns", "transposed", "along", "height", "width", "across")

    def text(self) -> str:
        """The LLVM code of all of them. The pool's threads run `@part`."""
        has_pool = system.has_posix_threads()
        pool = f"declare void @{RUN}(ptr, ptr, i64, i64, i64)" if has_pool else _run_serially()
        tiles = [self._tile(height, kind) for height in self.heights for kind in self._kinds()]
        parts = [
            self._copy_block(),
            self._pack(),
            self._pack_transposed(),
            self._along_rows(),
            self._part(),
            self._entry(),
        ]
        return "\n".join([pool, *tiles, *parts])

    # --- products by a vector ----------------------------------------------------------------------------------------

    def _along_rows(self) -> str:
        """out[i] = sum of m[i, k] * x[k] for `first` <= i < `last`; rows of m lie `inner` elements apart."""
        c = FunctionBuilder(
            "define internal void @along_rows(ptr %m, ptr %x, ptr %out, i64 %inner, i64 %first, i64 %last) "
            "noinline nounwind"
        )
        vectors = range(VECTORS)
        row_bytes = c.binary("mul", "%inner", self.size)
        rest = c.binary("srem", "%inner", self.width)
        whole = c.binary("sub", "%inner", rest)
        masks = [self._lanes_of(c, rest, v) for v in vectors]

        def added(lines: list[str], sums: list[str], k: str, masks: list[str]) -> list[str]:
            at = c.binary("mul", k, self.size)
            x = [self._load(c, c.at("%x", at), v, masks) for v in vectors]
            values = [self._load(c, c.at(line, at), v, masks) for line in lines for v in vectors]
            return [c.multiply_add(self.vector, value, x[n % VECTORS], sums[n]) for n, value in enumerate(values)]

        with c.loop("%first", "%last", _ROWS_AT_ONCE) as i:
            left = c.binary("sub", c.binary("sub", "%last", i.index), 1)
            # A row beyond the last is the last one again.
            numbers = [c.binary("add", i.index, c.min(line, left)) for line in range(_ROWS_AT_ONCE)]
            lines = [c.at("%m", c.binary("mul", number, row_bytes)) for number in numbers]
            with c.loop(0, whole, self.width, [(self.vector, "zeroinitializer")] * (_ROWS_AT_ONCE * VECTORS)) as k:
                k.following = added(lines, k.values, k.index, [])
            sums = added(lines, k.values, whole, masks)
            for line, number in enumerate(numbers):
                value = sums[line * VECTORS]
                for other in sums[line * VECTORS + 1 : (line + 1) * VECTORS]:
                    value = c.binary("fadd", value, other, self.vector)
                operands = f"{self.type} 0.0", f"{self.vector} {value}"
                total = c.intrinsic("vector.reduce.fadd", self.type, *operands, flags="reassoc ")
                c.store(self.type, total, c.at("%out", c.binary("mul", number, self.size)))
        c.end("ret void")
        return c.text()

    # --- parts -------------------------------------------------------------------------------------------------------

    def _part(self) -> str:
        """One part of the product: a block of `out`, by tiles, or by dot products of rows."""
        c = FunctionBuilder("define internal ptr @part(ptr %record) nounwind")
        panel = c.stack(f"[{DEPTH * self.width} x {self.type}]", align=64)
        block = c.stack(f"[{self.block_bytes} x i8]", align=64)
        common = c.load("ptr", "%record")
        number = c.field("i64", "%record", 8)
        of = {}
        for position, field in enumerate(self._FIELDS):
            of[field] = c.field("ptr" if position < 3 else "i64", common, 8 * position)
        first_row = c.binary("mul", c.binary("sdiv", number, of["across"]), of["height"])
        last_row = c.min(c.binary("add", first_row, of["height"]), of["rows"])
        first = c.binary("mul", c.binary("srem", number, of["across"]), of["width"])
        last = c.min(c.binary("add", first, of["width"]), of["columns"])
        with c.if_then(c.binary("icmp ne", of["along"], 0)):
            matrices = (f"ptr {of[name]}" for name in ("a", "b", "out"))
            c.run("@along_rows", *matrices, f"i64 {of['inner']}", f"i64 {first_row}", f"i64 {last_row}")
            c.end("ret ptr null")
        transposed_a = c.convert("trunc", "i64", of["transposed"], "i1")
        transposed_b = c.binary("icmp uge", of["transposed"], 2)
        one = str(self.size)
        a_line = c.binary("mul", c.select(transposed_a, of["rows"], of["inner"]), one)
        b_line = c.binary("mul", c.select(transposed_b, of["inner"], of["columns"]), one)
        out_row = c.binary("mul", of["columns"], one)
        a_row, a_k = c.select(transposed_a, one, a_line), c.select(transposed_a, a_line, one)
        b_column, b_k = c.select(transposed_b, b_line, one), c.select(transposed_b, one, b_line)
        # For a small number of rows, and where `b` is a single panel already, `b` is read in place.
        panel_row = self.width * self.size
        few = c.binary("icmp slt", c.binary("sub", last_row, first_row), _MIN_PACKED_ROWS)
        direct = c.all_of(c.any_of(few, c.binary("icmp eq", out_row, panel_row)), c.negated(transposed_b))
        copied = c.negated(c.any_of(direct, transposed_b))
        stride = c.select(direct, b_k, panel_row)
        # Where long rows of `a` are read for several panels, a block of them is packed too.
        far = c.all_of(
            c.binary("icmp sge", a_line, _LONG_LINE), c.binary("icmp sgt", c.binary("sub", last, first), 3 * self.width)
        )
        blocked = c.all_of(far, c.negated(few))
        block_line = c.select(
            transposed_a, self.block_rows * self.size + LINE_PADDING, DEPTH * self.size + LINE_PADDING
        )
        block_row, block_k = c.select(transposed_a, one, block_line), c.select(transposed_a, block_line, one)
        tile_row, tile_k = c.select(blocked, block_row, a_row), c.select(blocked, block_k, a_k)
        some = c.select(blocked, self.block_rows, c.max(c.binary("sub", last_row, first_row), 1))
        with c.loop(0, of["inner"], DEPTH) as depth:
            k = depth.index
            inner = c.min(c.binary("sub", of["inner"], k), DEPTH)
            add = f"i1 {c.binary('icmp sgt', k, 0)}"
            with c.loop(first_row, last_row, some) as chunk:
                top = chunk.index
                bottom = c.min(c.binary("add", top, some), last_row)
                a = c.at(c.at(of["a"], c.binary("mul", k, a_k)), c.binary("mul", top, a_row))
                with c.if_then(blocked):
                    height = c.binary("sub", bottom, top)
                    lines, elements = c.select(transposed_a, inner, height), c.select(transposed_a, height, inner)
                    given = f"ptr {a}, i64 {a_line}, ptr {block}, i64 {block_line}, i64 {lines}, i64 {elements}"
                    c.run("@copy", given)
                a = c.select(blocked, block, a, "ptr")
                with c.loop(first, last, self.width) as column:
                    j = column.index
                    columns = c.min(c.binary("sub", last, j), self.width)
                    b = c.at(c.at(of["b"], c.binary("mul", j, b_column)), c.binary("mul", k, b_k))
                    given = f"ptr {b}, i64 {b_line}, ptr {panel}, i64 {inner}, i64 {columns}"
                    for condition, function in ((transposed_b, "pack_transposed"), (copied, "pack")):
                        with c.if_then(condition):
                            c.run(f"@{function}", given)
                    across = f"ptr {c.select(direct, b, panel, 'ptr')}, i64 {stride}"
                    out = c.at(c.at(of["out"], c.binary("mul", j, one)), c.binary("mul", top, out_row))
                    a_block = (a, tile_row, tile_k)
                    self._panel(c, c.binary("sub", bottom, top), inner, a_block, out, out_row, columns, across, add)
        c.end("ret ptr null")
        return c.text()

    def _entry(self) -> str:
        """The entry point: divides the product into parts and runs them."""
        c = FunctionBuilder(
            f"define void @{SYMBOLS[self.name]}(ptr %a, ptr %b, ptr %out, i64 %rows, i64 %inner, i64 %columns, "
            "i64 %transposed, i64 %threads) nounwind"
        )
        common = c.stack(f"[{len(self._FIELDS)} x i64]")
        records = c.stack(f"[{_MAX_PARTS} x {{ ptr, i64 }}]")
        transposed_a, transposed_b = (
            c.convert("trunc", "i64", "%transposed", "i1"),
            c.binary("icmp uge", "%transposed", 2),
        )
        # A matrix by a column, and a row by a transposed matrix, are dot products along the matrix's rows. A transposed
        # matrix by a column is computed as a row by the matrix.
        one_column = c.binary("icmp eq", "%columns", 1)
        is_column = c.all_of(one_column, c.negated(transposed_a))
        is_row = c.all_of(c.all_of(c.binary("icmp eq", "%rows", 1), transposed_b), c.negated(is_column))
        along = c.any_of(is_column, is_row)
        swapped = c.all_of(one_column, c.negated(along))
        exchanged = c.any_of(is_row, swapped)
        a, b = c.select(exchanged, "%b", "%a", "ptr"), c.select(exchanged, "%a", "%b", "ptr")
        long = c.max("%rows", "%columns")
        rows = c.select(along, long, c.select(swapped, 1, "%rows"))
        columns = c.select(along, 1, c.select(swapped, long, "%columns"))
        transposed = c.select(swapped, 0, "%transposed")
        # Enough parts to balance the threads, none too small.
        work = c.binary("mul", c.binary("mul", "%rows", "%inner"), "%columns")
        wanted = c.min(c.min(c.binary("sdiv", work, _MIN_PART_WORK), c.binary("mul", "%threads", SHARE)), _MAX_PARTS)
        by_vector = c.any_of(one_column, c.binary("icmp eq", "%rows", 1))
        enough = c.binary("icmp sge", work, c.select(by_vector, _MIN_SHARED_VECTOR, _MIN_SHARED_WORK))
        wanted = c.select(c.all_of(c.binary("icmp sgt", "%threads", 1), enough), c.max(wanted, 1), 1)
        panels = c.ceil_div(columns, self.width)
        width = c.ceil_div(panels, c.min(panels, wanted))
        across = c.ceil_div(panels, width)
        height = c.ceil_div(rows, c.max(c.binary("sdiv", wanted, across), 1))
        height = c.binary("mul", c.ceil_div(height, _MIN_PACKED_ROWS), _MIN_PACKED_ROWS)
        count = c.binary("mul", c.ceil_div(rows, height), across)
        shape = [height, c.binary("mul", width, self.width), across]
        fields = [a, b, "%out", rows, "%inner", columns, transposed, c.convert("zext", "i1", along, "i64"), *shape]
        for position, value in enumerate(fields):
            c.store("ptr" if position < 3 else "i64", value, c.at(common, 8 * position))
        with c.loop(0, count) as k:
            record = c.at(records, c.binary("mul", k.index, 16))
            c.store("ptr", common, record)
            c.store("i64", k.index, c.at(record, 8))
        c.run(f"@{RUN}", "ptr @part", f"ptr {records}", "i64 16", f"i64 {count}", "i64 %threads")
        c.end("ret void")
        return c.text()


def _run_serially() -> str:
    """Runs the parts one after the other, on systems without the pool."""
    c = FunctionBuilder(f"define internal void @{RUN}(ptr %entry, ptr %records, i64 %size, i64 %count, i64 %threads)")
    with c.loop(0, "%count") as k:
        c.call("ptr", "%entry", f"ptr {c.at('%records', c.binary('mul', k.index, '%size'))}")
    c.end("ret void")
    return c.text()


def code(name: str, vector_bytes: int) -> str:
    """The LLVM code of all functions for an element type and a vector length."""
    return _Gemm(name, vector_bytes).text()


@functools.cache
def provide(name: str) -> int:
    """Defines the symbol of the product for this element type, and gives its address."""
    others = {RUN: thread_pool.provide()} if system.has_posix_threads() else {}
    return provided(SYMBOLS[name], name, code, _SOURCES, others)
