"""The adjoint of `while` in bounded memory: the trips are run again from checkpoints, a chunk at a time.

    checkpoints = [(0, first carries)]; end = trips
    while end > 0:
        position, c = pop checkpoints
        while end - position > chunk:                 # too far from the end: go nearer, leaving checkpoints behind
            push (position, c) on checkpoints
            advance = some chunks of trips            # the binomial schedule, see `_advance`
            c = run the body `advance` times;  position += advance
        run the body to `end`, pushing residuals      # at most one chunk of them
        walk the chunk back
        end = position

This is treeverse (Griewank 1992; Griewank & Walther, "Algorithm 799: revolve", 2000) on chunks instead of trips: with s
checkpoints, C(s + r, r) chunks are walked back with each trip run again at most r times. The loop that is being
differentiated only counts its trips, so the schedule always knows how many there are, and between the forward run and
the backward one nothing is kept but the first carries. An online scheme (Wang, Moin & Iaccarino 2009) would save
the first of the runs again, at the price of checkpoints in the forward loop.

The trips run in the same order on the same values as if all residuals were saved, and the cotangents of captures are
passed from chunk to chunk, so the gradient is the same to the last bit. Each chunk is in a branch, whose own adjoint
runs it again. So higher derivatives save at most one set of carries and cotangents per chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, shapes
from runtime.autodiff.budget import Budget
from runtime.autodiff.residuals import Plan, stored, stored_type
from runtime.context import ctx
from runtime.graph.builder import emit_cond, emit_while, join_types, trace_region
from runtime.graph.ir import Node, Substitution, Value, copy_graph, copy_nodes
from runtime.graph.passes.rewrites.silence import has_unrepeatable_results, silenced
from runtime.ops import stack
from runtime.ops.dispatch import apply, call
from runtime.types import StackType, TensorType, TokenType, Type

COUNT = TensorType(dtypes.int64, ())
# The residuals of a chunk get 1 / _SHARE of the budget, and so do checkpoints. A growing buffer may be twice as large
# as its contents.
_SHARE = 4


class CantRunAgain(Exception):
    """Why a loop can't be differentiated from checkpoints."""


def shadow(node: Node) -> Node:
    """A copy of a loop, in no graph, whose body may be changed freely. It has the results of the loop."""
    regions = [copy_graph(r) for r in node.regions]
    copy = Node(node.op, node.inputs, dict(node.attrs), (), node.graph, regions, node.span)
    copy.outputs = list(node.outputs)
    return copy


class Replay:
    """The part of a loop's body that must run again for the adjoint.

    state   the carries that this part reads: what a checkpoint holds

    Raises CantRunAgain if running it again wouldn't give the same results, or isn't possible.
    """

    def __init__(self, loop: Node, plan: Plan) -> None:
        if plan.handles_stacks:
            raise CantRunAgain("a loop in its body keeps residuals of its own that can't be computed again")
        self.loop, self.body, self.plan = loop, loop.regions[1], plan
        count = loop.attrs["carries"]
        self.fixed = {i for i in range(count) if self.body.outputs[i] is self.body.inputs[i]}
        needed: set[int] = {*plan.counters, *plan.shifted}
        while True:
            reached = self._reached(needed)
            grown = needed | {i for i in range(count) if self.body.inputs[i] in reached} - self.fixed
            if grown == needed:
                break
            needed = grown
        self.state = sorted(needed)
        self.types = [self.body.inputs[i].type for i in self.state]
        if any(isinstance(v.type, StackType) for v in self.body.inputs):
            raise CantRunAgain("it handles the residuals of another loop")
        nodes = [n for n in self.body.nodes if any(v in reached for v in n.outputs)]
        for node in nodes:
            if has_unrepeatable_results(node):
                where = f" (line {node.span[1]} of {node.span[0]})" if node.span else ""
                raise CantRunAgain(
                    f"its gradient needs the result of '{node.op.name}'{where}, which can't be computed again"
                )
        self.nodes = silenced(nodes)
        self.used = [i for i, v in enumerate(self.body.inputs) if v in reached and i not in needed]

    def _reached(self, state: set[int]) -> set[Value]:
        reached = {*self.plan.saved, *[self.body.outputs[i] for i in state]}
        for node in reversed(self.body.nodes):
            if any(v in reached for v in node.outputs):
                reached.update(v for v in node.inputs if not isinstance(v.type, TokenType))
        return reached

    def step(self, state: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """One trip in the current builder: the next state, and what the adjoint saves of the trip."""
        builder, mapping = ctx.builder, Substitution()
        for index in self.used:
            mapping[self.body.inputs[index]] = builder.use(self.loop.inputs[index])
        for index, value in zip(self.state, state):
            mapping[self.body.inputs[index]] = builder.use(value)
        copy_nodes(self.nodes, builder.graph, mapping)
        following = [builder.tensor(mapping[self.body.outputs[i]]) for i in self.state]
        return following, [builder.tensor(mapping[v]) for v in self.plan.saved]

    def run(self, state: Sequence[Any], trips: Any, budget: Budget) -> list[Any]:
        """The state after `trips` more trips."""

        def trip(done: Any, *current: Any) -> list[Any]:
            return [done + 1, *self.step(current)[0]]

        return self._repeat("advance", trip, state, trips, {"memory": Budget(budget.bytes, strict=False)})

    def run_saving(self, state: Sequence[Any], trips: Any) -> tuple[list[Any], list[Any]]:
        """The state after `trips` more trips, and stacks of the residuals that the adjoint needs."""
        count = len(state)

        def trip(done: Any, *current: Any) -> list[Any]:
            following, saved = self.step(current[:count])
            kept = [stored(t, v.type) for t, v in zip(saved, self.plan.saved)]
            return [done + 1, *following, *[apply(stack.PUSH, pair) for pair in zip(current[count:], kept)]]

        empty = [stack.empty(stored_type(v.type), trips + 1) for v in self.plan.saved]
        results = self._repeat("chunk", trip, [*state, *empty], trips, {})
        return results[:count], results[count:]

    def _repeat(self, name: str, trip: Any, start: Sequence[Any], trips: Any, attrs: dict) -> list[Any]:
        types = [COUNT, *self.types, *[t.type for t in start[len(self.types) :]]]
        names: list[Any] = ["done", *[self.body.inputs[i].name for i in self.state], *["saved"] * (len(types) - 1)]
        test = trace_region("trips left", lambda done, *_: [done < trips], types)
        body = trace_region(name, trip, types, names[: len(types)])
        return emit_while(test, body, [_int(0), *start], attrs)[1:]


def walk_back_from_checkpoints(
    adjoint: Any, replay: Replay, budget: Budget, trips: Any, cotangents: Sequence[Any]
) -> list[Any]:
    """Cotangents of the active carries before the loop, and of its captures; in the current builder.

    adjoint   the adjoint of a trip, with `emit(start)` (`runtime.autodiff.loops`)
    trips     how many there were; cotangents: at the loop's end, of carries and captures
    """
    outer = ctx.builder
    first = [outer.tensor(outer.use(replay.loop.inputs[i])) for i in replay.state]
    chunk, slots = _sizes(replay, budget, trips, first)
    depth = len(first)

    def trip(end: Any, places: Any, *rest: Any) -> list[Any]:
        places, position = apply(stack.POP, [places])
        popped = [apply(stack.POP, [pile]) for pile in rest[:depth]]
        piles, state = [p for p, _ in popped], [v for _, v in popped]
        near = _go_near(replay, budget, end, chunk, slots, rest[-1], position, places, piles, state)
        position, places, used = near[:3]
        state, piles = near[3 : 3 + depth], near[3 + depth :]
        cotangents = _chunk(adjoint, replay, end - position, state, rest[depth:-1])
        return [position, places, *piles, *cotangents, used - 1]

    start = [trips, *_first_checkpoint(replay, trips, first), *cotangents, _int(1)]
    types = [t.type for t in start]
    while True:
        region = trace_region("chunks back", trip, types, _names("end", "places", rest=len(types) - 2))
        joined = [join_types(a, b) for a, b in zip(types, region.types)]
        if joined == types:
            break
        types = joined
    test = trace_region("trips left", lambda end, *_: [end > 0], types)
    return emit_while(test, region, start)[2 + depth : -1]


def _first_checkpoint(replay: Replay, trips: Any, first: Sequence[Any]) -> list[Any]:
    """Stacks that hold the first checkpoint. Stacks must be empty when their loop ends, so without trips they start
    empty."""

    def stacks() -> list[Any]:
        return [stack.empty(COUNT), *[stack.empty(_tensor_type(replay.body.inputs[i])) for i in replay.state]]

    def filled() -> list[Any]:
        return [apply(stack.PUSH, pair) for pair in zip(stacks(), [_int(0), *first])]

    return emit_cond(trips > 0, trace_region("first checkpoint", filled), trace_region("no trip", stacks))


def _go_near(
    replay: Replay, budget: Budget, end: Any, chunk: Any, slots: Any, used: Any,
    position: Any, places: Any, piles: Sequence[Any], state: Sequence[Any],
) -> list[Any]:  # fmt: skip
    """Runs on until at most one chunk is left before `end`, saving checkpoints on the way."""
    depth = len(state)

    def trip(position: Any, places: Any, used: Any, *rest: Any) -> list[Any]:
        state = rest[:depth]
        places = apply(stack.PUSH, [places, position])
        piles = [apply(stack.PUSH, pair) for pair in zip(rest[depth:], state)]
        chunks = (end - position + (chunk - 1)) // chunk
        trips = _advance(chunks, slots - used + 1) * chunk
        return [position + trips, places, used + 1, *replay.run(state, trips, budget), *piles]

    start = [position, places, used, *state, *piles]
    types: list[Type] = [COUNT, places.type, COUNT, *replay.types, *[p.type for p in piles]]
    test = trace_region("too far", lambda position, *_: [end - position > chunk], types)
    names = _names("position", "places", "used", rest=len(types) - 3)
    return emit_while(test, trace_region("checkpoint", trip, types, names), start)


def _advance(chunks: Any, slots: Any) -> Any:
    """How many of `chunks` chunks (two at least) to run before the next checkpoint.

    slots: how many checkpoints there may be from here on, including the current one.

    With b(s, r) = C(s + r, r) and r the least for which b(s, r) chunks suffice, an advance is best where the part
    after it needs no more than r runs with a checkpoint less, and the part before it no more than r - 1.
    """
    m, s = call("cast", chunks, dtype=dtypes.float64), call("cast", slots, dtype=dtypes.float64)

    def more(r: Any, before: Any, now: Any) -> list[Any]:
        return [r + 1.0, now, now * (s + r + 1.0) / (r + 1.0)]

    types = [TensorType(dtypes.float64, ())] * 3
    test = trace_region("too few", lambda r, before, now: [call("logical_and", now < m, s > 1.0)], types)
    r, before, now = emit_while(test, trace_region("runs", more, types), [_float(1.0), _float(1.0), s + 1.0])
    later = now * s / (s + r)  # b(s - 1, r)
    sooner = before * (r - 1.0) / (s + r - 1.0)  # b(s, r - 2)
    best = call("maximum", m - later, sooner)
    last = m - 1.0
    best = call("select", s > 1.0, best, last)
    return call("cast", call("maximum", call("minimum", best, last), _float(1.0)), dtype=dtypes.int64)


def _chunk(adjoint: Any, replay: Replay, trips: Any, state: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Walks back the `trips` trips that start from `state`. Returns the cotangents of the carries and captures."""
    plan = adjoint.plan

    def walk() -> list[Any]:
        after, stacks = replay.run_saving(state, trips)
        at = dict(zip(replay.state, after))
        start = [trips, *stacks, *[at[i] for i in plan.shifted], *cotangents]
        before = dict(zip(replay.state, state))
        return adjoint.emit(start, [before[i] for i in plan.counters])[-len(cotangents) :]

    return emit_cond(trips > 0, trace_region("walk back", walk), trace_region("nothing", lambda: list(cotangents)))


# --- sizes -----------------------------------------------------------------------------------------------------------


def _sizes(replay: Replay, budget: Budget, trips: Any, first: Sequence[Any]) -> tuple[Any, Any]:
    """How many trips' residuals fit into a chunk, and how many checkpoints there may be."""
    outer = ctx.builder
    # A list may be longer at the end of the loop.
    last = [outer.tensor(outer.use(replay.loop.outputs[i])) for i in replay.state]
    kept = [_larger(_bytes_of(a, t), _bytes_of(b, t)) for a, b, t in zip(first, last, replay.types)]
    saved = [_static_bytes(_tensor_type(v)) for v in replay.plan.saved]
    share = budget.bytes // _SHARE
    checkpoint = _sum([8, *kept])
    residuals = _sum(saved) if None not in saved else _measured(replay, trips, first)
    largest = _larger(checkpoint, residuals)
    if budget.strict and isinstance(largest, int) and largest > share:
        raise CantRunAgain(
            f"what one trip carries or saves takes {largest:,} bytes; gradient_memory must be at least "
            f"{_SHARE * largest:,} bytes, for checkpoints and residuals, and is {budget.bytes:,}"
        )
    message = (
        f"gradient_memory={budget.bytes:,} bytes is too little for this loop: it must be at least {_SHARE} times what "
        "one trip carries or saves"
    )

    def fitting(size: Any) -> Any:
        if isinstance(size, int):
            return _int(max(1, share // size))
        return apply(stack.ROOM, [_int(share), size], {"message": message if budget.strict else ""})

    return fitting(residuals), fitting(checkpoint)


def _measured(replay: Replay, trips: Any, first: Sequence[Any]) -> Any:
    """Bytes that the adjoint saves of a trip: of the first one, because shapes are only known when it has run."""

    def measure() -> list[Any]:
        saved = replay.step(first)[1]
        return [_tensor(_sum([_bytes_of(t, t.type) for t in saved]))]

    region = trace_region("bytes of a trip", measure)
    (found,) = emit_cond(trips > 0, region, trace_region("no trip", lambda: [_int(1)]))
    return call("maximum", found, _int(1))


def _bytes_of(tensor: Any, type_: Type) -> Any:
    """Bytes of a tensor: an int, or a tensor where its shape isn't known."""
    assert isinstance(type_, TensorType)
    known = _static_bytes(type_)
    if known is not None:
        return known
    return call("size", tensor, dtype=dtypes.int64) * _int(type_.dtype.size)


def _static_bytes(type_: TensorType) -> int | None:
    count = shapes.element_count(type_.shape)
    # An array's stack also keeps its dimensions.
    return None if count is None else count * type_.dtype.size + 8 * len(type_.shape or ())


def _larger(a: Any, b: Any) -> Any:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else call("maximum", _tensor(a), _tensor(b))


def _sum(sizes: Sequence[Any]) -> Any:
    known = sum(s for s in sizes if isinstance(s, int))
    total: Any = known
    for size in sizes:
        if not isinstance(size, int):
            total = size + (_int(total) if isinstance(total, int) else total)
    return total


def _names(*known: str, rest: int) -> list[Any]:
    return [*known, *[None] * rest]


def _tensor(size: Any) -> Any:
    return _int(size) if isinstance(size, int) else size


def _tensor_type(value: Value) -> TensorType:
    assert isinstance(value.type, TensorType)
    return value.type


def _int(value: int) -> Any:
    return ctx.builder.constant(np.int64(value))


def _float(value: float) -> Any:
    return ctx.builder.constant(np.float64(value))
