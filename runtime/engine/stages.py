"""The program of a function at each stage of its compilation, as text.

    graph            the graph after its passes
    passes           the graph as traced, and after each pass that changes it
    kernel           the Python text of each native part
    kernel-passes    what each pass over kernels changes
    llvm             the kernels as LLVM IR, before LLVM's passes
    optimized-llvm   the same after LLVM's passes
    asm              assembly for this machine
    device-passes    what each pass changes that makes kernels ones that all threads of a GPU run
    device-kernel    the Python text of the kernels as all threads of a GPU run them
    ptx              the same in PTX, the assembly language of NVIDIA's GPUs

Nothing runs, and code compiled for this text isn't kept.
"""

from __future__ import annotations

import bisect
import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

from runtime.autodiff.calls import is_differentiable
from runtime.codegen.backends import driver
from runtime.codegen.device.device_module import device_module, spmd_of
from runtime.codegen.device.kernel import Kernel, NotOnDevice, printed
from runtime.codegen.device.pipeline import run_passes
from runtime.codegen.kernel.source import KernelSource, NotNative
from runtime.codegen.lower.lower_graph import is_native, lower
from runtime.dataclass import dataclass
from runtime.engine.explain import Stay, note_stays
from runtime.engine.explain_text import describe_stay
from runtime.engine.function import GraphFunction
from runtime.engine.on_stack_replacement import graph_of_loop
from runtime.engine.partition import parts
from runtime.errors import UnimplementedError
from runtime.graph.ir import Graph, Node
from runtime.graph.passes.pipeline import rewrite
from runtime.graph.printer import as_text
from runtime.pass_log import Step, recorded

# The characters that begin a comment in the text of each stage.
STAGES = {
    "graph": "#",
    "passes": "#",
    "kernel": "#",
    "kernel-passes": "#",
    "llvm": ";",
    "optimized-llvm": ";",
    "asm": "#",
    "device-passes": "#",
    "device-kernel": "#",
    "ptx": "//",
}
_OF_GPUS = ("device-passes", "device-kernel", "ptx")
GRADIENTS = ("forward", "backward")
# Of more equal lines than this, only some are shown where they begin and end.
_LONGEST, _AROUND = 40, 4


def text_of(stage: str, gradient: str | None, function: GraphFunction, again: Callable[[], GraphFunction]) -> str:
    """The text of a stage. gradient: None or one of `GRADIENTS`. again: traces the function anew.

    Raises ValueError for another stage or where there is no gradient, UnimplementedError where nothing is native or a
    kernel has no form for a GPU, KernelError if no compiler can show the stage.
    """
    if stage not in STAGES:
        raise ValueError(f"there is no stage {stage!r}; the stages are {', '.join(STAGES)}")
    if gradient is not None and gradient not in GRADIENTS:
        raise ValueError(f"gradient must be None or one of {', '.join(GRADIENTS)}, not {gradient!r}")
    if stage == "passes":
        return _passes(gradient, again)
    function = chosen(function, gradient)
    if stage == "graph":
        return as_text(function.graph)
    kernels = list(native_parts(function.executable.graph, for_device=stage in _OF_GPUS))
    if not any(part.source for part in kernels):
        raise UnimplementedError(_why_none(function.name, kernels))
    return _kernels(stage, kernels)


def chosen(function: GraphFunction, gradient: str | None) -> GraphFunction:
    """The function itself, or the forward or backward part of its gradient by all that it can be differentiated by."""
    if gradient is None:
        return function
    graph = function.graph
    wanted = tuple([i for i, v in enumerate(graph.inputs) if is_differentiable(v.type)])
    found = GraphFunction(graph, function.jit_compile).gradient(wanted)  # kept apart from those of calls
    if not found.vjp.results:
        raise ValueError(
            f"'{function.name}' has no gradient: no floating-point result depends on a floating-point input"
        )
    return found.forward if gradient == "forward" else found.backward


# --- graphs ----------------------------------------------------------------------------------------------------------


def _passes(gradient: str | None, again: Callable[[], GraphFunction]) -> str:
    with recorded() as steps:
        function = chosen(again(), gradient)
        # Other functions may be traced meanwhile, and a trace that creates variables is followed by a second one.
        own = (function.graph, function.executable.graph)
        count = len(steps)
        for native, part in parts(function.executable.graph):
            if native:
                rewrite("narrow floats", rewrite("recursive captures", part))
    found = [step for step in steps[:count] if step.program in own] + steps[count:]
    changes = list(_changes(found)) or ["# no pass changes it"]
    return "\n\n".join(["# before the passes\n" + found[0].before, *changes])


def _changes(steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        if step.is_change:
            yield f"# after {step.name}\n{marked(step.before, step.after)}"


def marked(text: str, changed: str) -> str:
    """The changed text, with removed lines marked by - and added lines marked by +."""
    before, after = text.splitlines(), changed.splitlines()
    lines: list[str] = []
    start = first = 0
    for stop, last, length in _equal_stretches(before, after):
        lines += [f"- {line}" for line in before[start:stop]]
        lines += [f"+ {line}" for line in after[first:last]]
        start, first = stop + length, last + length
        same = [f"  {line}" for line in after[last:first]]
        if length > _LONGEST:
            same[_AROUND:-_AROUND] = [f"  ... {length - 2 * _AROUND} lines"]
        lines += same
    return "\n".join(line.rstrip() for line in lines)


def _equal_stretches(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Where stretches of equal lines begin in both texts, and their lengths; the last is that at the ends.

    A patience diff: lines that each text has once, in the order that they have in both, are matched first, and what
    lies between them then. difflib alone takes a time that grows with the square of the texts' length.
    """
    once = {line for line, count in Counter(before).items() if count == 1}
    places = {line: at for at, line in enumerate(after)}
    counts = Counter(after)
    pairs = [(at, places[line]) for at, line in enumerate(before) if line in once and counts[line] == 1]
    start = first = 0
    stretches: list[list[int]] = []
    for stop, last in [*_increasing(pairs), (len(before), len(after))]:
        between = difflib.SequenceMatcher(None, before[start:stop], after[first:last], autojunk=False)
        found = [(start + i, first + j, size) for i, j, size in between.get_matching_blocks()[:-1]]
        for i, j, size in [*found, (stop, last, int(stop < len(before)))]:
            if stretches and [stretches[-1][0] + stretches[-1][2], stretches[-1][1] + stretches[-1][2]] == [i, j]:
                stretches[-1][2] += size
            else:
                stretches.append([i, j, size])
        start, first = stop + 1, last + 1
    return ((i, j, size) for i, j, size in stretches)


def _increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest selection of pairs whose second numbers increase, as the first ones do."""
    ends: list[int] = []  # the last numbers of the best selections of each length
    best: list[int] = []  # and their positions
    links: list[int | None] = []
    for position, (_, second) in enumerate(pairs):
        length = bisect.bisect_left(ends, second)
        links.append(best[length - 1] if length else None)
        ends[length : length + 1] = [second]
        best[length : length + 1] = [position]
    chosen: list[tuple[int, int]] = []
    at = best[-1] if best else None
    while at is not None:
        chosen.append(pairs[at])
        at = links[at]
    return chosen[::-1]


# --- kernels ---------------------------------------------------------------------------------------------------------


@dataclass
class Part:
    """A run of nodes: with a kernel, and what passes have done to it; or on the interpreter, and why."""

    source: KernelSource | None
    steps: list[Step] = field(default_factory=list)
    stays: list[Stay] = field(default_factory=list)
    is_loop: bool = False  # a loop in the interpreted part before it, which becomes native if it runs long


def native_parts(graph: Graph, for_device: bool = False) -> Iterator[Part]:
    """The parts of a graph in execution order. Each interpreted part is followed by the native loops in it.
    for_device: see `lower`."""
    for native, part in parts(graph):
        if native:
            yield _lowered(part, for_device)
            continue
        if not any(node.op.name != "constant" for node in part.nodes):
            continue
        stays: list[Stay] = []
        note_stays(part, stays)
        yield Part(None, stays=stays)
        for node in part.nodes:
            for loop in _native_loops(node):
                yield _lowered(rewrite("complex parts", loop) or loop, for_device, is_loop=True)


def _lowered(graph: Graph, for_device: bool, is_loop: bool = False) -> Part:
    try:
        with recorded() as steps:
            source = lower(graph, for_device=for_device)
    except NotNative as error:  # the lowering of an op doesn't support these operands
        nodes = [node for node in graph.nodes if node.op.name != "constant"]
        spans = sorted(dict.fromkeys(node.span for node in nodes if node.span))
        return Part(None, stays=[Stay(str(error), [node.op.name for node in nodes], spans)])
    return Part(source, [step for step in steps if step.level == "kernel"], is_loop=is_loop)


def _native_loops(node: Node) -> Iterator[Graph]:
    """The outermost loops in the regions of an interpreted node that can be compiled."""
    for region in node.regions:
        for inner in region.nodes:
            if inner.op.name in ("while", "letrec") and is_native(inner):
                yield graph_of_loop(inner)
            else:
                yield from _native_loops(inner)


def _kernels(stage: str, kernels: Sequence[Part]) -> str:
    if len(kernels) == 1:
        return _text(stage, kernels[0])
    comment = STAGES[stage]
    texts: list[str] = []
    numbers: dict[tuple[str, str], int] = {}
    for part in kernels:
        if part.source is None:
            texts += [f"{comment} on the interpreter: {describe_stay(stay)}" for stay in part.stays]
            continue
        key = (part.source.text, part.source.key)
        if key in numbers:
            texts.append(f"{comment} kernel {numbers[key]} again")
            continue
        numbers[key] = len(numbers) + 1
        what = " (the loop, once it has run for a while)" if part.is_loop else ""
        texts.append(f"{comment} kernel {numbers[key]}{what}\n{_text(stage, part)}")
    return "\n\n".join(texts)


def _text(stage: str, part: Part) -> str:
    assert part.source is not None
    if stage == "kernel":
        return part.source.text.rstrip()
    if stage == "kernel-passes":
        changes = list(_changes(part.steps)) or ["# no pass changes it"]
        return "\n\n".join([*changes, f"# the kernel\n{part.source.text.rstrip()}"])
    if stage in _OF_GPUS:
        return _device_text(stage, part.source)
    return driver.text_of(part.source, stage).rstrip()


def _device_text(stage: str, source: KernelSource) -> str:
    try:
        if stage == "ptx":
            return device_module(source).ptx().rstrip()
        if stage == "device-kernel":
            return printed(spmd_of(source))
        kernel = Kernel.of(source)
        with recorded() as steps:
            run_passes(kernel)
        return "\n\n".join([*_changes(steps), f"# the kernel\n{printed(kernel)}"])
    except NotOnDevice as reason:
        raise UnimplementedError(f"'{source.name}' has a kernel that can't run on a GPU: {reason}") from None


def _why_none(name: str, kernels: Sequence[Part]) -> str:
    reasons = [describe_stay(stay) for part in kernels for stay in part.stays]
    if not reasons:
        return f"'{name}' has no native kernel: it computes nothing"
    return f"'{name}' has no native kernel. On the interpreter: " + "; ".join(reasons)
