"""Hoisting of products: a matrix product per row of a sequence becomes one product in front of the loop.

    %h = while(0, %h0, %xs, %w)                        %all = reshape(matmul(reshape(%xs), %w))
      test(i, h, ...): i < len(xs)                     %h = while(0, %h0, %all)
      body: x = xs[i]                           →        body: xw = all[i]
            h = tanh(matmul(x, w) + h)                         h = tanh(xw + h)

One large product runs faster than many small ones, on several threads above all. The loop must go over all rows (its
test is nothing but `i < len(xs)`, or `i < 32` where there are 32), so that nothing is computed in vain; `w` must be
invariant, and all sizes but the number of rows known. The sums of a product may be taken in another order, so that
results may differ in their last bits.
"""

from __future__ import annotations

from runtime.graph.ir import Graph, Node, Value
from runtime.graph.node_helpers import add_op, known_array
from runtime.graph.structural import CONSTANT
from runtime.types import TensorType


def hoist_products(graph: Graph) -> None:
    """Hoists in place, in regions too."""
    nodes, graph.nodes = graph.nodes, []
    for node in nodes:
        for region in node.regions:
            hoist_products(region)
        if node.op.name == "while":
            counter = _rows_counter(graph, node)
            if counter is not None:
                _hoist(graph, node, *counter)
        graph.nodes.append(node)
    graph.program = None


def _hoist(graph: Graph, node: Node, counter: int, rows: Value | int) -> None:
    """`rows` is what the loop goes over, or how many they are: counter `counter` runs from 0 to its length."""
    body = node.regions[1]
    outside = dict(zip(body.inputs[node.attrs["carries"] :], node.inputs[node.attrs["carries"] :]))
    for inner in list(body.nodes):
        if inner.op.name != "matmul" or inner.attrs.get("transpose_a"):
            continue
        row, weights = inner.inputs
        source = row.node
        if source is None or weights not in outside or not _is_row_of(source, body.inputs[counter]):
            continue
        sequence = outside.get(source.inputs[0])
        if sequence is None or not _same_length(sequence, rows) or not _is_static_matrix(outside[weights]):
            continue
        _replace(graph, node, inner, source, sequence, outside[weights])


def _replace(graph: Graph, node: Node, product: Node, row: Node, sequence: Value, weights: Value) -> None:
    shape = sequence.type.shape  # type: ignore[union-attr]
    assert shape is not None
    flat = add_op(graph, "reshape", [sequence], {"shape": (-1, shape[2])}, product.span)
    result = add_op(graph, "matmul", [flat, weights], product.attrs, product.span)
    every = add_op(graph, "reshape", [result], {"shape": (-1, shape[1], result.shape[1])}, product.span)
    node.inputs.append(every)
    for region in node.regions:
        region.add_input(every.type)
        region.program = None
    body = node.regions[1]
    product.op, product.attrs = row.op, row.attrs
    product.inputs = [body.inputs[-1], *row.inputs[1:]]


def _rows_counter(graph: Graph, node: Node) -> tuple[int, Value | int] | None:
    """(carry, sequence or number) where the loop's test is `carry < len(sequence)`, or `carry < number`, and the carry
    counts 0, 1, 2, ..."""
    test, body = node.regions
    last = test.outputs[0].node
    if last is None or last.op.name != "less" or any(n is not last and n.op is not CONSTANT for n in test.nodes):
        return None
    index, limit = last.inputs
    if index not in test.inputs:
        return None
    counter = test.inputs.index(index)
    if counter >= node.attrs["carries"] or known_array(node.inputs[counter]) != 0:
        return None
    step = body.outputs[counter].node
    if step is None or step.op.arithmetic != "add" or step.inputs[0] is not body.inputs[counter]:
        return None
    if known_array(step.inputs[1]) != 1:
        return None
    if limit in test.inputs[: node.attrs["carries"]]:
        return None
    bound = node.inputs[test.inputs.index(limit)] if limit in test.inputs else limit
    number = known_array(bound)
    if number is not None:
        return counter, int(number)
    length = bound.node
    if length is None or length.op.name != "strided_slice" or length.attrs.get("spec") != (("index", 0),):
        return None
    shape = length.inputs[0].node
    return (counter, shape.inputs[0]) if shape is not None and shape.op.name == "shape" else None


def _is_row_of(node: Node, counter: Value) -> bool:
    """Whether the node takes row `counter` of a three-dimensional operand whose rows have a known size."""
    if node.op.name != "strided_slice" or len(node.inputs) != 2 or node.inputs[1] is not counter:
        return False
    first, *rest = node.attrs["spec"]
    whole = all(item == ("slice", None, None, None) for item in rest)
    return first == ("index", "?") and whole and _is_static_matrix(node.outputs[0])


def _is_static_matrix(value: Value) -> bool:
    shape = value.type.shape if isinstance(value.type, TensorType) else None
    return shape is not None and len(shape) == 2 and None not in shape


def _same_length(sequence: Value, rows: Value | int) -> bool:
    return sequence is rows or (_length(sequence) is not None and _length(sequence) == _length(rows))


def _length(rows: Value | int) -> int | None:
    if isinstance(rows, int):
        return rows
    return rows.type.shape[0] if isinstance(rows.type, TensorType) and rows.type.shape else None
