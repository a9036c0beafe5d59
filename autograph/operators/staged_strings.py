"""What Python code asks of a string that is known only when the program runs: Python answers it then.

    len(marks)                →  the number of characters
    marks.upper()             →  a call of Python's `str.upper` when the program gets there
    for mark in marks         →  a loop over the characters

`+`, `==`, `!=` and `len` are ops on string tensors; everything else is a call of the program (impure.py), so that it
means exactly what Python means. What Python must answer while tracing, as the hash of a string, is refused. A string
that a branch chooses from known ones is a choice (choosing.py), which is asked of each of them while tracing.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from autograph.errors import StagingTypeError, user_location
from autograph.operators.choices import Choice, TextChoice, as_string
from autograph.operators.host_calls import run_anew
from autograph.operators.iterables import ListItems
from autograph.operators.raising import refuse_to_catch
from autograph.operators.selecting import select
from autograph.operators.symbolic import symbolic
from runtime import dtypes
from runtime.context import ctx
from runtime.ops.convert import convert_to_tensor, has_dtype
from runtime.ops.elementwise.compare import equal, logical_not, not_equal
from runtime.ops.flags import flagged, is_flag
from runtime.ops.staged_number import StagedNumber, is_number, is_text
from runtime.ops.strings.staged_string import AS_STR, StagedString, StagedText, decoded
from runtime.ops.strings.string_ops import length
from runtime.staged_list import StagedList
from runtime.tensor import SymbolicTensor, Tensor

# What the methods of strings give, by an example.
_RESULTS: dict[str, Any] = {
    **dict.fromkeys(
        ("capitalize", "casefold", "center", "expandtabs", "format", "format_map", "join", "ljust", "lower", "lstrip",
         "removeprefix", "removesuffix", "replace", "rjust", "rstrip", "strip", "swapcase", "title", "translate",
         "upper", "zfill", "__mul__", "__rmul__", "__mod__"), ""),
    **dict.fromkeys(
        ("endswith", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric",
         "isprintable", "isspace", "istitle", "isupper", "startswith", "__lt__", "__le__", "__gt__", "__ge__"), True),
    **dict.fromkeys(("count", "find", "index", "rfind", "rindex"), 0),
    **dict.fromkeys(("partition", "rpartition"), ("", "", "")),
    **{name: [""] for name in ("rsplit", "split", "splitlines")},
    "encode": b"",
}  # fmt: skip
METHODS = tuple([name for name in _RESULTS if not name.startswith("_")])
# Those that other modules know how to stage.
FORMS: dict[str, Callable[[Any, Sequence[Any], dict[str, Any]], Any]] = {}
_RAISING = {"index": ValueError, "rindex": ValueError}


def is_staged_text(value: Any) -> bool:
    """Whether a value is a string that is known only when the program runs."""
    return is_text(value) and type(value) is not str


def asked(function: Callable[..., Any], *given: Any, result: Any, raises: type[Exception] | None = None) -> Any:
    """What a function of Python's that changes nothing gives when the program runs.

    result: something of its kind. raises: the error that it may raise then.
    """
    for position, value in enumerate(given):
        if isinstance(value, Choice) and type(value) is not TextChoice:
            before, after = given[:position], given[position + 1 :]
            return select(value, lambda each: asked(function, *before, each, *after, result=result, raises=raises))  # noqa: B023  it runs at once
    if raises is not None:
        refuse_to_catch(raises())
    return run_anew(function, [_plain(each) for each in given], {}, lambda *_: result)


def _plain(value: Any) -> Any:
    """An argument as calls of the program take it."""
    if is_staged_text(value):
        return as_string(value)
    if isinstance(value, StagedList):
        return value.rows()
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


def call_method(text: Any, name: str, given: Sequence[Any], options: dict[str, Any]) -> Any:
    """``text.name(*given, **options)`` of a string, known or not, with arguments that may not be known."""
    if type(text) is TextChoice:
        if any(map(_is_staged, (*given, *options.values()))):  # it may fail for one that isn't the string
            return call_method(as_string(text), name, given, options)
        return select(text, lambda each: call_method(each, name, given, options))
    if name in FORMS:
        return FORMS[name](text, given, options)
    if type(text) is str and not any(map(_is_staged, (*given, *options.values()))):
        return getattr(text, name)(*given, **options)
    if name not in _RESULTS:
        getattr("", name)  # Python's own error
        raise unknown(name)
    names = tuple(options)
    result = _RESULTS[name]

    def called(text: str, *values: Any) -> Any:
        end = len(values) - len(names)
        found = getattr(text, name)(*values[:end], **dict(zip(names, values[end:])))
        return _array(found) if type(result) is list else found

    values = (*given, *options.values())
    raises = _RAISING.get(name)
    if type(result) is list:
        return _list(asked(called, text, *values, result=_array([]), raises=raises))
    return asked(called, text, *values, result=result, raises=raises)


def _is_staged(value: Any) -> bool:
    if type(value) in (tuple, list):
        return any(map(_is_staged, value))
    return isinstance(value, Choice | StagedList) or is_staged_text(value) or symbolic(value) is not None


def joined(text: Any, items: Any) -> Any:
    """``text.join(items)``."""
    if isinstance(items, StagedList):
        return asked(lambda text, rows: text.join(map(decoded, rows)), text, items, result="")
    if type(text) is str and not any(map(_is_staged, items)):
        return text.join(items)
    return asked(str.join, text, list(items), result="")


def _array(items: Sequence[str]) -> np.ndarray:
    """A list of strings as the array that a call of the program gives."""
    made = np.empty(len(items), object)
    made[:] = [each.encode() for each in items]
    return made


def _list(tensor: Any) -> StagedList:
    """The list of the strings that a tensor holds."""
    return StagedList.of_rows(tensor).with_numbers((dtypes.string,))


def characters(text: Any) -> StagedList:
    """The characters of a string."""
    return _list(asked(_array, text, result=_array([])))


def length_of(text: Any) -> StagedNumber:
    """``len(text)``."""
    return StagedNumber(length(text.wide(), unit="UTF8_CHAR"), dtypes.int32)


def contains(text: Any, part: Any) -> Any:
    """``part in text``."""
    if not is_text(part):
        raise TypeError(f"'in <string>' requires string as left operand, not {type(part).__name__}")
    return asked(operator.contains, text, part, result=True)


def represented(text: Any, function: Callable[[Any], str]) -> Any:
    """``repr(text)`` or ``ascii(text)``."""
    return asked(function, text, result="")


# --- operators -----------------------------------------------------------------------------------------------------


def _add(one: Any, other: Any) -> Any:
    for value in (one, other):
        if isinstance(value, Tensor):
            return convert_to_tensor(one, dtypes.string) + convert_to_tensor(other, dtypes.string)
        if not is_text(value):
            raise TypeError(f'can only concatenate str (not "{_class_of(value)}") to str')
    return StagedString(convert_to_tensor(one) + convert_to_tensor(other))


def _class_of(value: Any) -> str:
    return value.kind.__name__ if type(value) is StagedNumber else type(value).__name__


def _equal(self: Any, other: Any) -> Any:
    if isinstance(other, Tensor):
        return equal(self.wide(), other) if other.dtype is dtypes.string else False
    return flagged(equal(self.wide(), convert_to_tensor(other))) if is_text(other) else False


def _not_equal(self: Any, other: Any) -> Any:
    found = _equal(self, other)
    return not found if type(found) is bool else flagged(logical_not(found))


def _repeated(self: Any, count: Any) -> Any:
    if not (is_number(count) or isinstance(count, Tensor)) or _class_of(count) == "float":
        raise TypeError(f"can't multiply sequence by non-int of type '{_class_of(count)}'")
    return asked(operator.mul, self, count, result="")


def character(text: Any, index: Any) -> Any:
    """``text[index]`` of a string, known or not, at an index or slice that may not be known."""
    if type(text) is TextChoice:
        bounds = (index.start, index.stop, index.step) if type(index) is slice else (index,)
        if any(map(_is_staged, bounds)):
            return character(as_string(text), index)
        return select(text, lambda each: each[index])
    if type(index) is slice:
        parts = index.start, index.stop, index.step
        if type(text) is str and not any(map(_is_staged, parts)):
            return text[index]
        return asked(lambda text, *bounds: text[slice(*bounds)], text, *parts, result="")
    if type(text) is str and not _is_staged(index):
        return text[index]
    return asked(operator.getitem, text, index, result="", raises=IndexError)


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    function = getattr(operator, name.strip("_"))

    def compared(self: Any, other: Any) -> Any:
        return asked(function, self, other, result=True) if is_text(other) else NotImplemented

    return compared


def _method(name: str) -> Callable[..., Any]:
    return lambda self, *given, **options: call_method(self, name, given, options)


def unknown(question: str, why: str = "") -> StagingTypeError:
    return StagingTypeError(
        f"`{question}` of a string that is known only when the program runs",
        location=user_location(),
        cause=why or "Python needs the answer while the function is traced",
        fix="ask it in converted code, by a method or operator of strings, or keep a number beside the string",
    )


def refused(question: str) -> Callable[..., NoReturn]:
    def refuse(self: Any, *_: Any) -> NoReturn:
        raise unknown(question)

    return refuse


def staged_methods() -> dict[str, Callable[..., Any]]:
    """The methods of what stands for a string, by name."""
    methods: dict[str, Callable[..., Any]] = {name: _method(name) for name in METHODS}
    methods |= {name: _comparison(name) for name in ("__lt__", "__le__", "__gt__", "__ge__")}
    methods |= {
        "__add__": lambda self, other: _add(self, other),
        "__radd__": lambda self, other: _add(other, self),
        "__mul__": _repeated,
        "__rmul__": _repeated,
        "__mod__": percent_of,
        "__eq__": _equal,
        "__ne__": _not_equal,
        "__getitem__": character,
        "__bool__": lambda self: bool(not_equal(self.wide(), "")),
        "__contains__": lambda self, part: contains(self, part),
        "__hash__": refused("hash"),
        "__staged_items__": lambda self: ListItems(characters(self)),
    }
    return methods


def percent_of(text: Any, values: Any) -> Any:
    """``text % values``."""
    given = values if type(values) is tuple else (values,)
    if type(text) is TextChoice and not any(map(_is_staged, given)):
        return select(text, lambda each: each % values)
    if any(map(has_dtype, given)):
        raise unknown("%", "a tensor is shown by a text that is known while tracing")
    return asked(lambda text, *values: text % values, text, *given, result="")


_INSTALLED: Any = StagedString


def install(overloads: dict[Any, Callable[..., Any]]) -> None:
    """Gives `StagedString` its methods, and the functions of Python's that take strings their form in traces."""
    for name, method in staged_methods().items():
        setattr(_INSTALLED, name, method)
    for name in ("__iter__", "__len__", "__int__", "__float__", "__index__", "__str__", "__format__"):
        setattr(_INSTALLED, name, refused(name.strip("_")))
    for name in METHODS:
        overloads[getattr(str, name)] = _overload(name)
    _extend(overloads, len, length_of)
    _extend(overloads, int, lambda text, *base: asked(int, text, *base, result=0, raises=ValueError))
    _extend(overloads, float, lambda text: asked(float, text, result=0.0, raises=ValueError))
    _extend(overloads, ord, lambda text: asked(ord, text, result=0, raises=TypeError))
    _extend(overloads, str, lambda text: text)
    for function in (repr, ascii):
        _extend(overloads, function, lambda text, function=function: represented(text, function))
    known = overloads.get(builtins.str, builtins.str), overloads.get(builtins.chr, builtins.chr)
    overloads[builtins.str] = lambda *given, **options: (
        known[0](*given, **options) if options or len(given) != 1 else _text_of(given[0], known[0])
    )
    overloads[builtins.chr] = lambda *given: (
        asked(chr, *given, result="", raises=ValueError) if symbolic(given[0]) is not None else known[1](*given)
    )
    number: Any = StagedNumber
    for name in ("__mul__", "__rmul__"):
        setattr(number, name, _times_text(getattr(number, name)))


def _times_text(of_numbers: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The product of a number, which with a string is this repeated."""
    return lambda self, other: _repeated(other, self) if is_text(other) else of_numbers(self, other)


def _text_of(value: Any, known: Callable[[Any], Any]) -> Any:
    """``str(value)``."""
    if type(value) is StagedNumber:
        return StagedText((value.tensor, ""))
    if type(value) is not SymbolicTensor:
        return known(value)
    return StagedText((value, "" if is_flag(value) else AS_STR))


def _overload(name: str) -> Callable[..., Any]:
    def called(text: Any, *given: Any, **options: Any) -> Any:
        if ctx.builder is None or not is_text(text):
            return getattr(str, name)(text, *given, **options)
        return call_method(text, name, given, options)

    return called


def _extend(overloads: dict[Any, Any], function: Any, of_text: Callable[..., Any]) -> None:
    known = overloads.get(function, function)

    def called(*given: Any, **options: Any) -> Any:
        if given and is_staged_text(given[0]) and type(given[0]) is not TextChoice and not options:
            return of_text(*given)
        return known(*given, **options)

    called.__name__, called.__doc__ = function.__name__, function.__doc__
    overloads[function] = called
