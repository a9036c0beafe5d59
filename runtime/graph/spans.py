"""Spans in messages: where in the user's file something went wrong."""

from __future__ import annotations

import linecache
from typing import Any

AT_SPAN = "\n  at "


def describe_span(span: Any) -> str:
    """`file.py:12, in f` and the source line, or '' when the span is unknown."""
    if not span:
        return ""
    filename, line, function = span
    source = linecache.getline(filename, line).strip()
    text = f"{filename}:{line}, in {function}"
    return f"{text}\n    {source}" if source else text


def at_span(error: Exception, span: Any) -> Exception:
    """The error with the user's line in its message; unchanged when it names one already."""
    if not span or not error.args or not isinstance(error.args[0], str) or AT_SPAN in error.args[0]:
        return error
    message = f"{error.args[0]}{AT_SPAN}{describe_span(span)}"
    error.args = (message, *error.args[1:])
    if hasattr(error, "message"):
        error.message = message
    return error
