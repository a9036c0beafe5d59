"""The adjoint of `while`: a loop that runs the trips backwards.

    n, S = 0, []                                     for k = n … 1:
    while test(c):                                       S, r = pop(S)
        S = push(S, what the adjoint needs of c)  →      dc, du = adjoint of body(r; dc, du)
        c = body(c, u); n = n + 1

The forward loop is extended in place: it counts its trips and pushes the residuals. What the adjoint of the body needs
of the forward trip is obtained as cheaply as possible (`residuals.py` decides): invariants are available, cheap
arithmetic is repeated, integer counters are counted again, and only the rest is pushed. A loop inside the body pushes
on the same stack trip after trip: its empty stack becomes a carry of the outer loop, and the adjoint pops in the
reverse order. So nothing bounds the trip count, and a loop that only accumulates keeps nothing.

The adjoint is an ordinary loop: it can be differentiated again. The push/pop scheme is that of Griewank & Walther,
"Evaluating Derivatives" (2008), chapter 4.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.autodiff.budget import Budget, budget_of
from runtime.autodiff.calls import NodeCall, is_differentiable
from runtime.autodiff.checkpoints import CantRunAgain, Replay, shadow, walk_back_from_checkpoints
from runtime.autodiff.residuals import (
    Plan,
    can_repeat,
    empty_stack_below,
    forget_known_shapes,
    plan_residuals,
    popped_from,
    restored,
    stored_type,
    take_sizes_before,
)
from runtime.autodiff.reverse import REGION_RULES, Cotangents, taken_sum, walk_back
from runtime.autodiff.zeros import exact_zeros_for, with_shape, zeros_for
from runtime.context import ctx
from runtime.graph.builder import Builder, emit_while, join_types, trace_region
from runtime.graph.ir import ConstantArray, Graph, Node, Substitution, Value, copy_nodes
from runtime.graph.node_helpers import known_array
from runtime.graph.passes.dead_code import remove_dead_code
from runtime.graph.structural import CONSTANT
from runtime.graph.updates import Origins
from runtime.ops import stack
from runtime.ops.dispatch import apply
from runtime.ops.table import OPS
from runtime.types import StackType, TensorType, Type

COUNT_TYPE = TensorType(dtypes.int64, ())


def adjoint_of_while(
    call: NodeCall, arrived: Sequence[Any], tracked: Callable[[Any], bool], sums: Cotangents
) -> list[Any]:
    """Returns the cotangents of (initial carries..., captures...), aligned with the node's inputs before this call.
    Those of captures include the sums in `sums`."""
    budget = budget_of(call.node, ctx.builder)
    if budget is not None:
        in_budget = _adjoint_in_budget(call, arrived, tracked, sums, budget)
        if in_budget is not None:
            return in_budget
    node, outer = call.node, call.builder
    adjoint, arrived = _adjoint_of_trips(node, outer, arrived, tracked)
    inputs = list(node.inputs)
    if adjoint is None:
        return [None] * len(inputs)
    carries, captures, plan = adjoint.carries, adjoint.captures, adjoint.plan
    forward = ForwardLoop(node)
    stacks = [forward.saved(v) for v in plan.saved]
    stacks += [forward.joined(v) for v in plan.joined]
    stacks += [forward.saved(forward.size(v)) for v in (*plan.joined, *plan.shrunk)]
    stacks += [forward.threaded(v) for v in plan.threaded]
    count = forward.trip_count()
    start = [outer.tensor(count), *map(outer.tensor, stacks)]
    start += [outer.tensor(node.outputs[i]) for i in plan.shifted]
    start += _cotangents_at_the_end(adjoint, node, inputs, outer, arrived, sums)
    finished = adjoint.emit(start, [outer.tensor(inputs[i]) for i in plan.counters])
    if isinstance(ctx.builder, AdjointBuilder):
        ctx.builder.rests.update(zip(stacks, [t.value for t in finished[1:]]))

    found: list[Any] = [None] * len(inputs)
    results = finished[-(len(carries) + len(captures)) :]
    for index, result in zip([*carries, *captures], results):
        found[index] = result
    return found


def _adjoint_of_trips(
    node: Node, outer: Builder, arrived: Sequence[Any], tracked: Callable[[Any], bool], budget: Budget | None = None
) -> tuple[_Adjoint | None, list[Any]]:
    """Returns the adjoint of a loop's body, or None if no gradient flows through it; and the cotangents, one for each
    carry."""
    inputs = list(node.inputs)
    arrived = [*arrived, *[None] * (node.attrs["carries"] - len(arrived))]
    active = [i for i, v in enumerate(inputs) if is_differentiable(v.type) and tracked(outer.tensor(v))]
    count, reach = node.attrs["carries"], _Reach()
    varied = reach.varied(node, active)
    carries = reach.active_carries(node, [i for i in range(count) if arrived[i] is not None], active)
    reached = reach.values(node.regions[1], carries, varied)
    captures = [i for i in active if i >= count and node.regions[1].inputs[i] in reached]
    return (_Adjoint(node, carries, captures, varied, budget) if carries else None), arrived


def _cotangents_at_the_end(
    adjoint: _Adjoint, node: Node, inputs: Sequence[Value], outer: Builder, arrived: Sequence[Any], sums: Cotangents
) -> list[Any]:
    found = [zeros_for(outer.tensor(node.outputs[i])) if arrived[i] is None else arrived[i] for i in adjoint.carries]
    for index in adjoint.captures:
        captured = outer.tensor(inputs[index])
        total = taken_sum(sums, captured)
        found.append(exact_zeros_for(captured) if total is None else total)
    return found


def _adjoint_in_budget(
    call: NodeCall, arrived: Sequence[Any], tracked: Callable[[Any], bool], sums: Cotangents, budget: Budget
) -> list[Any] | None:
    """Computes the cotangents from checkpoints; None for a loop that saves nothing, or can't be run again under a
    budget that isn't strict."""
    node = call.node
    walked = shadow(node)
    adjoint, arrived = _adjoint_of_trips(walked, call.builder, arrived, tracked, budget)
    if adjoint is None or not (adjoint.plan.saved or adjoint.plan.handles_stacks):
        return None
    try:
        replay = Replay(walked, adjoint.plan)
        count = call.builder.tensor(ForwardLoop(node).trip_count())
        start = _cotangents_at_the_end(adjoint, node, walked.inputs, call.builder, arrived, sums)
        results = walk_back_from_checkpoints(adjoint, replay, budget, count, start)
    except CantRunAgain as reason:
        if budget.strict:
            raise ValueError(f"{_place(node)}this loop can't be differentiated in bounded memory: {reason}") from None
        return None
    found: list[Any] = [None] * len(walked.inputs)
    for index, result in zip([*adjoint.carries, *adjoint.captures], results):
        found[index] = result
    return found


def _place(node: Node) -> str:
    return f"{node.span[0]}:{node.span[1]}: " if node.span else ""


class AdjointBuilder(Builder):
    """Traces the adjoint of a loop body. `rests` maps each stack of an inner loop to the rest of the stack after the
    adjoint of that loop has popped its residuals. `memory`: the budget of the loop, which inner loops share."""

    def __init__(self, name: str, parent: Builder, loop: Node, memory: Budget | None = None) -> None:
        super().__init__(name, parent, [loop.regions[1]])
        self.loop = loop
        self.origins = Origins()
        self.rests: dict[Value, Value] = {}
        self.memory = memory


class _Adjoint:
    """The adjoint of a loop body. It is traced with values of the body captured freely; a plan then says how it gets
    them."""

    def __init__(
        self, node: Node, carries: list[int], captures: list[int], varied: set[Value], budget: Budget | None
    ) -> None:
        self.node = node
        self.body = node.regions[1]
        self.carries = carries
        self.captures = captures
        self.builder = AdjointBuilder(f"adjoint of {self.body.name}", ctx.builder, node, budget)
        body_outputs = [self.body.outputs[i] for i in carries]
        self.arrived = [self.builder.add_input(v.type, _d(v)) for v in body_outputs]
        self.totals = [self.builder.add_input(self.body.inputs[i].type, _d(self.body.inputs[i])) for i in captures]
        # Only differentiable nodes matter. They are listed before the walk, because it extends inner loops.
        calls = [NodeCall(n, self.builder) for n in self.body.nodes]
        with self.builder:
            self.builder.graph.outputs = self._walk(calls, varied)
        remove_dead_code(self.builder.graph, self.builder)
        forget_known_shapes(self.builder, self.body)
        take_sizes_before(node, self.builder)
        self.plan: Plan = plan_residuals(node, self.builder)

    def _walk(self, calls: list[NodeCall], varied: set[Value]) -> list[Value]:
        wrap = self.builder.tensor
        cotangents = Cotangents()
        for index, own in zip(self.captures, self.totals):
            # Starting from the running total lets scattered parts be added to it in place.
            cotangents.add(wrap(self.body.inputs[index]), wrap(own))
        for index, own in zip(self.carries, self.arrived):
            cotangents.add(wrap(self.body.outputs[index]), wrap(own))
        walk_back(calls, cotangents, lambda t: t.value in varied)
        results = []
        for index in [*self.carries, *self.captures]:
            value = self.body.inputs[index]
            cotangent = cotangents.get(wrap(value))
            results.append(self.builder.use(zeros_for(wrap(value)) if cotangent is None else cotangent))
        return results

    def emit(self, start: Sequence[Any], counters: Sequence[Any]) -> list[Any]:
        """Emits the backward loop in the current builder. `start`: its initial carries; `counters`: the initial values
        of the plan's counters in the forward loop."""
        types = [t.type for t in start]
        while True:
            trip = trace_region("adjoint", lambda left, *state: self._trip(left, state, counters), types)
            joined = [join_types(a, b) for a, b in zip(types, trip.types)]
            if joined == types:
                break
            # The shapes of some cotangents differ from trip to trip: those dimensions become unknown.
            types = joined
        return emit_while(trace_region("trips left", lambda left, *rest: [_positive(left)], types), trip, start)

    def _trip(self, left: Any, state: Sequence[Any], counters: Sequence[Any]) -> list[Any]:
        plan, builder, graph = self.plan, ctx.builder, self.builder.graph
        state_of = iter(state)
        take = lambda values: [next(state_of) for _ in values]  # noqa: E731
        stacks, joined = take(plan.saved), take(plan.joined)
        counts, threads = take([*plan.joined, *plan.shrunk]), take(plan.threaded)
        shifted = take(plan.shifted)
        arrived, totals = take(self.carries), take(self.captures)

        forward = Substitution()  # values of the body, in this trip
        rests = []
        for value, pile in zip(plan.saved, stacks):
            rest, popped = apply(stack.POP, [pile])
            rests.append(rest)
            forward[value] = builder.use(restored(popped, value.type))
        popped_counts = [apply(stack.POP, [pile]) for pile in counts]
        sizes = [size for _, size in popped_counts]
        for value, pile, size in zip(plan.joined, joined, sizes):
            rest, segment = apply(stack.SPLIT, [pile, size])
            rests.append(rest)
            forward[value] = builder.use(segment)
        for value, size in zip(plan.shrunk, sizes[len(joined) :]):
            carry = popped_from(value)
            assert carry is not None
            first = builder.tensor(builder.use(self.node.inputs[self.body.inputs.index(carry)]))
            forward[value] = builder.use(apply(stack.SPLIT, [first, size])[0])
        rests += [rest for rest, _ in popped_counts]
        for last, pile in zip(plan.threaded, threads):
            forward[last] = builder.use(pile)
        for index, following in zip(plan.shifted, shifted):
            forward[self.body.outputs[index]] = builder.use(following)
        for own, outer in zip(self.body.inputs, self.node.inputs):
            if own in plan.invariant:
                forward[own] = builder.use(outer)
        one = builder.constant(np.int64(1))
        before = apply(OPS["subtract"], [left, one])
        for index, first in zip(plan.counters, counters):
            forward[self.body.inputs[index]] = builder.use(_counted(self.body, index, first, before, forward))
        copy_nodes(plan.repeated, builder.graph, forward)

        mapping = Substitution()
        for outer, own in self.builder.captured.items():
            mapping[own] = forward[outer] if outer.graph is self.body else builder.use(outer)
        for own, given in zip([*self.arrived, *self.totals], [*arrived, *totals]):
            # What the body's adjoint was built for; the loop around it may know less.
            mapping[own] = builder.use(with_shape(given, own.type))
        copy_nodes(graph.nodes, builder.graph, mapping)
        return [
            before,
            *rests,
            *[builder.tensor(mapping[self.builder.rests[v]]) for v in plan.threaded],
            *[builder.tensor(forward[self.body.inputs[i]]) for i in plan.shifted],
            *[builder.tensor(mapping[v]) for v in graph.outputs],
        ]


class ForwardLoop:
    """Extends a `while` node in place with a trip counter and stacks. Those that an earlier gradient added are
    reused."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.test, self.body = node.regions
        self.added = node.added

    def trip_count(self) -> Value:
        """The number of trips: computed from the limit of a counting loop, otherwise counted."""
        if "count" not in self.added:
            known = self._known_trips()
            if known is not None:
                self.added["count"] = known
                return known
            zero = self._before(CONSTANT, {"value": ConstantArray(np.zeros((), np.int64))}, COUNT_TYPE)
            own = self._add_carry("count", zero)
            attrs = {"value": ConstantArray(np.ones((), np.int64))}
            one = self.body.add_node(CONSTANT, (), attrs, [COUNT_TYPE]).outputs[0]
            self.body.outputs.append(self.body.add_node(OPS["add"], [own, one], {}, [COUNT_TYPE]).outputs[0])
        return self.added["count"]

    def saved(self, value: Value) -> Value:
        """The stack, after the loop, of the values that `value` had in all trips."""
        key = ("saved", value)
        if key not in self.added:
            element = stored_type(value.type)
            attrs = {"dtype": element.dtype, "shape": element.shape}
            own = self._add_carry(key, self._before(stack.EMPTY, attrs, StackType(element), self._room()))
            if element != value.type:
                value = self.body.add_node(OPS["reshape"], [value], {"shape": ()}, [element]).outputs[0]
            self.body.outputs.append(self.body.add_node(stack.PUSH, [own, value], {}, [own.type]).outputs[0])
        return self.added[key]

    def threaded(self, last: Value) -> Value:
        """Turns the stack whose final state in a trip is `last` into one stack over all trips."""
        key = ("threaded", last)
        if key not in self.added:
            if ("joined", last) in self.added:
                return self.added["joined", last]
            empty = empty_stack_below(last)
            assert empty is not None
            attrs = dict(empty.attrs)
            own = self._add_carry(key, self._before(stack.EMPTY, attrs, empty.outputs[0].type, self._room_for(empty)))
            for node in self.body.nodes:
                node.inputs = [own if v is empty.outputs[0] else v for v in node.inputs]
            self.body.nodes = [n for n in self.body.nodes if n is not empty]
            self.body.outputs.append(last)
        return self.added[key]

    def joined(self, value: Value) -> Value:
        """The stack, after the loop, of all elements that the stack `value` had in all trips."""
        key = ("joined", value)
        if key not in self.added:
            if ("threaded", value) in self.added:
                own = self.body.inputs[self.body.outputs.index(value)]
                self.added[key] = self.added["threaded", value]
                self.added["size", value] = self.body.add_node(stack.SIZE, [own], {}, [COUNT_TYPE]).outputs[0]
            else:
                assert isinstance(value.type, StackType)
                element = value.type.element
                attrs = {"dtype": element.dtype, "shape": element.shape}
                own = self._add_carry(key, self._before(stack.EMPTY, attrs, value.type))
                made = self.body.add_node(stack.JOIN, [own, value], {}, [value.type, COUNT_TYPE])
                self.body.outputs.append(made.outputs[0])
                self.added["size", value] = made.outputs[1]
        return self.added[key]

    def size(self, value: Value) -> Value:
        """In a trip, the number of elements that lie below those of a joined stack, or that a stack still has."""
        key = ("size", value)
        if key not in self.added:
            self.added[key] = self.body.add_node(stack.SIZE, [value], {}, [COUNT_TYPE]).outputs[0]
        return self.added[key]

    def _room(self) -> list[Value]:
        """The capacity for one element per trip, if the number of trips is known.

        It has room for one more, because the generated loop checks the capacity before it tests for another trip.
        """
        trips = self._known_trips()
        if trips is None:
            return []
        one = self._before(CONSTANT, {"value": ConstantArray(np.ones((), np.int64))}, COUNT_TYPE)
        return [self._before(OPS["add"], {}, COUNT_TYPE, [trips, one])]

    def _room_for(self, empty: Node) -> list[Value]:
        """The capacity for the pushes of all trips, given a stack with the capacity for one trip, if both numbers are
        known."""
        trips = self._known_trips()
        once = self._before_the_loop(empty.inputs[0]) if empty.inputs and trips is not None else None
        if once is None or trips is None:
            return []
        one = self._before(CONSTANT, {"value": ConstantArray(np.ones((), np.int64))}, COUNT_TYPE)
        pushed = self._before(OPS["subtract"], {}, COUNT_TYPE, [once, one])
        total = self._before(OPS["multiply"], {}, COUNT_TYPE, [pushed, trips])
        return [self._before(OPS["add"], {}, COUNT_TYPE, [total, one])]

    def _before_the_loop(self, value: Value) -> Value | None:
        """A number from the body, computed before the loop; None if it may differ from trip to trip."""
        if value.node is None:
            k = self.body.inputs.index(value)
            is_kept = k >= self.node.attrs["carries"] or self.body.outputs[k] is value
            return self.node.inputs[k] if is_kept else None
        if not can_repeat(value.node) or len(value.node.outputs) > 1:
            return None
        operands = [self._before_the_loop(v) for v in value.node.inputs]
        known = [v for v in operands if v is not None]
        return self._before(value.node.op, value.node.attrs, value.type, known) if len(known) == len(operands) else None

    def _known_trips(self) -> Value | None:
        """The number of trips, if `while i < n` counts up by one to an invariant `n`, or `while i > n` counts down to
        it; otherwise None."""
        if "trips" not in self.added:
            found = limit_of(self.test)
            body, inputs, carries = self.body, self.node.inputs, self.node.attrs["carries"]
            if found is None or not _counts_by_one(body, found[0], found[2]):
                return None
            index, limit, is_up = found
            if isinstance(limit, int):
                if limit < carries and body.outputs[limit] is not body.inputs[limit]:
                    return None
                end = inputs[limit]
            else:
                end = self._before(CONSTANT, {"value": limit}, inputs[index].type)
            first = inputs[index]
            if first.dtype.size == 8:
                # Otherwise the difference of two distant numbers might overflow.
                end = self._before(OPS["maximum" if is_up else "minimum"], {}, end.type, [end, first])
            ends = [self._before(OPS["cast"], {"dtype": COUNT_TYPE.dtype}, COUNT_TYPE, [v]) for v in (end, first)]
            if not is_up:
                ends.reverse()
            trips = self._before(OPS["subtract"], {}, COUNT_TYPE, ends)
            if first.dtype.size < 8:
                zero = self._before(CONSTANT, {"value": ConstantArray(np.zeros((), np.int64))}, COUNT_TYPE)
                trips = self._before(OPS["maximum"], {}, COUNT_TYPE, [trips, zero])
            self.added["trips"] = trips
        return self.added["trips"]

    def _before(self, op: Any, attrs: dict, type_: Type, inputs: Sequence[Value] = ()) -> Value:
        graph = self.node.graph
        new = Node(op, inputs, attrs, [type_], graph)
        graph.nodes.insert(graph.nodes.index(self.node), new)
        graph.program = None
        return new.outputs[0]

    def _add_carry(self, key: Any, start: Value) -> Value:
        """Adds a last carry; the caller appends its next value to the body's outputs."""
        node, position = self.node, self.node.attrs["carries"]
        node.inputs.insert(position, start)
        for region in node.regions:
            region.inputs.insert(position, Value(start.type, region))
            region.program = None
        result = Value(start.type, node.graph, node)
        node.outputs.append(result)
        node.attrs = {**node.attrs, "carries": position + 1}
        self.added[key] = result
        for recorder in ctx.recorders:
            recorder.extend(node, result)
        return self.body.inputs[position]


def limit_of(test: Graph) -> tuple[int, int | ConstantArray, bool] | None:
    """For a test `i < n` or `i > n`: the positions of `i` and `n` among its inputs (or `n` itself if it is constant),
    and whether the test is `<`."""
    node = test.outputs[0].node
    if node is None or node.op.name not in ("less", "greater") or any(v.shape != () for v in node.inputs):
        return None
    index, limit = node.inputs
    if index.node is not None or not index.dtype.is_integer or index.dtype.is_unsigned:
        return None
    is_up = node.op.name == "less"
    if limit.node is None:
        return test.inputs.index(index), test.inputs.index(limit), is_up
    return (test.inputs.index(index), limit.node.attrs["value"], is_up) if limit.node.op is CONSTANT else None


def _counts_by_one(body: Graph, index: int, is_up: bool) -> bool:
    update = body.outputs[index].node if index < len(body.outputs) else None
    if update is None or update.op.arithmetic != ("add" if is_up else "subtract"):
        return False
    if update.inputs[0] is not body.inputs[index]:
        return False
    step = update.inputs[1].node
    return step is not None and step.op is CONSTANT and bool(np.all(step.attrs["value"].array == 1))


def _counted(body: Graph, index: int, first: Any, trips: Any, forward: Substitution) -> Any:
    """A counter's value after `trips` trips: `first + trips * step` or `first - trips * step`."""
    update = body.outputs[index].node
    assert update is not None
    own = body.inputs[index]
    step = update.inputs[1] if update.inputs[0] is own else update.inputs[0]
    builder = ctx.builder
    if step.node is not None:
        local = Substitution(forward)
        copy_nodes([step.node], builder.graph, local)
        step_here = local[step]
    else:
        step_here = builder.use(forward[step])
    moved = apply(OPS["cast"], [trips], {"dtype": first.dtype})
    known_step, known_first = known_array(step), known_array(first.value)
    if known_step is None or np.any(known_step != 1):
        moved = apply(OPS["multiply"], [moved, builder.tensor(step_here)])
    if known_first is not None:
        # The trip gets a constant of its own, so that passes over its graph see the value.
        if update.op.arithmetic == "add" and not np.any(known_first) and known_first.shape == moved._shape:
            return moved
        first = builder.constant(known_first)
    return apply(OPS[update.op.arithmetic], [first, moved])


def _positive(left: Any) -> Any:
    return apply(OPS["greater"], [left, ctx.builder.constant(np.int64(0))])


def _d(value: Value) -> str | None:
    return f"d_{value.name}" if value.name else None


def _varied_values(node: Node, active: Collection[int]) -> set[Value]:
    body, count = node.regions[1], node.attrs["carries"]
    users: dict[Value, list[Node]] = {}
    for inner in body.nodes:
        for value in inner.inputs:
            users.setdefault(value, []).append(inner)
    following: dict[Value, list[Value]] = {}
    for own, after in zip(body.inputs[:count], body.outputs):
        following.setdefault(after, []).append(own)
    varied: set[Value] = set()
    waiting = [body.inputs[i] for i in active]
    while waiting:
        value = waiting.pop()
        if value not in varied:
            varied.add(value)
            waiting += following.get(value, ())
            waiting += [v for inner in users.get(value, ()) for v in inner.outputs if is_differentiable(v.type)]
    return varied


class _Reach:
    """Finds the values of loop bodies from which results are computed. Answers are cached for each inner loop, so that
    the time doesn't grow exponentially with the nesting depth."""

    def __init__(self) -> None:
        self._varied: dict[tuple[Node, frozenset[int]], set[Value]] = {}
        self._carries: dict[tuple[Node, frozenset[int], frozenset[int]], list[int]] = {}

    def varied(self, node: Node, active: Collection[int]) -> set[Value]:
        """The values of the body that depend differentiably on one of the inputs `active`, over any number of trips."""
        key = node, frozenset(active)
        if key not in self._varied:
            self._varied[key] = _varied_values(node, active)
        return self._varied[key]

    def active_carries(self, node: Node, arrived: Collection[int], active: Collection[int]) -> list[int]:
        """Carries that depend on one of the inputs `active` and that one of the results `arrived` depends on."""
        key = node, frozenset(arrived), frozenset(active)
        if key not in self._carries:
            body, count = node.regions[1], node.attrs["carries"]
            varied = self.varied(node, active)
            reached = self.values(body, arrived, varied, count)
            self._carries[key] = [
                i for i, v in enumerate(body.inputs[:count]) if v in varied and (v in reached or i in arrived)
            ]
        return self._carries[key]

    def values(self, body: Graph, carries: Collection[int], varied: set[Value], over: int = 0) -> set[Value]:
        """The varied values from which the next values of `carries` are computed: in this trip, or over any number of
        trips if `over` is the number of all carries."""
        following = dict(zip(body.inputs[:over], body.outputs))
        position: dict[Node | None, int] = {node: -index for index, node in enumerate(body.nodes)}
        reached: set[Value] = set()
        waiting: list[int] = []  # last nodes first: their users are already done
        queued: set[int] = set()

        def reach(value: Value | None) -> None:
            while value is not None and value in varied and value not in reached:
                reached.add(value)
                place = position.get(value.node)
                if place is not None and place not in queued:
                    queued.add(place)
                    heapq.heappush(waiting, place)
                value = following.get(value)

        for index in carries:
            reach(body.outputs[index])
        while waiting:
            place = heapq.heappop(waiting)
            queued.remove(place)
            node = body.nodes[-place]
            passed_by = self._independent_stacks(node, reached, varied)
            for value in node.inputs:
                if value not in passed_by:
                    reach(value)
        return reached

    def _independent_stacks(self, node: Node, reached: set[Value], varied: set[Value]) -> set[Value]:
        """The stacks that a loop takes but its `reached` results don't depend on: an earlier gradient made the loop
        push its residuals on them. They get no cotangent, and an empty stack can't serve as a zero to pop from."""
        stacks = {v for v in node.inputs if isinstance(v.type, StackType) and v in varied}
        if node.op.name != "while" or not stacks:
            return set()
        active = [i for i, v in enumerate(node.inputs) if v in varied]
        wanted = [i for i, v in enumerate(node.outputs) if v in reached]
        return stacks - {node.inputs[i] for i in self.active_carries(node, wanted, active)}


REGION_RULES["while"] = adjoint_of_while
