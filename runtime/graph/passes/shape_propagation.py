"""Shape propagation: what is known of the operands' shapes by now is known of the results'.

    %2: float32[?] = add(%x, %y)                        %2: float32[3] = add(%x, %y)
    %3: int32[1] = shape(%2) {dtype=int32}      →       %3: int32[1] = constant() {value=[3]}

(%x and %y are float32[3].) Types were inferred once while tracing, before functions were inlined and loops' carries
settled. Sizes that are known become constants, assertions of shapes that are known become nothing.
"""

from __future__ import annotations

import numpy as np

from runtime.graph.ir import Graph, Node, Substitution, Value, copy_graph
from runtime.graph.node_helpers import constant_node
from runtime.graph.structural import CONSTANT
from runtime.shapes import Shape, element_count
from runtime.types import TensorType, Type


def propagate_shapes(graph: Graph) -> None:
    """Refines types in place, in regions too."""
    mapping = Substitution()
    for index, node in enumerate(graph.nodes):
        if mapping:
            node.inputs = [mapping.get(v, v) for v in node.inputs]
        if node.op.name == "cond":
            _refine_cond(node)
        elif node.op.name == "while":
            _refine_while(node)
        elif node.op.name == "letrec":
            _refine_letrec(node)
        elif not node.regions and not node.op.effect and node.op is not CONSTANT and node.outputs:
            _refine(node)
            known = _known(node)
            if isinstance(known, Value):
                mapping[node.outputs[0]] = known
            elif known is not None:
                constant = constant_node(graph, known, node.span)
                constant.outputs[0].name, constant.name = node.outputs[0].name, node.name
                mapping[node.outputs[0]] = constant.outputs[0]
                graph.nodes[index] = constant
    graph.outputs = [mapping[v] for v in graph.outputs]
    graph.program = None


def _refine(node: Node) -> None:
    for value in node.outputs:
        if not _is_complete(value.type):
            break
    else:
        return
    try:
        types = node.op.infer([v.type for v in node.inputs], node.attrs)
    except (ValueError, TypeError):
        return  # a contradiction: it fails when it runs, as it would have
    for value, type_ in zip(node.outputs, types):
        value.type = _common_type(value.type, type_)


def _refine_cond(node: Node) -> None:
    for region in node.regions:
        for own, outer in zip(region.inputs, node.inputs[1:]):
            own.type = _common_type(own.type, outer.type)
        propagate_shapes(region)
    then, other = node.regions
    for value, a, b in zip(node.outputs, then.outputs, other.outputs):
        if a.type == b.type:
            value.type = _common_type(value.type, a.type)
    node.attrs = {**node.attrs, "types": tuple(v.type for v in node.outputs)}


def _refine_while(node: Node) -> None:
    test, body = node.regions
    carries = node.attrs["carries"]
    for region in (test, body):
        for own, outer in zip(region.inputs[carries:], node.inputs[carries:]):
            own.type = _common_type(own.type, outer.type)
    better = [_common_type(v.type, start.type) for v, start in zip(body.inputs, node.inputs[:carries])]
    if better != [v.type for v in body.inputs[:carries]]:
        # Carries keep the shapes that they start with if a trip gives those shapes again.
        trial = copy_graph(body)
        for own, type_ in zip(trial.inputs, better):
            own.type = type_
        propagate_shapes(trial)
        if all(v.type == type_ for v, type_ in zip(trial.outputs, better)):
            for region in (test, body):
                for own, type_ in zip(region.inputs, better):
                    own.type = type_
            for value, type_ in zip(node.outputs, better):
                value.type = type_
    propagate_shapes(test)
    propagate_shapes(body)


def _refine_letrec(node: Node) -> None:
    """Captures are the same in all calls; arguments of other calls may have other shapes than those of the first."""
    count = node.attrs["captures"]
    for region in node.regions:
        for k in range(-count, 0):
            region.inputs[k].type = _common_type(region.inputs[k].type, node.inputs[k].type)
        propagate_shapes(region)


def _known(node: Node) -> np.ndarray | Value | None:
    """The result of a node that asks for sizes, when they are known."""
    if not node.inputs or not isinstance(node.inputs[0].type, TensorType):
        return None
    source = node.inputs[0]
    shape, name = source.type.shape, node.op.name  # type: ignore[union-attr]
    if name == "rank" and shape is not None:
        return np.asarray(len(shape), node.outputs[0].dtype.np)
    if name == "shape" and element_count(shape) is not None:
        return np.asarray(shape, node.outputs[0].dtype.np)
    if name == "size" and element_count(shape) is not None:
        return np.asarray(element_count(shape), node.outputs[0].dtype.np)
    if name == "ensure_shape" and element_count(shape) is not None and source.type == node.outputs[0].type:
        return source
    return None


def _is_complete(type_: Type) -> bool:
    return not isinstance(type_, TensorType) or (type_.shape is not None and None not in type_.shape)


def _common_type(old: Type, new: Type) -> Type:
    """What is known by both; the old type where they contradict each other."""
    if not isinstance(old, TensorType) or not isinstance(new, TensorType) or old.dtype is not new.dtype:
        return old
    shape: Shape
    if old.shape is None or new.shape is None:
        shape = new.shape if old.shape is None else old.shape
    elif len(old.shape) != len(new.shape):
        return old
    else:
        shape = tuple(b if a is None else a for a, b in zip(old.shape, new.shape))
    return old if shape == old.shape else TensorType(old.dtype, shape)
