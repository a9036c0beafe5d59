"""Removes `custom_gradient` nodes from a graph that is about to run: forward they are the identity.

    %3 = custom_gradient(%x, %2, %1): …        →        uses of %3 use %2

Not in the pipeline: graphs keep these nodes as long as somebody may differentiate them.
"""

from __future__ import annotations

from runtime.graph.ir import Graph, Substitution, copy_graph
from runtime.graph.passes.dead_code import remove_dead_code


def without_custom_gradients(graph: Graph) -> Graph:
    """The graph itself if it has none, else a copy without them."""
    if not any(node.op.name == "custom_gradient" for node in graph.walk()):
        return graph
    graph = copy_graph(graph)
    _remove(graph)
    remove_dead_code(graph)
    return graph


def _remove(graph: Graph) -> None:
    mapping = Substitution()
    kept = []
    for node in graph.nodes:
        node.inputs = [mapping[v] for v in node.inputs]
        if node.op.name == "custom_gradient":
            results = node.inputs[node.attrs["sources"] :]
            mapping.update(zip(node.outputs, results))
            continue
        for region in node.regions:
            _remove(region)
        kept.append(node)
    graph.nodes = kept
    graph.outputs = [mapping[v] for v in graph.outputs]
    graph.program = None
