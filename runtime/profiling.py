"""Profiles: what the program does when, in spans, for whoever asks while it runs.

    profile = start()
    f(x)
    stop(profile)
    profile.events  →  [Event(start, duration, thread, "trace", "trace f", {}), ...]

Whatever takes time opens a `span`: conversion, tracing, passes, compilers, kernels, copies. While nobody records that
costs a look at `recording`. Several profiles may record at once; each gets the spans of all threads that begin and end
while it does, and, cut short, those that are open when it stops.
"""

from __future__ import annotations

import gc
import itertools
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from runtime.context import block_inline_caches

# Spans of these categories are finer than those that they stand in: a profile of level 1 leaves them out.
FINE = frozenset({"pass", "op", "call-out", "copy", "collection"})
# More events than this are counted, not kept: a profile left running must not fill the memory.
MOST_EVENTS = 1_000_000


class Event(NamedTuple):
    """A span: nanoseconds of `time.perf_counter_ns`, the number of its thread, and what it was."""

    start: int
    duration: int
    thread: int
    category: str
    name: str
    arguments: dict[str, Any]


class Profile:
    """What was recorded.

    events   spans in the order of their ends
    threads  the names of threads by their numbers
    dropped  how many events were too many
    graphs   the graphs that functions ran, each once, in order; None: not asked for
    """

    def __init__(self, level: int = 2, graphs: bool = False) -> None:
        """level: 0 no spans, 1 all but the fine ones, 2 all."""
        self.level = level
        self.events: list[Event] = []
        self.threads: dict[int, str] = {}
        self.dropped = 0
        self.graphs: dict[Any, None] | None = {} if graphs else None
        self.began = self.ended = time.perf_counter_ns()

    def add(self, event: Event, thread_name: str) -> None:
        """Keeps an event that began while the profile was recording."""
        if event.start < self.began or not self.level or (self.level < 2 and event.category in FINE):
            return
        if len(self.events) >= MOST_EVENTS:
            self.dropped += 1
            return
        self.threads.setdefault(event.thread, thread_name)
        self.events.append(event)

    def seconds(self, category: str) -> float:
        """How long spans of a category took, nested ones counted once."""
        spans = sorted((e.thread, e.start, e.start + e.duration) for e in self.events if e.category == category)
        total, thread, until = 0, -1, 0
        for number, start, end in spans:
            if number != thread:
                thread, until = number, start
            total += max(0, end - max(start, until))
            until = max(until, end)
        return total / 1e9


# The profiles that record now; a tuple that is replaced, never mutated.
recording: tuple[Profile, ...] = ()
_lock = threading.Lock()
_open: dict[int, Span] = {}  # by id
_numbers = itertools.count(1)


class _Thread(threading.local):
    """The current thread in profiles. Identifiers of ended threads are used again, numbers aren't."""

    def __init__(self) -> None:
        self.number = next(_numbers)

    @property
    def name(self) -> str:
        return threading.current_thread().name


_thread = _Thread()


class Span:
    __slots__ = ("arguments", "category", "name", "number", "start", "thread_name")

    def __init__(self, category: str, name: str, arguments: dict[str, Any]) -> None:
        self.category, self.name, self.arguments = category, name, arguments

    def __enter__(self) -> Span:
        self.number, self.thread_name = _thread.number, _thread.name
        _open[id(self)] = self
        self.start = time.perf_counter_ns()
        return self

    def __exit__(self, *exception: Any) -> None:
        event = self.event(time.perf_counter_ns())
        _open.pop(id(self), None)
        for profile in recording:
            profile.add(event, self.thread_name)

    def event(self, now: int) -> Event:
        return Event(self.start, now - self.start, self.number, self.category, self.name, self.arguments)


_NOTHING: AbstractContextManager[None] = nullcontext()


def span(category: str, name: str, **arguments: Any) -> AbstractContextManager[Any]:
    """A block that profiles show."""
    return Span(category, name, arguments) if recording else _NOTHING


def timed(category: str, name: str, function: Callable[..., Any], **arguments: Any) -> Callable[..., Any]:
    """`function`, whose calls profiles show."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with span(category, name, **arguments):
            return function(*args, **kwargs)

    return call


def note_graph(graph: Any) -> None:
    """Says that a function ran a graph."""
    for profile in recording:
        if profile.graphs is not None:
            profile.graphs.setdefault(graph)


def start(level: int = 2, graphs: bool = False) -> Profile:
    """A new profile, which records from now on, in all threads. Calls of functions go through Python meanwhile."""
    global recording
    profile = Profile(level, graphs)
    with _lock:
        if not recording:
            gc.callbacks.append(_collect)
        recording = (*recording, profile)
    block_inline_caches(1)
    return profile


def stop(profile: Profile) -> None:
    """Ends a profile. Does nothing if it has ended."""
    global recording
    with _lock:
        if profile not in recording:
            return
        recording = tuple([p for p in recording if p is not profile])
        if not recording:
            gc.callbacks.remove(_collect)
        profile.ended = now = time.perf_counter_ns()
        for each in list(_open.values()):
            event = each.event(now)
            profile.add(event._replace(arguments={**event.arguments, "unfinished": True}), each.thread_name)
        if not recording:
            _open.clear()
    block_inline_caches(-1)


_collections: dict[int, Span] = {}  # by thread


def _collect(phase: str, info: dict[str, int]) -> None:
    """Python's garbage collector calls this before and after its work."""
    number = _thread.number
    if phase == "start":
        _collections[number] = Span("collection", f"garbage collection {info['generation']}", {})
        _collections[number].__enter__()
    elif number in _collections:
        _collections.pop(number).__exit__()
