"""Vector instructions of matrix products, and packing: copies of parts of matrices into contiguous memory."""

from __future__ import annotations

from runtime.llvm.function_builder import FunctionBuilder

VECTORS = 2  # the width of a tile
DEPTH = 256  # of the inner dimension that a tile accumulates at a time
LINE_PADDING = 64  # bytes after each row of a packed block, so that rows don't share cache sets
_BLOCK_BYTES = 1 << 17  # of a packed block of the first matrix
_BLOCK = 8  # rows and columns transposed together in registers


class Packing:
    """The functions for one element type and vector length in bytes."""

    def __init__(self, name: str, vector_bytes: int) -> None:
        self.name = name
        self.type = "float" if name == "float32" else "double"
        self.size = 4 if name == "float32" else 8
        self.lanes = vector_bytes // self.size
        self.vector = f"<{self.lanes} x {self.type}>"
        self.mask = f"<{self.lanes} x i1>"
        self.width = VECTORS * self.lanes  # columns of a tile
        self.block_rows = _BLOCK_BYTES // (DEPTH * self.size)
        # 16 vector registers hold 6 x 2 accumulators and their operands, 32 registers 8 x 2.
        self.heights = (6, 4, 2) if vector_bytes == 32 else (8, 4, 2)
        # With AVX-512 masked loads are free, so there is no separate version for whole tiles.
        self.whole_tiles = vector_bytes != 64

    @property
    def block_bytes(self) -> int:
        """The size of a packed block of the first matrix, transposed or not."""
        return max(
            self.block_rows * (DEPTH * self.size + LINE_PADDING), DEPTH * (self.block_rows * self.size + LINE_PADDING)
        )

    # --- vectors -----------------------------------------------------------------------------------------------------

    def _lanes_of(self, c: FunctionBuilder, count: str, vector: int) -> str:
        """The mask of the lanes of a row's vector that are among its `count` elements."""
        left = c.convert("trunc", "i64", c.binary("sub", count, vector * self.lanes), "i32")
        kind = f"<{self.lanes} x i32>"
        numbers = ", ".join(f"i32 {lane}" for lane in range(self.lanes))
        return c.binary("icmp slt", f"<{numbers}>", c.splat(kind, "i32", left), kind)

    def _load(self, c: FunctionBuilder, base: str, v: int, masks: list[str]) -> str:
        place = c.at(base, v * self.lanes * self.size)
        if not masks:
            return c.load(self.vector, place, self.size)
        return c.masked_load(self.vector, place, self.size, f"{self.mask} {masks[v]}")

    def _store(self, c: FunctionBuilder, value: str, base: str, v: int, masks: list[str]) -> None:
        place = c.at(base, v * self.lanes * self.size)
        if not masks:
            c.store(self.vector, value, place, self.size)
            return
        c.masked_store(self.vector, value, place, self.size, f"{self.mask} {masks[v]}")

    def _splat(self, c: FunctionBuilder, scalar: str) -> str:
        return c.splat(self.vector, self.type, scalar)

    # --- packing -----------------------------------------------------------------------------------------------------

    def _copy_block(self) -> str:
        """Copies rows of `elements` elements; the copies are padded to whole vectors."""
        c = FunctionBuilder(
            "define internal void @copy(ptr %a, i64 %a_line, ptr %block, i64 %block_line, i64 %lines, i64 %elements) "
            "noinline nounwind"
        )
        rest = c.binary("srem", "%elements", self.lanes)
        whole = c.binary("sub", "%elements", rest)
        mask = self._lanes_of(c, rest, 0)
        with c.loop(0, "%lines") as line:
            source = c.at("%a", c.binary("mul", line.index, "%a_line"))
            target = c.at("%block", c.binary("mul", line.index, "%block_line"))

            def move(first: str, masks: list[str]) -> None:
                at = c.binary("mul", first, self.size)
                value = self._load(c, c.at(source, at), 0, masks)
                self._store(c, value, c.at(target, at), 0, [])

            with c.loop(0, whole, self.lanes) as vector:
                move(vector.index, [])
            with c.if_then(c.binary("icmp sgt", rest, 0)):
                move(whole, [mask])
        c.end("ret void")
        return c.text()

    def _pack(self) -> str:
        """panel[k, :width] = b[k, :columns], padded with zeros.

        Each row lies on another page, so the processor doesn't foresee that the next panel's columns follow.
        """
        c = FunctionBuilder(
            "define internal void @pack(ptr %b, i64 %b_line, ptr %panel, i64 %inner, i64 %columns) noinline nounwind"
        )
        masks = [self._lanes_of(c, "%columns", v) for v in range(VECTORS)]
        with c.loop(0, "%inner") as k:
            source = c.at("%b", c.binary("mul", k.index, "%b_line"))
            target = c.at("%panel", c.binary("mul", k.index, self.width * self.size))
            for v in range(VECTORS):
                following = c.at(source, (VECTORS + v) * self.lanes * self.size)
                c.prefetch(following)
                self._store(c, self._load(c, source, v, masks), target, v, [])
        c.end("ret void")
        return c.text()

    def _pack_transposed(self) -> str:
        """panel[k, :width] = b[:columns, k], zeros after them; whole blocks are transposed in registers."""
        c = FunctionBuilder(
            "define internal void @pack_transposed(ptr %b, i64 %b_line, ptr %panel, i64 %inner, i64 %columns) "
            "noinline nounwind"
        )
        panel_row = self.width * self.size
        whole_columns = c.binary("and", "%columns", -_BLOCK)
        whole_inner = c.binary("and", "%inner", -_BLOCK)

        def places(j: str, k: str) -> tuple[str, str]:
            source = c.at(c.at("%b", c.binary("mul", j, "%b_line")), c.binary("mul", k, self.size))
            return source, c.at(c.at("%panel", c.binary("mul", k, panel_row)), c.binary("mul", j, self.size))

        def copy(first: str, last: str, k: str) -> None:
            with c.loop(first, last) as j:
                source, target = places(j.index, k)
                c.store(self.type, c.load(self.type, source), target)

        block = f"<{_BLOCK} x {self.type}>"
        with c.loop(0, whole_columns, _BLOCK) as j:
            with c.loop(0, whole_inner, _BLOCK) as k:
                source, target = places(j.index, k.index)
                lines = [c.at(source, c.binary("mul", "%b_line", line)) for line in range(_BLOCK)]
                rows = [c.load(block, line, self.size) for line in lines]
                for row, value in enumerate(_transposed_block(c, rows, block)):
                    c.store(block, value, c.at(target, row * panel_row), self.size)
            with c.loop(whole_inner, "%inner") as k:
                copy(j.index, c.binary("add", j.index, _BLOCK), k.index)
        with c.loop(0, "%inner") as k:
            copy(whole_columns, "%columns", k.index)
            with c.loop("%columns", self.width) as j:
                c.store(self.type, "0.0", places(j.index, k.index)[1])
        c.end("ret void")
        return c.text()


def _transposed_block(c: FunctionBuilder, rows: list[str], block: str) -> list[str]:
    """Transposes a square of vectors: at each stage, halves of pairs are exchanged."""
    half = _BLOCK // 2
    while half:
        result = list(rows)
        for low in (number for number in range(_BLOCK) if not number & half):
            for first in (0, half):
                lanes = [(lane & ~half) + first + (_BLOCK if lane & half else 0) for lane in range(_BLOCK)]
                result[low + first] = c.shuffle(block, rows[low], rows[low + half], lanes)
        rows = result
        half //= 2
    return rows
