"""How rules rewrite a graph: each looks at one node and says what stands for it, or None.

    RULES = {"multiply": _multiply}         %2 = multiply(%x, 1.0)
                                            %3 = exp(%2)               →      %3 = exp(%x)
    _multiply(%2) is %x                     return %3                         return %3

The tables stand in `algebra.py`, `strength_reduction.py` and `moves.py`; one walk over the graph tries them all, since
each walk costs time while tracing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from runtime.graph.ir import Graph, Node, Substitution, Value
from runtime.graph.node_helpers import add_op, constant_node, known_array
from runtime.types import TensorType


class Rewrite:
    """What a rule may ask and do: look at constants, add nodes in place of the one that it looks at."""

    def __init__(self, graph: Graph, nodes: Sequence[Node]) -> None:
        self.graph = graph
        self.span: Any = None
        self._nodes = nodes
        self._uses: Counter[Value] | None = None

    def constant(self, value: Value) -> Any:
        """The number that all elements of a constant are, or None."""
        array = known_array(value)
        if array is None or array.dtype == object or not array.size:
            return None
        first = array.flat[0]
        return first if array.size == 1 or (array == first).all() else None

    def emit(self, op: str, inputs: list[Value], attrs: dict | None = None, span: Any = None) -> Value:
        return add_op(self.graph, op, inputs, attrs or {}, span or self.span)

    def number(self, like: Value, value: Any) -> Value:
        node = constant_node(self.graph, np.asarray(value, like.dtype.np), self.span)
        self.graph.nodes.append(node)
        return node.outputs[0]

    def is_used_once(self, value: Value) -> bool:
        """Whether exactly one operand or output of the graph was this value before the rules were applied."""
        if self._uses is None:
            self._uses = Counter(v for node in self._nodes for v in node.inputs)
            self._uses.update(self.graph.outputs)
        return self._uses[value] == 1


Rule = Callable[[Rewrite, Node], "Value | None"]


def apply_rules(graph: Graph, rules: Mapping[str, Sequence[Rule]]) -> None:
    """Rewrites a graph and its regions in place. `rules`: for an op's name the rules to try, in order; the first that
    returns a value replaces the node's result by it."""
    mapping = Substitution()
    nodes, graph.nodes = graph.nodes, []
    rewrite = Rewrite(graph, nodes)
    for node in nodes:
        if mapping:
            node.inputs = [mapping.get(v, v) for v in node.inputs]
        for region in node.regions:
            apply_rules(region, rules)
        known = rules.get(node.op.name)
        if known is not None and isinstance(node.outputs[0].type, TensorType):
            rewrite.span = node.span
            for rule in known:
                found = rule(rewrite, node)
                if found is not None:
                    break
            if found is not None and found.type == node.outputs[0].type:
                if found.name is None and found.node is not None:
                    found.name = node.outputs[0].name
                if graph.nodes and found.node is graph.nodes[-1] and found.node.name is None:
                    found.node.name = node.name
                mapping[node.outputs[0]] = found
                continue
        graph.nodes.append(node)
    graph.outputs = [mapping[v] for v in graph.outputs]
    graph.program = None


def made_by(value: Value, op: str) -> Node | None:
    """The node that makes the value, if it is of that op."""
    node = value.node
    return node if node is not None and node.op.name == op else None


def is_floating(node: Node) -> bool:
    """Whether the result is of floating-point or complex numbers."""
    return not (node.outputs[0].dtype.is_integer or node.outputs[0].dtype.is_bool)


def never_widens(value: Value, target: Value) -> bool:
    """Whether broadcasting with `value` surely leaves `target` its shape."""
    shape, wanted = value.type.shape, target.type.shape  # type: ignore[union-attr]
    if shape is None or wanted is None or len(shape) > len(wanted):
        return bool(shape == ())
    return all(size == 1 or size == same is not None for size, same in zip(shape[::-1], wanted[::-1]))
