"""Two texts beside each other, matching lines on one level, wrapped to a width, changes coloured.

def step(x, n):            │ def step(x, n):
    while n > 0:           │     def loop_test():
                           │         return n > 0
"""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterator
from itertools import zip_longest

_RED, _GREEN, _PLAIN = "\033[31m", "\033[32m", "\033[0m"


def side_by_side(left: str, right: str, width: int, colour: bool) -> str:
    """The two texts in columns that together take ``width`` characters."""
    column = max((width - 3) // 2, 20)
    lines: list[str] = []
    for changed, one, other in aligned(left, right):
        red, green = (_RED, _GREEN) if changed and colour else ("", "")
        for first, second in zip_longest(_wrapped(one, column), _wrapped(other, column), fillvalue=""):
            lines.append(f"{_painted(first, column, red)} │ {_painted(second, 0, green)}")
    return "\n".join(line.rstrip() for line in lines)


def aligned(left: str, right: str) -> Iterator[tuple[bool, str, str]]:
    """The lines of the two texts in pairs, "" where one has none, each with whether they differ."""
    before, after = left.splitlines(), right.splitlines()
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        for one, other in zip_longest(before[a:b], after[c:d], fillvalue=""):
            yield kind != "equal", one, other


def _painted(text: str, width: int, colour: str) -> str:
    padded = text.ljust(width)
    return f"{colour}{padded}{_PLAIN}" if colour and text else padded


def _wrapped(line: str, width: int) -> list[str]:
    line = line.expandtabs(4)
    if len(line) <= width:
        return [line]
    indent = " " * min(len(line) - len(line.lstrip()) + 8, width // 2)
    return textwrap.wrap(line, width, subsequent_indent=indent, drop_whitespace=False, break_on_hyphens=False)
