"""Indirect GEMM: products of a matrix whose rows overlap in memory, as the windows over an image do, by a matrix.

    void autograph_indirect_product_float32(a, rows_at, inner_at, b, out, rows, inner, columns, add)

computes out[i, j] = sum of a[rows_at[i] + inner_at[k]] * b[k, j], added to `out` if `add` is 1. `rows_at` and
`inner_at` are arrays of int64, `b` and `out` are contiguous and row-major. It runs on the thread that calls it.

Without the tables, windows would have to be copied before their product: each element of an image as often as there are
windows that have it (Dukhan, "The Indirect Convolution Algorithm", 2019; there the tables hold pointers to pixels).
With the tables exchanged it is the product of the transposed windows by a matrix.

The tiles and the order of the sums are those of `gemm.py`, so the bits are too.
"""

from __future__ import annotations

import functools

from runtime.codegen.native_runtime.gemm_pack import DEPTH
from runtime.codegen.native_runtime.gemm_tiles import Operand, Tiles, provided
from runtime.llvm.function_builder import FunctionBuilder
from runtime.llvm.products import INDIRECT_SYMBOLS as SYMBOLS

_SOURCES = ("indirect_gemm.py", "gemm_tiles.py", "gemm_pack.py")  # what the LLVM code depends on, besides runtime.llvm
_NUMBER = 8  # bytes of an element of a table


class _IndirectGemm(Tiles):
    """The functions for one type of elements. Tables say where elements of `a` are."""

    _PLACES = "ptr"

    def text(self) -> str:
        tiles = [self._tile(height, kind) for height in self.heights for kind in self._kinds()]
        return "\n".join([*tiles, self._pack(), self._entry()])

    def _offset_of_row(self, c: FunctionBuilder, number: str) -> str:
        return c.binary("mul", c.load("i64", c.at("%a_row", number, "i64")), self.size)

    def _first_column(self) -> str:
        return "%a_k"

    def _column(self, c: FunctionBuilder, carried: str) -> str:
        return c.at("%a", c.load("i64", carried), self.type)

    def _next_column(self, c: FunctionBuilder, carried: str) -> str:
        return c.at(carried, _NUMBER)

    def _from_row(self, c: FunctionBuilder, a: Operand, number: str) -> Operand:
        return a[0], c.at(a[1], number, "i64"), a[2]

    def _entry(self) -> str:
        c = FunctionBuilder(
            f"define void @{SYMBOLS[self.name]}(ptr %a, ptr %rows_at, ptr %inner_at, ptr %b, ptr %out, "
            "i64 %rows, i64 %inner, i64 %columns, i64 %add) nounwind"
        )
        panel = c.stack(f"[{DEPTH * self.width} x {self.type}]", align=64)
        row, panel_row = c.binary("mul", "%columns", self.size), self.width * self.size
        direct = c.binary("icmp eq", row, panel_row)  # `b` is a single panel
        with c.loop(0, "%inner", DEPTH) as depth:
            k = depth.index
            inner = c.min(c.binary("sub", "%inner", k), DEPTH)
            add = c.any_of(c.binary("icmp sgt", k, 0), c.binary("icmp ne", "%add", 0))
            with c.loop(0, "%columns", self.width) as column:
                j = column.index
                columns = c.min(c.binary("sub", "%columns", j), self.width)
                b = c.at(c.at("%b", j, self.type), c.binary("mul", k, row))
                with c.unless(direct):
                    c.run("@pack", f"ptr {b}", f"i64 {row}", f"ptr {panel}", f"i64 {inner}", f"i64 {columns}")
                across = f"ptr {c.select(direct, b, panel, 'ptr')}, i64 {panel_row}"
                a = ("%a", "%rows_at", c.at("%inner_at", k, "i64"))
                self._panel(c, "%rows", inner, a, c.at("%out", j, self.type), row, columns, across, f"i1 {add}")
        c.end("ret void")
        return c.text()


def code(name: str, vector_bytes: int) -> str:
    """The LLVM code of all functions for an element type and a vector length."""
    return _IndirectGemm(name, vector_bytes).text()


@functools.cache
def provide(name: str) -> int:
    """Defines the symbol of the product for this element type, and gives its address."""
    return provided(SYMBOLS[name], name, code, _SOURCES, {})
