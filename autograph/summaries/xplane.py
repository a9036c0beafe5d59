"""Profiles as files in TensorFlow's format, which TensorBoard's plugin for profiles (xprof) opens.

    XSpace   1 planes, 3 warnings, 4 names of hosts
    XPlane   1 id, 2 name, 3 lines, 4 metadata of events, 5 metadata of stats (maps: 1 key, 2 value)
    XLine    1 id, 2 name, 3 begin in nanoseconds since 1970, 4 events
    XEvent   1 id of metadata, 2 offset and 3 duration in picoseconds, 4 stats
    XStat    1 id of metadata, 2 float, 4 integer, 5 text
    metadata 1 id, 2 name

The process is one plane, each of its threads a line, each span an event; its category and arguments are stats.
"""

from __future__ import annotations

import numbers
import struct
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from runtime.ops.strings import wire
from runtime.profiling import Event, Profile
from runtime.storage.files import write_atomically

PLANE = "/host:CPU"  # what TensorFlow calls it


class _Names:
    """Metadata: names that events or stats refer to by numbers."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers) + 1)

    def encoded(self, field: int) -> bytes:
        """The fields of a plane's map."""
        entries = [(number, _integer(1, number) + _text(2, name)) for name, number in self._numbers.items()]
        return b"".join(wire.field(field, _integer(1, number) + wire.field(2, entry)) for number, entry in entries)


def encoded(profile: Profile, host: str, began: int) -> bytes:
    """The profile as a message of TensorFlow's type XSpace.

    host: the machine's name. began: when the profile began, in nanoseconds since 1970.
    """
    events, stats = _Names(), _Names()
    lines: dict[int, list[Event]] = defaultdict(list)
    for event in sorted(profile.events, key=lambda e: (e.start, -e.duration)):
        lines[event.thread].append(event)
    content = []
    for number, spans in sorted(lines.items()):
        head = _integer(1, number) + _text(2, profile.threads[number]) + _integer(3, began)
        content.append(head + b"".join(wire.field(4, _event(each, profile, events, stats)) for each in spans))
    plane = _integer(1, 1) + _text(2, PLANE) + b"".join(wire.field(3, line) for line in content)
    warning = _text(3, f"{profile.dropped} spans were too many and were dropped") if profile.dropped else b""
    return wire.field(1, plane + events.encoded(4) + stats.encoded(5)) + warning + _text(4, host)


def _event(event: Event, profile: Profile, events: _Names, stats: _Names) -> bytes:
    times = _integer(2, (event.start - profile.began) * 1000) + _integer(3, event.duration * 1000)
    found = {"category": event.category, **event.arguments}
    parts = [wire.field(4, _integer(1, stats.number(name)) + _value(value)) for name, value in found.items()]
    return _integer(1, events.number(event.name)) + times + b"".join(parts)


def _value(value: Any) -> bytes:
    """A stat's value."""
    if isinstance(value, numbers.Integral) and -(1 << 63) <= int(value) < 1 << 63:  # also a bool
        return _integer(4, int(value))
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return wire.varint(2 << 3 | wire.FIXED64) + struct.pack("<d", float(value))
    return _text(5, str(value))


def _integer(field: int, value: int) -> bytes:
    return wire.integer_field(field, value)


def _text(field: int, text: str) -> bytes:
    return wire.field(field, text.encode(errors="replace"))


def write(profile: Profile, path: Path, host: str) -> None:
    """Writes the profile; the file is there whole or not at all."""
    began = time.time_ns() - (time.perf_counter_ns() - profile.began)
    content = encoded(profile, host, began)

    def put(place: str) -> None:
        Path(place).write_bytes(content)

    write_atomically(path, put)
