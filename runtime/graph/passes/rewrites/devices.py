"""Functions that name several devices: what a `device` block takes from elsewhere is copied to its device.

    with device("GPU:0"):                       %y = multiply(%x, %w)
        y = x * w                          →    %u = to_device(%v, device="/device:GPU:1")
    with device("GPU:1"):                       %a = to_device(%y, device="/device:GPU:1")
        z = y + v                               %z = add(%a, %u)

From then on, results are where their operands are, so that no other node has to know its device. What has no operands
is copied after it has been made; the engine makes it where it is used.

A loop or conditional runs on one device as a whole. Functions whose blocks all name the same GPU run there as a whole,
and stay as they are. So do those that name only the CPU while no GPU is in use.
"""

from __future__ import annotations

from typing import Any

from runtime.context import placing
from runtime.device import gpu_named, parse
from runtime.graph.ir import Graph, Node, Substitution, Value
from runtime.graph.structural import ASSIGN, CONSTANT
from runtime.ops.arrays.shape_ops import TO_DEVICE
from runtime.tracebacks import warn
from runtime.types import TensorType


def insert_copies(graph: Graph) -> None:
    """Changes the graph in place. Its nodes no longer know in which blocks they stood."""
    devices = {node: found for node in graph.nodes if (found := _device_of(node, graph)) is not None}
    for node in graph.walk():
        node.device = None
    places = {gpu_named(name) for name in devices.values()}
    if len(places) < 2 and (None not in places or not placing):
        return
    nodes: list[Node] = []
    copies: dict[tuple[Value, str], Value] = {}
    placed: dict[Value, str] = {}
    mapping = Substitution()

    def copied(value: Value, name: str, span: Any) -> Value:
        if not isinstance(value.type, TensorType) or placed.get(value) == name or _is_constant(value):
            return value
        found = copies.get((value, name))
        if found is None:
            node = Node(TO_DEVICE, [value], {"device": name}, [value.type], graph, (), span)
            nodes.append(node)
            found = copies[value, name] = node.outputs[0]
            found.name = value.name
        return found

    for node in graph.nodes:
        name = devices.get(node)
        node.inputs = [mapping[v] for v in node.inputs]
        if name is not None and node.op is not ASSIGN:  # a variable stays where it is
            node.inputs = [copied(v, name, node.span) for v in node.inputs]
        nodes.append(node)
        if name is None or node.op in (ASSIGN, CONSTANT):
            continue
        if any(isinstance(v.type, TensorType) and not _is_constant(v) for v in node.inputs):
            placed.update(dict.fromkeys(node.outputs, name))
        else:
            for value in node.outputs:
                mapping[value] = copied(value, name, node.span)
                placed[mapping[value]] = name
    graph.nodes = nodes
    graph.outputs = [mapping[v] for v in graph.outputs]


def _device_of(node: Node, graph: Graph) -> str | None:
    """The device of a node's block, or of the first block inside of it, by its full name."""
    names = {each.device: each for region in node.regions for each in region.walk() if each.device is not None}
    if node.device is None and not names:
        return None
    chosen = node.device or next(iter(names))
    for name, inner in names.items():
        if gpu_named(name) is not gpu_named(chosen):
            where = f" ({inner.span[0]}:{inner.span[1]})" if inner.span else ""
            warn(
                f"a {node.op.name} in '{graph.name}' runs on one device, {chosen}: {name}{where} doesn't count. Loops "
                "over a Python range, and conditionals on Python values, can run on several.",
                UserWarning,
            )
            break
    kind, index = parse(chosen)
    return f"/device:{kind}:{index}"


def _is_constant(value: Value) -> bool:
    return value.node is not None and value.node.op is CONSTANT
