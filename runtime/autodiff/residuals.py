"""Decides how the adjoint of a loop body gets the values that it needs from the forward trip.

    invariant      a capture, or a carry that the body passes on unchanged: used as it is
    counters       an integer carry `i ± step`: computed from its first value and the number of trips before
    shifted        the next value of a carry that is saved anyway: it is the following trip's saved value
    threaded       the stack of a loop inside the body: becomes one stack over all trips
    joined         a stack of the body that several places read: copied to one stack over all trips, with its size
    shrunk         what is left of a stack that trips pop from: its size is saved; the elements are those of the first
    repeated       cheap arithmetic on the above and on saved values: computed again
    saved          everything else: pushed once a trip

A value is repeated only when that saves no more bytes than saving the value itself would. An invariant that a loop
around this one changes in place counts as saved, since that loop would have to save all of it in each trip.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from runtime import shapes
from runtime.autodiff.calls import is_differentiable
from runtime.context import ctx
from runtime.dataclass import dataclass
from runtime.graph.builder import Builder
from runtime.graph.ir import Graph, Node, Substitution, Value
from runtime.graph.updates import Origins
from runtime.ops import stack
from runtime.ops.arrays.creation import zeros
from runtime.ops.dispatch import apply
from runtime.ops.table import OPS, OpDef
from runtime.ops.zeros import zeros_of
from runtime.types import StackType, TensorType, Type

_UNKNOWN_ELEMENTS = 1 << 20
# A value that depends on more saved values than this isn't recomputed; this bounds the time for the decision.
_MOST_LEAVES = 32


@dataclass
class Plan:
    saved: list[Value] = field(default_factory=list)
    threaded: list[Value] = field(default_factory=list)
    joined: list[Value] = field(default_factory=list)
    shrunk: list[Value] = field(default_factory=list)
    repeated: list[Node] = field(default_factory=list)  # in program order
    counters: list[int] = field(default_factory=list)  # carry indices
    shifted: list[int] = field(default_factory=list)  # carry indices
    invariant: set[Value] = field(default_factory=set)

    @property
    def handles_stacks(self) -> bool:
        """Whether residuals of other loops are among those of this one."""
        return bool(self.threaded or self.joined or self.shrunk)


def forget_known_shapes(adjoint: Builder, body: Graph) -> None:
    """Replaces values that `adjoint` captures from the body only for their shape by zeros, if the shape is static.

    The zeros are never computed, since only their shape is used.
    """
    graph = adjoint.graph
    candidates = {
        own: outer
        for outer, own in adjoint.captured.items()
        if outer.graph is body and isinstance(own.type, TensorType) and shapes.is_static(own.shape)
    }
    uses: dict[Value, list[tuple[Node, int]]] = {own: [] for own in candidates}
    for node in graph.nodes:
        for index, value in enumerate(node.inputs):
            if value in uses:
                uses[value].append((node, index))
    returned = set(graph.outputs)
    forgotten: dict[Value, Value] = {}
    nodes, graph.nodes = graph.nodes, []
    with adjoint:
        for own in candidates:
            if own not in returned and all(i in n.op.shape_only for n, i in uses[own]):
                forgotten[own] = adjoint.use(zeros_of(adjoint.tensor(own)))
    graph.nodes += nodes
    for own, made in forgotten.items():
        for node, index in uses[own]:
            node.inputs[index] = made
        del adjoint.captured[candidates[own]]
    graph.inputs = [v for v in graph.inputs if v not in forgotten]


SIZES = ("dim", "shape", "size")  # the ops that ask for the sizes of an array


def take_sizes_before(loop: Node, adjoint: Builder) -> None:
    """Has a loop's body compute the sizes of arrays that `adjoint` captures from it only for these: numbers are saved
    in the place of arrays. What needs an array of such a shape gets zeros, which are never computed."""
    graph, body, count = adjoint.graph, loop.regions[1], loop.attrs["carries"]
    changing = {own for own, after in zip(body.inputs[:count], body.outputs) if after is not own}
    uses: dict[Value, list[tuple[Node, int]]] = {}
    for node in graph.nodes:
        for index, value in enumerate(node.inputs):
            uses.setdefault(value, []).append((node, index))
    returned = set(graph.outputs)
    mapping = Substitution()
    nodes, graph.nodes = graph.nodes, []
    for outer, own in list(adjoint.captured.items()):
        if outer.graph is not body or not is_array(outer) or (outer.node is None and outer not in changing):
            continue
        readers = uses.get(own, [])
        if own in returned or not readers or not all(index in node.op.shape_only for node, index in readers):
            continue
        others = [(node, index) for node, index in readers if node.op.name not in SIZES]
        if others and outer.shape is None:
            continue
        for node, _ in readers:
            if node.op.name in SIZES:
                mapping[node.outputs[0]] = adjoint.use(computed_in(body, node.op, outer, node.attrs))
        if others:
            with adjoint:
                stand_in = adjoint.use(zeros([_size(body, outer, k) for k in range(len(outer.shape))], outer.dtype))
            for node, index in others:
                node.inputs[index] = stand_in
        del adjoint.captured[outer]
        graph.inputs = [value for value in graph.inputs if value is not own]
    graph.nodes += [node for node in nodes if not node.outputs or node.outputs[0] not in mapping]
    if mapping:
        for node in graph.nodes:
            node.inputs = [mapping[value] for value in node.inputs]
        graph.outputs = [mapping[value] for value in graph.outputs]


def _size(body: Graph, array: Value, axis: int) -> Any:
    """A dimension of an array of the body, for what is traced now."""
    static = array.shape[axis]
    if static is not None:
        return static
    return ctx.builder.tensor(ctx.builder.use(computed_in(body, OPS["dim"], array, {"axis": axis})))


def computed_in(body: Graph, op: OpDef, operand: Value, attrs: dict[str, Any]) -> Value:
    """What an op gives for a value of the body, computed there as soon as the value is: later it may be overwritten."""
    for known in body.nodes:
        if known.op is op and known.inputs == [operand] and known.attrs == attrs:
            return known.outputs[0]
    types = op.infer([operand.type], attrs)
    made = body.add_node(op, [operand], attrs, types)
    body.nodes.remove(made)
    body.nodes.insert(0 if operand.node is None else body.nodes.index(operand.node) + 1, made)
    return made.outputs[0]


def plan_residuals(loop: Node, adjoint: Builder) -> Plan:
    """Returns the plan for the values that `adjoint` captures from the loop's body."""
    body = loop.regions[1]
    needed = [v for v in adjoint.captured if v.graph is body]
    return _Planner(loop, body, adjoint).plan(needed)


def stored_type(type_: Type) -> TensorType:
    """The type in which a residual is stored on a stack. An array of one element is stored as a scalar, so that its
    dimensions needn't be stored with it."""
    assert isinstance(type_, TensorType)
    return TensorType(type_.dtype, ()) if shapes.element_count(type_.shape) == 1 else type_


def stored(residual: Any, type_: Type) -> Any:
    """Converts a residual of this type to the form in which it is stored on a stack."""
    return residual if stored_type(type_) == type_ else apply(OPS["reshape"], [residual], {"shape": ()})


def restored(popped: Any, type_: Type) -> Any:
    """Converts a value popped from a stack back to a residual of this type."""
    assert isinstance(type_, TensorType)
    return popped if stored_type(type_) == type_ else apply(OPS["reshape"], [popped], {"shape": type_.shape})


def is_overwritten(value: Value, builder: Builder | None) -> bool:
    """Whether a value is an array that is changed in place by a loop whose adjoint `builder`, or one of its parents,
    traces.

    The adjoint of a trip could use it only if each trip had saved a copy.
    """
    while builder is not None:
        if value.graph is builder.graph:
            origin = Origins().trace(value)
            outer = next((outer for outer, own in builder.captured.items() if own is origin), None)
            if outer is None:
                return False
            value = outer
        elif value.graph in builder.foreign:
            loop, origins = getattr(builder, "loop", None), getattr(builder, "origins", None)
            if loop is None or origins is None:
                return False
            body, origin = loop.regions[1], origins.of(value.graph).get(value)
            if origin is None:
                return False
            k = body.inputs.index(origin)
            if k < loop.attrs["carries"] and body.outputs[k] is not origin:
                return k in origins.updated_in_place(loop)
            value = loop.inputs[k]
        else:
            builder = builder.parent
    return False


class _Planner:
    """Decides once for each value, in program order, so that the operands of a value are decided before it."""

    def __init__(self, loop: Node, body: Graph, adjoint: Builder) -> None:
        count, around = loop.attrs["carries"], adjoint.parent
        self.loop = loop
        self.body = body
        self.adjoint = adjoint
        self.overwritten = {
            own for own, outer in zip(body.inputs, loop.inputs) if is_array(own) and is_overwritten(outer, around)
        }
        self.carry = {v: i for i, v in enumerate(body.inputs[:count])}
        self.constant_inputs = set(body.inputs[count:])
        self.constant_inputs |= {v for v, i in self.carry.items() if body.outputs[i] is v}
        self.result = {v: i for i, v in enumerate(body.outputs[:count]) if v.node is not None}
        self.done: set[Value] = set()  # values that are available already
        self.repeated: set[Node] = set()
        self.leaves: dict[Value, frozenset[Value] | None] = {}  # see `leaves_of`
        self.out = Plan()

    def plan(self, needed: list[Value]) -> Plan:
        for value in needed:
            if value.node is None:
                self.take(value)
        saved = set(self.out.saved)
        for value in needed:
            index = self.result.get(value)
            if index is not None and self.body.inputs[index] in saved and value not in self.done:
                self.out.shifted.append(index)
                self.done.add(value)
        wanted = set(needed) - self.done
        for node in self.body.nodes:
            if wanted.isdisjoint(node.outputs):
                continue
            for value in node.outputs:
                if value in wanted:
                    self.take(value, self.is_worth_repeating(value))
        self.out.repeated = [node for node in self.body.nodes if node in self.repeated]
        return self.out

    def take(self, value: Value, repeat: bool = False) -> None:
        """Makes `value` available in the adjoint; `repeat`: by cheap arithmetic, if possible."""
        waiting = [(value, repeat)]
        while waiting:
            value, repeat = waiting.pop()
            if value in self.done:
                continue
            self.done.add(value)
            if value in self.constant_inputs:
                self.out.invariant.add(value)
            elif isinstance(value.type, StackType):
                self._stacks_of_its_kind(value).append(value)
            elif value in self.carry:
                index = self.carry[value]
                step = self.step_of(index)
                if step is None:
                    self.out.saved.append(value)
                else:
                    self.out.counters.append(index)
                    if step.node is None:
                        waiting.append((step, False))
            elif repeat and value.node is not None and can_repeat(value.node):
                waiting += [(operand, True) for operand in reversed(value.node.inputs)]
                self.repeated.add(value.node)
                self.done.update(value.node.outputs)
            else:
                self.out.saved.append(value)

    def _stacks_of_its_kind(self, value: Value) -> list[Value]:
        if popped_from(value) in self.carry:
            return self.out.shrunk
        return self.out.threaded if self._can_be_threaded(value) else self.out.joined

    def _can_be_threaded(self, value: Value) -> bool:
        """Whether a stack grows from an empty one for a single loop of the adjoint, which pops all that a trip pushed.

        Then the loop leaves the stack as it was before the trip. Other readers would meet elements of earlier trips.
        """
        own, rests = self.adjoint.captured[value], getattr(self.adjoint, "rests", {})
        if value not in rests or _count_uses(self.adjoint.graph, own) != 1:
            return False
        if ("threaded", value) in self.loop.added:
            return True
        empty = empty_stack_below(value)
        if empty is None or _count_uses(self.body, value) != 0:
            return False
        return _count_uses(self.body, empty.outputs[0]) == 1

    def step_of(self, index: int) -> Value | None:
        """What an integer counter adds or subtracts in each trip, if its step is constant; otherwise None."""
        own, update = self.body.inputs[index], self.body.outputs[index].node
        if update is None or not isinstance(own.type, TensorType) or is_differentiable(own.type):
            return None
        if not own.dtype.is_integer or update.op.arithmetic not in ("add", "subtract"):
            return None
        left, right = update.inputs
        if left is own:
            step = right
        elif right is own and update.op.arithmetic == "add":
            step = left
        else:
            return None
        is_constant = step in self.constant_inputs or (step.node is not None and step.node.op.name == "constant")
        # A step that broadcasts would change the counter's shape on the way back.
        return step if is_constant and (step.shape == () or step.shape == own.shape) else None

    def is_worth_repeating(self, value: Value) -> bool:
        leaves = self.leaves_of(value)
        return leaves is not None and sum(_bytes(v) for v in leaves if v not in self.done) <= _bytes(value)

    def leaves_of(self, value: Value) -> frozenset[Value] | None:
        """The values that must be saved to recompute `value`; None if it can't be recomputed, or depends on too many.

        The result is cached. It may contain values that have become available since.
        """
        waiting = [value]
        while waiting:
            current = waiting[-1]
            if current in self.leaves:
                waiting.pop()
                continue
            if current.node is None or not can_repeat(current.node):
                self.leaves[current] = None
                continue
            operands = [v for v in current.node.inputs if v.node is not None and v not in self.done]
            unknown = [v for v in operands if v not in self.leaves]
            if unknown:
                waiting += unknown
                continue
            self.leaves[current] = self._joined_leaves(current.node)
        return self.leaves[value]

    def _joined_leaves(self, node: Node) -> frozenset[Value] | None:
        found: set[Value] = set()
        for operand in node.inputs:
            if operand in self.done:
                continue
            if operand in self.constant_inputs:
                if operand in self.overwritten:
                    found.add(operand)
                continue
            if operand.node is None:
                if self.step_of(self.carry[operand]) is None:
                    found.add(operand)
                continue
            leaves = self.leaves[operand]
            if leaves is not None:
                found |= leaves
            elif isinstance(operand.type, StackType):
                return None
            else:
                found.add(operand)
        return frozenset(found) if len(found) <= _MOST_LEAVES else None


def popped_from(value: Value) -> Value | None:
    """The input of its graph that a stack is the rest of, after pops; None for other stacks."""
    while value.node is not None:
        node, index = value.node, value.node.outputs.index(value)
        if node.op in (stack.POP, stack.SPLIT) and index == 0:
            value = node.inputs[0]
        elif node.op.name == "while" and popped_from(node.regions[1].outputs[index]) is node.regions[1].inputs[index]:
            value = node.inputs[index]
        else:
            return None
    return value


def empty_stack_below(value: Value) -> Node | None:
    """The `stack_empty` node of its graph that a stack grows from, or None."""
    while value.node is not None:
        node = value.node
        if node.op is stack.EMPTY:
            return node
        if node.op is not stack.PUSH and node.op.name != "while":
            return None
        value = node.inputs[node.outputs.index(value)]
    return None


def _count_uses(graph: Graph, value: Value) -> int:
    return sum(node.inputs.count(value) for node in graph.nodes) + graph.outputs.count(value)


def is_array(value: Value) -> bool:
    """Whether a value is a tensor of rank 1 or more, or may be."""
    return isinstance(value.type, TensorType) and value.type.rank != 0


def can_repeat(node: Node) -> bool:
    """Whether running the node again is cheap and gives the same result."""
    if node.regions or node.op.effect:
        return False
    if node.op.cheap:
        return True
    return node.op.is_elementwise and all(isinstance(v.type, TensorType) and v.shape == () for v in node.outputs)


def _bytes(value: Value) -> int:
    assert isinstance(value.type, TensorType)
    count = shapes.element_count(value.shape)
    if count is None:
        count = _UNKNOWN_ELEMENTS
    return count * value.dtype.size
