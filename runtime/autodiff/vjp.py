"""Splits the gradient of a whole graph into two graphs: forward with residuals, and backward.

    f: x -> y        →     forward:  x -> y, r
                           backward: dy, r -> dx

Both are ordinary graphs: they can be optimised, compiled and differentiated again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from runtime.autodiff import deferred_gradients, rules  # noqa: F401 - adjoints of control flow and of deferred calls
from runtime.autodiff.buffers import mark_growing
from runtime.autodiff.calls import NodeCall, is_differentiable
from runtime.autodiff.residuals import can_repeat
from runtime.autodiff.reverse import Cotangents, walk_back, with_slices
from runtime.dataclass import dataclass
from runtime.graph.builder import Builder
from runtime.graph.ir import Graph, Substitution, Value, copy_graph, copy_nodes
from runtime.graph.passes.dead_code import remove_dead_code
from runtime.ops.arrays.scatter import IndexedSlices


@dataclass
class Vjp:
    """forward: inputs -> outputs, residuals.   backward: cotangents, residuals -> cotangents.

    seeds     which outputs have a cotangent, in the order of backward's first inputs
    results   the inputs that backward's outputs are cotangents of, in their order
    sliced    those of them whose cotangents are slices: two outputs, the values and the indices of rows
    sources   for each residual, in the order of backward's inputs: the forward input that it is, or None for the next
              extra output of forward
    """

    forward: Graph
    backward: Graph
    seeds: list[int]
    results: list[int]
    sliced: set[int]
    sources: list[int | None]


def build_vjp(
    graph: Graph, wanted: Sequence[int], outputs: Sequence[int], sliced: Collection[int] = frozenset()
) -> Vjp:
    """The two graphs for cotangents of the inputs `wanted`, given those of `outputs`. The cotangents of the inputs
    `sliced` are slices, if no other is added to them.

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
    inputs = list(forward.inputs)
    cotangents = Cotangents({inputs[i] for i in sliced})
    with builder:
        for index, own in zip(seeds, arrived):
            cotangents.add(builder.tensor(forward.outputs[index]), builder.tensor(own))
        calls = [NodeCall(n, builder) for n in forward.nodes]
        walk_back(calls, cotangents, lambda t: t.value in varied, keep=lambda t: t.value.node is None)
        found = {i: _found(cotangents, builder.tensor(inputs[i])) for i in wanted}
    results = [i for i, parts in found.items() if parts]
    builder.graph.outputs = [builder.use(part) for parts in found.values() for part in parts]
    remove_dead_code(builder.graph, builder)
    residuals = _keep_or_repeat(builder, forward)
    position = {v: i for i, v in enumerate(inputs)}
    sources = [position.get(v) for v in residuals]
    forward.outputs = [*forward.outputs, *[v for v, s in zip(residuals, sources) if s is None]]
    remove_dead_code(forward)
    return Vjp(forward, builder.graph, seeds, results, {i for i in results if len(found[i]) == 2}, sources)


def _found(cotangents: Cotangents, tensor: Any) -> list[Any]:
    """What the backward graph gives for an input: nothing, its cotangent, or the values and indices of its slices."""
    total, slices = cotangents.parts(tensor)
    if slices and total is None:
        joined = IndexedSlices.joined(slices, tensor)
        return [joined.values, joined.indices]
    whole = with_slices(total, slices, tensor)
    return [] if whole is None else [whole]


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
