"""Checks of Python's integers that nobody needs, because only the low bits of the result are read.

    %p = checked_multiply(%x, 1103515245)        %p = multiply(%x, 1103515245)
    %s = checked_add(%p, 12345)             →    %s = add(%p, 12345)
    %y = bitwise_and(%s, 2147483647)             %y = bitwise_and(%s, 2147483647)

The low bits of a sum, a difference or a product follow from those of the operands: they are right where the rest wraps.
An analysis of demanded bits, from results to operands, through loops until it no longer changes. It isn't an
optimisation, since it decides which programs run: a traced function's graph goes through it once, whatever is switched
off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from runtime import dtypes
from runtime.graph.ir import Graph, Node, Value
from runtime.graph.node_helpers import known_array
from runtime.ops.table import OPS
from runtime.types import TensorType

# How many of a value's low bits are read; a value that isn't in the table has no reader.
Demanded = defaultdict[Value, int]
_ALL = 65  # the number itself: 64 bits say that it hasn't wrapped


def drop_checks(graph: Graph) -> None:
    """Replaces checked operations in place, in regions too."""
    if not any(node.op.unchecked for node in graph.walk()):
        return
    demanded: Demanded = defaultdict(int)
    _demand_all(graph.outputs, demanded)
    _visit(graph, demanded)
    for node in graph.walk():
        if node.op.unchecked and node.op.by_low_bits and demanded[node.outputs[0]] < _ALL:
            node.op = OPS[node.op.unchecked]


def _demand_all(values: list[Value], demanded: Demanded) -> None:
    demanded.update(dict.fromkeys(values, _ALL))


def _visit(graph: Graph, demanded: Demanded) -> None:
    """Adds what the nodes of a graph demand of their operands, where it is known what is demanded of its outputs."""
    for node in reversed(graph.nodes):
        if node.op.name == "while":
            _visit_loop(node, demanded)
        elif node.op.name == "cond":
            for region in node.regions:
                _pass_on(node.outputs, region.outputs, demanded)
                _visit(region, demanded)
                _pass_on(region.inputs, node.inputs[1:], demanded)
            demanded[node.inputs[0]] = _ALL
        elif node.regions:
            for region in node.regions:
                _demand_all(region.outputs, demanded)
                _visit(region, demanded)
            _demand_all(node.inputs, demanded)
        else:
            for value, bits in zip(node.inputs, _of_operands(node, demanded)):
                demanded[value] = max(demanded[value], bits)


def _visit_loop(node: Node, demanded: Demanded) -> None:
    test, body = node.regions
    count = node.attrs["carries"]
    _demand_all(test.outputs, demanded)
    _visit(test, demanded)
    before = None
    while (now := [demanded[v] for v in body.inputs[:count]]) != before:
        before = now
        for readers in (node.outputs, test.inputs, body.inputs):
            _pass_on(readers[:count], body.outputs, demanded)
        _visit(body, demanded)
    for readers in (node.outputs, test.inputs, body.inputs):
        _pass_on(readers, node.inputs, demanded)


def _pass_on(readers: list[Value], values: list[Value], demanded: Demanded) -> None:
    for reader, value in zip(readers, values):
        demanded[value] = max(demanded[value], demanded[reader])


def _of_operands(node: Node, demanded: Demanded) -> Iterator[int]:
    """Yields for each operand how many of its low bits the node needs."""
    name = node.op.arithmetic
    bits = max((demanded[v] for v in node.outputs), default=0)
    is_number = (
        bool(node.outputs) and _is_int64(node.outputs[0]) and all(map(_is_int64, node.inputs[len(node.inputs) == 3 :]))
    )
    for position, value in enumerate(node.inputs):
        others = [v for v in node.inputs if v is not value]
        if is_number and name == "bitwise_and":
            yield min([bits, *map(_bits_of_mask, others)])
        elif position in node.op.by_low_bits:
            yield bits if is_number else _ALL
        elif is_number and name == "floormod" and position == 0 and others:
            yield _bits_of_modulus(others[0])
        elif name == "cast" and _is_int64(value) and node.outputs[0].dtype.is_integer:
            size = node.outputs[0].dtype.size
            yield bits if is_number else min(bits, 8 * size) if size < 8 else _ALL
        else:
            yield _ALL


def _is_int64(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.dtype is dtypes.int64


def _bits_of_mask(value: Value) -> int:
    """How many bits `x & value` reads of x."""
    array = known_array(value)
    return int(array.max()).bit_length() if array is not None and array.size and array.min() >= 0 else _ALL


def _bits_of_modulus(value: Value) -> int:
    """How many bits `x % value` reads of x, where the value is a power of two."""
    array = known_array(value)
    number = int(array) if array is not None and array.ndim == 0 else 0
    return number.bit_length() - 1 if number > 0 and number & (number - 1) == 0 else _ALL
