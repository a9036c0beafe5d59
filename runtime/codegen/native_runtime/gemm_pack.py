"""The vectors that matrix products are made of, and copies of parts of matrices to where they lie close together."""

from __future__ import annotations

from runtime.codegen.native_runtime.ir_builder import Code

VECTORS = 2  # side by side in a tile
DEPTH = 256  # of the inner dimension, for one visit of a tile
APART = 64  # bytes between the lines of a copy
_BLOCK_BYTES = 1 << 17  # of the first matrix that are copied together
_BLOCK = 8  # rows and columns that are turned round together


class Copies:
    """The functions for one type of elements, in vectors of so many bytes."""

    def __init__(self, name: str, vector_bytes: int) -> None:
        self.name = name
        self.type = "float" if name == "float32" else "double"
        self.size = 4 if name == "float32" else 8
        self.lanes = vector_bytes // self.size
        self.vector = f"<{self.lanes} x {self.type}>"
        self.mask = f"<{self.lanes} x i1>"
        self.suffix = f"v{self.lanes}f{8 * self.size}"
        self.width = VECTORS * self.lanes  # columns of a tile
        self.block_rows = _BLOCK_BYTES // (DEPTH * self.size)
        # Sixteen registers hold 6 x 2 sums beside what they are made of, thirty-two 8 x 2.
        self.heights = (6, 4, 2) if vector_bytes == 32 else (8, 4, 2)
        # Masks cost nothing where they have registers of their own.
        self.whole_tiles = vector_bytes != 64

    @property
    def block_bytes(self) -> int:
        """How much room a block of the first matrix takes, whichever way round it is stored."""
        return max(self.block_rows * (DEPTH * self.size + APART), DEPTH * (self.block_rows * self.size + APART))

    # --- vectors -----------------------------------------------------------------------------------------------------

    def _lanes_of(self, c: Code, count: str, vector: int) -> str:
        """Which lanes of a row's vector are among its `count` elements."""
        left = c.op(f"trunc i64 {c.do('sub', count, vector * self.lanes)} to i32")
        kind = f"<{self.lanes} x i32>"
        first = c.op(f"insertelement {kind} poison, i32 {left}, i64 0")
        everywhere = c.op(f"shufflevector {kind} {first}, {kind} poison, {kind} zeroinitializer")
        numbers = ", ".join(f"i32 {lane}" for lane in range(self.lanes))
        return c.op(f"icmp slt {kind} <{numbers}>, {everywhere}")

    def _load(self, c: Code, base: str, v: int, masks: list[str]) -> str:
        place = c.at(base, v * self.lanes * self.size)
        if not masks:
            return c.op(f"load {self.vector}, ptr {place}, align {self.size}")
        return c.op(
            f"call {self.vector} @llvm.masked.load.{self.suffix}.p0(ptr {place}, i32 {self.size}, {self.mask} "
            f"{masks[v]}, {self.vector} zeroinitializer)"
        )

    def _store(self, c: Code, value: str, base: str, v: int, masks: list[str]) -> None:
        place = c.at(base, v * self.lanes * self.size)
        if not masks:
            c.line(f"store {self.vector} {value}, ptr {place}, align {self.size}")
            return
        c.line(
            f"call void @llvm.masked.store.{self.suffix}.p0({self.vector} {value}, ptr {place}, i32 {self.size}, "
            f"{self.mask} {masks[v]})"
        )

    def _splat(self, c: Code, scalar: str) -> str:
        first = c.op(f"insertelement {self.vector} poison, {self.type} {scalar}, i64 0")
        return c.op(f"shufflevector {self.vector} {first}, {self.vector} poison, <{self.lanes} x i32> zeroinitializer")

    def _fused(self, x: str, y: str, z: str) -> str:
        vector = self.vector
        return f"call {vector} @llvm.fmuladd.{self.suffix}({vector} {x}, {vector} {y}, {vector} {z})"

    # --- copies ------------------------------------------------------------------------------------------------------

    def _copy(self) -> str:
        """Lines of so many elements, with room for a vector after each of the copies."""
        c = Code(
            "define internal void @copy(ptr %a, i64 %a_line, ptr %block, i64 %block_line, i64 %lines, i64 %elements) "
            "noinline nounwind"
        )
        rest = c.do("srem", "%elements", self.lanes)
        whole = c.do("sub", "%elements", rest)
        mask = self._lanes_of(c, rest, 0)
        with c.loop(0, "%lines") as line:
            source = c.at("%a", c.do("mul", line.index, "%a_line"))
            target = c.at("%block", c.do("mul", line.index, "%block_line"))

            def move(first: str, masks: list[str]) -> None:
                at = c.do("mul", first, self.size)
                value = self._load(c, c.at(source, at), 0, masks)
                self._store(c, value, c.at(target, at), 0, [])

            with c.loop(0, whole, self.lanes) as vector:
                move(vector.index, [])
            with c.when(c.do("icmp sgt", rest, 0)):
                move(whole, [mask])
        c.line("ret void")
        return c.text()

    def _pack(self) -> str:
        """panel[k, :width] = b[k, :columns], zeros after them."""
        c = Code(
            "define internal void @pack(ptr %b, i64 %b_line, ptr %panel, i64 %inner, i64 %columns) noinline nounwind"
        )
        masks = [self._lanes_of(c, "%columns", v) for v in range(VECTORS)]
        with c.loop(0, "%inner") as k:
            source = c.at("%b", c.do("mul", k.index, "%b_line"))
            target = c.at("%panel", c.do("mul", k.index, self.width * self.size))
            for v in range(VECTORS):
                self._store(c, self._load(c, source, v, masks), target, v, [])
        c.line("ret void")
        return c.text()

    def _pack_flipped(self) -> str:
        """panel[k, :width] = b[:columns, k], zeros after them; whole blocks turn round in registers."""
        c = Code(
            "define internal void @pack_flipped(ptr %b, i64 %b_line, ptr %panel, i64 %inner, i64 %columns) "
            "noinline nounwind"
        )
        panel_row = self.width * self.size
        whole_columns = c.do("and", "%columns", -_BLOCK)
        whole_inner = c.do("and", "%inner", -_BLOCK)

        def places(j: str, k: str) -> tuple[str, str]:
            source = c.at(c.at("%b", c.do("mul", j, "%b_line")), c.do("mul", k, self.size))
            return source, c.at(c.at("%panel", c.do("mul", k, panel_row)), c.do("mul", j, self.size))

        def copy(first: str, last: str, k: str) -> None:
            with c.loop(first, last) as j:
                source, target = places(j.index, k)
                c.line(f"store {self.type} {c.op(f'load {self.type}, ptr {source}')}, ptr {target}")

        block = f"<{_BLOCK} x {self.type}>"
        with c.loop(0, whole_columns, _BLOCK) as j:
            with c.loop(0, whole_inner, _BLOCK) as k:
                source, target = places(j.index, k.index)
                lines = [c.at(source, c.do("mul", "%b_line", line)) for line in range(_BLOCK)]
                rows = [c.op(f"load {block}, ptr {line}, align {self.size}") for line in lines]
                for row, value in enumerate(_turned(c, rows, block)):
                    c.line(f"store {block} {value}, ptr {c.at(target, row * panel_row)}, align {self.size}")
            with c.loop(whole_inner, "%inner") as k:
                copy(j.index, c.do("add", j.index, _BLOCK), k.index)
        with c.loop(0, "%inner") as k:
            copy(whole_columns, "%columns", k.index)
            with c.loop("%columns", self.width) as j:
                c.line(f"store {self.type} 0.0, ptr {places(j.index, k.index)[1]}")
        c.line("ret void")
        return c.text()


def _turned(c: Code, rows: list[str], block: str) -> list[str]:
    """The transpose of a square of vectors: at each stage, halves of pairs change places."""
    half = _BLOCK // 2
    while half:
        result = list(rows)
        for low in (number for number in range(_BLOCK) if not number & half):
            for first in (0, half):
                lanes = [(lane & ~half) + first + (_BLOCK if lane & half else 0) for lane in range(_BLOCK)]
                text = ", ".join(f"i32 {lane}" for lane in lanes)
                pair = f"{block} {rows[low]}, {block} {rows[low + half]}"
                result[low + first] = c.op(f"shufflevector {pair}, <{_BLOCK} x i32> <{text}>")
        rows = result
        half //= 2
    return rows
