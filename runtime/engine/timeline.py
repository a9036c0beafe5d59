"""Profiles as rows of a chart: the parts of a call in the order of their starts, with short ones merged.

trace f          0.0 ms   3.1 ms
  convert f      0.2 ms   1.0 ms
  20 passes      1.9 ms   0.8 ms
compile f        3.2 ms  41.0 ms
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from runtime.dataclass import dataclass
from runtime.profiling import Event, Profile

# Rows shorter than this fraction of the whole are left out, with the rows nested in them.
_SHORTEST = 0.002
_DEEPEST = 4


@dataclass
class Row:
    """Times in seconds from the beginning. parts: the intervals in which it ran, if there are several."""

    name: str
    depth: int
    seconds: float
    parts: list[tuple[float, float]]
    category: str


@dataclass
class Phase:
    """An interval of time with its rows."""

    title: str
    seconds: float
    rows: list[Row]


@dataclass
class _Span:
    name: str
    category: str
    start: int
    end: int
    inner: list[_Span] = field(default_factory=list)


def phase(title: str, profile: Profile, kernels: Mapping[str, str] = MappingProxyType({})) -> Phase | None:
    """The phase that a profile recorded; None if it is empty. kernels: display names by kernel name."""
    spans = _nested([_named(event, kernels) for event in profile.events])
    if not spans:
        return None
    start, end = min(span.start for span in spans), max(span.end for span in spans)
    length = max(1, end - start)
    return Phase(title, length / 1e9, list(_rows(spans, 0, start, length)))


def _named(event: Event, kernels: Mapping[str, str]) -> Event:
    called = kernels.get(event.arguments.get("kernel", ""))
    if called is None:
        return event
    return event._replace(name=called if event.category == "kernel" else f"{event.name}: {called}")


def _nested(events: Sequence[Event]) -> list[_Span]:
    """The outermost spans of all threads, with those inside them."""
    outermost: list[_Span] = []
    open_: dict[int, list[_Span]] = {}
    for event in sorted(events, key=lambda e: (e.start, -e.duration)):
        found = _Span(event.name, event.category, event.start, event.start + event.duration)
        around = open_.setdefault(event.thread, [])
        while around and around[-1].end <= found.start:
            around.pop()
        (around[-1].inner if around else outermost).append(found)
        around.append(found)
    return outermost


def _rows(spans: Sequence[_Span], depth: int, start: int, length: int) -> Iterator[Row]:
    together: dict[str, list[_Span]] = {}
    for span in spans:
        together.setdefault("pass" if span.category == "pass" else span.name, []).append(span)
    for name, group in together.items():
        total = sum(span.end - span.start for span in group)
        if total < _SHORTEST * length:
            continue
        count = len(group)
        if name == "pass":
            name = f"{count} passes" if count > 1 else group[0].name
        elif count > 1:
            name = f"{count} x {name}"
        parts = [((span.start - start) / 1e9, (span.end - start) / 1e9) for span in group]
        yield Row(name, depth, total / 1e9, parts, group[0].category)
        if depth < _DEEPEST and group[0].category != "pass":
            yield from _rows([inner for span in group for inner in span.inner], depth + 1, start, length)
