"""The text of constants, strings, f-strings and template strings.

Up to Python 3.11 the replacement fields of an f-string may hold neither a backslash nor the quotes around the f-string,
so strings inside are told which quotes are left to them (``quotes``; None outside f-strings). From 3.12 on anything may
stand there, but text that the older rule allows is easier to read, so it is tried first.

Example::

    >>> constant_text(float("-inf")), string_text("don't", None)
    ('-1e309', '"don\\'t"')
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import Any

from runtime.python_text import python_ast

_QUOTES = ("'", '"', "'''", '"""')
_FIELDS_ARE_FREE = sys.version_info >= (3, 12)

# The C code that turns integers into decimal text refuses more than 4300 digits.
_LONGEST_DECIMAL_BITS = 14_000


class NoTextError(ValueError):
    """A string can't be written with the quotes that are left; the f-string around it has to choose others."""


def constant_text(value: Any, quotes: tuple[str, ...] | None = None) -> str:
    """The text of a constant; of one that no literal denotes (nan, frozenset), an expression."""
    if value is Ellipsis:
        return "..."
    if isinstance(value, str):
        return string_text(value, quotes)
    if isinstance(value, bytes):
        return _with_quotes(repr(value), quotes)
    if isinstance(value, tuple):
        items = [constant_text(item, quotes) for item in value]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if isinstance(value, frozenset):
        return (
            f"frozenset({{{', '.join(sorted(constant_text(item, quotes) for item in value))}}})"
            if value
            else "frozenset()"
        )
    if isinstance(value, int) and value.bit_length() > _LONGEST_DECIMAL_BITS:
        return hex(value)
    if isinstance(value, (float, complex)):
        # A number too large for a float is read as infinity.
        return repr(value).replace("nan", "(1e309 - 1e309)").replace("inf", "1e309")
    return repr(value)


def string_text(value: str, quotes: tuple[str, ...] | None) -> str:
    """A string literal, in one of ``quotes`` and without a backslash when inside an f-string."""
    return _with_quotes(repr(value), quotes, value)


def docstring_text(value: str) -> str:
    """A docstring as people write them: triple double quotes, its lines as they are."""
    escaped = "".join(_escaped(char, "") if char != "\n" else char for char in value)
    text = '"""' + escaped.replace('"""', '\\"\\"\\"') + '"""'
    if value.endswith('"'):
        text = text[:-4] + '\\""""'
    return text


def fstring_text(node: Any, quotes: tuple[str, ...] | None, field_text: Callable[..., str]) -> str:
    """An f-string or template string; ``field_text(expression, quotes)`` gives the text of a replacement field."""
    prefix = "f" if isinstance(node, ast.JoinedStr) else "t"
    allowed = _QUOTES if quotes is None else quotes
    for quote in allowed:
        inside = tuple(each for each in allowed if each != quote)
        try:
            text = _fstring_body(node, quote, lambda each, inside=inside: field_text(each, inside))  # type: ignore[misc]
        except NoTextError:
            continue
        return f"{prefix}{quote}{text}{quote}"
    if _FIELDS_ARE_FREE:
        return f"{prefix}'" + _fstring_body(node, None, lambda each: field_text(each, None)) + "'"
    raise NoTextError("no quotes are left for an f-string inside f-strings")


def _fstring_body(node: Any, quote: str | None, field_text: Callable[[Any], str], *, in_format: bool = False) -> str:
    pieces: list[str] = []
    for value in node.values:
        if isinstance(value, ast.Constant):
            pieces += [_literal_part(char, quote or "'", in_format=in_format) for char in str(value.value)]
            continue
        field = _written_field(value) or field_text(value.value)
        if quote is not None and (quote in field or "\\" in field or ("\n" in field and len(quote) == 1)):
            raise NoTextError("the field needs what the quotes around it exclude")
        pieces.append("{ " if field.startswith("{") else "{")
        pieces.append(field)
        if value.conversion != -1:
            pieces.append("!" + chr(value.conversion))
        if value.format_spec is not None:
            pieces.append(":" + _fstring_body(value.format_spec, quote, field_text, in_format=True))
        pieces.append("}")
    text = "".join(pieces)
    if quote is not None and not in_format and quote in text:
        raise NoTextError("the pieces together make the closing quotes")
    return text


def _written_field(node: Any) -> str | None:
    """The text of a template's field as it was written, which is part of the template's value.

    None for the fields of f-strings, and for an expression that a pass has changed.
    """
    written: str | None = getattr(node, "str", None)
    if written is None:
        return None
    try:
        value = python_ast(f"({written})", mode="eval").body
    except SyntaxError:
        return None
    return written if ast.dump(value) == ast.dump(node.value) else None


def _literal_part(char: str, quote: str, *, in_format: bool) -> str:
    if char in "{}":
        # Doubled braces don't stand for one inside a format.
        return f"\\x{ord(char):02x}" if in_format else char * 2
    if in_format and char == "\\":
        return "\\\\"
    return _escaped(char, quote)


def _escaped(char: str, quote: str) -> str:
    if char == "\\":
        return "\\\\"
    if quote and char == quote[0]:
        return "\\" + char
    return char if char.isprintable() else repr(char)[1:-1]


def _with_quotes(text: str, quotes: tuple[str, ...] | None, value: str | None = None) -> str:
    """``text``, the repr of a string or bytes, in other quotes where it must be."""
    if quotes is None:
        return text
    if "\\" not in text:
        prefix = text[: text.index(text[-1])]
        content = text[len(prefix) + 1 : -1]
        for quote in quotes:
            if quote[0] not in content:
                return f"{prefix}{quote}{content}{quote}"
    elif value is not None and not any(char == "\\" or (char != "\n" and not char.isprintable()) for char in value):
        for quote in quotes:
            if quote[0] not in value and (len(quote) == 3 or "\n" not in value):
                return f"{quote}{value}{quote}"
    raise NoTextError(f"no quotes are left for {text}")
