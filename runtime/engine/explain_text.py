"""A report of `f.explain` as text, at most 100 columns wide."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from runtime.engine.explain import Kernel, Loop, Nest, Report, Section, Span, Stay
from runtime.engine.machine import Machine
from runtime.graph.printer import short_span

WIDTH = 100


def to_text(report: Report, machine: Machine) -> str:
    """The report; `machine` is what its kernels are measured against."""
    lines = _wrap(f"{report.name}{report.signature}", "  ")
    lines += _wrap(describe_machine(machine), "  ")
    for section in report.sections:
        lines += ["", *_section(section, machine, len(report.sections) > 1)]
    lines += ["", *_wrap(where_to_see_more(report), "  ")]
    return "\n".join(lines)


def where_to_see_more(report: Report) -> str:
    """How to see the program at each stage of its compilation."""
    gradient = " --gradient forward or backward shows the gradient's." if len(report.sections) > 1 else ""
    return (
        f"stages: `autograph graph FILE.py:{report.name}` shows the graph. Options show other stages: --passes (the "
        "changes that each pass makes), --kernel (the generated code, as Python), --kernel-passes, --llvm, "
        f"--optimized-llvm, --asm, and for GPUs --device-passes, --device-kernel, --ptx.{gradient} In Python: "
        'get_concrete_function(...).as_text("kernel")'
    )


def describe_machine(machine: Machine) -> str:
    """The measured limits, and how they were measured."""
    return (
        f"machine: {machine.bandwidth / 1e9:.1f} GB/s, {machine.arithmetic / 1e9:.0f} Gflop/s, {machine.threads} "
        f"thread{'s' * (machine.threads != 1)} (copies of 32 MiB and float32 products, measured once in this process "
        f"in {machine.seconds * 1e3:.0f} ms; data in the caches can be faster)"
    )


def _section(section: Section, machine: Machine, titled: bool) -> Iterator[str]:
    if titled:
        yield f"{section.title} {'-' * (WIDTH - len(section.title) - 1)}"
    yield from _wrap(f"tier: {section.tier}{measured(section, machine)}", "  ")
    if section.calls:
        yield from _wrap(f"calls: {section.calls}", "  ")
    if section.loops:
        yield "loops"
        for loop in section.loops:
            yield from _wrap(f"  {where(loop.span)}  {describe_loop(loop)}", "      ")
    for number, kernel in enumerate(section.kernels, 1):
        yield from _wrap(f"kernel {number}  {describe_kernel(kernel)}", "  ")
        for nest in kernel.nests:
            for text in describe_nest(nest, machine):
                yield from _wrap(f"  {text}", "      ")
        if kernel.rate is not None:
            yield from _wrap(f"  measured: {describe_speed(kernel, machine)}", "      ")
        if kernel.scalars:
            yield f"  {describe_scalars(kernel.scalars)}"
        for count in kernel.lanes:
            yield f"  {describe_lanes(count)}"
        if kernel.small:
            yield f"  {describe_small(kernel.small)}"
    for line in section.places:
        yield from _wrap(line, "    ")
    if section.stays:
        yield "on the interpreter"
        for stay in section.stays:
            yield from _wrap(f"  {describe_stay(stay)}", "      ")


def describe_scalars(count: int) -> str:
    return f"{count} operation{'s' * (count != 1)} on single numbers"


def describe_small(count: int) -> str:
    return f"{count} operation{'s' * (count != 1)} on tensors of few elements, in registers"


def describe_lanes(count: int) -> str:
    """How many iterations of an outer loop run at once."""
    return f"a loop that runs {count} iterations at a time, in the lanes of vectors, where that is faster"


def measured(section: Section, machine: Machine) -> str:
    """The measured time of a call beside its floor."""
    if section.unmeasured:
        return f"; not timed, because {section.unmeasured}"
    if section.seconds is None:
        return ""
    least, _ = machine.floor(
        sum(kernel.moved for kernel in section.kernels), sum(kernel.operations for kernel in section.kernels)
    )
    text = f"; a call takes {duration(section.seconds)}"
    if any(nest.loop or nest.moved is None for kernel in section.kernels for nest in kernel.nests):
        return text
    return text + (f", its floor is {duration(least)}" if least else "")


def describe_loop(loop: Loop) -> str:
    """Whether a loop was staged or unrolled, and what that left in the graph."""
    some = f"{loop.operations} operation{'s' * (loop.operations != 1)}"
    if loop.trips is None:
        text = f"staged: one loop, {some} in its body"
        if loop.interpreted is None:
            return text
        reason, span = loop.interpreted
        if loop.seconds is not None:
            text += f", on the interpreter, {duration(loop.seconds)} in a call"
        else:
            text += ", on the interpreter"
        return f"{text}, because of {where(span)}: {reason}"
    trips = f"{loop.trips} iteration{'s' * (loop.trips != 1)}"
    if loop.times > 1:
        trips += f" in {loop.times} runs"
    return f"unrolled while tracing: {trips}, which left {some}"


def describe_kernel(kernel: Kernel) -> str:
    """How often it runs, where the kernel came from, and where its text lies."""
    record = kernel.record
    often = f"run {kernel.times} times; " if kernel.times > 1 else ""
    if record is None:
        return f"{often}not compiled yet"
    how = "loaded from the cache" if record.loaded else "compiled"
    text = f"{often}{kernel.name}: {how} in {duration(record.seconds)}"
    text += f", {short(str(record.path))}" if record.path else ", in memory only"
    return text + (f" ({record.note})" if record.note else "")


def describe_speed(kernel: Kernel, machine: Machine) -> str:
    """The operations per byte and per second of a kernel whose `intensity` is known."""
    assert kernel.intensity is not None
    most = machine.allows(kernel.intensity)
    text = f"{kernel.intensity:.3g} operation{'s' * (kernel.intensity != 1)} per byte, "
    if kernel.rate is None or kernel.seconds is None:
        return text + f"at most {speed(most)}"
    text += f"{speed(kernel.rate)} in {duration(kernel.seconds)}"
    if kernel.rate > most:
        return f"{text}, above the machine's {speed(most)} (its data stays in the caches, or other programs ran)"
    return f"{text}, {kernel.rate / most:.0%} of the machine's {speed(most)}"


def speed(rate: float) -> str:
    """`3.1 Gop/s`."""
    for unit, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= factor:
            return f"{rate / factor:.3g} {unit}op/s"
    return f"{rate:.3g} op/s"


def describe_nest(nest: Nest, machine: Machine) -> Iterator[str]:
    """The operations of a pass, and its cost."""
    shape = ", ".join("?" if size is None else str(size) for size in nest.shape)
    head = f"over [{shape}]: {names(nest.names)}"
    if nest.fused and len(nest.names) > 1:
        head = f"fused {head}"
    if nest.joined:
        head += ", in the loop over rows above"
    if nest.threads > 1:
        head += f", on {nest.threads} threads"
    if nest.spans:
        head += f"  ({', '.join(where(span) for span in nest.spans)})"
    yield head
    each = f" in each iteration of {where(nest.loop)}" if nest.loop else ""
    if nest.moved is None or nest.operations is None:
        moved, work = nest.per_element
        yield f"    {moved} bytes and {work} operation{'s' * (work != 1)} for each element{each}"
        return
    least, limit = machine.floor(nest.moved, nest.operations)
    yield f"    {size(nest.moved)}, {count(nest.operations)}{each}; floor {duration(least)} ({limit})"


def describe_stay(stay: Stay) -> str:
    """The operations that aren't native, and the reason."""
    places = f"  ({', '.join(where(span) for span in stay.spans)})" if stay.spans else ""
    cost = ""
    if stay.seconds is not None:
        cost = f"; {stay.calls} time{'s' * (stay.calls != 1)} in a call, which takes {duration(stay.seconds)}"
    return f"{names(stay.names)}{places}: {stay.reason}{cost}"


def where(span: Span | None) -> str:
    """`file.py:12`, or `Cell In[3], line 2`."""
    return short_span(span) if span and span[0] else "(line unknown)"


def names(given: Sequence[str]) -> str:
    """`add, 2 x mul`: each op once, in the order of first appearance."""
    return ", ".join(name if times == 1 else f"{times} x {name}" for name, times in Counter(given).items())


def duration(seconds: float) -> str:
    """`1.2 ms`."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def size(moved: int) -> str:
    """`4.0 MB moved`."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if moved >= factor:
            return f"{moved / factor:.3g} {unit} moved"
    return f"{moved} bytes moved"


def count(operations: int) -> str:
    """`3.0 M operations`."""
    for unit, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if operations >= factor:
            return f"{operations / factor:.3g} {unit} operations"
    return f"{operations} operation{'s' * (operations != 1)}"


def short(path: str) -> str:
    """A path with the home folder as `~`."""
    home = str(Path.home())
    return "~" + path[len(home) :] if home != "/" and path.startswith(home + "/") else path


def _wrap(text: str, indent: str) -> list[str]:
    lead = text[: len(text) - len(text.lstrip())]
    wrapped = textwrap.wrap(
        text.strip(), WIDTH, initial_indent=lead, subsequent_indent=lead + indent, break_on_hyphens=False
    )
    return wrapped or [lead]
