"""Results as tables: plain text for a terminal, Markdown for docs/benchmarks.md."""

import compileall
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import peers, targets
from benchmarks.harness import Case, Row
from benchmarks.overheads import deep, first

_INTRODUCTION = """\
# Benchmarks

Written by `python -m benchmarks`; every figure comes from one run on one machine.

Each workload is first checked to give the same result in every library. Then all implementations are timed in turn, in
blocks of calls, for several rounds, and the medians are compared. So a change in the machine's speed affects all of
them. First calls are measured separately: they trace and compile, with empty kernel caches.

- **time**: one call, in the steady state
- **ours / theirs**: our time divided by theirs; below 1, ours is faster
- **first call**: the first call in a process that runs all workloads, ours with `jit_compile=True`. A library's first
  workload also pays for starting its compiler. First results in fresh processes have a table of their own.

Each library runs at its best setting: where a loop of scalars would be slow, it gets the same computation over whole
arrays. C is compiled with `-O3 -march=native` and is the floor. [What gradients of loops cost](loop_gradients.md) has
their memory.
"""

_PLOTS = """\
## Time against size

Drawn by `python -m benchmarks --plots`.

![Time of an elementwise chain against its length](benchmarks_chain.svg)
![Time of the logistic map and its gradient against steps](benchmarks_loop.svg)
![Time of edit distance against the length of the arrays](benchmarks_edit.svg)
"""

_FIRST = """\
From the imported library to the first result, each in a fresh process: the time includes inputs, tracing and compiling,
but not the import of NumPy's random numbers, from which inputs are made. Ours runs at its default settings: the
interpreter answers; a running loop is compiled once it has run for four fifths of the time that compiling takes; what
later calls use is compiled in the background; and programs with loops take the kernels of earlier processes at once.
With `jit_compile=True` it compiles first, as JAX does."""


def seconds(value: float | None) -> str:
    """A time with a fitting unit, three digits."""
    if value is None:
        return ""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def ratio(ours: Row, theirs: Row) -> str:
    """Our time over theirs, two digits."""
    if ours.median is None or theirs.median is None:
        return ""
    value = ours.median / theirs.median
    return f"{value:.2f}" if value >= 0.095 else f"{value:.2g}"


def cells(rows: list[Row]) -> list[list[str]]:
    """One line of text cells for each row, a heading first. Ours is the first row."""
    table = [["", "time", "ours / theirs", "first call"]]
    for row in rows:
        if row.median is None:
            table.append([row.label, row.note, "", ""])
        else:
            table.append([row.label, seconds(row.median), ratio(rows[0], row), seconds(row.first_call)])
    return table


def plain(title: str, table: list[list[str]]) -> str:
    """A table for a terminal."""
    # A note runs on to the right, so it has no say in how wide its column is.
    measured = [line for line in table if any(line[2:])]
    widths = [max(len(line[0]) for line in table), *(max(len(line[i]) for line in measured) for i in (1, 2, 3))]
    lines = [title]
    for line in table:
        if any(line[2:]):
            numbers = "  ".join(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
            lines.append(f"  {line[0].ljust(widths[0])}  {numbers}")
        else:
            lines.append(f"  {line[0].ljust(widths[0])}  {line[1]}")
    return "\n".join(lines) + "\n"


def markdown(title: str, table: list[list[str]]) -> str:
    """The same table in Markdown."""
    lines = [f"### {title}", "", "| " + " | ".join(table[0]) + " |", "| --- | ---: | ---: | ---: |"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in table[1:]]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Processes:
    """What was measured in processes of their own."""

    imports: dict[str, float | None]
    firsts: dict[str, first.Times]
    deep: dict[str, float]
    quick: bool = False


def processes(quick: bool = False) -> Processes:
    """Imports, first results and the deep network."""
    # Installed packages come with their bytecode; a checkout may not have it.
    for folder in ("autograph", "runtime"):
        compileall.compile_dir(Path(__file__).resolve().parent.parent / folder, quiet=2)
    _say("Imports, in processes of their own ...")
    imports = import_times(1 if quick else 5)
    _say("First results, in processes of their own: a few minutes ...")
    firsts = first.measure(quick)
    _say("A training step of 60 layers ...")
    return Processes(imports, firsts, deep.measure(quick), quick)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def page(results: list[tuple[Case, list[Row]]], apart: Processes) -> str:
    """The whole of docs/benchmarks.md."""
    met = targets.verdicts(results) + targets.first_results(apart.firsts)
    met += targets.others(results, apart.deep, apart.imports, apart.quick)
    sections = [_INTRODUCTION, machine(), "## Targets\n", targets.summary(met), targets.table(met)]
    sections += ["## All workloads\n", "Our time, and divided by theirs.\n", targets.overview(results)]
    sections += [_PLOTS, first_results(apart.firsts), deep_network(apart.deep), importing(apart.imports)]
    sections += ["## Each workload\n"]
    sections += [markdown(f"{case.title} (`{case.name}`)", cells(rows)) for case, rows in results]
    return "\n".join(section for section in sections if section)


def first_results(firsts: dict[str, first.Times]) -> str:
    """A table of first results: a column for each library."""
    if not firsts:
        return ""
    labels = list(firsts)
    lines = ["## First results", "", _FIRST, "", "| | " + " | ".join(labels) + " | ours, native after | kernels |"]
    lines.append("| --- |" + " ---: |" * (len(labels) + 2))
    for name, line in firsts[peers.AUTOGRAPH].items():
        times = [seconds(firsts[label][name]["seconds"]) if name in firsts[label] else "" for label in labels]
        lines.append(f"| {name} | " + " | ".join(times) + f" | {seconds(line['native'])} | {line['compiled']} |")
    return "\n".join(lines) + "\n"


def deep_network(figures: dict[str, float]) -> str:
    """The figures of deep.py."""
    if not figures:
        return ""
    return (
        "## Training step of 60 layers\n\n"
        f"Default settings, empty cache: the first result after {seconds(figures['first'])}; native code, compiled in\n"
        f"the background, after {seconds(figures['native'])}: {figures['kernels']:g} kernels. A new batch size "
        f"compiles {figures['more']:g}.\n"
    )


def importing(imports: dict[str, float | None]) -> str:
    """The table of import times."""
    lines = ["## Importing", "", "A fresh process that imports the library, less one that doesn't.", ""]
    lines += ["| | time |", "| --- | ---: |"]
    lines += [f"| {name} | {seconds(value) or 'not installed'} |" for name, value in imports.items()]
    return "\n".join(lines) + "\n"


def machine(versions: Mapping[str, str | None] | None = None) -> str:
    """What the figures depend on; nothing that names the machine. `versions` of libraries: here, those of all peers."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        named = [line for line in information.read_text().splitlines() if line.startswith("model name")]
        if named:
            model = named[0].partition(":")[2].strip()
    versions = versions or {name: peers.version(name) for name in peers.DISTRIBUTIONS}
    known = [f"{name} {version or 'not installed'}" for name, version in versions.items()]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"Machine: {model}, {cores} cores, {platform.system()}. "
        f"Python {platform.python_version()}; {', '.join(known)}. {time.strftime('%Y-%m-%d')}.\n"
    )


def import_times(rounds: int = 3) -> dict[str, float | None]:
    """Seconds that a fresh process takes to import each library, less those of an empty one; None if it isn't there."""
    installed = [name for name in peers.DISTRIBUTIONS if peers.version(name) is not None]
    times: dict[str, list[float]] = {name: [] for name in ("", *installed)}
    environment = peers.environment()
    for _ in range(rounds):
        for name, measured in times.items():
            command = [sys.executable, "-c", f"import {name}" if name else ""]
            began = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=environment, timeout=120)
            measured.append(time.perf_counter() - began)
    empty = statistics.median(times.pop(""))
    return {name: statistics.median(times[name]) - empty if name in times else None for name in peers.DISTRIBUTIONS}
