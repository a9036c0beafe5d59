"""`tape.stop_recording()` in a traced function.

A tape sees a staged loop or branch as one node, when it ends. So that the node's gradient leaves out what was paused,
each op of the block takes its operands through `unrecorded`, an identity to everything but the walk of that tape:

    with tape.stop_recording():
        c = s * v                         c = multiply(unrecorded(s), unrecorded(v))
    s = s + c * v                         s = s + c * v

Choices, loops and lists are no ops in Python, so they pass on what the tape has recorded. Outside of blocks the tape
just doesn't record what it would see, which other tapes do.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from runtime import errors
from runtime.autodiff.calls import is_differentiable
from runtime.context import PassiveRecorder, ctx
from runtime.graph.ir import Graph, Node, Value
from runtime.ops.rules import infer_same
from runtime.ops.table import OpDef, Sample, register
from runtime.types import TensorType


def _grad_unrecorded(op: Any, dy: Any) -> Sequence[Any]:
    return (None if op.attrs["tape"] == ctx.walking else dy,)


UNRECORDED = register(
    OpDef(
        "unrecorded", infer_same, lambda x, tape: x, grad=_grad_unrecorded, cheap=True, is_move=True, can_fail=False,
        is_view=True, cost=0, keeps_order=True, label="Identity",
        doc="The same values; the gradients of the tape with this number are cut off.",
        samples=(Sample(((2, 3),), {"tape": 0}), Sample(((),), {"tape": 0})),
    )
)  # fmt: skip

_numbers = itertools.count(1)


def next_number() -> int:
    """A number for a tape, its own in this process."""
    return next(_numbers)


class Pause(PassiveRecorder):
    """Sees each op that is added to the graph of a block or of blocks in it, as a tape does, and cuts its operands
    off."""

    def __init__(self, builder: Any, own: Any, number: int) -> None:
        """builder: the one that is paused in; own: the tape's; number: the tape's."""
        self._outer = builder
        self._own = own
        self._number = number
        self._seen: set[Graph] = set()  # the graphs whose ops it has seen

    @property
    def builder(self) -> Any:
        return ctx.builder if is_inside(ctx.builder, self._outer) else self._outer

    def record(self, op: Any, inputs: tuple, attrs: dict, outputs: tuple) -> None:
        if ctx.moving_items:
            return
        for node in {id(t.value.node): t.value.node for t in outputs if t is not None}.values():
            self._seen.add(node.graph)
            if node.graph is self._own.graph or self.is_transparent(node):
                continue
            for index, value in enumerate(node.inputs):
                if isinstance(value.type, TensorType) and is_differentiable(value.type):
                    node.inputs[index] = self._cut(node, value)

    def is_transparent(self, node: Node) -> bool:
        """Whether the tape sees what goes through a node: a choice or loop whose operations this has seen."""
        if ctx.moving_items:
            return True
        return node.op.name in ("cond", "while") and all(not r.nodes or r in self._seen for r in node.regions)

    def _cut(self, node: Node, value: Value) -> Value:
        graph = node.graph
        made = Node(UNRECORDED, [value], {"tape": self._number}, [value.type], graph, (), node.span)
        made.device = node.device
        place = next(i for i in range(len(graph.nodes) - 1, -1, -1) if graph.nodes[i] is node)
        graph.nodes.insert(place, made)
        return made.outputs[0]


def is_inside(builder: Any, outer: Any) -> bool:
    """Whether a builder is that of a block in the region of another one."""
    while builder is not None and builder is not outer:
        builder = builder.parent
    return builder is not None


def need_outer(tensor: Any, builder: Any, outer: Any) -> None:
    """Raises an error if a block of a builder has made a tensor that is to be watched."""
    while builder is not outer:
        if tensor.value.graph is builder.graph:
            refuse("watch() of a tensor that the staged loop or branch changes or makes", "watch it before, or after")
        builder = builder.parent


def refuse(cause: str, fix: str) -> None:
    """Raises the error for what a tape can't do in a staged block, which ends the trace."""
    error = errors.UnimplementedError(f"{cause}; {fix}.")
    errors.keep_refusal(error)
    raise error
