"""The arrays that a graph changes by nothing but ops that update a few elements (`OpDef.is_update`).

Generated code runs these in place, so that a trip of a loop costs as much as it changes. Whoever copies such an array
in each trip makes the loop quadratic.
"""

from __future__ import annotations

from runtime.graph.ir import Graph, Node, Value


class Origins:
    """The inputs of graphs that their values are, but for updates; found once for each graph, which must not change."""

    def __init__(self) -> None:
        self._found: dict[Graph, dict[Value, Value]] = {}

    def of(self, graph: Graph) -> dict[Value, Value]:
        """Maps what is an input of the graph, but for the elements that updates have changed, to that input."""
        found = self._found.get(graph)
        if found is None:
            found = self._found[graph] = {value: value for value in graph.inputs}
            for node in graph.nodes:
                for place, source in self._sources(node).items():
                    if source in found:
                        found[node.outputs[place]] = found[source]
        return found

    def trace(self, value: Value) -> Value | None:
        """The input that a value is, but for the elements that updates have changed; None if it isn't one. Works in a
        graph that is still being built, where `of` doesn't."""
        while value.node is not None:
            source = self._sources(value.node).get(value.node.outputs.index(value))
            if source is None:
                return None
            value = source
        return value

    def updated_in_place(self, loop: Node) -> set[int]:
        """The carries of a `while` that each trip hands on, changed by updates or not at all."""
        body = loop.regions[1]
        known = self.of(body)
        return {k for k in range(loop.attrs["carries"]) if known.get(body.outputs[k]) is body.inputs[k]}

    def _sources(self, node: Node) -> dict[int, Value]:
        """The operands that results of a node are, but for updates, by the number of the result."""
        if node.op.is_update:
            return {0: node.inputs[0]}
        if node.op.name == "assign":
            return {0: node.inputs[1]}
        if node.op.name == "while":
            return {k: node.inputs[k] for k in self.updated_in_place(node)}
        if node.op.name != "cond":
            return {}
        places = [{v: k for k, v in enumerate(region.inputs)} for region in node.regions]
        then, other = (
            [at.get(self.of(region).get(v)) for v in region.outputs]  # type: ignore[arg-type]
            for at, region in zip(places, node.regions)
        )
        return {k: node.inputs[1 + a] for k, (a, b) in enumerate(zip(then, other)) if a is not None and a == b}
