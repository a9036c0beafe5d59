"""The list of graph passes, in order, and the list of rewrites that run by themselves.

All of them run by `run_pass`, so that `autograph graph --passes` shows what they do.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from runtime.graph.ir import Graph
from runtime.graph.passes import options
from runtime.graph.passes.common_subexpressions import merge_common_subexpressions
from runtime.graph.passes.constant_folding import fold_constants
from runtime.graph.passes.control_flow.array_rows import reserve_rows
from runtime.graph.passes.control_flow.conditionals import simplify_conditionals
from runtime.graph.passes.control_flow.late_operands import put_late_operands_last
from runtime.graph.passes.control_flow.loop_carries import prune_carries
from runtime.graph.passes.control_flow.loop_invariants import move_loop_invariants
from runtime.graph.passes.control_flow.product_hoisting import hoist_products
from runtime.graph.passes.control_flow.reduction_order import gather_reductions
from runtime.graph.passes.dead_code import remove_dead_code
from runtime.graph.passes.rewrites.commits import insert_commits
from runtime.graph.passes.rewrites.complex_parts import in_parts
from runtime.graph.passes.rewrites.custom_gradients import without_custom_gradients
from runtime.graph.passes.rewrites.devices import insert_copies
from runtime.graph.passes.rewrites.explicit_captures import with_captures_passed
from runtime.graph.passes.rewrites.low_bits import drop_checks
from runtime.graph.passes.rewrites.narrow_floats import with_wide_arithmetic
from runtime.graph.passes.rewrites.overlap import with_overlap
from runtime.graph.passes.rewrites.repetition import alike
from runtime.graph.passes.rewrites.window_products import as_products
from runtime.graph.passes.rules import algebra, joins, moves, named_sums, strength_reduction, updates
from runtime.graph.passes.rules.rewriting import Rule, apply_rules
from runtime.graph.passes.shape_propagation import propagate_shapes
from runtime.graph.printer import as_text
from runtime.graph.verify import verify
from runtime.ops.random.stateful import number_draws
from runtime.pass_log import run_pass

Pass = Callable[[Graph], None]

# Tables of rules that one walk applies, with the options that switch them.
RULES: tuple[tuple[tuple[str, ...], dict[str, Rule]], ...] = (
    (("arithmetic_optimization", "fast_math"), algebra.FAST),
    (("arithmetic_optimization",), algebra.RULES),
    (("arithmetic_optimization", "strength_reduction"), strength_reduction.RULES),
    (("arithmetic_optimization", "strength_reduction", "fast_math"), strength_reduction.FAST),
    (("arithmetic_optimization",), named_sums.RULES),
    (("arithmetic_optimization",), updates.RULES),
    (("arithmetic_optimization", "move_optimization"), moves.RULES),
    (("arithmetic_optimization", "move_optimization"), joins.RULES),
)


def simplify(graph: Graph) -> None:
    """Applies the rules that are switched on, in place, in regions too."""
    apply_rules(graph, _rules(tuple(all(map(options.get, names)) for names, _ in RULES)))


@functools.cache
def _rules(on: tuple[bool, ...]) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for table in (table for chosen, (_, table) in zip(on, RULES) if chosen):
        for name, rule in table.items():
            found.setdefault(name, []).append(rule)
    return found


# name, option that switches it, pass
PASSES: tuple[tuple[str, str, Pass], ...] = (
    # Dead code first: the passes after it then look only at what counts.
    ("dead code", "dead_code_elimination", remove_dead_code),
    ("shape propagation", "shape_optimization", propagate_shapes),
    ("constant folding", "constant_folding", fold_constants),
    ("rules", "arithmetic_optimization", simplify),
    # Before code moves out of loops, so that equal expressions move once.
    ("common subexpressions", "common_subgraph_elimination", merge_common_subexpressions),
)
# Only for graphs with loops and branches.
REGION_PASSES: tuple[tuple[str, str, Pass], ...] = (
    ("conditionals", "conditional_optimization", simplify_conditionals),
    # Carries that become captures may make more invariant.
    ("loop carries", "loop_optimization", prune_carries),
    ("loop invariants", "loop_optimization", move_loop_invariants),
    ("products", "loop_optimization", hoist_products),
    # Sizes that were computed in loops stand in front of them by now.
    ("array rows", "loop_optimization", reserve_rows),
    # Constants meet what they are combined with, and what came out of different loops may be equal.
    ("constant folding", "constant_folding", fold_constants),
    ("common subexpressions", "common_subgraph_elimination", merge_common_subexpressions),
    ("reductions", "loop_optimization", gather_reductions),
    ("late operands", "loop_optimization", put_late_operands_last),
)
# All of them leave operands that nothing uses any more.
LAST = (("dead code", "dead_code_elimination", remove_dead_code),)


# name → rewrite. They aren't optimisations: each runs once, at the time that its line says.
REWRITES: dict[str, Callable[..., Any]] = {
    # When a function has been traced, before the passes: random ops get the places of their streams, in place.
    "random streams": number_draws,
    # Then too: sums and products of which only the low bits are read may wrap, in place.
    "low bits": drop_checks,
    # Then too: copies between the devices that it names, in place.
    "devices": insert_copies,
    # After the passes, where the function assigns variables, in place; says whether it has added any.
    "commits": insert_commits,
    # When a graph is going to run and no longer to be differentiated; gives the graph itself or a copy, as those below.
    "custom gradients": without_custom_gradients,
    # After that, when the graph is going to run here.
    "overlap": with_overlap,
    # When a graph is going to be compiled; None where there is nothing to do, as below.
    "complex parts": in_parts,
    # When it is too long for one kernel; gives the graph and the values of its further inputs.
    "repetitions": alike,
    # When a GPU runs it whose library multiplies matrices; gives the graph itself or a copy.
    "window products": as_products,
    # When a graph is lowered to a kernel.
    "recursive captures": with_captures_passed,
    "narrow floats": with_wide_arithmetic,
}


def rewrite(name: str, graph: Graph, *arguments: Any) -> Any:
    """Runs a rewrite of `REWRITES`, logged as a pass; returns its result."""
    change = REWRITES[name]
    return run_pass("graph", name, lambda g: change(g, *arguments), graph, _text)


def _text(graph: Graph, names: dict[Any, str]) -> str:
    return as_text(graph, kept=names)


def optimize(graph: Graph) -> Graph:
    """Runs the passes in place and gives the graph back. With AUTOGRAPH_STRICT=1, raises VerificationError if one
    breaks a rule of graphs."""
    is_strict = os.environ.get("AUTOGRAPH_STRICT") == "1"
    middle = REGION_PASSES if any(node.regions for node in graph.nodes) else ()
    for name, option, run in (*PASSES, *middle, *LAST):
        if options.get(option):
            run_pass("graph", name, run, graph, _text)
            if is_strict:
                # A function that is traced within a recursive one calls that one.
                verify(graph, name, is_part=True)
    return graph
