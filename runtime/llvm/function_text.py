"""Writes a function as LLVM text: instructions, blocks, stack slots.

The writers of kernels (`writer.py`), of the functions that Python calls (`wrapper.py`) and of all other machine code
(`function_builder.py`) are subclasses.
"""

from __future__ import annotations


class FunctionText:
    """entry: the stack slots, which come first. lines: all other lines. current: the block that is being written."""

    temporaries, labels = "t", "b"  # prefixes of names

    def __init__(self) -> None:
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.current = "start"
        self._count = 0
        self._finished = False  # the block has its terminator

    def stack(self, type_: str, name: str | None = None, count: int = 1, align: int = 8) -> str:
        """A stack slot."""
        place = f'%"{name}"' if name is not None else self.name()
        self.entry.append(f"  {place} = alloca {type_}{f', i64 {count}' if count > 1 else ''}, align {align}")
        return place

    # --- instructions ------------------------------------------------------------------------------------------------

    def name(self) -> str:
        """A new name for a result."""
        self._count += 1
        return f"%{self.temporaries}{self._count}"

    def line(self, text: str) -> None:
        """An instruction without a result."""
        if self._finished:
            self.block(self.label())  # unreachable, LLVM removes it
        self.lines.append("  " + text)

    def op(self, text: str) -> str:
        """An instruction's result."""
        self._count += 1
        name = f"%{self.temporaries}{self._count}"
        if self._finished:
            self.block(self.label())  # unreachable, LLVM removes it
        self.lines.append(f"  {name} = {text}")
        return name

    # --- blocks ------------------------------------------------------------------------------------------------------

    def label(self) -> str:
        """A name for a block."""
        self._count += 1
        return f"{self.labels}{self._count}"

    def begin(self, label: str) -> None:
        """Begins a block; the last one has ended."""
        self.lines.append(f"{label}:")
        self.current = label
        self._finished = False

    def block(self, label: str) -> None:
        """Begins a block; the last one falls through to it if it hasn't ended."""
        if not self._finished:
            self.lines.append(f"  br label %{label}")
        self.begin(label)

    def jump(self, label: str, note: str = "") -> None:
        """Jumps to a block. note: metadata."""
        if not self._finished:
            self.lines.append(f"  br label %{label}{note}")
        self._finished = True

    def split(self, condition: str, yes: str, no: str, note: str = "") -> None:
        """Jumps to one of two blocks. note: metadata."""
        self.end(f"br i1 {condition}, label %{yes}, label %{no}{note}")

    def end(self, text: str) -> None:
        """Ends the block with this instruction."""
        self.line(text)
        self._finished = True
