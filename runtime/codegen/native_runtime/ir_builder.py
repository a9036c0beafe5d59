"""Writes functions in LLVM's text by calling Python: for code that stays in the process (`jit_module.py`)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

INTRINSICS = ("declare i64 @llvm.smin.i64(i64, i64)", "declare i64 @llvm.smax.i64(i64, i64)")


class Loop:
    """A loop that is being written: its counter and the values that trips hand on. What a trip makes of those is put
    into `following`; after the loop `values` are the last ones."""

    def __init__(self, index: str, values: list[str]) -> None:
        self.index = index
        self.values = values
        self.following = list(values)


class Code:
    """The text of one function. Values are names or numbers, places (pointers) are counted in bytes."""

    def __init__(self, head: str) -> None:
        self._head = head
        self._places: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._block = "start"

    def text(self) -> str:
        return "\n".join([f"{self._head} {{", "start:", *self._places, *self._lines, "}", ""])

    # --- instructions ------------------------------------------------------------------------------------------------

    def name(self) -> str:
        self._count += 1
        return f"%t{self._count}"

    def op(self, text: str) -> str:
        """An instruction that has a result."""
        name = self.name()
        self.line(f"{name} = {text}")
        return name

    def line(self, text: str) -> None:
        self._lines.append(f"  {text}")

    def place(self, type_: str, align: int = 8) -> str:
        """Room for as long as the function runs."""
        name = self.name()
        self._places.append(f"  {name} = alloca {type_}, align {align}")
        return name

    def at(self, base: str, offset: str | int) -> str:
        return self.op(f"getelementptr i8, ptr {base}, i64 {offset}")

    def do(self, instruction: str, a: str, b: str | int, type_: str = "i64") -> str:
        """An instruction with two operands."""
        return self.op(f"{instruction} {type_} {a}, {b}")

    def chosen(self, condition: str, yes: str | int, no: str | int, type_: str = "i64") -> str:
        return self.op(f"select i1 {condition}, {type_} {yes}, {type_} {no}")

    def min(self, a: str | int, b: str | int) -> str:
        return self.op(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def max(self, a: str | int, b: str | int) -> str:
        return self.op(f"call i64 @llvm.smax.i64(i64 {a}, i64 {b})")

    def share(self, total: str, parts: str | int) -> str:
        """total / parts, upwards."""
        return self.do("sdiv", self.do("sub", self.do("add", total, parts), 1), parts)

    def both(self, a: str, b: str) -> str:
        return self.do("and", a, b, "i1")

    def either(self, a: str, b: str) -> str:
        return self.do("or", a, b, "i1")

    def opposite(self, condition: str) -> str:
        return self.do("xor", condition, "true", "i1")

    # --- blocks ------------------------------------------------------------------------------------------------------

    def begin(self, block: str) -> None:
        self._lines.append(f"{block}:")
        self._block = block

    def go(self, block: str) -> None:
        """On to a block that begins here."""
        self.line(f"br label %{block}")
        self.begin(block)

    @contextlib.contextmanager
    def when(self, condition: str) -> Iterator[None]:
        base = self.name()[1:]
        self.line(f"br i1 {condition}, label %{base}.then, label %{base}.end")
        self.begin(f"{base}.then")
        yield
        self.go(f"{base}.end")

    @contextlib.contextmanager
    def loop(
        self, start: str | int, end: str | int, step: int | str = 1, carried: Sequence[tuple[str, str]] = ()
    ) -> Iterator[Loop]:
        """for index in range(start, end, step); carried: type and first value of what trips hand on."""
        before, base = self._block, self.name()[1:]
        loop = Loop(self.name(), [self.name() for _ in carried])
        following = self.name()
        self.go(f"{base}.test")
        head = len(self._lines)
        more = self.do("icmp slt", loop.index, end)
        self.line(f"br i1 {more}, label %{base}.body, label %{base}.end")
        self.begin(f"{base}.body")
        yield loop
        self.line(f"{following} = add i64 {loop.index}, {step}")
        after = self._block
        self.line(f"br label %{base}.test")
        self.begin(f"{base}.end")
        phis = [("i64", loop.index, start, following)]
        for (type_, first), value, new in zip(carried, loop.values, loop.following):
            phis.append((type_, value, first, new))
        self._lines[head:head] = [
            f"  {value} = phi {type_} [ {first}, %{before} ], [ {new}, %{after} ]" for type_, value, first, new in phis
        ]
