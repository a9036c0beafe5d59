"""`tf.compat.v1.logging`: TensorFlow's logger by its old names."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from typing import Any

_logger = logging.getLogger("tensorflow")
_reached: Counter[tuple[str, int]] = Counter()


def _count_of_caller() -> int:
    """How often the line that calls has been reached, with this time."""
    frame = sys._getframe(2)
    place = frame.f_code.co_filename, frame.f_lineno
    _reached[place] += 1
    return _reached[place]


def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Logs every n-th time that a line is reached, and the first."""
    log_if(level, msg, (_count_of_caller() - 1) % n == 0, *args)


def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Logs the first n times that a line is reached."""
    log_if(level, msg, _count_of_caller() <= n, *args)


def log_if(level: int, msg: str, condition: Any, *args: Any) -> None:
    """Logs if a condition holds."""
    if condition:
        _logger.log(level, msg, *args)


def vlog(level: int, msg: str, *args: Any, **options: Any) -> None:
    """Logs what is for developers: the higher its level, the more of it there is."""
    _logger.log(logging.DEBUG - level, msg, *args)


def flush() -> None:
    """Writes what handlers have kept."""
    for handler in _logger.handlers:
        handler.flush()


MODULES: dict[str, dict[str, Any]] = {
    "tensorflow.compat.v1.logging": {
        **{name: getattr(logging, name) for name in ("DEBUG", "ERROR", "FATAL", "INFO", "WARN")},
        **{name: getattr(_logger, name) for name in ("debug", "error", "fatal", "info", "log", "warning")},
        "TaskLevelStatusMessage": _logger.info,
        "flush": flush,
        "get_verbosity": _logger.getEffectiveLevel,
        "log_every_n": log_every_n,
        "log_first_n": log_first_n,
        "log_if": log_if,
        "set_verbosity": _logger.setLevel,
        "vlog": vlog,
        "warn": _logger.warning,
    }
}
