"""Splits a graph at the nodes that have no native form.

    native          native              The top level is cut into the longest runs of native nodes, in program order;
    py_function  →  interpreted         what lies between runs on the interpreter. A loop that contains such a node is
    native          native              itself interpreted (its inner loops may still become native while it runs).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.codegen.lower import is_native, lower
from runtime.codegen.native import load
from runtime.graph.interpreter import Accelerator, interpret
from runtime.graph.ir import Graph, Node, Substitution, Value, copy_nodes

Call = Callable[[Sequence[Any]], "list[Any]"]

# Nodes in one kernel. numba's time grows a little faster than the text, and small kernels are shared more often.
SEGMENT_LIMIT = 400


def compile_graph(graph: Graph, accelerator: Accelerator | None, whole: bool = False) -> Call | None:
    """A callable for the graph's inputs that runs native code where there is some; None where there is none.

    accelerator: for the loops in interpreted parts. whole: only as one kernel. Raises NotNative or KernelError.
    """
    if all(is_native(node) for node in graph.nodes) and (whole or _weight(graph.nodes) <= SEGMENT_LIMIT):
        return load(lower(graph))
    if whole:
        return None
    steps = [_Step(graph, native, nodes, accelerator) for native, nodes in segments(graph)]
    if not any(step.native for step in steps):
        return None
    for step in steps:
        step.compile()
    return _Sequence(graph, steps)


def _weight(nodes: Sequence[Node]) -> int:
    return sum(1 + sum(_weight(region.nodes) for region in node.regions) for node in nodes)


def segments(graph: Graph) -> list[tuple[bool, list[Node]]]:
    """The nodes in program order, cut where nativeness changes or a kernel becomes too long."""
    cuts: list[tuple[bool, list[Node]]] = []
    weight = 0
    for node in graph.nodes:
        native = is_native(node)
        size = _weight([node])
        if not cuts or cuts[-1][0] != native or (native and weight + size > SEGMENT_LIMIT):
            cuts.append((native, []))
            weight = 0
        cuts[-1][1].append(node)
        weight += size
    # A native run of nothing but constants and the like isn't worth a kernel.
    return [(native and any(not n.op.cheap or n.inputs for n in nodes), nodes) for native, nodes in cuts]


class _Step:
    """One segment as a graph of its own: its inputs are what it uses from before, its outputs what is used after it."""

    def __init__(self, graph: Graph, native: bool, nodes: list[Node], accelerator: Accelerator | None) -> None:
        self.native = native
        own = set(nodes)
        made = {v for node in nodes for v in node.outputs}
        self.inputs: list[Value] = list(dict.fromkeys(v for n in nodes for v in n.inputs if v not in made))
        last = set(graph.outputs)
        used = {v for n in graph.nodes if n not in own for v in n.inputs}
        self.outputs: list[Value] = [v for n in nodes for v in n.outputs if v in used or v in last]
        self.part = Graph(graph.name)
        mapping = Substitution()
        for value in self.inputs:
            mapping[value] = self.part.add_input(value.type, value.name)
        copy_nodes(nodes, self.part, mapping)
        self.part.outputs = [mapping[v] for v in self.outputs]
        self.call: Call = lambda inputs: interpret(self.part, inputs, accelerator)

    def compile(self) -> None:
        if self.native:
            self.call = load(lower(self.part))


class _Sequence:
    """Runs the steps over numbered slots."""

    def __init__(self, graph: Graph, steps: Sequence[_Step]) -> None:
        slot: dict[Value, int] = {value: index for index, value in enumerate(graph.inputs)}
        for step in steps:
            for value in step.outputs:
                slot[value] = len(slot)
        last_use = {slot[v]: index for index, step in enumerate(steps) for v in step.inputs}
        self.size = len(slot)
        self.outputs = [slot[v] for v in graph.outputs]
        keep = set(self.outputs)
        self.steps = [
            (
                step.call,
                [slot[v] for v in step.inputs],
                [slot[v] for v in step.outputs],
                [s for s, at in last_use.items() if at == index and s not in keep],
            )
            for index, step in enumerate(steps)
        ]

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        slots: list[Any] = [None] * self.size
        slots[: len(inputs)] = inputs
        for call, sources, targets, dead in self.steps:
            for target, value in zip(targets, call([slots[s] for s in sources])):
                slots[target] = value
            for s in dead:
                slots[s] = None
        return [slots[s] for s in self.outputs]
