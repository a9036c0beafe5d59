"""Finds the repetitions of an unrolled loop in a straight run of nodes and makes them alike: they share kernels.

    for t in range(1, 500):                     %e1 = strided_slice(%emit) {spec=(('index', 1),)}
        score = step(score) + emit[t]     →     %s1 = add(%r0, %e1)
                                                %e2 = strided_slice(%emit) {spec=(('index', 2),)}
                                                %s2 = add(%r1, %e2)
                                                ...

`stretches` finds where a pattern of operations and types recurs. What differs between the repetitions is the trip's
number: in the bounds of a slice, or as a constant operand. `alike` turns both into operands that are given from
outside, so that the pieces that a run is cut into (`engine/run_splitting.py`) are equal graphs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.dataclass import dataclass
from runtime.graph.ir import Graph, Node, Substitution, Value, copy_nodes
from runtime.ops.arrays.shape_ops import ENSURE_SHAPE
from runtime.ops.arrays.slicing import HOLE
from runtime.types import TensorType

# A pattern counts from so many repetitions on: fewer share too little to make up for the cuts between them.
_LEAST = 4
_LONGEST = 2000  # nodes in a pattern that is looked for: what is compared grows with this times the run's length
# Where the tensors for the holes of a spec begin among a node's inputs.
_HOLES_AFTER = {
    "strided_slice": lambda attrs: 1,
    "slice_grad": lambda attrs: 1 + attrs["shape"].count(None),
    "slice_add": lambda attrs: 2,
}
_INDEX = TensorType(dtypes.int64, ())
_Place = tuple[int, int]  # an item of a spec, and a part of that


@dataclass(frozen=True)
class Stretch:
    """`count` repetitions of a pattern of `period` nodes, from `start` on."""

    start: int
    period: int
    count: int

    @property
    def stop(self) -> int:
        return self.start + self.period * self.count


def is_constant(node: Node) -> bool:
    return node.op.name == "constant"


def stretches(nodes: Sequence[Node]) -> list[Stretch]:
    """The repetitive parts of a straight run without constants, in order."""
    kinds: dict[Hashable, int] = {}
    keys = np.array([kinds.setdefault(_key(node), len(kinds)) for node in nodes], np.int64)
    candidates = list(_candidates(keys))
    found: list[Stretch] = []
    while candidates:
        # Of several patterns the shortest of those that reach about as far: the others are multiples of it.
        furthest = max(each.stop - each.start for each in candidates)
        far = [each for each in candidates if (each.stop - each.start) * 10 >= furthest * 9]
        best = min(far, key=lambda each: (each.period, each.start))
        found.append(best)
        candidates = [part for each in candidates for part in _beside(each, best)]
    return sorted(found, key=lambda each: each.start)


def _candidates(keys: np.ndarray) -> Iterator[Stretch]:
    """For each period the longest stretches of repetitions."""
    for period in range(1, min(_LONGEST, len(keys) // _LEAST) + 1):
        # Where runs of nodes equal to those one period later begin and end.
        equal = np.concatenate(([False], keys[:-period] == keys[period:], [False]))
        ends = np.flatnonzero(equal[1:] != equal[:-1])
        for start, stop in zip(ends[::2].tolist(), ends[1::2].tolist()):
            count = (stop - start) // period + 1
            if count >= _LEAST:
                yield Stretch(start, period, count)


def _beside(stretch: Stretch, other: Stretch) -> Iterator[Stretch]:
    """Yields the parts of a stretch before and after another one, if they still repeat often enough."""
    before = min(stretch.count, max(other.start - stretch.start, 0) // stretch.period)
    start = max(stretch.start, other.stop)
    after = max(stretch.stop - start, 0) // stretch.period
    for first, count in ((stretch.start, before), (start, after)):
        if count >= _LEAST:
            yield Stretch(first, stretch.period, count)


def _key(node: Node) -> Hashable:
    """A key that is equal for nodes at the same position of two repetitions."""
    inner = tuple([(n.op.name, len(n.inputs)) for region in node.regions for n in region.walk()])
    inputs, attrs = node.inputs, node.attrs
    if node.op.name in _HOLES_AFTER:
        inputs = inputs[: _HOLES_AFTER[node.op.name](attrs)]
        attrs = {**attrs, "spec": tuple([_without_numbers(item) for item in attrs["spec"]])}
    types = tuple([v.type for v in (*inputs, *node.outputs)])
    return node.op.name, types, tuple(sorted(attrs.items())), inner


def _without_numbers(item: tuple[Any, ...]) -> tuple[Any, ...]:
    """An item of a slice's spec, whose numbers may be operands as well."""
    return tuple([HOLE if _may_be_passed(item, place) else part for place, part in enumerate(item)])


def _may_be_passed(item: tuple[Any, ...], place: int) -> bool:
    """Whether a part of an item is an index, or the start or stop of a slice in single steps, as number or operand."""
    if place == 0 or item[place] is None:
        return False
    return item[0] == "index" or (item[0] == "slice" and place < 3 and item[3] in (None, 1))


def alike(graph: Graph, runs: Sequence[Sequence[Node]]) -> tuple[Graph, list[Any]] | None:
    """The graph with what differs between repetitions as inputs that follow its own ones, and the values for these;
    None where nothing does. runs: the straight runs of its nodes, constants left out, that are cut into pieces."""
    bounds: dict[Node, set[_Place]] = {}  # parts of specs that become operands
    operands: dict[tuple[Node, int], Value] = {}  # constants that become inputs
    for nodes in runs:
        for found in stretches(nodes):
            for place in range(found.start, found.start + found.period):
                column = nodes[place : found.stop : found.period]
                if column[0].op.name in _HOLES_AFTER:
                    differing = _differing([n.attrs["spec"] for n in column])
                    bounds.update((n, differing) for n in column if differing)
                for position in range(len(column[0].inputs)):
                    values = [n.inputs[position] for n in column]
                    if _differ(column[0], position, values):
                        operands.update(((n, position), v) for n, v in zip(column, values))
    if not bounds and not operands:
        return None
    return _with_inputs(graph, bounds, operands)


def _differing(specs: Sequence[tuple[tuple[Any, ...], ...]]) -> set[_Place]:
    """Where the specs of slices differ."""
    items = enumerate(zip(*specs))
    return {(i, place) for i, same in items for place, parts in enumerate(zip(*same)) if len(set(parts)) > 1}


def _differ(node: Node, position: int, values: Sequence[Value]) -> bool:
    """Whether an operand is another constant in each repetition, and the operation may take it as it comes."""
    constants = [v.node for v in values if v.node is not None and is_constant(v.node)]
    if len(constants) < len(values):
        return False
    if not (node.op.is_elementwise or node.op.needs_no_constants):
        return False  # others may need the number itself, for a shape
    return len({n.attrs["value"] for n in constants}) > 1


def _with_inputs(
    graph: Graph, bounds: dict[Node, set[_Place]], operands: dict[tuple[Node, int], Value]
) -> tuple[Graph, list[Any]]:
    result = Graph(graph.name)
    mapping = Substitution()
    for value in graph.inputs:
        mapping[value] = result.add_input(value.type, value.name)
    given: list[Any] = []

    def passed(number: Any, type_: Any) -> Value:
        given.append(number)
        return result.add_input(type_)

    for node in graph.nodes:
        copy_nodes([node], result, mapping)
        copy = result.nodes[-1]
        for position, value in enumerate(node.inputs):
            if (node, position) in operands:
                assert value.node is not None
                copy.inputs[position] = passed(value.node.attrs["value"].array[()], value.type)
        if node in bounds:
            _pass_bounds(copy, bounds[node], passed)
            _keep_shape(node, copy, mapping)
    result.outputs = [mapping[v] for v in graph.outputs]
    return result, given


def _pass_bounds(node: Node, places: set[_Place], passed: Any) -> None:
    """Gives a slice numbers of its spec as operands."""
    after = _HOLES_AFTER[node.op.name](node.attrs)
    spec: list[tuple[Any, ...]] = []
    for number, item in enumerate(node.attrs["spec"]):
        parts = list(item)
        for place, part in enumerate(item):
            if part != HOLE and (number, place) in places:
                node.inputs.insert(after, passed(np.int64(part), _INDEX))
                parts[place] = HOLE
            after += parts[place] == HOLE
        spec.append(tuple(parts))
    node.attrs = {**node.attrs, "spec": tuple(spec)}


def _keep_shape(node: Node, copy: Node, mapping: Substitution) -> None:
    """A slice whose bounds are operands has an unknown shape; those of a stretch have one, which a node says."""
    (value,) = copy.outputs
    (found,) = copy.op.infer([v.type for v in copy.inputs], copy.attrs)
    if found != value.type:
        wanted, value.type = value.type, found
        attrs = {"shape": node.outputs[0].shape}
        mapping[node.outputs[0]] = copy.graph.add_node(ENSURE_SHAPE, [value], attrs, [wanted], span=node.span).outputs[
            0
        ]
