"""Pictures of a report's page: the timeline of a call, and the kernels under the machine's roofline (Williams,
Waterman, Patterson, 2009: "Roofline: an insightful visual performance model").

Their colours are CSS variables of the page, so they follow its dark or light theme.
"""

from __future__ import annotations

import html
import itertools
import math
import string
from collections.abc import Iterator, Sequence

from runtime.engine.explain import Kernel, Report
from runtime.engine.explain_text import describe_speed, duration, speed
from runtime.engine.machine import Machine
from runtime.engine.timeline import Phase

STYLE = """
figure { margin: 0 0 1.4rem; }
figcaption { font: 600 .8rem system-ui, sans-serif; color: var(--faint); margin-bottom: .4rem; }
.span { display: grid; grid-template-columns: minmax(0, 17rem) minmax(4rem, 1fr) 5.5rem; gap: .6rem;
        align-items: center; line-height: 1.5; }
.span > span { overflow-wrap: anywhere; }
.span .took { text-align: right; color: var(--faint); white-space: nowrap; }
.track { position: relative; height: .8em; background: var(--soft); border-radius: 2px; }
.track i { position: absolute; top: 0; bottom: 0; min-width: 1px; border-radius: 2px; background: var(--name); }
.track .for-compile { background: var(--kind); }
.track .for-kernel { background: var(--type); }
.roof { width: 100%; max-width: 34rem; height: auto; display: block; }
.roof text { font: 11px system-ui, sans-serif; fill: var(--ink); }
.roof .axis { fill: var(--faint); }
.roof .grid { stroke: var(--line); }
.roof .limit { stroke: var(--name); stroke-width: 1.6; fill: none; }
.roof .drop { stroke: var(--faint); stroke-dasharray: 2 3; }
.roof circle { fill: var(--type); stroke: var(--paper); stroke-width: 1.5; }
.roof .most { fill: var(--paper); stroke: var(--type); }
ul.points { margin: .3rem 0; padding: 0; list-style: none; }
@media (max-width: 40rem) { .span { grid-template-columns: minmax(0, 1fr) 4.8rem; gap: 0 .6rem; }
  .span .track { grid-column: 1 / -1; grid-row: 2; } }
"""
_WIDTH, _HEIGHT = 440.0, 290.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 14.0, 16.0, 44.0


def timeline(phases: Sequence[Phase]) -> Iterator[str]:
    """A chart for each phase, each with its own scale: kernels take microseconds, but compilers take milliseconds."""
    for phase in phases:
        yield f"<figure>\n<figcaption>{html.escape(phase.title)}: {duration(phase.seconds)}</figcaption>\n"
        for row in phase.rows:
            bars = "".join(
                f'<i class="for-{row.category}" style="left:{100 * start / phase.seconds:.2f}%;'
                f'width:{100 * (end - start) / phase.seconds:.2f}%"></i>'
                for start, end in row.parts
            )
            yield (
                f'<div class="span"><span style="padding-left:{row.depth * 0.9:.1f}em">{html.escape(row.name)}</span>'
                f'<span class="track">{bars}</span><span class="took">{duration(row.seconds)}</span></div>\n'
            )
        yield "</figure>\n"


def roofline(report: Report, machine: Machine) -> Iterator[str]:
    """The kernels whose operations and bytes are known, by operations per byte and by operations per second: measured
    (a full point), or what the machine allows at most (an empty one)."""
    kernels = [
        (f"{section.title}, kernel {number}" if len(report.sections) > 1 else f"kernel {number}", kernel)
        for section in report.sections
        for number, kernel in enumerate(section.kernels, 1)
        if kernel.intensity is not None
    ]
    if not kernels:
        return
    yield "<figure>\n<figcaption>Kernels under the machine's roofline</figcaption>\n"
    yield _Roof([kernel for _, kernel in kernels], machine).svg()
    yield '<ul class="points">\n'
    for letter, (title, kernel) in zip(_letters(), kernels):
        yield f"<li><b>{letter}</b> {html.escape(f'{title}: {describe_speed(kernel, machine)}')}</li>\n"
    yield "</ul>\n</figure>\n"


def _letters() -> Iterator[str]:
    """A, B, ... Z, A1, B1, ..."""
    for number in itertools.count():
        for letter in string.ascii_uppercase:
            yield f"{letter}{number or ''}"


class _Roof:
    def __init__(self, kernels: Sequence[Kernel], machine: Machine) -> None:
        self.kernels, self.machine = kernels, machine
        ridge = machine.arithmetic / machine.bandwidth
        across = [kernel.intensity or ridge for kernel in kernels]
        rates = [kernel.rate or machine.allows(kernel.intensity or ridge) for kernel in kernels]
        # Whole powers of ten around all points and the ridge.
        self.x = _powers([*across, ridge])
        self.y = _powers([*rates, machine.arithmetic, machine.allows(10.0 ** self.x[0])])

    def place(self, intensity: float, rate: float) -> tuple[float, float]:
        (left, right), (low, high) = self.x, self.y
        x = (math.log10(intensity) - left) / (right - left)
        y = (math.log10(rate) - low) / (high - low)
        return _LEFT + x * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - y * (_HEIGHT - _TOP - _BOTTOM)

    def svg(self) -> str:
        return (
            f'<svg class="roof" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" '
            f'aria-label="Operations per second against operations per byte">{"".join(self.parts())}</svg>\n'
        )

    def parts(self) -> Iterator[str]:
        right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
        for power in range(self.x[0], self.x[1] + 1):
            x, _ = self.place(10.0**power, 10.0 ** self.y[0])
            yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP:g}" y2="{bottom:g}"/>'
            yield f'<text class="axis" x="{x:.1f}" y="{bottom + 15:g}" text-anchor="middle">{10.0**power:g}</text>'
        for power in range(self.y[0], self.y[1] + 1):
            _, y = self.place(10.0 ** self.x[0], 10.0**power)
            yield f'<line class="grid" x1="{_LEFT:g}" x2="{right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text class="axis" x="{_LEFT - 6:g}" y="{y + 4:.1f}" text-anchor="end">{_short(10.0**power)}</text>'
        middle = (_LEFT + right) / 2
        yield f'<text class="axis" x="{middle:g}" y="{_HEIGHT - 8:g}" text-anchor="middle">operations per byte</text>'
        yield (
            f'<text class="axis" text-anchor="middle" transform="translate(12 {(_TOP + bottom) / 2:g}) rotate(-90)">'
            "operations per second</text>"
        )
        yield from self.limits()
        for letter, kernel in zip(_letters(), self.kernels):
            yield from self.point(letter, kernel)

    def limits(self) -> Iterator[str]:
        machine = self.machine
        first, last = 10.0 ** self.x[0], 10.0 ** self.x[1]
        corners = [first, machine.arithmetic / machine.bandwidth, last]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (self.place(each, machine.allows(each)) for each in corners))
        yield f'<polyline class="limit" points="{path}"/>'
        x, y = self.place(last, machine.arithmetic)
        yield f'<text x="{x - 4:.1f}" y="{y - 5:.1f}" text-anchor="end">{speed(machine.arithmetic)}</text>'
        middle = math.sqrt(corners[0] * corners[1])
        x, y = self.place(middle, machine.allows(middle))
        yield f'<text x="{x + 8:.1f}" y="{y + 14:.1f}">{machine.bandwidth / 1e9:.3g} GB/s</text>'

    def point(self, letter: str, kernel: Kernel) -> Iterator[str]:
        assert kernel.intensity is not None
        most = self.machine.allows(kernel.intensity)
        x, y = self.place(kernel.intensity, kernel.rate or most)
        if kernel.rate:
            _, top = self.place(kernel.intensity, most)
            yield f'<line class="drop" x1="{x:.1f}" x2="{x:.1f}" y1="{y:.1f}" y2="{top:.1f}"/>'
        kind = "" if kernel.rate else ' class="most"'
        yield f'<circle{kind} cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{letter}</title></circle>'
        anchor, beside = ("end", -9) if x > _WIDTH - _RIGHT - 20 else ("start", 9)
        yield f'<text x="{x + beside:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}">{letter}</text>'


def _powers(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _short(value: float) -> str:
    """`10 G`."""
    for unit, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= factor:
            return f"{value / factor:g} {unit}"
    return f"{value:g}"
