"""The list of graph passes, in order."""

from __future__ import annotations

from collections.abc import Callable

from runtime.graph.ir import Graph
from runtime.graph.passes.common_subexpressions import merge_common_subexpressions
from runtime.graph.passes.constant_folding import fold_constants
from runtime.graph.passes.dead_code import remove_dead_code

Pass = Callable[[Graph], None]

PASSES: tuple[tuple[str, Pass], ...] = (
    # Dead code first: the passes after it then look only at what counts.
    ("dead code", remove_dead_code),
    ("constant folding", fold_constants),
    # After folding, because equal constants make more expressions equal.
    ("common subexpressions", merge_common_subexpressions),
    # Folding and merging leave operands that nothing uses any more.
    ("dead code", remove_dead_code),
)


def optimize(graph: Graph, check: Callable[[Graph, str], None] | None = None) -> Graph:
    """Runs all passes in place and gives the graph back. `check(graph, pass name)` runs after each, for tests."""
    for name, run in PASSES:
        run(graph)
        if check is not None:
            check(graph, name)
    return graph
