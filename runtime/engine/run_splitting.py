"""Splits a long straight run of nodes into subgraphs of equal shape, so that they share kernels.

    matmul add tanh matmul add tanh ...      →      [matmul add tanh] [matmul add tanh] ...

Compile time grows faster than the length of a kernel, and the layers of a network, or the trips of an unrolled loop,
repeat a small number of patterns. A subgraph starts at each costly node (a product, a convolution, a loop, a branch:
the anchors) and is then split into its connected components: the updates of a hundred variables are a hundred small
subgraphs with the same text. (A number that an optimizer computes for all of them doesn't connect them.) Where
assignments may have to be undone, nodes stay in order, and only consecutive components are separated. Where a pattern
without anchors repeats (`graph/passes/rewrites/repetition.py`), a subgraph is one repetition, or several short ones.
Subgraphs have no names of values, since the kernel's text must not depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.graph.components import connected, is_number
from runtime.graph.ir import Node
from runtime.graph.passes.rewrites.repetition import is_constant, stretches

# Short repetitions are merged up to this many nodes, because calling a kernel costs as much as several small
# operations.
_ENOUGH = 16
# Consecutive components become subgraphs if there are at least this many, with at least this many nodes on average,
# because each costs one more call.
_MANY, _MUCH = 8, 8


def split_run(nodes: Sequence[Node], limit: int) -> list[list[Node]]:
    """The subgraphs' nodes without constants (each subgraph gets its own), definitions before uses.

    limit: the most nodes of a subgraph. (Nodes in regions don't count: a loop can't be split.)
    """
    nodes = [node for node in nodes if not is_constant(node)]
    # When a node fails, exactly the commits before it in the program must have run. Behind the last commit, order
    # means nothing: the updates of variables stand there.
    commits = [number for number, node in enumerate(nodes, 1) if node.op.name == "commit"]
    last = commits[-1] if commits else 0
    parts = [*_split(nodes[:last], True, limit), *_split(nodes[last:], False, limit)]
    return [part[start : start + limit] for part in parts for start in range(0, len(part), limit)]


def _split(nodes: list[Node], in_order: bool, limit: int) -> list[list[Node]]:
    found: list[list[Node]] = []
    at = 0
    for stretch in stretches(nodes):
        if any(map(_is_anchor, nodes[stretch.start : stretch.start + stretch.period])):
            continue  # split at the anchors, which every repetition has
        step = stretch.period * max(1, min(_ENOUGH, limit) // stretch.period)
        if stretch.stop - stretch.start < 2 * step:
            continue  # nothing would be shared
        found += _groups(nodes[at : stretch.start], in_order, limit)
        at = stretch.start + (stretch.stop - stretch.start) // step * step
        found += [nodes[start : start + step] for start in range(stretch.start, at, step)]
    return found + _groups(nodes[at:], in_order, limit)


def _is_anchor(node: Node) -> bool:
    return bool(node.regions) or node.op.terms is not None


def _groups(nodes: Sequence[Node], in_order: bool, limit: int) -> list[list[Node]]:
    """Splits nodes at the anchors and, unless they must stay in order, into connected components. Groups that are still
    too long are split where only numbers connect the earlier with the later nodes."""
    groups: list[list[Node]] = [[]]
    for node in nodes:
        if _is_anchor(node):
            groups.append([])
        groups[-1].append(node)
    parts = [part for group in groups if group for part in ([group] if in_order else connected(group))]
    return [piece for part in parts for piece in (_successive(part) if len(part) > limit else [part])]


def _successive(nodes: list[Node]) -> list[list[Node]]:
    """Splits a run of nodes, in order, wherever only numbers connect the earlier with the later nodes."""
    arrays = [node for node in nodes if not _is_of_numbers(node)]
    components = connected(arrays, through_numbers=False)
    ends = {id(part[0]): part[-1] for part in components}
    if len(components) < _MANY or len(arrays) < _MUCH * len(components):
        return [nodes]
    parts: list[list[Node]] = [[]]
    unfinished: set[int] = set()  # the last nodes of components that have begun
    for node in nodes:
        if id(node) in ends and not unfinished and parts[-1] and not all(map(_is_of_numbers, parts[-1])):
            parts.append([])
        parts[-1].append(node)
        if id(node) in ends:
            unfinished.add(id(ends[id(node)]))
        unfinished.discard(id(node))
    return parts


def _is_of_numbers(node: Node) -> bool:
    return all(is_number(value) for value in (*node.inputs, *node.outputs))
