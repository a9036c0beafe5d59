"""The list of graph passes, in order."""

from __future__ import annotations

from collections.abc import Callable

from runtime.graph.ir import Graph
from runtime.graph.passes import options
from runtime.graph.passes.algebra import simplify_algebra
from runtime.graph.passes.common_subexpressions import merge_common_subexpressions
from runtime.graph.passes.conditionals import simplify_conditionals
from runtime.graph.passes.constant_folding import fold_constants
from runtime.graph.passes.dead_code import remove_dead_code
from runtime.graph.passes.loop_invariants import move_loop_invariants
from runtime.graph.passes.product_hoisting import hoist_products
from runtime.graph.passes.shape_propagation import propagate_shapes

Pass = Callable[[Graph], None]

# name, option that switches it (None: always on), pass
PASSES: tuple[tuple[str, str | None, Pass], ...] = (
    # Dead code first: the passes after it then look only at what counts.
    ("dead code", None, remove_dead_code),
    ("shape propagation", "shape_optimization", propagate_shapes),
    ("constant folding", "constant_folding", fold_constants),
    ("algebra", "arithmetic_optimization", simplify_algebra),
    # Before code moves out of loops, so that equal expressions move once.
    ("common subexpressions", "common_subgraph_elimination", merge_common_subexpressions),
)
# Only for graphs with loops and branches.
REGION_PASSES: tuple[tuple[str, str | None, Pass], ...] = (
    ("conditionals", "conditional_optimization", simplify_conditionals),
    ("loop invariants", "loop_optimization", move_loop_invariants),
    ("products", "loop_optimization", hoist_products),
    # Constants meet what they are combined with, and what came out of different loops may be equal.
    ("constant folding", "constant_folding", fold_constants),
    ("common subexpressions", "common_subgraph_elimination", merge_common_subexpressions),
)
# All of them leave operands that nothing uses any more.
LAST = (("dead code", None, remove_dead_code),)


def optimize(graph: Graph, check: Callable[[Graph, str], None] | None = None) -> Graph:
    """Runs the passes in place and gives the graph back. `check(graph, pass name)` runs after each, for tests."""
    middle = REGION_PASSES if any(node.regions for node in graph.nodes) else ()
    for name, option, run in (*PASSES, *middle, *LAST):
        if option is None or options.get(option):
            run(graph)
            if check is not None:
                check(graph, name)
    return graph
