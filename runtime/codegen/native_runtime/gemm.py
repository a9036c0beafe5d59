"""Matrix products of floats: machine code for the process, which kernels call by the symbols `SYMBOLS`.

    void autograph_product_float32(a, b, out, rows, inner, columns, flips, threads)

writes a @ b into `out`, all contiguous and row-major, on at most `threads` threads of the pool (`thread_pool.py`).
flips: 1, `a` is stored the other way round; 2, `b` is; 3, both are.

BLAS has threads of its own, which wait for work in a loop: in a program that computes between its products they take
the processors from ours, and where anything else runs, a product waits for the thread that the system has stopped.
Products of 64 x 128 x 256 ran slower on two threads of BLAS than on one, and now and then twenty times slower. Here
whoever is free takes the next part.

`out` is made in tiles that stay in registers, over `DEPTH` of the inner dimension at a time: a tile takes as many
columns as two vectors hold, which for many rows are copied side by side first, so that they stay in the nearest cache
(Goto, van de Geijn, "Anatomy of high-performance matrix multiplication", 2008; `a` is read where it lies unless its
lines are long, since a tile needs little of it). Products by a vector, of which nothing is used twice, are sums along
rows or of rows.

Each element is one chain of fused multiplications and additions for each `DEPTH`, or, by a vector along rows, for each
lane: the same whichever part and tile it belongs to, and so for any number of threads.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from runtime.codegen.native_runtime import jit_module, thread_pool
from runtime.codegen.native_runtime.gemm_pack import APART, DEPTH, VECTORS, Copies
from runtime.codegen.native_runtime.ir_builder import INTRINSICS, Code
from runtime.llvm.products import SYMBOLS
from runtime.llvm.threads import RUN, SHARE

_FEW_ROWS = 16  # for which copying columns doesn't pay
_WORK = 1 << 17  # multiplications that are worth a part
_PARTS = 128  # at most
_LONG_LINE = 1024  # bytes from which on lines get into each other's way in the caches
_LINES = 4  # rows that go along a vector together
_WRITERS = ("gemm.py", "gemm_pack.py", "ir_builder.py")  # what the text depends on, besides runtime.llvm


class _Products(Copies):
    """The functions for one type of elements."""

    # What parts know; height and width: of a part; across: how many lie side by side.
    _FIELDS = ("a", "b", "out", "rows", "inner", "columns", "flips", "along", "height", "width", "across")

    def text(self) -> str:
        """All of them; threads run `@part`."""
        vector, mask = self.vector, self.mask
        declarations = [
            f"declare {vector} @llvm.fmuladd.{self.suffix}({vector}, {vector}, {vector})",
            f"declare {vector} @llvm.masked.load.{self.suffix}.p0(ptr, i32, {mask}, {vector})",
            f"declare void @llvm.masked.store.{self.suffix}.p0({vector}, ptr, i32, {mask})",
            f"declare {self.type} @llvm.vector.reduce.fadd.{self.suffix}({self.type}, {vector})",
            _alone() if sys.platform == "win32" else f"declare void @{RUN}(ptr, ptr, i64, i64, i64)",
        ]
        tiles = [self._tile(height, kind) for height in self.heights for kind in self._kinds()]
        parts = [self._copy(), self._pack(), self._pack_flipped(), self._along_rows(), self._part(), self._product()]
        return "\n".join([*INTRINSICS, *declarations, *tiles, *parts])

    # --- tiles -------------------------------------------------------------------------------------------------------

    def _kinds(self) -> list[str]:
        return (["whole"] if self.whole_tiles else []) + ["wide", "narrow"]

    def _tile(self, height: int, kind: str) -> str:
        """out[:rows, :columns] = (out if add else 0) + a[:rows, :inner] @ b[:inner, :columns], strides in bytes.

        whole: all columns; wide: some of them; narrow: no more than a vector holds. A row beyond the last is the last
        one again."""
        c = Code(
            f"define internal void @tile_{height}_{kind}(i64 %inner, ptr %a, i64 %a_row, i64 %a_k, ptr %b, i64 %b_k, "
            "ptr %out, i64 %out_row, i64 %rows, i64 %columns, i1 %add) noinline nounwind"
        )
        vectors = range(1 if kind == "narrow" else VECTORS)
        masks = [] if kind == "whole" else [self._lanes_of(c, "%columns", v) for v in vectors]
        last = c.do("sub", "%rows", 1)
        numbers = [c.min(row, last) for row in range(height)]
        offsets = [c.do("mul", number, "%a_row") for number in numbers]
        c.go("first")
        c.line("br label %trip")
        c.begin("trip")
        following, after_a, after_b = c.name(), c.name(), c.name()
        k = c.op(f"phi i64 [ 0, %first ], [ {following}, %trip ]")
        a = c.op(f"phi ptr [ %a, %first ], [ {after_a}, %trip ]")
        b = c.op(f"phi ptr [ %b, %first ], [ {after_b}, %trip ]")
        new = [[c.name() for _ in vectors] for _ in offsets]
        sums = [
            [c.op(f"phi {self.vector} [ zeroinitializer, %first ], [ {value}, %trip ]") for value in row] for row in new
        ]
        across = [self._load(c, b, v, masks) for v in vectors]
        for offset, totals, results in zip(offsets, sums, new):
            factor = self._splat(c, c.op(f"load {self.type}, ptr {c.at(a, offset)}, align {self.size}"))
            for v in vectors:
                c.line(f"{results[v]} = {self._fused(factor, across[v], totals[v])}")
        c.line(f"{following} = add i64 {k}, 1")
        c.line(f"{after_a} = getelementptr i8, ptr {a}, i64 %a_k")
        c.line(f"{after_b} = getelementptr i8, ptr {b}, i64 %b_k")
        c.line(f"br i1 {c.do('icmp slt', following, '%inner')}, label %trip, label %done")
        c.begin("done")
        places = [c.at("%out", c.do("mul", number, "%out_row")) for number in numbers]
        c.line("br i1 %add, label %onto, label %fresh")
        for block in ("onto", "fresh"):
            c.begin(block)
            values = new
            if block == "onto":  # all are read before one is written, since a row may be there twice
                values = [
                    [c.do("fadd", self._load(c, place, v, masks), row[v], self.vector) for v in vectors]
                    for place, row in zip(places, new)
                ]
            for place, row in zip(places, values):
                for v in vectors:
                    self._store(c, row[v], place, v, masks)
            c.line("ret void")
        return c.text()

    # --- products by a vector ----------------------------------------------------------------------------------------

    def _along_rows(self) -> str:
        """out[i] = sum of m[i, k] * x[k] for `first` <= i < `last`; rows of m lie `inner` elements apart."""
        c = Code(
            "define internal void @along_rows(ptr %m, ptr %x, ptr %out, i64 %inner, i64 %first, i64 %last) "
            "noinline nounwind"
        )
        vectors = range(VECTORS)
        row_bytes = c.do("mul", "%inner", self.size)
        rest = c.do("srem", "%inner", self.width)
        whole = c.do("sub", "%inner", rest)
        masks = [self._lanes_of(c, rest, v) for v in vectors]

        def added(lines: list[str], sums: list[str], k: str, masks: list[str]) -> list[str]:
            at = c.do("mul", k, self.size)
            x = [self._load(c, c.at("%x", at), v, masks) for v in vectors]
            values = [self._load(c, c.at(line, at), v, masks) for line in lines for v in vectors]
            return [c.op(self._fused(value, x[n % VECTORS], sums[n])) for n, value in enumerate(values)]

        with c.loop("%first", "%last", _LINES) as i:
            left = c.do("sub", c.do("sub", "%last", i.index), 1)
            # A row beyond the last is the last one again.
            numbers = [c.do("add", i.index, c.min(line, left)) for line in range(_LINES)]
            lines = [c.at("%m", c.do("mul", number, row_bytes)) for number in numbers]
            with c.loop(0, whole, self.width, [(self.vector, "zeroinitializer")] * (_LINES * VECTORS)) as k:
                k.following = added(lines, k.values, k.index, [])
            sums = added(lines, k.values, whole, masks)
            for line, number in enumerate(numbers):
                value = sums[line * VECTORS]
                for other in sums[line * VECTORS + 1 : (line + 1) * VECTORS]:
                    value = c.do("fadd", value, other, self.vector)
                total = c.op(
                    f"call reassoc {self.type} @llvm.vector.reduce.fadd.{self.suffix}({self.type} 0.0, {self.vector} "
                    f"{value})"
                )
                c.line(f"store {self.type} {total}, ptr {c.at('%out', c.do('mul', number, self.size))}")
        c.line("ret void")
        return c.text()

    # --- the whole ---------------------------------------------------------------------------------------------------

    def _part(self) -> str:
        """A part of the product: some rows of some columns, by tiles, or along rows."""
        c = Code("define internal ptr @part(ptr %record) nounwind")
        panel = c.place(f"[{DEPTH * self.width} x {self.type}]", 64)
        block = c.place(f"[{self.block_bytes} x i8]", 64)
        common = c.op("load ptr, ptr %record")
        number = c.op(f"load i64, ptr {c.at('%record', 8)}")
        of = {}
        for position, field in enumerate(self._FIELDS):
            of[field] = c.op(f"load {'ptr' if position < 3 else 'i64'}, ptr {c.at(common, 8 * position)}")
        first_row = c.do("mul", c.do("sdiv", number, of["across"]), of["height"])
        last_row = c.min(c.do("add", first_row, of["height"]), of["rows"])
        first = c.do("mul", c.do("srem", number, of["across"]), of["width"])
        last = c.min(c.do("add", first, of["width"]), of["columns"])
        c.line(f"br i1 {c.do('icmp ne', of['along'], 0)}, label %along, label %tiles")
        c.begin("along")
        c.line(
            f"call void @along_rows(ptr {of['a']}, ptr {of['b']}, ptr {of['out']}, i64 {of['inner']}, i64 {first_row}, "
            f"i64 {last_row})"
        )
        c.line("ret ptr null")
        c.begin("tiles")
        flipped_a = c.op(f"trunc i64 {of['flips']} to i1")
        flipped_b = c.do("icmp uge", of["flips"], 2)
        one = str(self.size)
        a_line = c.do("mul", c.chosen(flipped_a, of["rows"], of["inner"]), one)
        b_line = c.do("mul", c.chosen(flipped_b, of["inner"], of["columns"]), one)
        out_row = c.do("mul", of["columns"], one)
        a_row, a_k = c.chosen(flipped_a, one, a_line), c.chosen(flipped_a, a_line, one)
        b_column, b_k = c.chosen(flipped_b, b_line, one), c.chosen(flipped_b, one, b_line)
        # For few rows, and where `b` is one panel already, it is read where it lies.
        panel_row = self.width * self.size
        few = c.do("icmp slt", c.do("sub", last_row, first_row), _FEW_ROWS)
        direct = c.both(c.either(few, c.do("icmp eq", out_row, panel_row)), c.opposite(flipped_b))
        copied = c.opposite(c.either(direct, flipped_b))
        stride = c.chosen(direct, b_k, panel_row)
        # Where long lines of `a` are read for several panels, some rows of it are copied too.
        far = c.both(c.do("icmp sge", a_line, _LONG_LINE), c.do("icmp sgt", c.do("sub", last, first), 3 * self.width))
        blocked = c.both(far, c.opposite(few))
        block_line = c.chosen(flipped_a, self.block_rows * self.size + APART, DEPTH * self.size + APART)
        block_row, block_k = c.chosen(flipped_a, one, block_line), c.chosen(flipped_a, block_line, one)
        tile_row, tile_k = c.chosen(blocked, block_row, a_row), c.chosen(blocked, block_k, a_k)
        some = c.chosen(blocked, self.block_rows, c.max(c.do("sub", last_row, first_row), 1))
        with c.loop(0, of["inner"], DEPTH) as depth:
            k = depth.index
            inner = c.min(c.do("sub", of["inner"], k), DEPTH)
            add = f"i1 {c.do('icmp sgt', k, 0)}"
            with c.loop(first_row, last_row, some) as chunk:
                top = chunk.index
                bottom = c.min(c.do("add", top, some), last_row)
                a = c.at(c.at(of["a"], c.do("mul", k, a_k)), c.do("mul", top, a_row))
                with c.when(blocked):
                    height = c.do("sub", bottom, top)
                    lines, elements = c.chosen(flipped_a, inner, height), c.chosen(flipped_a, height, inner)
                    c.line(
                        f"call void @copy(ptr {a}, i64 {a_line}, ptr {block}, i64 {block_line}, i64 {lines}, "
                        f"i64 {elements})"
                    )
                a = c.chosen(blocked, block, a, "ptr")
                with c.loop(first, last, self.width) as column:
                    j = column.index
                    columns = c.min(c.do("sub", last, j), self.width)
                    b = c.at(c.at(of["b"], c.do("mul", j, b_column)), c.do("mul", k, b_k))
                    given = f"ptr {b}, i64 {b_line}, ptr {panel}, i64 {inner}, i64 {columns}"
                    for condition, function in ((flipped_b, "pack_flipped"), (copied, "pack")):
                        with c.when(condition):
                            c.line(f"call void @{function}({given})")
                    across = f"ptr {c.chosen(direct, b, panel, 'ptr')}, i64 {stride}"
                    out = c.at(c.at(of["out"], c.do("mul", j, one)), c.do("mul", top, out_row))
                    given = f"{across}, ptr {{out}}, i64 {out_row}, i64 {{rows}}, i64 {columns}, {add}"
                    self._tiles(c, c.do("sub", bottom, top), inner, (a, tile_row, tile_k), out, out_row, columns, given)
        c.line("ret ptr null")
        return c.text()

    def _tiles(
        self, c: Code, rows: str, inner: str, a: tuple[str, str, str], out: str, out_row: str, columns: str, given: str
    ) -> None:
        """Goes down one panel. a: the place, and how far its rows and columns lie apart; given: the other arguments."""
        begin = "0"
        for height, less in zip(self.heights, (*self.heights[1:], 0)):
            # The last rows go with this height, unless fewer hold them.
            rest = c.do("srem", c.do("sub", rows, begin), height)
            end = c.do("sub", rows, c.chosen(c.do("icmp sgt", rest, less), 0, rest))
            with c.loop(begin, end, height) as row:
                down, across = (c.do("mul", row.index, far) for far in (a[1], out_row))
                some = c.min(c.do("sub", end, row.index), height)
                others = given.format(out=c.at(out, across), rows=some)
                text = f"i64 {inner}, ptr {c.at(a[0], down)}, i64 {a[1]}, i64 {a[2]}, {others}"
                self._call_tile(c, height, columns, text)
            begin = end

    def _call_tile(self, c: Code, height: int, columns: str, given: str) -> None:
        narrow = c.do("icmp sle", columns, self.lanes)
        conditions = {"narrow": narrow, "wide": c.opposite(narrow)}
        if self.whole_tiles:
            conditions["whole"] = c.do("icmp eq", columns, self.width)
            conditions["wide"] = c.both(conditions["wide"], c.opposite(conditions["whole"]))
        for kind in self._kinds():
            with c.when(conditions[kind]):
                c.line(f"call void @tile_{height}_{kind}({given})")

    def _product(self) -> str:
        """Says what the parts are, and has them run."""
        c = Code(
            f"define void @{SYMBOLS[self.name]}(ptr %a, ptr %b, ptr %out, i64 %rows, i64 %inner, i64 %columns, "
            "i64 %flips, i64 %threads) nounwind"
        )
        common = c.place(f"[{len(self._FIELDS)} x i64]")
        records = c.place(f"[{_PARTS} x {{ ptr, i64 }}]")
        flipped_a, flipped_b = c.op("trunc i64 %flips to i1"), c.do("icmp uge", "%flips", 2)
        # A product by a column, or of a row by a matrix that is stored the other way round, goes along the matrix's
        # rows; one of a matrix that is stored the other way round by a column is that of a row by the matrix.
        one_column = c.do("icmp eq", "%columns", 1)
        is_column = c.both(one_column, c.opposite(flipped_a))
        is_row = c.both(c.both(c.do("icmp eq", "%rows", 1), flipped_b), c.opposite(is_column))
        along = c.either(is_column, is_row)
        turned = c.both(one_column, c.opposite(along))
        exchanged = c.either(is_row, turned)
        a, b = c.chosen(exchanged, "%b", "%a", "ptr"), c.chosen(exchanged, "%a", "%b", "ptr")
        long = c.max("%rows", "%columns")
        rows = c.chosen(along, long, c.chosen(turned, 1, "%rows"))
        columns = c.chosen(along, 1, c.chosen(turned, long, "%columns"))
        flips = c.chosen(turned, 0, "%flips")
        # As many parts as the threads take in turn, none too small.
        work = c.do("mul", c.do("mul", "%rows", "%inner"), "%columns")
        wanted = c.min(c.min(c.do("sdiv", work, _WORK), c.do("mul", "%threads", SHARE)), _PARTS)
        wanted = c.chosen(c.do("icmp sgt", "%threads", 1), c.max(wanted, 1), 1)
        panels = c.share(columns, self.width)
        width = c.share(panels, c.min(panels, wanted))
        across = c.share(panels, width)
        height = c.share(rows, c.max(c.do("sdiv", wanted, across), 1))
        height = c.do("mul", c.share(height, _FEW_ROWS), _FEW_ROWS)
        count = c.do("mul", c.share(rows, height), across)
        shape = [height, c.do("mul", width, self.width), across]
        fields = [a, b, "%out", rows, "%inner", columns, flips, c.op(f"zext i1 {along} to i64"), *shape]
        for position, value in enumerate(fields):
            c.line(f"store {'ptr' if position < 3 else 'i64'} {value}, ptr {c.at(common, 8 * position)}")
        with c.loop(0, count) as k:
            record = c.at(records, c.do("mul", k.index, 16))
            c.line(f"store ptr {common}, ptr {record}")
            c.line(f"store i64 {k.index}, ptr {c.at(record, 8)}")
        c.line(f"call void @{RUN}(ptr @part, ptr {records}, i64 16, i64 {count}, i64 %threads)")
        c.line("ret void")
        return c.text()


def _alone() -> str:
    """What runs the parts where there is no pool."""
    c = Code(f"define internal void @{RUN}(ptr %entry, ptr %records, i64 %size, i64 %count, i64 %threads)")
    with c.loop(0, "%count") as k:
        c.op(f"call ptr %entry(ptr {c.at('%records', c.do('mul', k.index, '%size'))})")
    c.line("ret void")
    return c.text()


def code(name: str, vector_bytes: int) -> str:
    """The text of all functions for one type of elements and size of vectors."""
    return _Products(name, vector_bytes).text()


def vector_bytes() -> int:
    """How large the vectors of this machine are."""
    from runtime.llvm import processor

    features = processor.features()
    return 64 if features.get("avx512f") else 32 if features.get("avx2") else 16


@functools.cache
def provide(name: str) -> int:
    """Makes the product for this type of elements known to code that is linked from then on, and gives its address."""
    from runtime.llvm import target

    others = {} if sys.platform == "win32" else {RUN: thread_pool.provide()}
    size = vector_bytes()
    writers = [Path(__file__).with_name(file).read_text(encoding="utf-8") for file in _WRITERS]
    made = jit_module.machine_code("products", lambda: code(name, size), level=0, key=repr((name, size, writers)))
    (address,) = target.link(made, [SYMBOLS[name]], others)
    return address
