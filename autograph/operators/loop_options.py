"""``set_loop_options``: what the body of a staged loop says about the loop it is in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from autograph.errors import StagingError, user_location
from runtime.autodiff.budget import Budget, as_budget
from runtime.context import ctx
from runtime.graph.builder import Builder
from runtime.graph.ir import Graph, Node, Substitution, Value, copy_nodes
from runtime.tensor import SymbolicTensor
from runtime.thread_state import propagated


class Options:
    """The options of one loop, as the last trace of its body has set them.

    limit     most iterations, or None
    shapes    pairs of a tensor that the loop carries and its shape in all iterations
    memory    what its gradient may keep, or None
    """

    def __init__(self) -> None:
        self.limit: Any = None
        self.shapes: Sequence[tuple[Any, Any]] = ()
        self.memory: Budget | None = None


class _Loops(threading.local):
    def __init__(self) -> None:
        self.open: list[Options] = []


_loops = propagated(_Loops())


@contextmanager
def options_of(options: Options) -> Iterator[None]:
    """Makes `set_loop_options` speak of one loop while its body is traced."""
    _loops.open.append(options)
    try:
        yield
    finally:
        _loops.open.pop()


def set_loop_options(
    parallel_iterations: Any = None,
    swap_memory: Any = None,
    maximum_iterations: Any = None,
    shape_invariants: Sequence[tuple[Any, Any]] | None = None,
    gradient_memory: int | None = None,
) -> None:
    """Sets options of the innermost staged loop around the call; in a loop that Python runs, it has no effect.

    Call it first in the loop's body, as in TensorFlow.

    maximum_iterations: an int or scalar int tensor; the loop ends after that many iterations at the latest. It is
        computed once, before the loop, from the values of variables there.
    shape_invariants: pairs of a tensor that the loop changes and a shape that holds in all iterations. Rarely needed,
        because changing shapes become unknown automatically.
    gradient_memory: how many bytes the loop's gradient may keep. If the values of all iterations don't fit, parts of
        the loop run again, from checkpoints; results are the same to the last bit.
    parallel_iterations, swap_memory: accepted and without effect; loops run natively, one iteration after the other.
    """
    if _loops.open:
        options = _loops.open[-1]
        if maximum_iterations is not None:
            options.limit = maximum_iterations
        if shape_invariants is not None:
            options.shapes = tuple(shape_invariants)
        if gradient_memory is not None:
            options.memory = as_budget(gradient_memory)


def before_loop(limit: Any, body: Builder, starts: Mapping[Value, Callable[[], Any]]) -> Any:
    """What a tensor that a loop's body computed is before the loop, as a tensor of the code around the loop.

    starts: for the body's values of the loop's variables, what gives them as they are before the loop.
    Raises StagingError if that isn't a matter of values alone: for random numbers, and in a branch of the body.
    """
    if type(limit) is not SymbolicTensor or limit.builder is ctx.builder:
        return limit
    captured = {own: outer for outer, own in body.captured.items()}
    keys = {own: key for key, own in body.state_inputs.items()}
    outside: dict[Value, Any] = {}
    needed: dict[Node, None] = {}
    pending = [limit.value]
    while pending:
        value = pending.pop()
        if value in captured:
            outside[value] = captured[value]
        elif value in starts:
            outside[value] = starts[value]()
        elif value in keys:
            outside[value] = ctx.builder.read_state(keys[value])
        elif value.node is None or value.graph is not body.graph or value.node.op.effect:
            raise StagingError(
                "maximum_iterations of a loop depends on values that its body computes",
                location=user_location(),
                cause="the limit is computed once, before the loop",
                fix="call set_loop_options first in the loop's body, with a number that is computed before the loop",
            )
        elif value.node not in needed:
            needed[value.node] = None
            pending += value.node.inputs
    graph = Graph("limit")
    mapping = Substitution((own, graph.add_input(own.type)) for own in outside)
    copy_nodes([node for node in body.graph.nodes if node in needed], graph, mapping)
    graph.outputs = [mapping[limit.value]]
    return ctx.builder.tensor(ctx.builder.inline(graph, list(outside.values()))[0])
