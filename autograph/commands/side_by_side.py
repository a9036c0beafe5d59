"""Two texts beside each other, matching lines on one level, wrapped to a width, changes coloured.

def step(x, n):            │ def step(x, n):
    while n > 0:           │     def loop_test():
                           │         return n > 0
"""

from __future__ import annotations

import difflib
import textwrap
from itertools import zip_longest

_RED, _GREEN, _PLAIN = "\033[31m", "\033[32m", "\033[0m"


def side_by_side(left: str, right: str, width: int, colour: bool) -> str:
    """The two texts in columns that together take ``width`` characters."""
    column = max((width - 3) // 2, 20)
    before, after = left.splitlines(), right.splitlines()
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    lines: list[str] = []
    for kind, a, b, c, d in matcher.get_opcodes():
        changed = colour and kind != "equal"
        for one, other in zip_longest(before[a:b], after[c:d], fillvalue=""):
            for first, second in zip_longest(_wrapped(one, column), _wrapped(other, column), fillvalue=""):
                lines.append(
                    _painted(first, column, _RED if changed else "")
                    + " │ "
                    + _painted(second, 0, _GREEN if changed else "")
                )
    return "\n".join(line.rstrip() for line in lines)


def _painted(text: str, width: int, colour: str) -> str:
    padded = text.ljust(width)
    return f"{colour}{padded}{_PLAIN}" if colour and text else padded


def _wrapped(line: str, width: int) -> list[str]:
    line = line.expandtabs(4)
    if len(line) <= width:
        return [line]
    indent = " " * min(len(line) - len(line.lstrip()) + 8, width // 2)
    return textwrap.wrap(line, width, subsequent_indent=indent, drop_whitespace=False, break_on_hyphens=False)
