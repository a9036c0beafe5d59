"""A report of `f.explain` as one self-contained HTML page: how each part runs, beside the user's source.

Pointing at an entry marks the lines it comes from; pointing at a line marks the entries. It looks like the page of a
graph (`runtime.graph.page`).
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from runtime.engine import explain_pictures
from runtime.engine.explain import Kernel, Nest, Report, Section, Span
from runtime.engine.explain_text import (
    describe_kernel,
    describe_lanes,
    describe_loop,
    describe_machine,
    describe_nest,
    describe_scalars,
    describe_small,
    describe_stay,
    measured,
    where,
    where_to_see_more,
)
from runtime.engine.machine import Machine
from runtime.graph.page import source_listing
from runtime.graph.page_style import STYLE

_STYLE = """
section h2 { margin-top: 1.1rem; }
section h2:first-child { margin-top: 0; }
.entry { padding: .15rem .5rem; margin: .15rem 0; border-left: 3px solid var(--line); border-radius: 3px; }
.entry.staged, .entry.nest { border-color: var(--type); }
.entry.unrolled { border-color: var(--name); }
.entry.stay { border-color: #c0392b; }
.entry .cost { color: var(--faint); display: block; }
.kernel { margin: .6rem 0 .2rem; font-weight: 600; overflow-wrap: anywhere; }
.kernel span { font-weight: 400; color: var(--faint); }
.bar { display: inline-block; height: .55em; background: var(--type); opacity: .7; border-radius: 2px;
       margin-right: .6em; }
main { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
pre em { float: right; font-style: normal; color: var(--faint); padding-left: 2rem; text-indent: 0; }
header p.machine, p.more { font-size: .8rem; }
"""
_SCRIPT = """
const all = selector => [...document.querySelectorAll(selector)];
const clear = () => all('.on').forEach(each => each.classList.remove('on'));
const lines = entry => (entry.dataset.at || '').split(' ').filter(Boolean);
for (const entry of all('.entry'))
  entry.addEventListener('mouseenter', () => {
    clear(); entry.classList.add('on');
    lines(entry).forEach((id, index) => {
      const line = document.getElementById(id);
      if (line) { line.classList.add('on'); if (!index) line.scrollIntoView({block: 'nearest'}); }
    });
  });
for (const line of all('.source .used'))
  line.addEventListener('mouseenter', () => {
    clear(); line.classList.add('on');
    all('.entry').filter(each => lines(each).includes(line.id)).forEach(each => each.classList.add('on'));
  });
"""


def to_page(report: Report, machine: Machine) -> str:
    """The page as text."""
    return "".join(_Page(report, machine).parts())


class _Page:
    def __init__(self, report: Report, machine: Machine) -> None:
        self.report = report
        self.machine = machine
        self.marks: dict[str, dict[int, list[str]]] = {}  # file -> line -> short labels
        for section in report.sections:
            for text, spans in _marks(section):
                for filename, line, _ in spans:
                    found = self.marks.setdefault(filename, {}).setdefault(line, [])
                    if text not in found:
                        found.append(text)
        self.files = {filename: f"f{index}" for index, filename in enumerate(self.marks)}
        floors = [machine.floor(n.moved or 0, n.operations or 0)[0] for n in _nests(report)]
        self.longest = max(floors, default=0.0)

    def parts(self) -> Iterator[str]:
        title = html.escape(self.report.name)
        yield f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        yield f"<style>{STYLE}{explain_pictures.STYLE}{_STYLE}</style></head>\n<body>\n<header><h1>{title}</h1>"
        yield f"<p>{html.escape(self.report.signature)}</p>"
        yield f'<p class="machine">{html.escape(describe_machine(self.machine))}</p></header>\n<main>\n<section>\n'
        yield from explain_pictures.timeline(self.report.phases)
        yield from explain_pictures.roofline(self.report, self.machine)
        for section in self.report.sections:
            yield from self.section(section)
        yield f'<p class="more">{html.escape(where_to_see_more(self.report))}</p>\n'
        yield "</section>\n<aside>\n"
        for filename, marks in self.marks.items():
            yield from source_listing(filename, self.files[filename], set(marks), marks)
        yield f"</aside>\n</main>\n<script>{_SCRIPT}</script>\n</body></html>\n"

    def section(self, section: Section) -> Iterator[str]:
        title = f"{section.title}: {section.tier}{measured(section, self.machine)}"
        yield f"<h2>{html.escape(title)}</h2>\n"
        if section.calls:
            yield f"<p>calls: {html.escape(section.calls)}</p>\n"
        for line in section.places:
            yield f"<p>{html.escape(line.strip())}</p>\n"
        for loop in section.loops:
            kind = "staged" if loop.trips is None else "unrolled"
            yield self.entry(kind, [loop.span] if loop.span else [], f"{where(loop.span)} {describe_loop(loop)}")
        for number, kernel in enumerate(section.kernels, 1):
            yield from self.kernel(number, kernel)
        for stay in section.stays:
            yield self.entry("stay", stay.spans, f"on the interpreter: {describe_stay(stay)}")

    def kernel(self, number: int, kernel: Kernel) -> Iterator[str]:
        yield f'<p class="kernel">kernel {number} <span>{html.escape(describe_kernel(kernel))}</span></p>\n'
        for nest in kernel.nests:
            text, cost = describe_nest(nest, self.machine)
            yield self.entry("nest", nest.spans, text, self.bar(nest) + html.escape(cost.strip()))
        for count in kernel.lanes:
            yield f'<div class="entry">{describe_lanes(count)}</div>\n'
        if kernel.scalars:
            yield f'<div class="entry">{describe_scalars(kernel.scalars)}</div>\n'
        if kernel.small:
            yield f'<div class="entry">{describe_small(kernel.small)}</div>\n'

    def bar(self, nest: Nest) -> str:
        """A bar for the least time that an entry takes, relative to the others."""
        least, _ = self.machine.floor(nest.moved or 0, nest.operations or 0)
        width = 8 * least / self.longest if self.longest else 0
        return f'<i class="bar" style="width:{width:.2f}em"></i>' if width > 0.05 else ""

    def entry(self, kind: str, spans: Sequence[Span], text: str, cost: str = "") -> str:
        at = " ".join(f"{self.files[name]}-{line}" for name, line, _ in spans)
        below = f'<span class="cost">{cost}</span>' if cost else ""
        return f'<div class="entry {kind}" data-at="{at}">{html.escape(text)}{below}</div>\n'


def _nests(report: Report) -> Iterator[Nest]:
    for section in report.sections:
        for kernel in section.kernels:
            yield from kernel.nests


def _marks(section: Section) -> Iterator[tuple[str, Sequence[Span]]]:
    for loop in section.loops:
        if loop.span:
            yield "staged" if loop.trips is None else f"unrolled {loop.trips}x", [loop.span]
    for number, kernel in enumerate(section.kernels, 1):
        for nest in kernel.nests:
            yield f"kernel {number}", nest.spans
    for stay in section.stays:
        yield "interpreter", stay.spans
