"""Per-thread state that a thread takes over when it goes on in another one's place.

The replicas of a strategy do so, one at a time, while the thread that started them waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

_Local = TypeVar("_Local", bound=threading.local)
_propagated: list[tuple[threading.local, tuple[str, ...]]] = []


def propagated(local: _Local, but: tuple[str, ...] = ()) -> _Local:
    """Registers state that belongs to what a thread is doing, rather than to the thread; `but`: names that don't."""
    _propagated.append((local, but))
    return local


def captured_state() -> Callable[[], None]:
    """What gives another thread the state that this one has now."""
    held = [(local, {k: v for k, v in local.__dict__.items() if k not in but}) for local, but in _propagated]

    def restore() -> None:
        for local, state in held:
            # Lists are stacks, and each thread pops what it has pushed.
            local.__dict__.update((k, list(v) if type(v) is list else v) for k, v in state.items())

    return restore
