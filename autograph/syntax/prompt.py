"""The text of what was typed at Python's interactive prompt.

Up to Python 3.12 the prompt tells nobody what was typed. But where lines can be edited, they are kept in readline's
history. The statement that a function came from is found there by compiling what may be it, latest first,
and comparing code objects, so nothing is ever guessed.
"""

from __future__ import annotations
import __future__

import functools
import operator
import sys
import types
from collections.abc import Iterator

from autograph.syntax.compiled import same_code
from runtime.python_text import without_syntax_warnings

FILENAME = "<stdin>"
# How many lines of history are looked through, and how long a statement may be.
_HISTORY, _LONGEST = 5000, 500
# What may stand at the margin within a statement; brackets hold one open too.
_CONTINUED = ("elif", "else", "except", "finally")
_FUTURE = functools.reduce(operator.or_, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names))


def typed_lines(code: types.CodeType) -> list[str]:
    """The lines of the statement typed at the prompt that made `code`, each with its line end; empty if unknown."""
    readline = sys.modules.get("readline")
    if code.co_filename != FILENAME or readline is None:
        return []
    count = readline.get_current_history_length()
    lines = [readline.get_history_item(i + 1) or "" for i in range(max(count - _HISTORY, 0), count)]
    return statement_of(code, lines)


def statement_of(code: types.CodeType, history: list[str]) -> list[str]:
    """The latest run of lines in `history` that compiles to a statement with exactly this code in it, or none."""
    flags = code.co_flags & _FUTURE
    for start in range(len(history) - 1, -1, -1):
        if history[start][:1].isspace():
            continue
        for end in range(start + 1, min(start + _LONGEST, len(history)) + 1):
            line = history[end - 1]
            # A line at the margin begins another statement, but for `else` and the like, and what brackets hold open.
            at_margin = end - start > 1 and not line[:1].isspace() and not line.startswith(_CONTINUED)
            if at_margin and _compiled(history[start : end - 1], flags) is not None:
                break
            if code.co_name not in "\n".join(history[start:end]) and code.co_name != "<lambda>":
                continue
            whole = _compiled(history[start:end], flags)
            if whole is not None and any(_same(each, code) for each in _codes(whole)):
                return [f"{each}\n" for each in history[start:end]]
    return []


def _compiled(lines: list[str], flags: int) -> types.CodeType | None:
    try:
        with without_syntax_warnings():
            return compile("\n".join(lines) + "\n", FILENAME, "single", flags, dont_inherit=True)
    except (SyntaxError, ValueError, OverflowError):
        return None


def _same(one: types.CodeType, other: types.CodeType) -> bool:
    # Not `one == other`, whose time is exponential in how deep functions stand in one another.
    return [*one.co_lines()] == [*other.co_lines()] and same_code(one, other)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield each
            yield from _codes(each)
