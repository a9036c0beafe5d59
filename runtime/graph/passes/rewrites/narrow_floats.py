"""Arithmetic on float16 and bfloat16 in float32, in a copy of a graph that is about to become a kernel.

    %z = add(%x, %y): bfloat16[8]        →        %a = cast(%x): float32[8]
                                                  %b = cast(%y): float32[8]
                                                  %c = add(%a, %b): float32[8]
                                                  %z = cast(%c): bfloat16[8]

So each result is rounded, as it is on the interpreter (`dispatch.widened`); what is only moved keeps its dtype. An
update that rounds no element twice keeps it too: its lowering converts the elements it changes (`names.joined`), where
a cast would convert the whole array. Code generation needs no other arithmetic on narrow numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime import dtypes
from runtime.graph.ir import Graph, Substitution, Value, copy_graph
from runtime.graph.node_helpers import add_op, constant_node, known_array
from runtime.types import TensorType, Type


def with_wide_arithmetic(graph: Graph) -> Graph:
    """The graph itself if it computes with no narrow floats, else a copy that does so in float32."""
    if not any(_is_narrow(v.type) for node in graph.walk() for v in (*node.inputs, *node.outputs)):
        return graph
    graph = copy_graph(graph)
    _widen(graph)
    return graph


def _is_narrow(type_: Type) -> bool:
    return isinstance(type_, TensorType) and type_.dtype.is_narrow


def _widen(graph: Graph) -> None:
    """Changes a graph, and the regions in it, in place."""
    mapping = Substitution()  # narrow results → what stands for them
    wide: dict[Value, Value] = {}  # narrow values → what was made of them for products and the like
    nodes, graph.nodes = graph.nodes, []
    for node in nodes:
        node.inputs = [mapping[v] for v in node.inputs]
        for region in node.regions:
            _widen(region)
        if not node.op.widens or (node.op.rounds_once is not None and node.op.rounds_once(node)):
            graph.nodes.append(node)
            continue
        # A loop over elements converts what it reads, so that no array of float32 is stored for it.
        known = {} if node.op.is_elementwise or node.op.is_reduction else wide
        for index, value in enumerate(node.inputs):
            if _is_narrow(value.type) and index not in node.op.shape_only:
                if value not in known:
                    known[value] = _wide(graph, value, node.span)
                node.inputs[index] = known[value]
        graph.nodes.append(node)
        for value in node.outputs:
            if _is_narrow(value.type):
                dtype, name = value.dtype, value.name
                value.type, value.name = TensorType(dtypes.float32, value.shape), None
                mapping[value] = add_op(graph, "cast", [value], {"dtype": dtype}, node.span)
                mapping[value].name = name
    graph.outputs = [mapping[v] for v in graph.outputs]
    graph.program = None


def _wide(graph: Graph, value: Value, span: Any) -> Value:
    """A value in float32."""
    array = known_array(value)
    if array is None:
        return add_op(graph, "cast", [value], {"dtype": dtypes.float32}, span)
    constant = constant_node(graph, array.astype(np.float32), span)
    graph.nodes.append(constant)
    return constant.outputs[0]
