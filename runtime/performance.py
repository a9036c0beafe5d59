"""Warnings about programs that are right, but far slower than they need be.

    PerformanceWarning: a loop was unrolled while 'render' was traced, which made 4200 operations
      march.py:17, in march
        for _ in range(100):
      cause: ...
      fix: ...

Each is given once for a function and a place, and points at that place, so that filters of `warnings` apply to it.
"""

from __future__ import annotations

import warnings

from runtime.errors import PerformanceWarning, describe_span

# Seconds of tracing and compiling a function, above which a loop that was unrolled in it is named; of interpreting a
# loop that can't be compiled; and of what kernels call Python for, if that is also more than this part of their time.
SLOW_COMPILATION = 1.0
SLOW_INTERPRETATION = 1.0
SLOW_CALL_OUTS = 0.1
LARGE_PART_OF_CALL_OUTS = 0.5

Span = tuple[str, int, str]

# What has been said: (kind, function, file, line).
_said: set[tuple[str, str, str, int]] = set()


def warn_once(kind: str, function: str, span: Span, message: str, cause: str, fix: str) -> None:
    """Warns at a user's line, unless that has been said of the function and the line. kind: tells warnings about one
    place apart."""
    file, line, _ = span
    key = kind, function, file, line
    if key in _said:
        return
    _said.add(key)  # first: a filter may make an error of the warning
    place = describe_span(span).replace("\n", "\n  ")
    text = f"{message}\n  {place}\n  cause: {cause}\n  fix: {fix}"
    warnings.warn_explicit(text, PerformanceWarning, file, line)


def forget() -> None:
    """Forgets which warnings have been given, so that each may be given again."""
    _said.clear()
