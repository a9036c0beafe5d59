"""What passes ask of values and add to graphs: constants, and ops with their types inferred."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.graph.ir import ConstantArray, Graph, Node, Value
from runtime.graph.structural import CONSTANT
from runtime.ops.table import OPS


def known_array(value: Value) -> np.ndarray | None:
    """The array of a constant; None for every other value."""
    node = value.node
    return node.attrs["value"].array if node is not None and node.op is CONSTANT else None


def constant_node(graph: Graph, array: Any, span: Any = None) -> Node:
    """A constant that belongs to `graph` and isn't among its nodes yet."""
    attrs = {"value": ConstantArray(array)}
    return Node(CONSTANT, (), attrs, CONSTANT.infer((), attrs), graph, (), span)


def add_op(graph: Graph, op: str, inputs: Sequence[Value], attrs: dict[str, Any], span: Any = None) -> Value:
    """Appends a node; gives its only output."""
    types = OPS[op].infer([v.type for v in inputs], attrs)
    return graph.add_node(OPS[op], inputs, attrs, types, (), span).outputs[0]
