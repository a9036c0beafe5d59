"""Splits the gradient of a whole graph into two graphs: forward with residuals, and backward.

    f: x -> y        →     forward:  x -> y, r
                           backward: dy, r -> dx

Both are ordinary graphs: they can be optimised, compiled and differentiated again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.autodiff import late, rules  # noqa: F401 - adjoints of control flow and of deferred calls
from runtime.autodiff.buffers import mark_growing
from runtime.autodiff.calls import NodeCall, is_differentiable
from runtime.autodiff.residuals import can_repeat
from runtime.autodiff.reverse import Cotangents, walk_back
from runtime.graph.builder import Builder
from runtime.graph.ir import Graph, Substitution, Value, copy_graph, copy_nodes
from runtime.graph.passes.dead_code import remove_dead_code


@dataclass
class Vjp:
    """forward: inputs -> outputs, residuals.   backward: cotangents, residuals -> cotangents.

    seeds     which outputs have a cotangent, in the order of backward's first inputs
    results   the inputs that backward's outputs are cotangents of
    sources   for each residual, in the order of backward's inputs: the forward input that it is, or None for the next
              extra output of forward
    """

    forward: Graph
    backward: Graph
    seeds: list[int]
    results: list[int]
    sources: list[int | None]


def build_vjp(graph: Graph, wanted: Sequence[int], outputs: Sequence[int]) -> Vjp:
    """The two graphs for cotangents of the inputs `wanted`, given those of `outputs`.

    Raises LookupError if an op between them has no gradient.
    """
    forward = copy_graph(graph)
    forward.name = f"{graph.name} with residuals"
    mark_growing(forward.nodes)
    builder = Builder(f"gradient of {graph.name}", None, [forward])
    varied = {forward.inputs[i] for i in wanted if is_differentiable(forward.inputs[i].type)}
    for node in forward.nodes:
        if any(v in varied for v in node.inputs):
            varied.update(v for v in node.outputs if is_differentiable(v.type))
    seeds = [i for i in outputs if forward.outputs[i] in varied]
    arrived = [builder.add_input(forward.outputs[i].type) for i in seeds]
    cotangents = Cotangents()
    inputs = list(forward.inputs)
    with builder:
        for index, own in zip(seeds, arrived):
            cotangents.add(builder.tensor(forward.outputs[index]), builder.tensor(own))
        calls = [NodeCall(n, builder) for n in forward.nodes]
        walk_back(calls, cotangents, lambda t: t.value in varied, keep=lambda t: t.value.node is None)
        found = [(i, cotangents.get(builder.tensor(inputs[i]))) for i in wanted]
    results = [i for i, c in found if c is not None]
    builder.graph.outputs = [builder.use(c) for _, c in found if c is not None]
    remove_dead_code(builder.graph, builder)
    residuals = _keep_or_repeat(builder, forward)
    position = {v: i for i, v in enumerate(inputs)}
    sources = [position.get(v) for v in residuals]
    forward.outputs = [*forward.outputs, *[v for v, s in zip(residuals, sources) if s is None]]
    remove_dead_code(forward)
    return Vjp(forward, builder.graph, seeds, results, sources)


def _keep_or_repeat(builder: Builder, forward: Graph) -> list[Value]:
    """Replaces captured constants by copies. Returns the other captured values in the order of the inputs."""
    graph = builder.graph
    residuals = []
    repeated = []
    for outer, own in list(builder.captured.items()):
        if outer.node is not None and not outer.node.inputs and can_repeat(outer.node):
            repeated.append((outer, own))
        else:
            residuals.append(outer)
    if repeated:
        nodes, graph.nodes = graph.nodes, []
        mapping = Substitution()
        copy_nodes([outer.node for outer, _ in repeated if outer.node is not None], graph, mapping)
        replaced = {own: mapping[outer] for outer, own in repeated}
        graph.nodes += nodes
        for node in nodes:
            node.inputs = [replaced.get(v, v) for v in node.inputs]
        graph.outputs = [replaced.get(v, v) for v in graph.outputs]
        graph.inputs = [v for v in graph.inputs if v not in replaced]
    return residuals
