"""What threads may still be doing since they met last, which says where they have to meet again."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Pending:
    """What threads may still be doing since the last barrier: memory that all read, that all write, that the first one
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

    def conflicts(self, reads: set[str], writes: set[str], first: bool) -> bool:
        if reads & self.writes or writes & (self.reads | self.writes):
            return True
        return not first and bool((reads | writes) & self.first)

    def __bool__(self) -> bool:
        return bool(self.reads or self.writes or self.first)
