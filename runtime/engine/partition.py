"""Partitions a graph at the nodes that can't be compiled.

native          native              The top level is split into maximal runs of native nodes, in program order; the
py_function  →  interpreted         nodes between are interpreted. A loop that contains such a node is interpreted as
native          native              a whole (its inner loops may still be replaced by native code while it runs).
"""

from __future__ import annotations

import functools
import itertools
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

import numpy as np

from runtime.codegen.backends import graph_cache
from runtime.codegen.backends.call_stub import load
from runtime.codegen.backends.driver import counters
from runtime.codegen.kernel.source import KernelSource
from runtime.codegen.lower.lower_graph import is_native, lower
from runtime.engine import slowness
from runtime.engine.compile_cost import SEGMENT_LIMIT
from runtime.engine.run_splitting import split_run
from runtime.graph.interpreter import Accelerator, interpret
from runtime.graph.ir import Graph, Node, Substitution, Value, copy_nodes
from runtime.graph.passes.pipeline import rewrite
from runtime.graph.passes.rewrites.complex_parts import is_complex
from runtime.graph.passes.rewrites.repetition import is_constant
from runtime.profiling import span

Call = Callable[[Sequence[Any]], "list[Any]"]
Compilation = Generator["Call | None", None, "Call | None"]

# In a partitioned graph, nodes (without regions) with more operands are interpreted. A kernel unboxes each operand, and
# compiling that code for 500 operands takes a second.
_MOST_OPERANDS = 64
_FEW = 2  # nodes, such as a product alone: compiling them again costs little
# Equal parts of a graph for a GPU, such as updates of variables, up to which they are in one kernel instead of sharing
# one. Trades launches, of some 10 us each, against the time to compile. Estimated.
_FEW_LAUNCHES = 16
# More array operations than this are warned about: LLVM takes some 5 to 15 ms for each.
_LONG = 600


def compilation(
    graph: Graph, tier_up: Callable[[], Accelerator] | None, warned: set[str], whole: bool = False
) -> Compilation:
    """Returns a callable for the graph's inputs, with native code where possible; None if no part is native. It
    compiles kernel by kernel and yields after each except the last, so that the compiler can do other work. It yields a
    callable that uses the kernels so far, or None while a loop has none.

    tier_up: makes an accelerator for each run of an interpreted part. warned: see `Executable`. whole: as one kernel or
    not at all, for a running loop that waits for it. Raises NotNative or KernelError.
    """
    split = rewrite("complex parts", graph)
    if split is not None:
        with_complex = functools.partial(_with_complex, graph)
        return (yield from _adapted(compilation(split, tier_up, warned, whole), with_complex))
    if all(is_native(node) for node in graph.nodes) and (whole or _weight(graph.nodes) <= SEGMENT_LIMIT):
        source = _lowered(graph).hurried() if whole else _lowered(graph)
        call = load(source)
        graph_cache.store(graph, source)
        return call
    if whole:
        return None
    original = graph
    graph, given, steps = _steps(graph, tier_up)
    waiting = [step for step in steps if step.native]
    if not waiting:
        return None
    work = sum({step.form: step.operations() for step in waiting}.values())
    if work > _LONG:
        slowness.warn_of_length(original, work, warned)
    run = _Sequence(graph, steps)
    call = (lambda inputs: run([*inputs, *given])) if given else run
    made: dict[str, Call] = {}
    known: set[tuple] = set()  # forms of which a kernel was compiled
    while waiting:
        spent: dict[tuple, float] = dict.fromkeys((each.form for each in waiting), 0.0)
        for each in waiting:
            spent[each.form] += each.spent
        step = max(waiting, key=lambda each: _urgency(each, each.form in known, spent[each.form]))
        waiting.remove(step)
        known.add(step.form)
        is_new = step.compile(made)
        run.take(step)
        if is_new:
            yield None if any(each.has_loop for each in waiting) else call
    return call


def _urgency(step: _Step, is_known: bool, spent: float) -> tuple[bool, bool, float]:
    """What is compiled first: loops, since one that is already running has its own compilation, which doesn't know the
    copies in steps; then what probably has a kernel already; then what gains most. spent: seconds on all steps of the
    form, which a kernel will probably be shared by."""
    return step.has_loop, is_known, spent / len(step.part.nodes)


def _form(graph: Graph) -> tuple:
    """What graphs that may share a kernel have in common: it depends on which sizes are equal, not on the sizes."""
    numbers: dict[int | None, int | None] = {None: None, 0: 0, 1: 1}

    def described(type_: Any) -> tuple:
        shape = getattr(type_, "shape", None)
        sizes = None if shape is None else tuple([numbers.setdefault(size, len(numbers)) for size in shape])
        return getattr(type_, "dtype", None), sizes

    return (
        tuple([described(value.type) for value in graph.inputs]),
        tuple([(node.op.name, *[described(v.type) for v in node.outputs]) for node in graph.walk()]),
    )


def _adapted(work: Compilation, adapt: Callable[[Call], Call]) -> Compilation:
    """A compilation whose callables are adapted by a function."""
    while True:
        try:
            call = next(work)
        except StopIteration as end:
            return None if end.value is None else adapt(end.value)
        yield None if call is None else adapt(call)


def sequence(
    graph: Graph, native: Callable[[Graph], Call], interpreted: Callable[[Graph], Call], for_device: bool
) -> Call:
    """A callable for the graph's inputs, made from the callables for its native and its other parts."""
    split = rewrite("complex parts", graph)
    if split is not None:
        return _with_complex(graph, sequence(split, native, interpreted, for_device))
    if all(is_native(node, for_device) for node in graph.nodes) and _weight(graph.nodes) <= SEGMENT_LIMIT:
        return native(graph)
    graph, given, steps = _steps(graph, None, for_device)
    made: dict[str, Call] = {}
    for step in steps:
        if step.description not in made:
            made[step.description] = native(step.part) if step.native else interpreted(step.part)
        step.call = made[step.description]
    run = _Sequence(graph, steps)
    return (lambda inputs: run([*inputs, *given])) if given else run


def part_by_part(graph: Graph, cuts: Sequence[list[Node]], make: Callable[[int, Graph], Call]) -> Call:
    """A callable for the graph's inputs that runs parts one after the other.

    cuts: the nodes of each, without constants, in program order. make: makes a part's callable, given its number.
    """
    results = [n for n in graph.nodes if is_constant(n) and set(graph.outputs).intersection(n.outputs)]
    users = _users(graph)
    steps = [_Step(graph, False, nodes, users, None) for nodes in cuts]
    for number, step in enumerate(steps):
        step.call = make(number, step.part)
    if results:
        steps.insert(0, _Step(graph, False, results, users, None))
    return _Sequence(graph, steps)


def _lowered(graph: Graph) -> KernelSource:
    with span("compile", f"lower {graph.name}"):
        return lower(graph)


def parts(graph: Graph) -> list[tuple[bool, Graph]]:
    """The parts of the graph in the order in which they run, and whether each is native."""
    graph = rewrite("complex parts", graph) or graph
    if all(is_native(node) for node in graph.nodes) and _weight(graph.nodes) <= SEGMENT_LIMIT:
        return [(True, graph)]
    return [(step.native, step.part) for step in _steps(graph, None)[2]]


def _steps(
    graph: Graph, tier_up: Callable[[], Accelerator] | None, for_device: bool = False
) -> tuple[Graph, list[Any], list[_Step]]:
    """The graph, rewritten so that repetitions become equal; the values of the inputs that this adds; and its steps."""
    long = [nodes for native, nodes in _runs(graph, for_device) if native and _weight(nodes) > SEGMENT_LIMIT]
    same = rewrite("repetitions", graph, long)
    graph, given = same or (graph, [])
    users = _users(graph)
    steps = [_Step(graph, native, nodes, users, tier_up) for native, nodes in segments(graph, for_device)]

    def joined(group: Sequence[_Step]) -> _Step:
        if len(group) == 1:
            return group[0]
        return _Step(graph, True, [node for step in group for node in step.nodes], users, tier_up)

    return graph, given, list(map(joined, _neighbours(steps, _FEW_LAUNCHES if for_device else 1)))


def _neighbours(steps: Sequence[_Step], few: int) -> list[list[_Step]]:
    """The steps, where neighbours are one if no more than `few` could share their kernels, or if they are so short that
    sharing gains nothing: each kernel costs a call, and loop nests of several kernels can't be fused."""
    count = Counter(step.form for step in steps)
    joined: list[list[_Step]] = []
    is_open = False  # whether more may join the last group
    weight = 0  # of the last group
    for step in steps:
        may_join = step.native and (count[step.form] <= few or len(step.nodes) <= _FEW)
        more = _weight(step.nodes)
        if may_join and is_open and weight + more <= SEGMENT_LIMIT:
            joined[-1].append(step)
            weight += more
        else:
            joined.append([step])
            weight = more
        is_open = may_join
    return joined


def _with_complex(graph: Graph, call: Call) -> Call:
    """Wraps a callable over real and imaginary parts as one over complex numbers."""
    given = [is_complex(v.type) for v in graph.inputs]
    wanted = [v.dtype.np if is_complex(v.type) else None for v in graph.outputs]

    def run(inputs: Sequence[Any]) -> list[Any]:
        parts: list[Any] = []
        for value, split in zip(inputs, given):
            parts += [np.real(value), np.imag(value)] if split else [value]
        found = iter(call(parts))
        return [next(found) if dtype is None else _joined(next(found), next(found), dtype) for dtype in wanted]

    return run


def _joined(real: Any, imag: Any, dtype: np.dtype) -> Any:
    joined = np.empty(np.shape(real), dtype)
    joined.real, joined.imag = real, imag
    return joined if joined.ndim else joined[()]


def _weight(nodes: Sequence[Node]) -> int:
    return sum(1 + sum(_weight(region.nodes) for region in node.regions) for node in nodes)


def segments(graph: Graph, for_device: bool = False) -> list[tuple[bool, list[Node]]]:
    """The nodes in program order, split where nativeness changes, and into subgraphs where a run is too long."""
    returned = set(graph.outputs)
    cuts: list[tuple[bool, list[Node]]] = []
    for native, nodes in _runs(graph, for_device):
        too_long = native and _weight(nodes) > SEGMENT_LIMIT
        cuts += [(native, part) for part in (split_run(nodes, SEGMENT_LIMIT) if too_long else [nodes])]
    # Every segment has its own copies of the constants that it uses; constants that are results get a segment.
    results = [n for n in graph.nodes if is_constant(n) and returned.intersection(n.outputs)]
    return [*([(False, results)] if results else []), *cuts]


def _runs(graph: Graph, for_device: bool) -> list[tuple[bool, list[Node]]]:
    """The nodes without constants, split where nativeness changes."""
    return runs(graph, lambda node: not _has_too_many_operands(node) and is_native(node, for_device))


def runs(graph: Graph, key: Callable[[Node], Any]) -> list[tuple[Any, list[Node]]]:
    """The nodes without constants in program order, split where what `key` gives changes; each part with its key."""
    nodes = (node for node in graph.nodes if not is_constant(node))
    return [(found, list(group)) for found, group in itertools.groupby(nodes, key)]


def _has_too_many_operands(node: Node) -> bool:
    return not node.regions and len(node.inputs) > _MOST_OPERANDS


def why_left_out(node: Node) -> str:
    """Why a node that could be compiled is interpreted in a partitioned graph."""
    if _has_too_many_operands(node):
        return f"its {len(node.inputs)} operands would each be taken from Python"
    return "it is between operations that can't be compiled"


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
        self.nodes = nodes
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
        self.has_loop = any(node.regions for node in self.part.nodes)
        self.spent = 0.0  # seconds on the interpreter
        self._tier_up = tier_up
        self.call: Call = self._interpret
        if all(map(is_constant, nodes)):
            values = interpret(self.part, [])
            self.call = lambda inputs: values

    @functools.cached_property
    def form(self) -> tuple:
        """A key that is equal for steps whose parts may share a kernel."""
        return _form(self.part)

    @functools.cached_property
    def described(self) -> str | None:
        """The part's description in the cache, if it has one."""
        return graph_cache.description(self.part)

    @functools.cached_property
    def description(self) -> str:
        """What tells the part from others: equal parts share a kernel. A part without description equals no other."""
        return self.described or str(id(self))

    def _interpret(self, inputs: Sequence[Any]) -> list[Any]:
        start = time.perf_counter()
        try:
            return interpret(self.part, inputs, self._tier_up() if self._tier_up is not None else None)
        finally:
            self.spent += time.perf_counter() - start

    def operations(self) -> int:
        """The number of array operations. (Scalar ones take a thirtieth of the compile time.)"""
        return sum(
            any(getattr(v.type, "rank", 1) != 0 for v in (*node.inputs, *node.outputs))
            for node in self.part.walk()
            if not is_constant(node)
        )

    def compile(self, made: dict[str, Call]) -> bool:
        """Compiles a native step unless an equal one was compiled. Returns whether it did."""
        if not self.native:
            return False
        call = made.get(self.description)
        if call is not None:
            self.call = call
            counters.shared += 1
            return False
        self.call = made[self.description] = self._found() or self._compiled()
        return True

    def _found(self) -> Call | None:
        """The part's kernel from the cache."""
        found = None if self.described is None else graph_cache.lookup(self.part, self.described)
        return None if found is None else found.load(self.part)

    def _compiled(self) -> Call:
        source = _lowered(self.part)
        call = load(source)
        if self.described is not None:
            graph_cache.store(self.part, source, self.described)
        return call


class _Sequence:
    """Runs the steps, by Python code that is made for them, since a loop over lists takes longer than small kernels:

        def run(inputs):
            v0, v1, = inputs
            v2, = calls[0]([v0, v1])
            v0 = None
            v3, = calls[1]([v1, v2])
            v1 = v2 = None
            return [v3]

    Values are kept until their last use.
    """

    def __init__(self, graph: Graph, steps: Sequence[_Step]) -> None:
        names: dict[Value, str] = {}
        for value in (*graph.inputs, *(value for step in steps for value in step.outputs)):
            names[value] = f"v{len(names)}"
        last_use = {value: number for number, step in enumerate(steps) for value in step.inputs}
        ends: dict[int, list[str]] = {}  # the values whose last use a step is
        kept = set(graph.outputs)
        for value, number in last_use.items():
            if value not in kept:
                ends.setdefault(number, []).append(names[value])
        lines = [f"{_targets(names[value] for value in graph.inputs)}inputs"]
        for number, step in enumerate(steps):
            sources = ", ".join(names[value] for value in step.inputs)
            lines.append(f"{_targets(names[value] for value in step.outputs)}calls[{number}]([{sources}])")
            if number in ends:
                lines.append(" = ".join([*ends[number], "None"]))
        lines.append(f"return [{', '.join(names[value] for value in graph.outputs)}]")
        text = "\n    ".join(["def run(inputs):", *lines])
        self._index = {step: number for number, step in enumerate(steps)}
        self._calls = [step.call for step in steps]
        space: dict[str, Any] = {"calls": self._calls}
        exec(compile(text, f"{__file__}: steps of {graph.name}", "exec"), space)
        self._count = len(graph.inputs)
        self._run: Call = space.pop("run")  # which refers to `space`

    def take(self, step: _Step) -> None:
        """Switches to the step's current callable. (Other threads may be running.)"""
        self._calls[self._index[step]] = step.call

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """Order tokens, which have no value and come last, may be left out."""
        missing = self._count - len(inputs)
        return self._run([*inputs, *[None] * missing] if missing else inputs)


def _targets(names: Iterable[str]) -> str:
    """Python text that unpacks a list into these names; empty if there are none."""
    found = "".join(f"{name}, " for name in names)
    return f"{found}= " if found else ""
