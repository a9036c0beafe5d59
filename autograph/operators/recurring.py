"""Which functions may call themselves, as far as the names in their text tell: only these are watched in traces."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from autograph.operators.calls import is_library
from autograph.operators.state import read_cell
from runtime.code_memos import remembered

# Functions that are looked at, at most, to find out whether one may call itself.
_MOST_FUNCTIONS = 200


@remembered(1024)
def _answers(code: CodeType) -> dict[tuple[int, ...], bool]:
    """What has been found out of functions with this code, by the code of the functions in their closures."""
    return {}


def may_recur(function: FunctionType) -> bool:
    """Whether a function may call itself, by way of others too, as far as the names in its text tell."""
    if function.__name__ == "__call__":
        return True  # calls of objects name no function
    held = [read_cell(cell) for cell in function.__closure__ or ()]
    key = tuple(id(each.__code__) for each in held if type(each) is FunctionType)
    answers = _answers(function.__code__)
    known = answers.get(key)
    if known is None:
        known = answers[key] = _reaches(function)
    return known


def _reaches(start: FunctionType) -> bool:
    waiting: list[FunctionType] = [start]
    seen: set[int] = set()  # ids of code
    while waiting and len(seen) < _MOST_FUNCTIONS:
        function = waiting.pop()
        if id(function.__code__) in seen:
            continue
        seen.add(id(function.__code__))
        names = _names(function.__code__)
        if start.__name__ in names and start.__name__ != "<lambda>":
            return True
        found = [value for value in _meant(function, names) if type(value) is FunctionType]
        if any(each.__code__ is start.__code__ for each in found):
            return True
        waiting += [each for each in found if not is_library(each)]
    return False


def _names(code: CodeType) -> set[str]:
    """The names of globals, attributes and variables of functions around that some code mentions."""
    found = {*code.co_names, *code.co_freevars}
    for nested in code.co_consts:
        if isinstance(nested, CodeType):
            found |= _names(nested)
    return found


def _meant(function: FunctionType, names: set[str]) -> Iterator[Any]:
    """The functions that names in a function's text may stand for."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    owner = function.__globals__.get(function.__qualname__.partition(".")[0])
    for name in names:
        values = [read_cell(cells[name])] if name in cells else []
        values += [function.__globals__.get(name), getattr(owner, name, None) if isinstance(owner, type) else None]
        for value in values:
            if isinstance(value, ModuleType):  # some answer for names that they don't have, and slowly
                continue
            value = getattr(value, "python_function", value) if not isinstance(value, type) else value
            if type(value) is MethodType:
                value = value.__func__
            if isinstance(value, type):
                yield from (member for member in vars(value).values() if type(member) is FunctionType)
            elif value is not None:
                yield value
