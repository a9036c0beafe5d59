"""Captures of recursive functions as arguments.

    %r = letrec(%n, %x) {captures=1}              %r = letrec(%n, %x) {captures=0}
      f(%m, %y): %a = call(%m - 1)         →        f(%m, %y): %a = call(%m - 1, %y)
                 return %a + %y                                return %a + %y

For those who want all that a call depends on among its operands: gradients, and code that calls real functions.
"""

from __future__ import annotations

from runtime.graph.ir import Graph, Node, Value, copy_graph


def pass_captures(node: Node) -> None:
    """Makes the captures of a `letrec` node arguments of all calls, in place."""
    names, count = frozenset(node.attrs["functions"]), node.attrs["captures"]
    for region in node.regions:
        _thread_captures(region, names, region.inputs[len(region.inputs) - count :])
    node.attrs = {**node.attrs, "captures": 0}


def with_captures_passed(graph: Graph) -> Graph:
    """The graph itself if it has no `letrec` node, else a copy in which all of them, inner ones too, are like that."""
    if not any(node.op.name == "letrec" for node in graph.walk()):
        return graph
    graph = copy_graph(graph)
    for node in list(graph.walk()):
        if node.op.name == "letrec":
            pass_captures(node)
    return graph


def _thread_captures(graph: Graph, names: frozenset[str], captures: list[Value]) -> None:
    """Hands captures to the calls in a graph, through the regions that they stand in."""
    for node in graph.nodes:
        if _calls(node, names):
            node.inputs += captures
        elif any(_calls(inner, names) for region in node.regions for inner in region.walk()):
            node.inputs += captures
            for region in node.regions:
                own = [region.add_input_like(v) for v in captures]
                _thread_captures(region, names, own)
            if node.op.name == "letrec":
                node.attrs = {**node.attrs, "captures": node.attrs["captures"] + len(captures)}
    graph.program = None


def _calls(node: Node, names: frozenset[str]) -> bool:
    return node.op.name == "call" and node.attrs["function"] in names
