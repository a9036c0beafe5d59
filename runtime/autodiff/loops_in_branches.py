"""Moves loops out of branches if they work on an array that a loop around the branch changes in place.

    %a2 = cond(%p, %a, %i):                   %n = cond(%p, %i):  then: return %i * 2
      then: %n = %i * 2                                           else: return 0
            %b = while(0 < %n, %a): …    →    %b = while(0 < %n, %a): …
            return %b                         %a2 = cond(%p, %b): then: return %b
      else: return %a                                             else: return %b

The adjoint of a branch runs the branch again, which would need a copy of the whole array in each trip of the outer
loop. The adjoint of a loop directly in a loop saves only what was read. If the branch isn't taken, the loop makes no
trips: its limit equals its start, or its test checks the predicate first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from runtime import dtypes
from runtime.autodiff.loops import limit_of
from runtime.autodiff.zeros import empty_like_type
from runtime.graph.ir import ConstantArray, Graph, Node, Substitution, Value, copy_nodes
from runtime.graph.structural import COND, CONSTANT
from runtime.graph.updates import Origins
from runtime.ops.table import OPS, OpDef
from runtime.types import StackType, TensorType, TokenType, Type

BOOL = TensorType(dtypes.bool_, ())


def take_out_loops(node: Node, roots: Collection[Value]) -> list[Node]:
    """Moves loops out of a `cond`, in place. Returns the nodes that replace it, in program order.

    roots: the inputs of the node's graph that are arrays which the enclosing loop changes in place.
    """
    known = Origins().of(node.graph)
    for side, region in enumerate(node.regions):
        arrays = {own for own, outer in zip(region.inputs, node.inputs[1:]) if known.get(outer) in roots}
        for inner in [n for n in region.nodes if n.op is COND]:
            take_out_loops(inner, arrays)
        origins = Origins().of(region)
        for inner in region.nodes:
            if inner.op.name == "while" and any(origins.get(v) in arrays for v in inner.inputs):
                if _moves_stacks(region, inner):
                    break
                return [*_Split(node, side, inner, origins).made, *take_out_loops(node, roots)]
    return [node]


def _moves_stacks(region: Graph, loop: Node) -> bool:
    """Whether moving the loop out would also move stacks out of the branch, such as those between a loop and its
    adjoint. It isn't known what enclosing loops would have to save of them."""
    before = region.nodes[: region.nodes.index(loop)]
    return any(isinstance(v.type, StackType) for v in (*loop.inputs, *[v for n in before for v in n.outputs]))


class _Split:
    """Splits a branch into the nodes before a loop, the loop, and the nodes after it. `made`: the new nodes, which
    precede the original `cond`; that keeps the nodes after the loop."""

    def __init__(self, node: Node, side: int, loop: Node, origins: dict[Value, Value]) -> None:
        self.node, self.side, self.loop, self.graph = node, side, loop, node.graph
        self.region, self.other = node.regions[side], node.regions[1 - side]
        self.origins = origins
        self.made: list[Node] = []
        # The outer value for each value of the branch; and the current outer value of each input if the branch isn't
        # taken.
        self.outside = dict(zip(self.region.inputs, node.inputs[1:]))
        self.latest = dict(self.outside)
        at = self.region.nodes.index(loop)
        before, after = self.region.nodes[:at], self.region.nodes[at + 1 :]
        self._place_loop(self._first_part(before, after))
        self._last_part(after)
        place = self.graph.nodes.index(node)
        self.graph.nodes[place:place] = self.made
        self.graph.program = None

    def _first_part(self, before: list[Node], after: list[Node]) -> dict[int, Value]:
        """Makes a `cond` of the nodes before the loop. It returns the values that are used later; its other branch
        returns its inputs or placeholders. Returns, by position, the operand of the loop that differs if the loop must
        make no trips."""
        given = {v for n in before for v in n.outputs}
        used = dict.fromkeys([*self.loop.inputs, *[v for n in after for v in n.inputs], *self.region.outputs])
        handed = [v for v in used if v in given and not _is_constant(v)]
        bound = _bound(self.loop)
        operands: dict[int, Value] = {}
        if bound is not None:
            taken_one, other_one = _array_of(self.loop.inputs[bound[0]]), _array_of(bound[1])
            if taken_one is not None and other_one is not None:
                # The adjoint can compute a choice of constants again, and it stays known how many trips there may be.
                operands, bound = {bound[0]: self._chosen(taken_one, other_one)}, None
        extra = [] if bound is None else [self.loop.inputs[bound[0]]]
        if not handed and not extra:
            return operands
        end = [bound[1]] if bound is not None and isinstance(bound[1], Value) else []
        needed = {v for n in before for v in n.inputs}.union(extra, end, map(self._origin, handed))
        captures = [v for v in self.region.inputs if v in needed]
        taken, instead = (_with_inputs(name, captures) for name in ("before the loop", "no trips"))
        copy_nodes(before, *taken)
        for value in handed:
            origin = self._origin(value)
            instead[1][value] = _placeholder(instead[0], value) if origin is None else instead[1][origin]
        for graph, mapping in (taken, instead):
            graph.outputs = [mapping[v] for v in handed]
        if bound is not None:
            taken[0].outputs.append(taken[1][extra[0]])
            instead[0].outputs.append(_constant_or(bound[1], *instead))
        regions = [taken[0], instead[0]] if self.side == 0 else [instead[0], taken[0]]
        types = [v.type for v in (*handed, *extra)]
        inputs = [self.node.inputs[0], *[self.outside[v] for v in captures]]
        results = self._add(COND, inputs, {"types": tuple(types)}, types, regions).outputs
        for value, result in zip(handed, results):
            result.name, result.grows = value.name, value.grows
            self._is_now(value, result)
        return operands if bound is None else {bound[0]: results[-1]}

    def _chosen(self, taken: ConstantArray, instead: ConstantArray) -> Value:
        """A constant of the branch, or the other one if the branch isn't taken."""
        arrays = [taken, instead] if self.side == 0 else [instead, taken]
        (type_,) = CONSTANT.infer((), {"value": taken})
        pair = [self._add(CONSTANT, [], {"value": array}, [type_]).outputs[0] for array in arrays]
        return self._add(OPS["select"], [self.node.inputs[0], *pair], {}, [type_]).outputs[0]

    def _place_loop(self, other_operands: dict[int, Value]) -> None:
        loop = self.loop
        inputs = [other_operands.get(k) or self._outer(v) for k, v in enumerate(loop.inputs)]
        if not other_operands:
            inputs.append(self._predicate())
            loop.regions = (_only_if(loop.regions[0]), loop.regions[1])
            loop.regions[1].add_input(BOOL)
        types = [v.type for v in loop.outputs]
        placed = self._add(loop.op, inputs, dict(loop.attrs), types, loop.regions)
        placed.name = loop.name
        for own, result in zip(loop.outputs, placed.outputs):
            result.name, result.grows = own.name, own.grows
            self.outside[own] = result
        for start, result in zip(loop.inputs, placed.outputs):
            self._is_now(start, result, renamed=False)

    def _predicate(self) -> Value:
        """Whether the branch is taken."""
        predicate = self.node.inputs[0]
        return predicate if self.side == 0 else self._add(OPS["logical_not"], [predicate], {}, [BOOL]).outputs[0]

    def _last_part(self, after: list[Node]) -> None:
        """Reduces the branch to the nodes after the loop. The other branch stays; its inputs become their current
        values."""
        needed = dict.fromkeys([*[v for n in after for v in n.inputs], *self.region.outputs])
        own = [v for v in needed if v in self.outside]
        others = [self.latest[v] for v in self.region.inputs]
        captures = list(dict.fromkeys([*[self.outside[v] for v in own], *others]))
        rest, other = Graph(self.region.name), Graph(self.other.name)
        mappings = [Substitution(), Substitution()]
        for value in captures:
            for graph, mapping in zip((rest, other), mappings):
                mapping[value] = graph.add_input_like(value)
        mappings[0].update([(v, mappings[0][self.outside[v]]) for v in own])
        mappings[1].update([(v, mappings[1][value]) for v, value in zip(self.other.inputs, others)])
        copy_nodes([v.node for v in needed if _is_constant(v) and v.node not in after], rest, mappings[0])  # type: ignore[misc]
        for graph, nodes, outputs, mapping in (
            (rest, after, self.region.outputs, mappings[0]),
            (other, self.other.nodes, self.other.outputs, mappings[1]),
        ):
            copy_nodes(nodes, graph, mapping)
            graph.outputs = [mapping[v] for v in outputs]
        self.node.inputs = [self.node.inputs[0], *captures]
        self.node.regions = (rest, other) if self.side == 0 else (other, rest)

    def _origin(self, value: Value) -> Value | None:
        """The input of the branch that a value is an updated version of; for an order token, the input token."""
        if isinstance(value.type, TokenType):
            return next(v for v in self.region.inputs if isinstance(v.type, TokenType))
        return self.origins.get(value)

    def _is_now(self, value: Value, result: Value, renamed: bool = True) -> None:
        """Records the outer value of a value of the branch. If the branch isn't taken, it equals the value's origin."""
        if renamed:
            self.outside[value] = result
        origin = self._origin(value)
        if origin is not None and origin.type == result.type:
            self.latest[origin] = result

    def _outer(self, value: Value) -> Value:
        if value not in self.outside:  # a constant
            node = value.node
            assert node is not None
            self.outside[value] = self._add(node.op, [], dict(node.attrs), [value.type]).outputs[0]
        return self.outside[value]

    def _add(
        self, op: OpDef, inputs: list[Value], attrs: dict, types: list[Type], regions: Sequence[Graph] = ()
    ) -> Node:
        node = Node(op, inputs, attrs, types, self.graph, regions, self.loop.span)
        self.made.append(node)
        return node


def _bound(loop: Node) -> tuple[int, Value | ConstantArray] | None:
    """For a loop that counts to a limit: the position of an operand that can prevent all trips, and the value it needs
    for that."""
    found = limit_of(loop.regions[0])
    if found is None:
        return None
    index, limit, _ = found
    return (limit, loop.inputs[index]) if isinstance(limit, int) else (index, limit)


def _only_if(test: Graph) -> Graph:
    """Returns a loop's test with one more operand, a predicate. The test runs only if the predicate is true."""
    asking, mapping = _with_inputs(test.name, test.inputs)
    predicate = asking.add_input(BOOL)
    never, _ = _with_inputs("not taken", test.inputs)
    never.outputs = [_constant(never, ConstantArray(np.zeros((), np.bool_)))]
    operands = [predicate, *[mapping[v] for v in test.inputs]]
    asking.outputs = asking.add_node(COND, operands, {"types": (BOOL,)}, [BOOL], (test, never)).outputs
    return asking


def _with_inputs(name: str, values: Sequence[Value]) -> tuple[Graph, Substitution]:
    graph = Graph(name)
    return graph, Substitution((v, graph.add_input_like(v)) for v in values)


def _placeholder(graph: Graph, value: Value) -> Value:
    """A result for the other branch, for a value that isn't read if that branch is taken."""
    assert isinstance(value.type, TensorType)
    return empty_like_type(graph, value.type)


def _is_constant(value: Value) -> bool:
    return value.node is not None and value.node.op is CONSTANT


def _array_of(value: Value | ConstantArray) -> ConstantArray | None:
    """The value of a constant."""
    if isinstance(value, ConstantArray):
        return value
    return value.node.attrs["value"] if _is_constant(value) else None  # type: ignore[union-attr]


def _constant(graph: Graph, array: ConstantArray) -> Value:
    attrs = {"value": array}
    return graph.add_node(CONSTANT, (), attrs, CONSTANT.infer((), attrs)).outputs[0]


def _constant_or(value: Value | ConstantArray, graph: Graph, mapping: Substitution) -> Value:
    array = _array_of(value)
    return mapping[value] if array is None else _constant(graph, array)
