"""Objects of C code whose state no attribute shows: weak references, views of bytes, streams, queues, caches.

A `Frame` follows them to what they stand for, and finds by an answer of theirs whether a block has changed them, which
is refused: no program carries them.
"""

from __future__ import annotations

import functools
import io
import os
import queue
import sys
import weakref
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from autograph.errors import StagingError, user_location
from runtime.context import ctx

_CACHE = type(functools.lru_cache(lambda: None))
_PROXIES = (weakref.ProxyType, weakref.CallableProxyType)


def referents(value: Any) -> Sequence[tuple[str, Any]] | None:
    """What an object stands for, with the step that leads there; None for objects that their attributes tell all of."""
    kind = type(value)
    if kind in _PROXIES:
        try:
            return [("", value.__repr__.__self__)]
        except ReferenceError:
            return []
    if isinstance(value, weakref.ReferenceType):
        return [("()", value())]
    if kind is memoryview:
        try:
            return [(".obj", value.obj)]
        except ValueError:  # it has been released
            return []
    if kind is _CACHE:
        return [("", value.__wrapped__)]
    return None


def answer_of(value: Any) -> Callable[[Any], Any] | None:
    """The function that tells the state of an object of C code; None for any other."""
    kind = type(value)
    if isinstance(value, (io.StringIO, io.BytesIO)):
        return None if value.closed else _of_stream
    if kind is queue.SimpleQueue:
        return queue.SimpleQueue.qsize
    if kind is type(os.environ):
        return dict
    if "ctypes" in sys.modules and any(each.__module__ == "_ctypes" for each in kind.__mro__):
        return None if isinstance(value, type) else bytes
    return None


def _of_stream(stream: Any) -> Any:
    return None if stream.closed else (stream.tell(), stream.getvalue())


# By root builder the streams that its program prints to.
_printed: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
_READING = frozenset({"getvalue", "read", "readline", "readlines", "seek", "tell", "truncate"})


def note_printed(root: Any, stream: Any) -> None:
    """Remembers that the program of a trace prints to a stream of text."""
    if isinstance(stream, io.TextIOBase):
        _printed.setdefault(root, []).append(stream)


def refuse_read(root: Any, stream: Any, name: str) -> None:
    """Raises StagingError where a method of a stream would tell now what the program prints later."""
    if name in _READING and any(each is stream for each in _printed.get(root, ())):
        raise StagingError(
            f"{name}() of a stream that a branch or loop on tensors prints to",
            location=user_location(),
            cause="it would be called while the function is traced, before anything is printed",
            fix="call it outside of the function, or use ag.py_function",
        )


class Answer:
    """What an object of C code answered when this was made."""

    def __init__(self, way: Any, owner: Any, ask: Callable[[Any], Any]) -> None:
        self.way = way
        self.owner = owner
        self.ask = ask
        self.before = ask(owner)

    @property
    def place(self) -> Any:
        return "answer", id(self.owner)

    def changed(self) -> bool:
        """Whether it answers something else."""
        return bool(self.ask(self.owner) != self.before)

    def refuse(self) -> Any:
        """Raises the StagingError for its change."""
        kind = type(self.owner).__name__
        raise StagingError(
            f"'{self.way}', of class {kind}, is changed in a branch or loop on tensors",
            location=user_location(),
            cause="whether and how often that happens is known only at run time, but such an object isn't part of the "
            "program",
            fix="change it outside of the staged code, use a list or tensor, or call ag.py_function",
        )


# --- functions that remember what they gave ------------------------------------------------------------------------


def is_cache(callee: Any) -> bool:
    """Whether a function is one of ``functools.cache`` or ``functools.lru_cache``."""
    return type(callee) is _CACHE


# By root builder the functions with caches that its program calls in staged blocks.
_called: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()


def refuse_counts(root: Any, callee: Any, name: str) -> None:
    """Raises StagingError where a method of a cache counts, or drops, what staged blocks have called."""
    is_called = any(each is callee for each in _called.get(root, ()))
    if name in ("cache_info", "cache_clear") and (is_called or ctx.builder.parent is not None):
        raise StagingError(
            f"{name}() of {getattr(callee, '__name__', 'a function')}(), whose results are cached and which a branch "
            "or loop on tensors calls",
            location=user_location(),
            cause="the calls are made while the function is traced, a few for all runs of the block",
            fix="ask outside of the traced function, or count the calls in a variable",
        )


def cached(callee: Any, root: Any, changes_of: Callable[[FunctionType], Callable[[], bool]]) -> Callable[..., Any]:
    """What to call in a staged block for a function that remembers results: that, if it does nothing but give them.

    root: the trace that is being made. changes_of: begins to watch what a function changes; what it gives tells
    whether something has.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        _called.setdefault(root, []).append(callee)
        misses = callee.cache_info().misses
        has_changed = changes_of(callee.__wrapped__)
        result = callee(*args, **kwargs)
        if callee.cache_info().misses != misses and has_changed():
            name = getattr(callee, "__name__", "the function")
            raise StagingError(
                f"{name}(), whose results are cached, changes state in a branch or loop on tensors",
                location=user_location(),
                cause="the block is traced several times for all of its runs, and only the first call does anything",
                fix=f"call {name}() before the staged code, or don't cache it",
            )
        return result

    return call
