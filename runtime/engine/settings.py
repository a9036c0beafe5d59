"""Process-wide switches of the engine, for `ag.config` and for tests."""

from __future__ import annotations

import threading

from runtime.codegen.backends.driver import Counters, counters
from runtime.engine import background

_default: bool | None = None
_deterministic = False
_lock = threading.Lock()
_background_errors: list[Exception] = []


def set_jit(mode: bool | None) -> None:
    """The default of `jit_compile`: True compiles before the first run, None in the background, False never."""
    global _default
    _default = mode


def jit_mode(own: bool | None) -> bool | None:
    """The mode of a function whose `jit_compile` is `own`."""
    mode = _default if own is None else own
    return True if mode is None and _deterministic else mode


def set_deterministic(on: bool) -> None:
    """Whether the choice of a tier must not depend on time. Then None means True, and loops in partly interpreted
    graphs are replaced by native code at the same trip in each run (`on_stack_replacement.FixedTierUp`)."""
    global _deterministic
    _deterministic = on


def is_deterministic() -> bool:
    """Whether `set_deterministic` is on."""
    return _deterministic


def wait_for_background(timeout: float | None = None) -> bool:
    """Waits until all requested kernels are compiled; False after `timeout` seconds.

    Raises the first error that a background compilation met with `AUTOGRAPH_STRICT=1`.
    """
    done = background.worker.wait(timeout)
    with _lock:
        failed = _background_errors[:]
        _background_errors.clear()
    if failed:
        raise failed[0]
    return done


def note_background_error(error: Exception) -> None:
    with _lock:
        _background_errors.append(error)


def kernel_counters() -> Counters:
    """The numbers of kernels compiled, loaded from the cache, and shared in this process."""
    return counters
