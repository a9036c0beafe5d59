"""What `ag.config.optimizer` and `ag.config.threading` get and set. Nothing is accepted silently that has no effect."""

from __future__ import annotations

import warnings

from runtime.engine import settings


def get_jit() -> bool | None:
    """When functions that don't say it themselves are compiled: True before the first run, False never, None aside."""
    return settings.jit_mode(None)


def set_jit(enabled: bool | str | None) -> None:
    """How functions run that have no `jit_compile` of their own: it has the meanings of that argument.

    enabled: True (or TensorFlow's "autoclustering"), False, or None, the default. Raises ValueError for others.
    """
    mode = True if enabled == "autoclustering" else enabled
    if mode not in (True, False, None) or isinstance(mode, str):
        raise ValueError(f"set_jit takes True, False, None or 'autoclustering', got {enabled!r}")
    settings.set_jit(mode)  # type: ignore[arg-type]


def get_intra_op_parallelism_threads() -> int:
    """1: an operation runs on the thread that calls it. (NumPy's linear algebra has threads of its own.)"""
    return 1


def get_inter_op_parallelism_threads() -> int:
    """1: operations of a program run one after another."""
    return 1


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Warns unless `num_threads` is 0 (as the system likes) or 1: an operation runs on one thread."""
    _one_thread(num_threads)


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Warns unless `num_threads` is 0 (as the system likes) or 1: operations run one after another."""
    _one_thread(num_threads)


def _one_thread(wanted: int) -> None:
    if wanted not in (0, 1):
        warnings.warn(f"{wanted} threads were asked for, but one is used", UserWarning, stacklevel=3)
