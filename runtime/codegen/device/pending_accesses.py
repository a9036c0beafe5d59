"""The memory accesses of threads since the last barrier, which determine where the next one has to be."""

from __future__ import annotations

from dataclasses import field

from runtime.dataclass import dataclass


@dataclass
class Pending:
    """The accesses since the last barrier: memory that all threads read, that all write, and that the first one
    writes."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    first: set[str] = field(default_factory=set)

    def copy(self) -> Pending:
        return Pending(set(self.reads), set(self.writes), set(self.first))

    def join(self, other: Pending) -> None:
        self.reads |= other.reads
        self.writes |= other.writes
        self.first |= other.first

    def names(self) -> set[str]:
        return self.reads | self.writes | self.first

    def conflicts(self, reads: set[str], writes: set[str], first: bool) -> bool:
        if reads & self.writes or writes & (self.reads | self.writes):
            return True
        return not first and bool((reads | writes) & self.first)

    def __bool__(self) -> bool:
        return bool(self.reads or self.writes or self.first)
