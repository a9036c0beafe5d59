"""A graph on several devices, as the `to_device` nodes in it say: its parts run one after the other, each on one.

Work follows its operands, as it does eagerly: a node runs on the GPU of its first operand that is on one. What has no
such operand runs on the CPU if `to_device` has put one there; else where its result goes, or on the default device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime import device as devices
from runtime.engine.executable import Executable
from runtime.engine.partition import part_by_part, runs
from runtime.engine.placed_graph import PlacedGraph, on_host
from runtime.gpu.memory import LogicalGPU
from runtime.graph.ir import Graph, Node, Value
from runtime.types import TokenType

Call = Callable[[Sequence[Any]], "list[Any]"]


class GraphAcrossDevices:
    """A graph compiled for the devices that it names. It is called with the values of its inputs.

    places   where its inputs are: GPUs; None: on the CPU
    default  where nodes run of which nothing else is known
    """

    def __init__(
        self, graph: Graph, places: Sequence[LogicalGPU | None], default: LogicalGPU | None, jit_compile: bool | None
    ) -> None:
        self.graph = graph
        self._jit_compile = jit_compile
        self._placed: list[PlacedGraph] = []
        self._cuts: list[tuple[LogicalGPU | None, list[Node]]] = runs(
            graph, _places(graph, places, default).__getitem__
        )
        self._call: Call | None = None

    @property
    def is_on_cpu(self) -> bool:
        """Whether all of it runs on the CPU."""
        return all(place is None for place, _ in self._cuts)

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Raises as `PlacedGraph` does."""
        return (self._call or self.prepare())(values)

    def prepare(self) -> Call:
        """Compiles the parts for GPUs."""
        if self._call is None:
            self._call = part_by_part(self.graph, [nodes for _, nodes in self._cuts], self._part)
        return self._call

    def _part(self, number: int, part: Graph) -> Call:
        place = self._cuts[number][0]
        if place is None:
            run = Executable(part, self._jit_compile)
            return lambda values: run([on_host(value) for value in values])
        placed = PlacedGraph(part, place)
        placed.prepare()
        self._placed.append(placed)
        return placed

    def lines(self) -> list[str]:
        """For `explain`."""
        count = sum(place is None for place, _ in self._cuts)
        also = [f"on the CPU: {count} of the function's {len(self._cuts)} parts"] if count else []
        return [*also, *(line for placed in self._placed for line in placed.lines())]


_ON_CPU = "CPU"  # where `to_device` has put something


def _places(
    graph: Graph, places: Sequence[LogicalGPU | None], default: LogicalGPU | None
) -> dict[Node, LogicalGPU | None]:
    """Where each node runs."""
    known: dict[Value, Any] = {value: place for value, place in zip(graph.inputs, places) if place is not None}
    found: dict[Node, Any] = {}
    for node in graph.nodes:
        if node.op.is_copy_to_device:
            place: Any = devices.gpu_named(node.attrs["device"]) or _ON_CPU
        else:
            # Stacks, which aren't copied, come first.
            there = [known[v] for v in sorted(node.inputs, key=lambda v: v.is_tensor) if v in known]
            place = next((each for each in there if each is not _ON_CPU), there[0] if there else None)
        if place is not None:
            found[node] = place
            known.update(dict.fromkeys((v for v in node.outputs if not isinstance(v.type, TokenType)), place))
    # What is known of no operand follows its users: the last ones first, so that these are known.
    users: dict[Node, Any] = {}
    for node in reversed(graph.nodes):
        place = found.setdefault(node, users.get(node, default))
        for value in node.inputs:
            if value.node is not None and value.is_tensor:
                users[value.node] = place
    return {node: None if place is _ON_CPU else place for node, place in found.items()}
