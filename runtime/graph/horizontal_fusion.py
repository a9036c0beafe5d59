"""Horizontal fusion for the interpreter: equal computations on many small arrays as one on their concatenation.

    m1 = add(m1, multiply(g1, c))           m = add([m1 m2 ...], multiply([g1 g2 ...], c))
    m2 = add(m2, multiply(g2, c))     →     m1, m2, ... are views of m
    ...

An optimizer updates each variable by a dozen elementwise operations, whose calls take longer than what they compute.
The results have the same bits: only operations that round exactly are taken.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from runtime.dataclass import dataclass
from runtime.graph.components import connected, is_number
from runtime.graph.ir import Node, Value
from runtime.graph.structural import ASSIGN
from runtime.ops.table import OpDef
from runtime.types import TensorType

_EXACT = {
    operator.add, operator.sub, operator.mul, operator.truediv, operator.neg,
    np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.sqrt, np.square,
}  # fmt: skip
# Elements of an array, beyond which copying it takes as long as the calls that are saved; and of a concatenation, which
# is to stay in the caches near the processor with the values computed from it.
_SMALL, _TOGETHER = 1 << 11, 1 << 14
_FEWEST = 4  # computations that are worth a concatenation
_SHORT = 64  # nodes with arrays of a graph that gains too little for what looking at it takes

# What the interpreter asks about a fused computation: it has several results.
_FUSED = OpDef(
    "horizontally fused", lambda inputs, attrs: (), lambda *operands: operands, multiple=True, can_fail=False
)


class Fused:
    """Equal computations as one node of the interpreter's."""

    op = _FUSED
    regions: tuple = ()
    attrs: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, members: Sequence[_Computation], users: dict[Value, set[Node]], returned: set[Value]) -> None:
        first = members[0]
        self.span = first.nodes[0].span
        outside = sorted(set().union(*[each.results(users, returned) for each in members]))
        # Joining an array with others, and taking one out, cost half of what an operation costs.
        operations = sum(kernel is not None for kernel, _ in first.steps)
        self.pays = len(members) >= _FEWEST and 2 * operations > len(first.arrays) + len(outside)
        self.inputs = [each.arrays[k] for k in range(len(first.arrays)) for each in members] + first.numbers
        self.outputs = [each.nodes[number].outputs[0] for number in outside for each in members]
        self.run = _runner(members, outside)


@dataclass
class _Computation:
    """A connected component of nodes that may be fused with others like it."""

    nodes: list[Node]
    shape: tuple[int, ...]
    arrays: list[Value]  # from outside
    numbers: list[Value]
    steps: list[tuple[Any, list[int]]]  # kernel, places of its operands among arrays, numbers and earlier results
    first: int  # the position in the program before which nothing outside reads a result
    last: int  # that of the last operand's definition

    def results(self, users: dict[Value, set[Node]], returned: set[Value]) -> set[int]:
        """The numbers of the nodes whose results are read outside."""
        made = [node.outputs[0] for node in self.nodes]
        return {k for k, v in enumerate(made) if v in returned or not users.get(v, set()).issubset(self.nodes)}


def fused(nodes: Sequence[Node], returned: Sequence[Value]) -> list[Any]:
    """The nodes of a graph, with equal computations on small arrays replaced by `Fused` ones."""
    # Most nodes are left out without a call: looking at a graph takes about as long as running it once.
    on_arrays = [node for node in nodes if len(node.outputs) == 1 and getattr(node.outputs[0].type, "shape", None)]
    if len(on_arrays) < _SHORT:
        return list(nodes)
    components = connected([node for node in on_arrays if _may_fuse(node)])
    if len(components) < _FEWEST:
        return list(nodes)
    place = {node: index for index, node in enumerate(nodes)}
    users: dict[Value, set[Node]] = {}
    for node in nodes:
        for value in node.inputs:
            users.setdefault(value, set()).add(node)
    alike: dict[Any, list[_Computation]] = {}
    for component in components:
        made = _computation(component, place, users)
        form = tuple([(kernel, *sources) for kernel, sources in made.steps])
        alike.setdefault((form, tuple(made.numbers), component[0].outputs[0].dtype), []).append(made)
    results = set(returned)
    before: dict[int, list[Any]] = {}  # what stands before the node at a position
    gone: set[Node] = set()
    for computations in alike.values():
        for members in _groups(computations):
            together = Fused(members, users, results)
            if together.pays:
                at = max(each.last for each in members) + 1
                before.setdefault(at, []).append(together)
                gone.update(node for each in members for node in each.nodes)
    if not gone:
        return list(nodes)
    order: list[Any] = []
    for index, node in enumerate(nodes):
        order += before.get(index, ())
        if node not in gone:
            order.append(node)
    return order + before.get(len(nodes), [])


def _shape(value: Value) -> Any:
    return getattr(value.type, "shape", None)


def _may_fuse(node: Node) -> bool:
    """Whether a node with one result may be part of a computation that is fused."""
    if not (node.op is ASSIGN or (not node.attrs and _is_exact(node.op.kernel))):
        return False
    type_, shape = node.outputs[0].type, _shape(node.outputs[0])
    if not isinstance(type_, TensorType) or not shape or None in shape:
        return False
    if type_.dtype.kind != "f" or type_.dtype.is_narrow or not 0 < math.prod(shape) <= _SMALL:
        return False
    return all(value.type == type_ or (is_number(value) and value.dtype is type_.dtype) for value in _operands(node))


def _is_exact(kernel: Any) -> bool:
    return kernel.__hash__ is not None and kernel in _EXACT


def _operands(node: Node) -> Sequence[Value]:
    """The operands that a node's result is computed from: all, but for an assignment's old value."""
    return node.inputs[1:] if node.op is ASSIGN else node.inputs


def _computation(nodes: list[Node], place: dict[Node, int], users: dict[Value, set[Node]]) -> _Computation:
    own = {node.outputs[0]: number for number, node in enumerate(nodes)}
    outside = dict.fromkeys(value for node in nodes for value in _operands(node) if value not in own)
    arrays = [value for value in outside if not is_number(value)]
    numbers = [value for value in outside if is_number(value)]
    number_of = {value: number for number, value in enumerate([*arrays, *numbers])}
    steps: list[tuple[Any, list[int]]] = []
    for node in nodes:
        sources = [number_of[value] for value in _operands(node)]
        steps.append((None if node.op is ASSIGN else node.op.kernel, sources))
        number_of[node.outputs[0]] = len(number_of)
    inside = set(nodes)
    readers = [place[user] for value in own for user in users.get(value, ()) if user not in inside]
    return _Computation(
        nodes,
        _shape(nodes[0].outputs[0]),
        arrays,
        numbers,
        steps,
        min(readers, default=len(place)),
        max((place[value.node] for value in outside if value.node in place), default=-1),
    )


def _runner(members: Sequence[_Computation], outside: list[int]) -> Callable[..., list[Any]]:
    count, first = len(members), members[0]
    arrays = len(first.arrays) * count
    views: list[tuple[slice, tuple[int, ...]]] = []
    stop = 0
    for each in members:
        start, stop = stop, stop + math.prod(each.shape)
        views.append((slice(start, stop), each.shape))

    def run(*operands: Any) -> list[Any]:
        values = [np.concatenate(operands[start : start + count], axis=None) for start in range(0, arrays, count)]
        values += operands[arrays:]
        base = len(values)
        for kernel, sources in first.steps:
            values.append(values[sources[0]] if kernel is None else kernel(*[values[s] for s in sources]))
        return [values[base + number][part].reshape(shape) for number in outside for part, shape in views]

    return run


def _groups(computations: list[_Computation]) -> Iterator[list[_Computation]]:
    """Groups of computations that may run at the same place of the program, each small enough to be concatenated."""
    group: list[_Computation] = []
    size, first, last = 0, 0, -1
    for each in computations:
        count = math.prod(each.shape)
        if group and size + count <= _TOGETHER and max(last, each.last) < min(first, each.first):
            group.append(each)
            size, first, last = size + count, min(first, each.first), max(last, each.last)
            continue
        if group:
            yield group
        group, size, first, last = [each], count, each.first, each.last
    if group:
        yield group
