"""Register tiles of matrix products: some rows by two vectors of columns, accumulated along the inner dimension.

A tile reads elements of `a` one by one and a panel of `b` in vectors. Where the element (i, k) of `a` lies is said in
one of two ways:

    strides  i * a_row + k * a_k bytes from `a` on: a matrix, transposed or not (`gemm.py`)
    tables   a_row[i] + a_k[k] elements from `a` on: windows over an image, for instance (`indirect_gemm.py`)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from runtime.codegen.native_runtime import jit_module
from runtime.codegen.native_runtime.gemm_pack import VECTORS, Packing
from runtime.llvm.function_builder import FunctionBuilder

# Where the elements of the first matrix lie: its address, then what says where its rows and its columns are.
Operand = tuple[str, str, str]


class Tiles(Packing):
    """The tiles for one element type and vector length. Elements of `a` lie at strides."""

    _PLACES = "i64"  # the type of `a_row` and `a_k`

    def _kinds(self) -> list[str]:
        return (["whole"] if self.whole_tiles else []) + ["wide", "narrow"]

    # --- where elements of `a` are -----------------------------------------------------------------------------------

    def _offset_of_row(self, c: FunctionBuilder, number: str) -> str:
        """In bytes."""
        return c.binary("mul", number, "%a_row")

    def _first_column(self) -> str:
        """The initial carry of the loop over columns of `a`."""
        return "%a"

    def _column(self, c: FunctionBuilder, carried: str) -> str:
        """The address of the column, to which rows add their offsets."""
        return carried

    def _next_column(self, c: FunctionBuilder, carried: str) -> str:
        return c.at(carried, "%a_k")

    def _from_row(self, c: FunctionBuilder, a: Operand, number: str) -> Operand:
        """The rows of `a` from this one on."""
        return c.at(a[0], c.binary("mul", number, a[1])), a[1], a[2]

    # --- tiles -------------------------------------------------------------------------------------------------------

    def _tile(self, height: int, kind: str) -> str:
        """out[:rows, :columns] = (out if add else 0) + a[:rows, :inner] @ b[:inner, :columns], strides in bytes.

        whole: all columns; wide: some of them; narrow: at most one vector. A row beyond the last one repeats the last.
        """
        c = FunctionBuilder(
            f"define internal void @tile_{height}_{kind}(i64 %inner, ptr %a, {self._PLACES} %a_row, "
            f"{self._PLACES} %a_k, ptr %b, i64 %b_k, ptr %out, i64 %out_row, i64 %rows, i64 %columns, i1 %add) "
            "noinline nounwind"
        )
        vectors = range(1 if kind == "narrow" else VECTORS)
        masks = [] if kind == "whole" else [self._lanes_of(c, "%columns", v) for v in vectors]
        last = c.binary("sub", "%rows", 1)
        numbers = [c.min(row, last) for row in range(height)]
        offsets = [self._offset_of_row(c, number) for number in numbers]
        zero = (self.vector, "zeroinitializer")
        start = [("i64", "0"), ("ptr", self._first_column()), ("ptr", "%b"), *[zero] * (height * len(vectors))]
        with c.forever(*start) as trip:
            k, at, b, *sums = trip.values
            column = self._column(c, at)
            across = [self._load(c, b, v, masks) for v in vectors]
            new = []
            for offset in offsets:
                factor = self._splat(c, c.load(self.type, c.at(column, offset)))
                totals, sums = sums[: len(vectors)], sums[len(vectors) :]
                new.append([c.multiply_add(self.vector, factor, across[v], totals[v]) for v in vectors])
            following = c.binary("add", k, 1)
            carried = [self._next_column(c, at), c.at(b, "%b_k")]
            trip.following = [following, *carried, *(value for row in new for value in row)]
            c.jump_unless(c.binary("icmp slt", following, "%inner"), trip.end)
        places = [c.at("%out", c.binary("mul", number, "%out_row")) for number in numbers]

        def write(rows: list[list[str]]) -> None:
            for place, row in zip(places, rows):
                for v in vectors:
                    self._store(c, row[v], place, v, masks)
            c.end("ret void")

        with c.if_then("%add"):  # all are read before any is written, since the last row may be repeated
            write([
                [c.binary("fadd", self._load(c, place, v, masks), row[v], self.vector) for v in vectors]
                for place, row in zip(places, new)
            ])  # fmt: skip
        write(new)
        return c.text()

    def _panel(
        self, c: FunctionBuilder, rows: str, inner: str, a: Operand, out: str, out_row: str, columns: str, across: str,
        add: str,
    ) -> None:  # fmt: skip
        """Calls the tiles of one panel. across: the address and the stride of the panel of `b`, as arguments."""
        begin = "0"
        for height, less in zip(self.heights, (*self.heights[1:], 0)):
            # The remaining rows take a tile of this height unless a lower one holds them.
            rest = c.binary("srem", c.binary("sub", rows, begin), height)
            end = c.binary("sub", rows, c.select(c.binary("icmp sgt", rest, less), 0, rest))
            with c.loop(begin, end, height) as row:
                some = c.min(c.binary("sub", end, row.index), height)
                first, a_row, a_k = self._from_row(c, a, row.index)
                given = [
                    f"i64 {inner}", f"ptr {first}", f"{self._PLACES} {a_row}", f"{self._PLACES} {a_k}", across,
                    f"ptr {c.at(out, c.binary('mul', row.index, out_row))}", f"i64 {out_row}", f"i64 {some}",
                    f"i64 {columns}", add,
                ]  # fmt: skip
                self._call_tile(c, height, columns, ", ".join(given))
            begin = end

    def _call_tile(self, c: FunctionBuilder, height: int, columns: str, given: str) -> None:
        narrow = c.binary("icmp sle", columns, self.lanes)
        conditions = {"narrow": narrow, "wide": c.negated(narrow)}
        if self.whole_tiles:
            conditions["whole"] = c.binary("icmp eq", columns, self.width)
            conditions["wide"] = c.all_of(conditions["wide"], c.negated(conditions["whole"]))
        for kind in self._kinds():
            with c.if_then(conditions[kind]):
                c.run(f"@tile_{height}_{kind}", given)


def provided(
    symbol: str, name: str, code: Callable[[str, int], str], sources: Sequence[str], others: Mapping[str, int]
) -> int:
    """Compiles a product for this machine and an element type, and gives its address. sources: the files of this folder
    that the code depends on. others: the symbols that it refers to."""
    from runtime.llvm import processor, target

    size = processor.vector_bits() // 8
    writers = [Path(__file__).with_name(file).read_text(encoding="utf-8") for file in sources]
    key = repr((symbol, size, writers))
    made = jit_module.machine_code("products", lambda: code(name, size), level=0, key=key)
    (address,) = target.link(made, [symbol], others)
    return address
