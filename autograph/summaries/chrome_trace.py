"""Profiles as files in Chrome's trace event format, JSON that Perfetto and chrome://tracing open.

The format is that of "Trace Event Format" (Duffin, Sinclair, 2016): complete events ("X") in microseconds on the
threads of one process, and metadata events ("M") with the names of both.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

from runtime.profiling import Profile
from runtime.storage.files import write_atomically

_PLAIN = (bool, int, float, str, type(None))


def trace_events(profile: Profile) -> list[dict[str, Any]]:
    """The profile's events: metadata first, then spans by their starts, outer ones before those in them."""
    process = os.getpid()
    name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"
    events: list[dict[str, Any]] = [_metadata(process, 0, "process_name", name=name)]
    for number, thread in sorted(profile.threads.items()):
        events.append(_metadata(process, number, "thread_name", name=thread))
        events.append(_metadata(process, number, "thread_sort_index", sort_index=number))
    for event in sorted(profile.events, key=lambda e: (e.start, -e.duration)):
        events.append(
            {
                "ph": "X",
                "pid": process,
                "tid": event.thread,
                "ts": (event.start - profile.began) / 1000,
                "dur": event.duration / 1000,
                "cat": event.category,
                "name": event.name,
                "args": {key: value if type(value) in _PLAIN else str(value) for key, value in event.arguments.items()},
            }
        )
    return events


def _metadata(process: int, thread: int, what: str, **arguments: Any) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": thread, "name": what, "args": arguments}


def write(profile: Profile, path: str | os.PathLike) -> None:
    """Writes the profile, compressed by gzip if the name ends with ".gz"; the file is there whole or not at all."""
    document = {
        "displayTimeUnit": "ns",
        "otherData": {"writer": "autograph", "dropped_events": profile.dropped},
        "traceEvents": trace_events(profile),
    }
    content = json.dumps(document, separators=(",", ":")).encode()
    if os.fspath(path).endswith(".gz"):
        content = gzip.compress(content, 6)

    def put(place: str) -> None:
        Path(place).write_bytes(content)

    write_atomically(Path(path), put)
