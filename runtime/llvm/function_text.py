"""A function being written as LLVM text: instructions, blocks, places on the stack.

Functions of kernels (`writer.py`), what Python calls (`wrapper.py`) and all other machine code (`function_builder.py`)
are written by this class, with what each needs besides.
"""

from __future__ import annotations


class FunctionText:
    """entry: allocations on the stack, which come first. lines: all else. current: the block that is being written."""

    temporaries, labels = "t", "b"  # what names begin with

    def __init__(self) -> None:
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.current = "start"
        self._count = 0
        self._finished = False  # the block has its last instruction

    def stack(self, type_: str, name: str | None = None, count: int = 1, align: int = 8) -> str:
        """A place on the stack."""
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
            self.block(self.label())  # unreachable, which LLVM takes out
        self.lines.append("  " + text)

    def op(self, text: str) -> str:
        """An instruction's result."""
        self._count += 1
        name = f"%{self.temporaries}{self._count}"
        if self._finished:
            self.block(self.label())  # unreachable, which LLVM takes out
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
        """Begins a block; falls into it where the last one hasn't ended."""
        if not self._finished:
            self.lines.append(f"  br label %{label}")
        self.begin(label)

    def jump(self, label: str, note: str = "") -> None:
        """Goes to a block. note: metadata."""
        if not self._finished:
            self.lines.append(f"  br label %{label}{note}")
        self._finished = True

    def split(self, condition: str, yes: str, no: str, note: str = "") -> None:
        """Goes to one of two blocks."""
        self.end(f"br i1 {condition}, label %{yes}, label %{no}{note}")

    def end(self, text: str) -> None:
        """The block's last instruction."""
        self.line(text)
        self._finished = True
