"""f-strings in what is printed or raised: tensors in them show the values that they have when the program runs.

ag__.text(f"x is {ag__.shown(x):.2f}")
ag__.percent("x is %.2f", x)
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

from autograph.operators.choices import Choice, texts_of
from autograph.operators.symbolic import symbolic, visible
from runtime import dtypes
from runtime.context import ctx
from runtime.ops.elementwise.elementary import cast
from runtime.ops.strings.staged_string import StagedText

# A conversion of the ``%`` operator: the key, flags, width, precision and type.
_CONVERSION = re.compile(r"%(?:\((?P<key>[^)]*)\))?(?P<flags>[#0\- +]*)(?P<width>\d*)(?P<precision>\.\d*)?(?P<type>.)")
_MARK = re.compile("\\0(\\d+)\\0")


class _Marks(threading.local):
    """The tensors of the f-strings that are being put together, with their format specifications."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, str | tuple[str, ...]]] = []


_marks = _Marks()


class _Shown:
    """Stands for a symbolic tensor in an f-string: becomes a mark that `text` finds."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __format__(self, spec: str) -> str:
        _marks.found.append((self.tensor, spec))
        return f"\0{len(_marks.found) - 1}\0"

    def __str__(self) -> str:
        return format(self, "")

    __repr__ = __str__


class _ShownChoice:
    """The same for an object that a tensor chooses, of which the text is known but for which it is."""

    __slots__ = ("choice",)

    def __init__(self, choice: Choice) -> None:
        self.choice = choice

    def __format__(self, spec: str) -> str:
        return self._marked(lambda each: format(each, spec))

    def __str__(self) -> str:
        return self._marked(str)

    def __repr__(self) -> str:
        return self._marked(repr)

    def _marked(self, show: Callable[[Any], str]) -> str:
        _marks.found.append(texts_of(self.choice, show))
        return f"\0{len(_marks.found) - 1}\0"


def shown(value: Any) -> Any:
    """A value of an f-string."""
    if ctx.builder is None:
        return value
    if type(value) is Choice:
        return _ShownChoice(value)
    tensor = visible(value)
    return value if tensor is None or isinstance(value, list) else _Shown(tensor)


def text(string: str) -> str:
    """The f-string, which holds marks if there were tensors in it."""
    if not _marks.found or ctx.builder is None:
        return string
    parts = _MARK.split(string)
    if len(parts) == 1:
        return string
    found, _marks.found = _marks.found, []
    return StagedText(*[part if at % 2 == 0 else found[int(part)] for at, part in enumerate(parts) if at % 2 or part])


def percent(template: str, values: Any) -> str:
    """``template % values``; where tensors are among the values, the text that has their values when it is shown."""
    given = values if type(values) in (tuple, dict) else (values,)
    each_given = given.values() if isinstance(given, dict) else given
    fields = list(_CONVERSION.finditer(template))
    shows = [each["type"] for each in fields if each["type"] != "%"]
    if (
        ctx.builder is None
        or not any(map(_is_staged, each_given))
        or not all(kind in "diuxXoeEfFgGsr" for kind in shows)
    ):
        return template % values
    if not isinstance(given, dict) and len(given) != len(shows):
        return template % tuple([0 if _is_staged(value) else value for value in given])  # Python's own error
    remaining = iter(each_given)
    pieces: list[Any] = []
    end = 0
    for field in fields:
        pieces.append(template[end : field.start()])
        end = field.end()
        if field["type"] == "%":
            pieces.append("%")
            continue
        value = given[field["key"]] if isinstance(given, dict) else next(remaining)
        # Without its key the conversion takes the value itself.
        conversion = re.sub(r"^%\([^)]*\)", "%", field[0])
        tensor = visible(value)
        if type(value) is Choice:
            pieces.append(texts_of(value, lambda each: conversion % (each,)))  # noqa: B023  it runs at once
        elif tensor is None:
            pieces.append(conversion % (value,))
        else:
            pieces.append(_formatted(tensor, field))
    return StagedText(*pieces, template[end:])


def _is_staged(value: Any) -> bool:
    return type(value) is Choice or (symbolic(value) is not None and not isinstance(value, list))


def _formatted(tensor: Any, field: re.Match[str]) -> tuple[Any, str]:
    """A tensor with the format specification that does what a conversion of the ``%`` operator does."""
    kind, flags = field["type"], field["flags"]
    if kind in "sr" and not (field["width"] or field["precision"]):
        return tensor, ""
    if kind in "diuxXo":
        tensor = tensor if tensor.dtype.is_integer else cast(tensor, dtypes.int64)
        kind = "d" if kind in "iu" else kind
    sign = "+" if "+" in flags else " " if " " in flags else ""
    align = "<" if "-" in flags else "0" if "0" in flags and kind not in "sr" else ">" if kind in "sr" else ""
    alternate = "#" if "#" in flags else ""
    spec = f"{align}{sign}{alternate}" if align in ("<", ">") else f"{sign}{alternate}{align}"
    return tensor, f"{spec}{field['width']}{field['precision'] or ''}{kind if kind not in 'sr' else ''}"
