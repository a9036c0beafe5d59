"""``raise`` in staged code: the error is raised when the program gets there, at the user's line.

A ``raise`` statement of the user's that leaves a branch or loop body that is being traced ends the trace of that block,
and becomes an effect of the program. Within the block it is Python's own, so that ``try`` in the same block works as it
does in Python. A ``try`` around the conditional could not catch it, and so that is a staging error.
"""

from __future__ import annotations

import ast
import dis
import linecache
import sys
from functools import lru_cache
from types import FrameType

from autograph.errors import StagingError, user_location
from autograph.operators.calls import is_library_code
from runtime.ops.control import raise_op

_RAISE = dis.opmap["RAISE_VARARGS"]


class AlwaysRaises(StagingError):
    """Whatever way the program takes here, it raises; what follows can't be reached."""


def stage_raise(error: BaseException) -> bool:
    """Makes an error that leaves a traced block part of the program, if a ``raise`` of the user's raised it."""
    if isinstance(error, AlwaysRaises):
        return True
    if not isinstance(error, Exception) or isinstance(error, StagingError):
        return False
    traceback = error.__traceback__
    if traceback is None:
        return False
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    frame = traceback.tb_frame
    if is_library_code(frame.f_code, frame.f_globals):
        return False
    if frame.f_code.co_code[traceback.tb_lasti] != _RAISE:
        return False
    _refuse_handlers(error)
    raise_op(type(error), error.args, (frame.f_code.co_filename, traceback.tb_lineno, frame.f_code.co_name))
    return True


def _refuse_handlers(error: Exception) -> None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if "ag__" in frame.f_code.co_freevars:
            for handler in _handlers_around(frame.f_code.co_filename, frame.f_lineno):
                if _catches(handler, frame, error):
                    raise StagingError(
                        f"{type(error).__name__} is raised under a condition on a tensor, and a `try` around the "
                        "condition would catch it",
                        location=user_location(),
                        cause="whether it is raised is known only at run time, when the `try` is long over",
                        fix="put the `try` into the branch, or set a flag instead of raising",
                    ) from error
        frame = frame.f_back


def _catches(handler: str, frame: FrameType, error: Exception) -> bool:
    if not handler:
        return True
    try:
        return isinstance(error, eval(handler, frame.f_globals, frame.f_locals))
    except Exception:
        # A name that isn't bound yet, or no exception class: then Python would fail too, but only when it gets there.
        return True


def _handlers_around(filename: str, line: int) -> list[str]:
    """The types that the ``except`` clauses around a line catch, as text; empty for a bare one."""
    return [handler for first, last, handlers in _tries(filename) if first <= line <= last for handler in handlers]


@lru_cache(maxsize=64)
def _tries(filename: str) -> list[tuple[int, int, list[str]]]:
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and node.handlers:
            types = [ast.unparse(each.type) if each.type is not None else "" for each in node.handlers]
            found.append((node.body[0].lineno, node.body[-1].end_lineno or 0, types))
    return found
