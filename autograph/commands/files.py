"""What commands take: `FILE.py:function`, `FILE.py`, `-:function`, `-`; read and parsed, never run."""

from __future__ import annotations

import difflib
import re
import sys
import tokenize
from importlib import metadata
from typing import Any

from autograph.syntax.definitions import Definition, definitions
from autograph.syntax.parse import parse
from runtime.dataclass import dataclass

STDIN = "<stdin>"
DISTRIBUTION = "autograph-numba"
# Lines of a notebook that aren't Python: %magic, !command, ?help.
_MAGIC = re.compile(r"^([ \t]*)([%!?].*)$", re.MULTILINE)


def installed_version() -> str:
    """The version of this project, as installed."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "(not installed)"


class UsageError(Exception):
    """Something that the person at the keyboard can correct, told in one line."""


@dataclass(frozen=True)
class File:
    """A parsed file; ``path`` is for messages."""

    path: str
    text: str
    module: Any

    def definition(self, name: str) -> Definition:
        """The function of that dotted name; of two, the last one counts, as in Python. Raises UsageError."""
        wanted = name.replace(".<locals>", "")
        known = {found.name: found for found in definitions(self.module)}
        if wanted in known:
            return known[wanted]
        if not known:
            raise UsageError(f"no function {name!r} in {self.path}: the file defines no functions")
        members = [other for other in known if other.startswith(f"{wanted}.")]
        if members:
            raise UsageError(f"no function {name!r} in {self.path}: it is a class with the methods {_some(members)}")
        same_ending = [other for other in known if other.endswith(f".{wanted}")]
        close = same_ending or difflib.get_close_matches(wanted, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(close)}?" if close else f"the file defines {_some([*known])}"
        raise UsageError(f"no function {name!r} in {self.path}: {hint}")

    def outermost(self) -> list[Definition]:
        """The functions that aren't inside others: converting them converts all."""
        found = [*definitions(self.module)]
        inside = {id(inner) for each in found for inner in _nested(each.node)}
        return [each for each in found if id(each.node) not in inside]

    def source_of(self, definition: Definition) -> str:
        """The lines of a function, decorators included."""
        node = definition.node
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        return "\n".join(self.text.splitlines()[first - 1 : node.end_lineno])


def _nested(node: Any) -> list[Any]:
    found = []
    waiting = [getattr(node, "body", [])]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting.extend(part)
        elif hasattr(part, "_fields"):
            found.append(part)
            waiting.extend(getattr(part, field, None) for field in part._fields)
    return found


def split(target: str) -> tuple[str, str | None]:
    """The path and the function's name in `FILE.py:function`; the name is None in `FILE.py`. Raises UsageError."""
    path, colon, name = target.rpartition(":")
    if target == "-" or (not colon and target.endswith(".py")):
        return target, None
    if not (colon and path and name):
        raise UsageError(f"expected FILE.py:function, got {target!r}")
    return path, name


def read(path: str) -> File:
    """Reads and parses a file, or standard input for ``-``. Raises UsageError."""
    text = _text(path)
    shown = STDIN if path == "-" else path
    try:
        try:
            return File(shown, text, parse(text, shown))
        except SyntaxError:
            plain = _MAGIC.sub(r"\1pass  # \2", text)
            if plain == text:
                raise
            return File(shown, text, parse(plain, shown))
    except SyntaxError as error:
        raise UsageError(f"{shown}:{error.lineno}: syntax error: {error.msg}") from error
    except (ValueError, RecursionError) as error:  # null bytes (before Python 3.12); absurd nesting
        raise UsageError(f"{shown}: not Python source: {error}") from error


def _text(path: str) -> str:
    if path in ("-", STDIN):
        return sys.stdin.read()
    try:
        with tokenize.open(path) as file:  # honours a coding cookie and a byte-order mark
            return file.read()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except (SyntaxError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot decode {path}: {error}") from error


def _some(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
