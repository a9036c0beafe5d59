"""Decides how the adjoint of a loop body gets the forward trip's values that it needs.

    invariant      a capture, or a carry that the body hands on unchanged: used as it is
    stepped back   an integer carry `i ± step`: recovered by running the counter backwards
    shifted        the next value of a carry that is saved anyway: it is the following trip's saved value
    threaded       the stack of a loop inside the body: becomes one stack over all trips
    repeated       cheap arithmetic on the above and on saved values: computed again
    saved          everything else: pushed once a trip

A value is repeated only when that saves no more bytes than saving the value itself would.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from runtime import shapes
from runtime.autodiff.calls import is_differentiable
from runtime.graph.builder import Builder
from runtime.graph.ir import Graph, Node, Value
from runtime.ops.zeros import zeros_of
from runtime.types import StackType, TensorType

# Moving data about: cheaper to do again than to keep, as long as what they move is kept or invariant.
_MOVES = {
    "strided_slice", "gather", "reshape", "expand_dims", "squeeze", "broadcast_to", "shape", "size", "rank", "identity",
    "zeros_like", "ones_like", "stop_gradient", "assign", "sum_to_shape_of",
}  # fmt: skip
_UNKNOWN_ELEMENTS = 1 << 20


@dataclass
class Plan:
    saved: list[Value] = field(default_factory=list)
    threaded: list[Value] = field(default_factory=list)
    repeated: list[Node] = field(default_factory=list)  # in program order
    stepped_back: list[int] = field(default_factory=list)  # carry indices
    shifted: list[int] = field(default_factory=list)  # carry indices
    invariant: set[Value] = field(default_factory=set)


def forget_known_shapes(adjoint: Builder, body: Graph) -> None:
    """Puts zeros in the place of what `adjoint` captures of the body for its shape only, where the shape is known.

    They are never computed: whoever looks at a shape only doesn't need them.
    """
    graph = adjoint.graph
    for outer, own in list(adjoint.captured.items()):
        if outer.graph is not body or not isinstance(own.type, TensorType) or own in graph.outputs:
            continue
        uses = [(n, i) for n in graph.nodes for i, v in enumerate(n.inputs) if v is own]
        if not shapes.is_static(own.shape) or not all(i in n.op.shape_only for n, i in uses):
            continue
        with adjoint:
            start = len(graph.nodes)
            zeros = adjoint.use(zeros_of(adjoint.tensor(own)))
            graph.nodes = graph.nodes[start:] + graph.nodes[:start]
        for node, index in uses:
            node.inputs[index] = zeros
        graph.inputs = [v for v in graph.inputs if v is not own]
        del adjoint.captured[outer]


def plan_residuals(loop: Node, adjoint: Builder) -> Plan:
    """The plan for what `adjoint` captures of the loop's body."""
    body = loop.regions[1]
    needed = [v for v in adjoint.captured if v.graph is body]
    return _Planner(loop, body).plan(needed)


class _Planner:
    def __init__(self, loop: Node, body: Graph) -> None:
        count = loop.attrs["carries"]
        self.body = body
        self.carry = {v: i for i, v in enumerate(body.inputs[:count])}
        self.constant_inputs = set(body.inputs[count:])
        self.constant_inputs |= {v for v, i in self.carry.items() if body.outputs[i] is v}
        self.result = {v: i for i, v in enumerate(body.outputs[:count]) if v.node is not None}
        self.done: dict[Value, None] = {}  # values that are had already
        self.out = Plan()

    def plan(self, needed: list[Value]) -> Plan:
        for value in needed:
            if value.node is None:
                self.take(value)
        for value in needed:
            index = self.result.get(value)
            if index is not None and self.body.inputs[index] in self.out.saved and value not in self.done:
                self.out.shifted.append(index)
                self.done[value] = None
        for value in needed:
            if value not in self.done:
                self.take(value, self.is_worth_repeating(value))
        order = {id(n): i for i, n in enumerate(self.body.nodes)}
        self.out.repeated.sort(key=lambda n: order[id(n)])
        return self.out

    def take(self, value: Value, repeat: bool = False) -> None:
        """Makes `value` available in the adjoint."""
        if value in self.done:
            return
        self.done[value] = None
        if value in self.constant_inputs:
            self.out.invariant.add(value)
        elif value in self.carry:
            index = self.carry[value]
            step = self.step_of(index)
            if step is None:
                self.out.saved.append(value)
            else:
                self.out.stepped_back.append(index)
                if step.node is None:
                    self.take(step)
        elif isinstance(value.type, StackType):
            self.out.threaded.append(value)
        elif repeat and value.node is not None and can_repeat(value.node):
            for operand in value.node.inputs:
                self.take(operand, True)
            if value.node not in self.out.repeated:
                self.out.repeated.append(value.node)
            self.done.update(dict.fromkeys(value.node.outputs))
        else:
            self.out.saved.append(value)

    def step_of(self, index: int) -> Value | None:
        """What an integer counter adds or takes away each trip, if it is one with a constant step."""
        own, update = self.body.inputs[index], self.body.outputs[index].node
        if update is None or not isinstance(own.type, TensorType) or is_differentiable(own.type):
            return None
        if not own.dtype.is_integer or update.op.name not in ("add", "subtract"):
            return None
        left, right = update.inputs
        if left is own:
            step = right
        elif right is own and update.op.name == "add":
            step = left
        else:
            return None
        is_constant = step in self.constant_inputs or (step.node is not None and step.node.op.name == "constant")
        # A step that broadcasts would change the counter's shape on the way back.
        return step if is_constant and (step.shape == () or step.shape == own.shape) else None

    def is_worth_repeating(self, value: Value) -> bool:
        leaves: dict[Value, None] = {}
        if not self._leaves(value, leaves):
            return False
        return sum(_bytes(v) for v in leaves) <= _bytes(value)

    def _leaves(self, value: Value, leaves: dict[Value, None]) -> bool:
        """Collects what repeating `value` would have to save; False when it can't be repeated."""
        node = value.node
        if value in self.done or value in self.constant_inputs:
            return True
        if node is None:
            if self.step_of(self.carry[value]) is None:
                leaves[value] = None
            return True
        if not can_repeat(node):
            return False
        for operand in node.inputs:
            if not self._leaves(operand, leaves):
                if isinstance(operand.type, StackType):
                    return False
                leaves[operand] = None
        return True


def can_repeat(node: Node) -> bool:
    """Whether running the node again is cheap, and gives the same."""
    if node.regions or node.op.effect:
        return False
    if node.op.cheap or node.op.name in _MOVES:
        return True
    return node.op.is_elementwise and all(isinstance(v.type, TensorType) and v.shape == () for v in node.outputs)


def _bytes(value: Value) -> int:
    assert isinstance(value.type, TensorType)
    count = shapes.element_count(value.shape)
    if count is None:
        count = _UNKNOWN_ELEMENTS
    return count * value.dtype.size
