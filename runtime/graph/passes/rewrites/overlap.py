"""Communication beside computation: an all-reduce becomes starts and waits, and other work runs between them.

    %g2 = ...                                        %g2 = ...
    %g1 = ...                                        %h2, %t1 = all_reduce_start(%g2, %t0)
    %s2, %s1, %t2 = all_reduce(%g2, %g1, %t0)  →     %g1 = ...
    %v1 = subtract(%w1, %s1)                         %h1, %t2 = all_reduce_start(%g1, %t1)
    %v2 = subtract(%w2, %s2)                         %s2 = all_reduce_wait(%h2, %g2)
                                                     %v2 = subtract(%w2, %s2)
                                                     %s1 = all_reduce_wait(%h1, %g1)
                                                     %v1 = subtract(%w1, %s1)

Tensors that travel together (a pack) start as soon as the last of them is made, and are awaited where the first of them
is used; what needs none of them runs before. Where starts and waits stand, kernels are split: this is done only where
the group's cost model says that it pays.

The operations that workers exchange, and their order, stay what they were: a start never passes another collective, and
an `all_reduce` of several packs is one operation for each of them. So this is each worker's own choice. (Workers may
differ: their batches may have other sizes.)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from runtime.graph.ir import Graph, Node, Substitution, Value, copy_graph
from runtime.ops.collective import (
    ALL_REDUCE,
    ALL_REDUCE_AGAIN,
    ALL_REDUCE_START,
    ALL_REDUCE_START_AGAIN,
    ALL_REDUCE_WAIT,
)
from runtime.shapes import element_count
from runtime.types import TensorType

# What a core does at least; for products it is a hundred times as much. Estimated.
_ADDITIONS_PER_SECOND = 1e9
# What a loop or a branch takes at least, for all that is known. Estimated.
_SECONDS_OF_REGIONS = 1e-3
_STARTS = {ALL_REDUCE: ALL_REDUCE_START, ALL_REDUCE_AGAIN: ALL_REDUCE_START_AGAIN}


def with_overlap(graph: Graph) -> Graph:
    """The graph itself if nothing in it should overlap, else a copy."""
    if not any(node.op in _STARTS and _may_pay(node) for node in graph.walk()):
        return graph
    copy = copy_graph(graph)
    return copy if _overlap(copy) else graph


def _overlap(graph: Graph) -> bool:
    """Splits the all-reduces of a graph and its regions, in place. Returns whether there were any."""
    changed = sum(_overlap(region) for node in graph.nodes for region in node.regions) > 0
    done: list[Node] = []
    mapping = Substitution()
    floor = 0  # where the nodes begin that no collective follows
    position = 0
    while position < len(graph.nodes):
        node = graph.nodes[position]
        position += 1
        node.inputs = [mapping[v] for v in node.inputs]
        if node.op in _STARTS and _may_pay(node):
            after = _window(graph.nodes, position)
            split = _split(node, done[floor:], after, mapping)
            if split is not None:
                before, later = split
                done[floor:] = before
                floor = len(done)
                done += later
                position += len(after)
                changed = True
                continue
        done.append(node)
        if _communicates(node):
            floor = len(done)
    graph.nodes = done
    graph.outputs = [mapping[v] for v in graph.outputs]
    graph.program = None
    return changed


class _Array(NamedTuple):
    """A tensor, as groups make packs of."""

    dtype: Any
    nbytes: int


class _Pack(NamedTuple):
    """What travels together: which operands of an all-reduce, and how many bytes."""

    members: list[int]
    size: int


def _packs(node: Node) -> list[_Pack]:
    """The packs of an all-reduce; none if the size of an operand isn't known."""
    arrays = []
    for value in node.inputs:
        if isinstance(value.type, TensorType):
            dtype, count = value.type.dtype.np, element_count(value.type.shape)
            if count is None:
                return []
            arrays.append(_Array(dtype, count * dtype.itemsize))
    found = node.attrs["group"].packs(arrays, node.attrs["pack"])
    return [_Pack(members, sum(arrays[i].nbytes for i in members)) for members in found]


def _may_pay(node: Node) -> bool:
    packs = _packs(node)
    return bool(packs) and node.attrs["group"].pays_beside([pack.size for pack in packs], math.inf)


def _communicates(node: Node) -> bool:
    return node.op.is_collective or any(_communicates(inner) for region in node.regions for inner in region.nodes)


def _window(nodes: Sequence[Node], start: int) -> list[Node]:
    """The nodes from a position on whose order means nothing, beyond that of operands."""
    end = start
    while end < len(nodes) and not nodes[end].must_stay and not _communicates(nodes[end]):
        end += 1
    return list(nodes[start:end])


def _split(
    node: Node, before: list[Node], after: list[Node], mapping: Substitution
) -> tuple[list[Node], list[Node]] | None:
    """`before` with starts in it, and waits with `after` among them; None if that doesn't pay. Adds the results of the
    waits to the mapping.

    before: nodes that starts may pass; after: nodes that may be put in another order.
    """
    packs = _packs(node)
    by_pack = _by_pack(node, packs, after)
    places = _places(node, packs, before, by_pack)
    if places is None:
        return None
    starts, waits = _starts_and_waits(node, packs, mapping)
    earlier: list[Node] = []
    at = 0
    for place, start in zip(places, starts):
        earlier += [*before[at:place], start]
        at = place
    earlier += before[at:]
    later = list(by_pack[0])
    for wait, users in zip(waits, by_pack[1:]):
        later += [wait, *users]
    for each in after:
        each.inputs = [mapping[v] for v in each.inputs]
    return earlier, later


def _starts_and_waits(node: Node, packs: Sequence[_Pack], mapping: Substitution) -> tuple[list[Node], list[Node]]:
    start_op, token = _STARTS[node.op], [v for v in node.inputs if not isinstance(v.type, TensorType)]
    starts, waits = [], []
    for pack in packs:
        operands = [node.inputs[i] for i in pack.members]
        types = [v.type for v in operands]
        outputs = [*start_op.infer(types, node.attrs), *[v.type for v in token]]
        start = Node(start_op, [*operands, *token], dict(node.attrs), outputs, node.graph, (), node.span)
        token = start.outputs[1:]
        wait = Node(ALL_REDUCE_WAIT, [start.outputs[0], *operands], dict(node.attrs), types, node.graph, (), node.span)
        for i, value in zip(pack.members, wait.outputs):
            value.name = node.outputs[i].name
            mapping[node.outputs[i]] = value
        start.name = wait.name = node.name
        starts.append(start)
        waits.append(wait)
    mapping.update(zip(reversed(node.outputs), token))  # the order token comes last
    return starts, waits


def _by_pack(node: Node, packs: Sequence[_Pack], after: Iterable[Node]) -> list[list[Node]]:
    """The nodes that need no pack, those that need the first one, those that need the second one as well, and so on."""
    need: dict[Value, int] = {node.outputs[i]: k + 1 for k, pack in enumerate(packs) for i in pack.members}
    found: list[list[Node]] = [[] for _ in range(len(packs) + 1)]
    for each in after:
        last = max((need.get(v, 0) for v in each.inputs), default=0)
        found[last].append(each)
        need.update(dict.fromkeys(each.outputs, last))
    return found


def _places(
    node: Node, packs: Sequence[_Pack], before: Sequence[Node], by_pack: Sequence[Sequence[Node]]
) -> list[int] | None:
    """Before which nodes packs start: as early as they can, but for those that don't pay, which start with the next
    one. None if none of them pays."""
    made = {value: index + 1 for index, each in enumerate(before) for value in each.outputs}
    place = max((made.get(v, 0) for v in node.inputs if not isinstance(v.type, TensorType)), default=0)
    # What runs from a node of `before` to its end, and after that before the wait for a pack.
    rest = [*itertools.accumulate(map(_seconds, reversed(before)), initial=0.0)][::-1]
    work = sum(map(_seconds, by_pack[0]))
    found: list[int] = []
    waiting: list[int] = []  # bytes of packs that wait for the next one
    for pack, users in zip(packs, by_pack[1:]):
        place = max(place, *[made.get(node.inputs[i], 0) for i in pack.members])
        waiting.append(pack.size)
        if node.attrs["group"].pays_beside(waiting, rest[place] + work):
            found += [place] * len(waiting)
            waiting = []
        work += sum(map(_seconds, users))
    return [*found, *[len(before)] * len(waiting)] if found else None


def _seconds(node: Node) -> float:
    """A lower bound for the time that a node takes."""
    if node.regions:
        return _SECONDS_OF_REGIONS
    counts = [_least_count(v.type) for v in (*node.inputs, *node.outputs) if isinstance(v.type, TensorType)]
    return node.op.cost * max(counts, default=0) / _ADDITIONS_PER_SECOND


def _least_count(type_: TensorType) -> int:
    return math.prod([size or 1 for size in type_.shape or ()])
