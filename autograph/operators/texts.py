"""f-strings in what is printed or raised: tensors in them show the values that they have when the program runs.

ag__.text(f"x is {ag__.shown(x):.2f}")
ag__.percent("x is %.2f", x)
"""

from __future__ import annotations

import itertools
import operator
import re
import string as string_module
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from autograph.operators.builtins import OVERLOADS
from autograph.operators.choices import Choice, texts_of
from autograph.operators.selecting import select
from autograph.operators.staged_strings import FORMS, asked, is_staged_text, represented, unknown
from autograph.operators.symbolic import symbolic, visible
from runtime import dtypes
from runtime.context import ctx
from runtime.ops.convert import has_dtype
from runtime.ops.elementwise.elementary import cast
from runtime.ops.flags import is_flag
from runtime.ops.staged_number import StagedNumber, is_text
from runtime.ops.strings.staged_string import AS_REPR, AS_STR, StagedText, shown_with
from runtime.tensor import SymbolicTensor

# A conversion of the ``%`` operator: the key, flags, width, precision and type.
_CONVERSION = re.compile(r"%(?:\((?P<key>[^)]*)\))?(?P<flags>[#0\- +]*)(?P<width>\d*)(?P<precision>\.\d*)?(?P<type>.)")
_MARK = re.compile("\\0(\\d+)\\0")


# By root builder what the f-strings that are being put together show, by the number of its mark: pieces of a text.
_marks: WeakKeyDictionary[Any, dict[int, tuple[Any, ...]]] = WeakKeyDictionary()
_numbers = itertools.count()
# By the numbers that syntax trees have for them.
_CONVERSIONS: dict[int, Callable[[Any], str]] = {ord("s"): str, ord("r"): repr, ord("a"): ascii}


def _found() -> dict[int, tuple[Any, ...]]:
    builder = ctx.builder
    while builder.parent is not None:
        builder = builder.parent
    return _marks.setdefault(builder, {})


def _mark(*pieces: Any) -> str:
    """Stands for pieces of a text in an f-string, where `text` finds them."""
    number = next(_numbers)
    _found()[number] = pieces
    return f"\0{number}\0"


class _Shown:
    """Stands for a symbolic tensor in an f-string."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __format__(self, spec: str) -> str:
        return _mark((self.tensor, spec))

    def __str__(self) -> str:
        return format(self, "")

    __repr__ = __str__


class _ShownChoice:
    """What an f-string formats in place of an object that a tensor chooses: the alternatives' texts are known while
    tracing, the choice isn't."""

    __slots__ = ("choice",)

    def __init__(self, choice: Choice) -> None:
        self.choice = choice

    def __format__(self, spec: str) -> str:
        return _mark(texts_of(self.choice, lambda each: format(each, spec)))

    def __str__(self) -> str:
        return _mark(texts_of(self.choice, str))

    def __repr__(self) -> str:
        return _mark(texts_of(self.choice, repr))


class _ShownString:
    """What an f-string formats in place of a string that is known only at run time."""

    __slots__ = ("string",)

    def __init__(self, string: Any) -> None:
        self.string = string

    def __format__(self, spec: str) -> str:
        if spec:
            return _mark(_piece(asked(format, self.string, spec, result="")))
        return _mark(*self.string.pieces) if type(self.string) is StagedText else _mark(_piece(self.string))

    def __str__(self) -> str:
        return format(self, "")

    def __repr__(self) -> str:
        return _mark(_piece(represented(self.string, repr)))


def _piece(string: Any) -> tuple[Any, None]:
    return string.wide(), None


def _converted(value: Any, how: int | None) -> Any:
    """What a conversion gives: that of ``f"{value!r}"``."""
    if how is None:
        return value
    function = _CONVERSIONS[how]
    if ctx.builder is None:
        return function(value)
    if type(value) is SymbolicTensor and not is_flag(value):
        return StagedText((value, AS_STR if function is str else AS_REPR))
    if type(value) is StagedNumber or is_flag(value):
        return StagedText((visible(value), ""))
    return OVERLOADS[function](value)


def shown(value: Any, how: int | None = None) -> Any:
    """A value of an f-string; how: its conversion."""
    value = _converted(value, how)
    if ctx.builder is None:
        return value
    if isinstance(value, Choice):
        return _ShownChoice(value)
    if is_staged_text(value):
        return _ShownString(value)
    tensor = visible(value)
    return value if tensor is None or isinstance(value, list) else _Shown(tensor)


def formatted(value: Any, spec: Any = "", how: int | None = None) -> Any:
    """``format(value, spec)``, where either may be known only when the program runs."""
    value = _converted(value, how)
    if ctx.builder is None:
        return format(value, spec)
    if isinstance(spec, Choice):
        return select(spec, lambda each: formatted(value, each))
    if is_staged_text(spec):
        if type(value) is SymbolicTensor:
            kind = value.dtype.np
            return asked(lambda value, spec: shown_with(np.asarray(value, kind)[()], spec), value, spec, result="")
        return asked(format, value, spec, result="", raises=ValueError)
    if isinstance(value, Choice):
        return select(value, lambda each: format(each, spec))
    return text(format(shown(value), spec))


def text(string: str) -> str:
    """The f-string, which holds marks if there were tensors in it."""
    if ctx.builder is None or type(string) is not str or "\0" not in string:
        return string
    found = _found()
    pieces: list[Any] = []
    for at, part in enumerate(_MARK.split(string)):
        if at % 2 == 0:
            pieces += [part] if part else []
        else:
            pieces += found.pop(int(part), (f"\0{part}\0",))
    return string if all(isinstance(each, str) for each in pieces) else StagedText(*pieces)


def _format(template: Any, given: Sequence[Any], options: dict[str, Any]) -> Any:
    """``template.format(...)``."""
    if type(template) is str:
        if _shows_parts(template):
            return template.format(*given, **options)
        values = [*map(shown, given)], {name: shown(value) for name, value in options.items()}
        return text(template.format(*values[0], **values[1]))
    if any(map(has_dtype, (*given, *options.values()))):
        raise unknown("format", "a tensor is shown by a text that is known while tracing")
    names = tuple(options)

    def called(template: str, *values: Any) -> str:
        end = len(values) - len(names)
        return template.format(*values[:end], **dict(zip(names, values[end:])))

    return asked(called, template, *given, *options.values(), result="")


def _shows_parts(template: str) -> bool:
    """Whether fields of a text show attributes or items of what is given, or have specifications with fields."""
    try:
        fields = [(name or "", spec or "") for _, name, spec, _ in string_module.Formatter().parse(template)]
    except ValueError:
        return True  # Python's own error
    return any("." in name or "[" in name or "{" in spec for name, spec in fields)


FORMS["format"] = _format
OVERLOADS[format] = formatted


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
        tensor = None if is_text(value) else visible(value)
        if isinstance(value, Choice):
            pieces.append(texts_of(value, lambda each: conversion % (each,)))  # noqa: B023  it runs at once
        elif is_staged_text(value):
            if field["type"] not in "sr":
                conversion % ("",)  # Python's own error
            pieces.append(_piece(asked(operator.mod, conversion, value, result="")))
        elif tensor is None:
            pieces.append(conversion % (value,))
        else:
            pieces.append(_formatted(tensor, field))
    return StagedText(*pieces, template[end:])


def _is_staged(value: Any) -> bool:
    if isinstance(value, Choice) or is_staged_text(value):
        return True
    return symbolic(value) is not None and not isinstance(value, list)


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
