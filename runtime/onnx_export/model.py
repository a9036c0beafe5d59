"""`model_of`: a graph as an ONNX model, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from runtime.dataclass import dataclass
from runtime.errors import UnimplementedError
from runtime.graph.ir import Graph, Value
from runtime.graph.passes.pipeline import rewrite
from runtime.onnx_export import arrays, control_flow, elementwise, indexing, linalg, nn, reductions, strings
from runtime.onnx_export.emitter import OPSET, Emitter, Ref, reads, value_info
from runtime.types import TokenType

# Files of lowerings: importing them fills the table.
FAMILIES = (elementwise, arrays, indexing, reductions, linalg, nn, control_flow, strings)


@dataclass(frozen=True)
class Argument:
    """An input of the graph. name: in the model. value: what it holds; None for what each run gives.

    is_state: an input with a default, the value, rather than a constant."""

    name: str
    value: np.ndarray | None = None
    is_state: bool = False


@dataclass(frozen=True)
class Made:
    """A model, the names of its inputs and outputs in order, and what was dropped."""

    model: onnx.ModelProto
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dropped: tuple[str, ...]


def model_of(graph: Graph, arguments: Sequence[Argument], results: Sequence[str], producer: str, doc: str = "") -> Made:
    """The model of a traced graph, whose inputs (but for the token) are `arguments` and whose outputs are `results`.

    Raises UnimplementedError if an op can't be exported to ONNX, with its line.
    """
    graph = rewrite("custom gradients", graph)
    for value in (*graph.inputs, *graph.outputs):
        if value.is_tensor and value.dtype.is_complex:
            raise UnimplementedError(
                f"{graph.name} takes or returns complex numbers, which can't be inputs or outputs of an ONNX model. "
                "Pass real and imaginary parts, and combine them inside with ag.complex."
            )
    graph = rewrite("complex parts", graph, True) or graph
    e = Emitter()
    values = [v for v in graph.inputs if not isinstance(v.type, TokenType)]
    infos = []
    names = [e.unique(argument.name) for argument in arguments]
    for value, argument, name in zip(values, arguments, names, strict=True):
        e.refs[value] = Ref(name, value.dtype)
        if argument.value is not None:
            e.initializers.append(e.proto(argument.value, value.dtype, name))
        if argument.value is None or argument.is_state:
            infos.append(value_info(name, value.type, _dimensions(value, name)))
    control_flow.lower_nodes(e, graph.nodes)
    outputs = [v for v in graph.outputs if not isinstance(v.type, TokenType)]
    made: list[str] = []
    out_infos = []
    for value, result in zip(outputs, results, strict=True):
        ref, name = e.ref(value), e.unique(result)
        e.nodes.append(helper.make_node("Identity", [ref.name], [name], name=e.unique("result")))
        out_infos.append(value_info(name, value.type, _dimensions(value, name)))
        made.append(name)
    nodes = e.pruned(e.nodes, made)
    read = set().union(*map(reads, nodes))
    states = {name for name, argument in zip(names, arguments) if argument.is_state}
    initializers = [each for each in e.initializers if each.name in read | states]
    onnx_graph = helper.make_graph(nodes, graph.name, infos, out_infos, initializers, doc_string=doc)
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(
        onnx_graph, producer_name="autograph-numba", producer_version=producer, opset_imports=opsets,
        ir_version=helper.find_min_ir_version_for(opsets),
    )  # fmt: skip
    return Made(model, tuple(info.name for info in infos), tuple(made), tuple(e.dropped))


def _dimensions(value: Value, name: str) -> list[Any]:
    """Sizes; a name for each that is open."""
    shape = value.shape
    if shape is None:
        raise UnimplementedError(
            f"{name!r} can't be part of an ONNX model, whose inputs and outputs need known ranks. Give its rank in the "
            "signature, as in ag.TensorSpec([None, None]), or by ag.ensure_shape."
        )
    return [f"{name}_{axis}" if size is None else size for axis, size in enumerate(shape)]
