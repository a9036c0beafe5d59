"""What a kernel's text consists of, noted while it is printed: `f.explain` shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runtime.graph.ir import Node, Value


@dataclass(frozen=True, eq=False)
class NestReport:
    """Nodes that share one pass over memory.

    reads, writes: the values that it takes from and leaves in memory; threaded: whether it runs on several threads;
    loop: identifies the printed loop: nests over the same rows share one (see `passes/loop_fusion.py`).
    """

    nodes: tuple[Node, ...]
    reads: tuple[Value, ...]
    writes: tuple[Value, ...]
    threaded: bool
    loop: tuple[int, int]


def report(nest: Any, before: Any, threaded: bool) -> NestReport:
    """The report of a nest that has just been printed; `before` is the last loop that was placed until then."""
    group, low = nest.group, nest.low
    placed = low.placed
    reads = tuple(v for v in nest.accesses)
    writes = tuple(n.outputs[0] for n in group.nodes if n in group.results or nest._is_needed(n.outputs[0]))
    loop = (id(placed.inside), placed.start) if placed is not before else (id(nest), 0)
    return NestReport(tuple(group.nodes), reads, writes, threaded, loop)
