"""Notes about a kernel that `f.explain` shows, taken while it is lowered."""

from __future__ import annotations

from typing import Any

from runtime.dataclass import dataclass
from runtime.graph.ir import Node, Value
from runtime.kernel_ir import ir


@dataclass(frozen=True, eq=False)
class NestReport:
    """Nodes that share one pass over memory.

    reads, writes: the values that it reads from and writes to memory. loop: its outermost loop, or None; after the
    passes, nests over the same rows may share it (`passes/loop_fusion.py`).
    """

    nodes: tuple[Node, ...]
    reads: tuple[Value, ...]
    writes: tuple[Value, ...]
    loop: ir.For | None

    @property
    def threaded(self) -> bool:
        """Whether it runs on several threads."""
        return self.loop is not None and self.loop.parallel


def report(nest: Any, before: ir.For | None) -> NestReport:
    """The report of a nest that has just been lowered. before: the loop of the nest before it."""
    group, low = nest.group, nest.low
    reads = tuple(v for v in nest.accesses)
    writes = tuple(n.outputs[0] for n in group.nodes if n in group.results or nest._is_needed(n.outputs[0]))
    loop = low.nest_loop if low.nest_loop is not before else None
    return NestReport(tuple(group.nodes), reads, writes, loop)
