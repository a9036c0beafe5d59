"""How a graph runs, as data: its loops, its kernels and the nodes fused in them, the interpreted operations and the
reasons.

    Report ─┬─ Loop     a line of user code: staged as one `while`, or unrolled while tracing
            ├─ Kernel ── Nest    nodes that share one pass over memory, or one operation with its own kernel code
            └─ Stay     operations that the interpreter runs, and the reason

A report runs and compiles nothing, unless times are requested: it shows what the next call would do. Bytes count each
array that a nest reads or writes once; operations count an op as one per element.
"""

from __future__ import annotations

import math
import os
from collections.abc import Container, Iterator, Sequence
from dataclasses import field
from typing import Any

from runtime.codegen.backends import graph_cache, llvm_backend
from runtime.codegen.backends.driver import Record, record_of
from runtime.codegen.kernel.call_outs import CATEGORY as CALL_OUT
from runtime.codegen.kernel.source import KernelSource, NotNative
from runtime.codegen.lower.lower_graph import lower, why_interpreted
from runtime.codegen.lower.state import calls_out
from runtime.codegen.passes import parallelize
from runtime.context import ctx
from runtime.dataclass import dataclass
from runtime.device import gpu_named, parse
from runtime.engine import settings
from runtime.engine.executable import Executable
from runtime.engine.on_stack_replacement import LOOP
from runtime.engine.partition import parts, why_left_out
from runtime.engine.slowness import why_loop_is_interpreted
from runtime.engine.timeline import Phase
from runtime.errors import place
from runtime.graph.ir import Graph, Node, Value
from runtime.graph.passes.rewrites.complex_parts import in_parts
from runtime.graph.unrolled import unrolled_in
from runtime.profiling import Profile
from runtime.types import StackType, TensorType

Span = tuple[str, int, str]


@dataclass
class Loop:
    """span: the user's line. trips: the total for an unrolled loop; None: staged. operations: in its body, or left in
    the graph. times: how often an unrolled loop ran. interpreted: why the interpreter runs a staged one, and the line
    that causes it; None: it is native. seconds: of interpreting it in a call, where that was measured."""

    span: Span | None
    trips: int | None
    operations: int
    times: int = 1
    interpreted: tuple[str, Span | None] | None = None
    seconds: float | None = None


@dataclass
class Nest:
    """Operations that run as one. moved, operations: bytes and operations each time; None where a size is known only at
    run time (then `per_element` has them per element). loop: the line of the staged loop around it."""

    names: list[str]
    spans: list[Span]
    shape: tuple[int | None, ...]
    moved: int | None
    operations: int | None
    per_element: tuple[int, int]
    threads: int
    loop: Span | None
    joined: bool = False  # shares the loop over its rows with the nest before it
    fused: bool = True


@dataclass
class Kernel:
    """One native function. record: how it came into this process; None: it hasn't been requested yet."""

    name: str
    nests: list[Nest]
    scalars: int  # operations on single numbers
    small: int  # operations on tensors of few elements, which are variables
    record: Record | None
    source: KernelSource
    lanes: list[int] = field(default_factory=list)  # for each vectorized outer loop, how many trips run at once
    times: int = 1  # runs per call: equal parts of a graph share the kernel
    seconds: float | None = None  # of one run, where that was measured

    @property
    def intensity(self) -> float | None:
        """Operations per byte of one run; None where a size or a number of trips is known only at run time."""
        if any(nest.loop is not None or nest.moved is None for nest in self.nests):
            return None
        moved, operations = self.moved, self.operations
        return operations / moved if moved and operations else None

    @property
    def rate(self) -> float | None:
        """Operations per second, where that was measured and they are known."""
        return self.operations / self.times / self.seconds if self.seconds and self.intensity else None

    @property
    def moved(self) -> int:
        """Bytes of the nests outside staged loops, as far as they are known."""
        return self.times * sum(nest.moved or 0 for nest in self.nests if nest.loop is None)

    @property
    def operations(self) -> int:
        return self.times * sum(nest.operations or 0 for nest in self.nests if nest.loop is None)


@dataclass
class Stay:
    """Operations that stay on the interpreter for one reason. called: by native code around them, `calls` times in a
    call of the program, which took `seconds`, where that was measured."""

    reason: str
    names: list[str]
    spans: list[Span]
    called: bool = False
    calls: int = 0
    seconds: float | None = None


@dataclass
class Section:
    """One graph: the function's own, or that of its gradient."""

    title: str
    tier: str
    loops: list[Loop]
    kernels: list[Kernel] = field(default_factory=list)
    stays: list[Stay] = field(default_factory=list)
    seconds: float | None = None  # of one call, where that was measured
    unmeasured: str | None = None
    calls: str | None = None  # what runs them, once that is decided
    places: list[str] = field(default_factory=list)  # how it runs on GPUs, or why it doesn't


@dataclass
class Report:
    """Everything that `f.explain` shows."""

    name: str
    signature: str
    sections: list[Section]
    phases: list[Phase] = field(default_factory=list)  # the recorded phases: tracing, compiling, a call


def explain(title: str, executable: Executable, traced: Graph) -> Section:
    """The section of one executable; `traced` is the graph before passes."""
    graph = executable.graph
    section = Section(title, _tier(executable), list(_loops(graph, traced)))
    section.places = [line for placed in executable.placed.values() for line in placed.lines()]
    if ctx.device is not None and parse(ctx.device)[0] != "CPU" and gpu_named(ctx.device) is None:
        section.places.append(f"on the CPU: {ctx.device} was requested, but this machine doesn't have it")
    shared: dict[str, Kernel] = {}
    for native, part in parts(graph):
        key = graph_cache.description(part) if native else None
        if key is not None and key in shared:
            shared[key].times += 1
            continue
        try:
            kernel = _kernel(part) if native else None
        except NotNative:  # the lowering of an op doesn't support these operands
            kernel = None
        except Exception as error:  # a bug in this project: calls warn about it, and the whole graph is interpreted
            if os.environ.get("AUTOGRAPH_STRICT") == "1":
                raise
            nodes = [node for node in part.nodes if node.op.name != "constant"]
            reason = f"its native code could not be made: {error}"
            section.stays.append(Stay(reason, [node.op.name for node in nodes], _spans(nodes)))
            continue
        if kernel is not None:
            section.kernels.append(kernel)
            _note_calls(part, section.stays)
            if key is not None:
                shared[key] = kernel
        else:
            note_stays(part, section.stays)
    return section


def _whiles(graph: Graph) -> list[Node]:
    return [node for node in graph.walk() if node.op.name == "while"]


def _tier(executable: Executable) -> str:
    mode = settings.jit_mode(executable.jit_compile)
    if executable.is_native:
        return "native"
    if executable.failure is not None:
        return f"interpreter, because the compiler failed: {executable.failure.partition(chr(10))[0]}"
    if executable.settled is not None:
        return "interpreter: nothing in it can be compiled"
    if mode is False:
        return "interpreter (jit_compile=False)"
    return "native before the first run" if mode else "interpreter, until native code is ready"


def _loops(graph: Graph, traced: Graph) -> Iterator[Loop]:
    for node, compiled in zip(_whiles(graph), _whiles(in_parts(graph) or graph)):
        count = sum(1 for inner in node.regions[1].walk() if inner.op.name != "constant")
        why = why_loop_is_interpreted(compiled)
        yield Loop(node.span, None, count, interpreted=None if why is None else (why[0], why[1].span))
    for found in unrolled_in(traced):
        yield Loop(found.span, found.trips, found.operations, found.times)


def _kernel(part: Graph) -> Kernel:
    source = lower(part)
    around = dict(_surroundings(part, None))
    nests: list[Nest] = []
    fused: set[Node] = set()
    last: Any = None
    for report in source.reports:
        nodes = list(report.nodes)
        if any(n not in around for n in nodes):
            continue
        fused.update(nodes)
        space = _space(nodes)
        values = dict.fromkeys([*report.reads, *report.writes])
        work = len(nodes)
        nest = Nest(
            [n.op.name for n in nodes], _spans(nodes), space, _sum(_bytes(v) for v in values),
            _sum([_count(space)], work), (sum(_width(v) for v in values), work),
            parallelize.thread_count() if report.threaded else 1, around[nodes[0]],
            report.loop is not None and report.loop is last,
        )  # fmt: skip
        last = report.loop
        nests.append(nest)
    scalars = small = 0
    for node, loop in around.items():
        if node in fused or node.regions or node.op.cost == 0 or calls_out(node):
            continue
        shapes = [v.type.shape for v in (*node.inputs, *node.outputs) if isinstance(v.type, TensorType)]
        if all(shape == () for shape in shapes):
            scalars += 1
        elif node in source.small:
            small += 1
        else:
            nests.append(_alone(node, loop))
    record = record_of(source)
    known = llvm_backend.available() and (record is None or record.compiler == llvm_backend.NAME)
    lanes = llvm_backend.lanes(source) if known else []
    return Kernel(record.name if record else "", nests, scalars, small, record, source, lanes)


def _alone(node: Node, loop: Span | None) -> Nest:
    values = dict.fromkeys(v for v in (*node.inputs, *node.outputs) if not isinstance(v.type, StackType))
    operations: int | None = None
    space = _space([node])
    if node.op.is_update or node.op.reads_part:
        # Only these elements of the array are accessed: those that are changed or read.
        part = node.outputs if node.op.reads_part else node.inputs[1:]
        values = dict.fromkeys([*node.inputs[1:], *(node.outputs if node.op.reads_part else ())])
        space = max((_shape(v) for v in part), key=lambda shape: _count(shape) or 0, default=())
        touched = _sum([_count(space)], _width(node.inputs[0]))
        moved = _sum([*(_bytes(v) for v in values), touched])
        width = sum(_width(v) for v in values) + _width(node.inputs[0])
        return Nest([node.op.name], _spans([node]), space, moved, _count(space), (width, 1), 1, loop, fused=False)
    if node.op.terms is not None:
        shapes = [_shape(value) for value in node.inputs]
        terms = node.op.terms(shapes, node.attrs) if shapes[0] and shapes[1] else None
        operations = None if terms is None else _sum([_count(_shape(node.outputs[0]))], 2 * terms)
    else:
        operations = _count(space)
    width = sum(_width(v) for v in values)
    moved = _sum(_bytes(v) for v in values)
    return Nest([node.op.name], _spans([node]), space, moved, operations, (width, 1), 1, loop, fused=False)


def _surroundings(graph: Graph, loop: Span | None) -> Iterator[tuple[Node, Span | None]]:
    for node in graph.nodes:
        yield node, loop
        for region in node.regions:
            yield from _surroundings(region, node.span or ("", 0, "") if node.op.name == "while" else loop)


def note_stays(part: Graph, stays: list[Stay]) -> None:
    """Adds the operations of an interpreted part to `stays`, grouped by reason."""
    found: list[tuple[Node, str]] = []
    for node in part.nodes:
        if node.op.name == "constant":
            continue
        reason, culprit = why_interpreted(node) or (why_left_out(node), node)
        if culprit is not node:
            reason += f" (so neither has the {node.op.name} around it)"
        found.append((culprit, reason))
    _note(found, stays)


def _note_calls(part: Graph, stays: list[Stay]) -> None:
    """Adds the operations that a kernel calls Python for."""
    called = [(node, why_interpreted(node)) for node in part.walk() if calls_out(node)]
    _note([(node, f"{why[0]}; the native code around it calls Python") for node, why in called if why], stays, True)


def _note(found: Sequence[tuple[Node, str]], stays: list[Stay], called: bool = False) -> None:
    """Adds operations with their reasons to `stays`. called: by native code."""
    by_reason = {stay.reason: stay for stay in stays}
    for node, reason in found:
        stay = by_reason.get(reason)
        if stay is None:
            stay = by_reason[reason] = Stay(reason, [], [], called)
            stays.append(stay)
        stay.names.append(node.op.name)
        stay.spans += [s for s in _spans([node]) if s not in stay.spans]


def note_interpretation(section: Section, profile: Profile) -> None:
    """Notes what the interpreter's loops took in a recorded call, and what kernels called Python for. Recording slows
    both down, so their parts of the call count."""
    best, whole = section.seconds, profile.seconds("call")
    if not whole or best is None:
        return

    def spent(category: str, key: str, values: Container[str]) -> tuple[int, float]:
        took = [e.duration for e in profile.events if e.category == category and e.arguments[key] in values]
        return len(took), sum(took) / 1e9 / whole * best

    for loop in section.loops:
        if loop.interpreted is not None and loop.span:
            times, seconds = spent(LOOP, "line", {place(*loop.span[:2])})
            loop.seconds = seconds if times else None  # else it is part of another one
    for stay in section.stays:
        if stay.called:
            stay.calls, stay.seconds = spent(CALL_OUT, "op", set(stay.names))


# --- sizes -----------------------------------------------------------------------------------------------------------


def _spans(nodes: Sequence[Node]) -> list[Span]:
    return sorted(dict.fromkeys(n.span for n in nodes if n.span))


def _space(nodes: Sequence[Node]) -> tuple[int | None, ...]:
    """The shape that the nodes run over: the largest among what they read and make."""
    shapes = [v.type.shape for n in nodes for v in (*n.outputs, *n.inputs) if isinstance(v.type, TensorType)]
    known = [tuple(shape) for shape in shapes if shape is not None]
    return max(known, key=lambda shape: (len(shape), _count(shape) or 0), default=())


def _shape(value: Value) -> tuple[int | None, ...]:
    return tuple(value.type.shape or ()) if isinstance(value.type, TensorType) else ()


def _count(shape: Sequence[int | None]) -> int | None:
    return None if None in shape else math.prod(shape)  # type: ignore[arg-type]


def _width(value: Value) -> int:
    return int(value.type.dtype.np.itemsize) if isinstance(value.type, TensorType) and value.type.shape else 0


def _bytes(value: Value) -> int | None:
    if not isinstance(value.type, TensorType) or value.type.shape is None:
        return None
    return _sum([_count(value.type.shape)], value.type.dtype.np.itemsize)


def _sum(parts: Any, factor: int = 1) -> int | None:
    total = 0
    for part in parts:
        if part is None:
            return None
        total += part * factor
    return total
