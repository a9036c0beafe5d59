"""Errors of conversion and staging: where in the user's file, what is wrong, why, and what to do about it.

StagingValueError: 'y' has no value in the `else` branch of a conditional on a tensor
  model.py:12, in step
    if x > 0:
    ^
  cause: both branches become part of the program, and 'y' is used after them
  fix: give 'y' a value before the `if`, or in both branches
"""

from __future__ import annotations

import linecache
import sys
import sysconfig
from types import CodeType
from typing import Any

from runtime.dataclass import dataclass
from runtime.errors import is_own_file, keep_refusal, place
from runtime.tracebacks import user_frame

_PACKAGES = sysconfig.get_path("stdlib")  # the standard library's
# What the blocks of a converted function are called.
_BLOCKS = frozenset({"if_body", "else_body", "loop_body", "loop_test", "match_body"})


@dataclass(frozen=True)
class Location:
    """A place in the user's source; ``column`` counts from 0 and may be unknown."""

    filename: str
    line: int
    function: str | None = None
    column: int | None = None

    def describe(self) -> str:
        """The file, line and function; then the source line with a caret under the place."""
        text = place(self.filename, self.line) + (f", in {self.function}" if self.function else "")
        source = linecache.getline(self.filename, self.line).rstrip()
        stripped = source.lstrip()
        if not stripped:
            return text
        indent = len(source) - len(stripped)
        # Columns count UTF-8 bytes; the caret must count characters.
        before = source.encode()[: self.column].decode(errors="ignore") if self.column is not None else ""
        return f"{text}\n    {stripped}\n    {' ' * max(len(before) - indent, 0)}^"


class AutographError(Exception):
    """Base of the errors that name a place in the user's source, a cause and a fix."""

    def __init__(
        self, message: str, *, location: Location | None = None, cause: str | None = None, fix: str | None = None
    ) -> None:
        self.message = message
        self.location = location
        self.cause = cause
        self.fix = fix
        lines = [message]
        if location is not None:
            lines += ["  " + line for line in location.describe().splitlines()]
        if cause:
            lines.append(f"  cause: {cause}")
        if fix:
            lines.append(f"  fix: {fix}")
        super().__init__("\n".join(lines))


class UnconvertedWarning(UserWarning):
    """A function with control flow has no source text to convert."""


class ConversionError(AutographError):
    """A function can't be converted."""


class UnsupportedError(AutographError, NotImplementedError):
    """A function of a kind that can't be traced."""


class StagingError(AutographError):
    """Control flow on tensors can't be staged as it is written."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        keep_refusal(self)


class StagingTypeError(StagingError, TypeError):
    """Values that must agree differ in type, dtype or structure."""


class StagingValueError(StagingError, ValueError):
    """A required value doesn't exist."""


def user_location() -> Location | None:
    """Where the user's code stands that called into this project."""
    frame = user_frame(sys._getframe(1))
    if frame is None:
        return None
    return location_of(frame.f_code, frame.f_lineno, frame.f_lasti)


def raised_at(error: BaseException) -> Location | None:
    """Where the innermost code of the user's stands that an error has come through: neither ours nor a package's."""
    found, entry = None, error.__traceback__
    while entry is not None:
        filename = entry.tb_frame.f_code.co_filename
        if not is_own_file(filename) and not filename.startswith(_PACKAGES) and "site-packages" not in filename:
            found = entry
        entry = entry.tb_next
    return None if found is None else location_of(found.tb_frame.f_code, found.tb_lineno, found.tb_lasti)


def location_of(code: CodeType, line: int, instruction: int) -> Location:
    """The place of an instruction of some code, as frames and tracebacks count them."""
    return Location(code.co_filename, line, _user_function(code), _column(code, instruction))


def _user_function(code: CodeType) -> str:
    """The name of the user's function that a block function was made from, or that a lambda stands in."""
    qualname: str = getattr(code, "co_qualname", code.co_name)
    parts = [part for part in qualname.split(".") if part != "<locals>"]
    while len(parts) > 1 and (parts[-1].startswith("<") or parts[-1].rstrip("_0123456789") in _BLOCKS):
        parts.pop()
    return parts[-1]


def _column(code: CodeType, instruction: int) -> int | None:
    positions = getattr(code, "co_positions", None)  # Python 3.11 and later
    if positions is None:
        return None
    for index, (_, _, column, _) in enumerate(positions()):
        if index == instruction // 2:
            return column
    return None
