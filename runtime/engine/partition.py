"""Partitions a graph at the nodes that can't be compiled.

native          native              The top level is split into maximal runs of native nodes, in program order; the
py_function  →  interpreted         nodes between are interpreted. A loop that contains such a node is interpreted as
native          native              a whole (its inner loops may still be replaced by native code while it runs).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from runtime.codegen.backends import graph_cache
from runtime.codegen.backends.call_stub import load
from runtime.codegen.backends.driver import afterwards, counters
from runtime.codegen.lower.lower_graph import is_native, lower
from runtime.engine import failures
from runtime.engine.run_splitting import split_run
from runtime.graph.interpreter import Accelerator, interpret
from runtime.graph.ir import Graph, Node, Substitution, Value, copy_nodes
from runtime.graph.passes.complex_parts import is_complex
from runtime.graph.passes.pipeline import rewrite
from runtime.graph.passes.repetition import is_constant

Call = Callable[[Sequence[Any]], "list[Any]"]
Compilation = Generator[None, None, "Call | None"]

# The most nodes in one kernel; a longer straight run is split into subgraphs that share kernels (run_splitting.py). A
# call costs about a microsecond, compiling a loop nest some 10 ms, and more in a longer kernel.
SEGMENT_LIMIT = 100
# In a partitioned graph, nodes (without regions) with more operands are interpreted: a kernel unboxes each operand, and
# compiling that for five hundred takes a second.
_MOST_OPERANDS = 64
# More array operations than this are warned about: LLVM takes some 5 to 15 ms for each.
_LONG = 600


def compilation(
    graph: Graph, tier_up: Callable[[], Accelerator] | None, told: set[str], whole: bool = False
) -> Compilation:
    """A callable for the graph's inputs, with native code where possible; None if no part is native. It is compiled
    kernel by kernel: it yields after each except the last, so that the compiler can do other work.

    tier_up: makes an accelerator for each run of an interpreted part. told: see `Executable`. whole: as one kernel or
    not at all, for a running loop that waits for it. Raises NotNative or KernelError.
    """
    split = rewrite("complex parts", graph)
    if split is not None:
        call = yield from compilation(split, tier_up, told, whole)
        return None if call is None else _with_complex(graph, call)
    if all(is_native(node) for node in graph.nodes) and (whole or _weight(graph.nodes) <= SEGMENT_LIMIT):
        source = lower(graph).hurried() if whole else lower(graph)
        call = load(source)
        afterwards(lambda: graph_cache.store(graph, source))
        return call
    if whole:
        return None
    original = graph
    graph, given, steps = _steps(graph, tier_up)
    if not any(step.native for step in steps):
        return None
    work = sum({step.description: step.operations() for step in steps if step.native}.values())
    if work > _LONG:
        failures.warn_of_length(original, work, told)
    made: dict[str, Call] = {}
    for step in steps:
        if step.compile(made):
            yield
    run = _Sequence(graph, steps)
    return (lambda inputs: run([*inputs, *given])) if given else run


def parts(graph: Graph) -> list[tuple[bool, Graph]]:
    """The parts of the graph in the order in which they run, and whether each is native."""
    graph = rewrite("complex parts", graph) or graph
    if all(is_native(node) for node in graph.nodes) and _weight(graph.nodes) <= SEGMENT_LIMIT:
        return [(True, graph)]
    return [(step.native, step.part) for step in _steps(graph, None)[2]]


def _steps(graph: Graph, tier_up: Callable[[], Accelerator] | None) -> tuple[Graph, list[Any], list[_Step]]:
    """The graph, rewritten so that repetitions are equal, values for the inputs that this adds, and its steps."""
    long = [nodes for native, nodes in _runs(graph) if native and _weight(nodes) > SEGMENT_LIMIT]
    same = rewrite("repetitions", graph, long)
    graph, given = same or (graph, [])
    users = _users(graph)
    return graph, given, [_Step(graph, native, nodes, users, tier_up) for native, nodes in segments(graph)]


def _with_complex(graph: Graph, call: Call) -> Call:
    """Wraps a callable over real and imaginary parts as one over complex numbers."""
    given = [is_complex(v.type) for v in graph.inputs]
    wanted = [v.dtype.np if is_complex(v.type) else None for v in graph.outputs]

    def run(inputs: Sequence[Any]) -> list[Any]:
        parts: list[Any] = []
        for value, split in zip(inputs, given):
            parts += [value.real, value.imag] if split else [value]
        found = iter(call(parts))
        return [next(found) if dtype is None else _joined(next(found), next(found), dtype) for dtype in wanted]

    return run


def _joined(real: Any, imag: Any, dtype: np.dtype) -> Any:
    joined = np.empty(np.shape(real), dtype)
    joined.real, joined.imag = real, imag
    return joined if joined.ndim else joined[()]


def _weight(nodes: Sequence[Node]) -> int:
    return sum(1 + sum(_weight(region.nodes) for region in node.regions) for node in nodes)


def segments(graph: Graph) -> list[tuple[bool, list[Node]]]:
    """The nodes in program order, split where nativeness changes, and into subgraphs where a run is too long."""
    returned = set(graph.outputs)
    cuts: list[tuple[bool, list[Node]]] = []
    for native, nodes in _runs(graph):
        too_long = native and _weight(nodes) > SEGMENT_LIMIT
        cuts += [(native, part) for part in (split_run(nodes, SEGMENT_LIMIT) if too_long else [nodes])]
    # Every segment has its own copies of the constants that it uses; constants that are results get a segment.
    results = [n for n in graph.nodes if is_constant(n) and returned.intersection(n.outputs)]
    return [*([(False, results)] if results else []), *cuts]


def _runs(graph: Graph) -> list[tuple[bool, list[Node]]]:
    """The nodes without constants, split where nativeness changes."""
    runs: list[tuple[bool, list[Node]]] = []
    for node in graph.nodes:
        if is_constant(node):
            continue
        native = not _has_too_many_operands(node) and is_native(node)
        if not runs or runs[-1][0] != native:
            runs.append((native, []))
        runs[-1][1].append(node)
    return runs


def _has_too_many_operands(node: Node) -> bool:
    return not node.regions and len(node.inputs) > _MOST_OPERANDS


def why_left_out(node: Node) -> str:
    """Why a node that could be compiled is interpreted in a partitioned graph."""
    if _has_too_many_operands(node):
        return f"its {len(node.inputs)} operands would each be taken from Python"
    return "it stands between operations without native form"


def _users(graph: Graph) -> dict[Value, set[Node]]:
    users: dict[Value, set[Node]] = {}
    for node in graph.nodes:
        for value in node.inputs:
            users.setdefault(value, set()).add(node)
    return users


class _Step:
    """One segment as a graph: its inputs are its live-ins, its outputs its live-outs."""

    def __init__(
        self,
        graph: Graph,
        native: bool,
        nodes: list[Node],
        users: dict[Value, set[Node]],
        tier_up: Callable[[], Accelerator] | None,
    ) -> None:
        self.native = native
        own = set(nodes)
        made = dict.fromkeys(v for node in nodes for v in node.outputs)
        used = dict.fromkeys(v for n in nodes for v in n.inputs if v not in made)
        constants = [v.node for v in used if v.node is not None and is_constant(v.node)]
        self.inputs: list[Value] = [v for v in used if v.node is None or not is_constant(v.node)]
        last = set(graph.outputs)
        self.outputs: list[Value] = [v for v in made if v in last or users.get(v, own) - own]
        self.part = Graph(graph.name)
        mapping = Substitution()
        for value in self.inputs:
            mapping[value] = self.part.add_input(value.type)
        copy_nodes([*constants, *nodes], self.part, mapping)
        for node in self.part.nodes:
            for value in node.outputs:
                value.name = None
        self.part.outputs = [mapping[v] for v in self.outputs]
        # Equal parts share a kernel; a part without a description equals no other.
        self.description = graph_cache.description(self.part) or str(id(self))
        self.call: Call = lambda inputs: interpret(self.part, inputs, tier_up() if tier_up is not None else None)

    def operations(self) -> int:
        """The number of array operations. (Scalar ones take a thirtieth of the compile time.)"""
        return sum(
            any(getattr(v.type, "rank", 1) != 0 for v in (*node.inputs, *node.outputs))
            for node in self.part.walk()
            if not is_constant(node)
        )

    def compile(self, made: dict[str, Call]) -> bool:
        """Compiles a native step unless an equal one was compiled; whether it did."""
        if not self.native:
            return False
        call = made.get(self.description)
        if call is not None:
            self.call = call
            counters.shared += 1
            return False
        self.call = made[self.description] = load(lower(self.part))
        return True


class _Sequence:
    """Runs the steps; values are kept in numbered slots until their last use."""

    def __init__(self, graph: Graph, steps: Sequence[_Step]) -> None:
        slot: dict[Value, int] = {value: index for index, value in enumerate(graph.inputs)}
        for step in steps:
            for value in step.outputs:
                slot[value] = len(slot)
        last_use = {slot[v]: index for index, step in enumerate(steps) for v in step.inputs}
        self.size = len(slot)
        self.outputs = [slot[v] for v in graph.outputs]
        keep = set(self.outputs)
        self.steps = [
            (
                step.call,
                [slot[v] for v in step.inputs],
                [slot[v] for v in step.outputs],
                [s for s, at in last_use.items() if at == index and s not in keep],
            )
            for index, step in enumerate(steps)
        ]

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        slots: list[Any] = [None] * self.size
        slots[: len(inputs)] = inputs
        for call, sources, targets, dead in self.steps:
            for target, value in zip(targets, call([slots[s] for s in sources])):
                slots[target] = value
            for s in dead:
                slots[s] = None
        return [slots[s] for s in self.outputs]
