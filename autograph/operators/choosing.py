"""What Python code asks of a `Choice` is asked of each of its objects; the program selects the answer.

phase.value              →  where(index == 0, 0, 1)
phase is Phase.BUSY      →  index == 1
COST[phase]              →  where(index == 0, COST[Phase.IDLE], COST[Phase.BUSY])
phase.next(x)            →  a conditional with a call in each branch
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from enum import EnumMeta, Flag
from types import FunctionType, MethodDescriptorType
from typing import Any

from autograph.errors import StagingTypeError, user_location
from autograph.operators.builtins import OVERLOADS
from autograph.operators.calls import attribute, converted_form, install_methods, install_search
from autograph.operators.choices import Alternatives, Choice, TextChoice, among, holds, refuse
from autograph.operators.iterables import ListItems
from autograph.operators.keys import get
from autograph.operators.objects import as_key, refuse_copies
from autograph.operators.selecting import call, raise_at_run_time, select, selected
from autograph.operators.special_methods import BINARY, COMPARISONS, operate, operate_alone
from autograph.operators.staged_strings import (
    call_method,
    character,
    characters,
    percent_of,
    refused,
)
from autograph.operators.staged_strings import install as install_strings
from autograph.operators.symbolic import symbolic
from runtime import dtypes
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.compare import equal, logical_or, where

_METHODS = (FunctionType, MethodDescriptorType, classmethod, staticmethod)


def _attribute(choice: Choice, name: str) -> Any:
    if name.startswith("__") and name.endswith("__") and name not in ("__name__", "__qualname__"):
        raise AttributeError(name)  # asked by Python for itself: the class has those that matter
    if all(each is None or type(each) is str for each in choice.ag_alternatives):
        getattr("", name)  # Python's own error
        return _TextMethod(choice, name)
    members = [
        next((vars(base)[name] for base in type(each).__mro__ if name in vars(base)), None)
        for each in choice.ag_alternatives
    ]
    if any(isinstance(member, _METHODS) for member in members):
        return _Method(choice, name)
    if any(type(member) is property for member in members):
        return call(choice, lambda each: attribute(each, name))
    return select(choice, lambda each: getattr(each, name))


class _Method:
    """A method of the chosen object."""

    def __init__(self, choice: Choice, name: str) -> None:
        self._choice, self._name = choice, name

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        def called(each: Any) -> Any:
            return converted_form(getattr(each, self._name))(*arguments, **options)

        error = AttributeError(f"'NoneType' object has no attribute '{self._name}'")
        return call(_present(self._choice, error), called, arguments, options)


class _TextMethod:
    """A method of the chosen string, which changes nothing."""

    def __init__(self, choice: Choice, name: str) -> None:
        self._choice, self._name = choice, name

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        error = AttributeError(f"'NoneType' object has no attribute '{self._name}'")
        present = _present(self._choice, error)
        return select(present, lambda each: call_method(each, self._name, arguments, options))


def _called(self: Choice, *given: Any, **options: Any) -> Any:
    present = _present(self, TypeError("'NoneType' object is not callable"))
    return call(present, lambda each: converted_form(each)(*given, **options), given, options)


def _present(choice: Choice, error: Exception) -> Choice:
    """The choice without None, for which the program raises an error when it gets here."""
    objects = Alternatives([each for each in choice.ag_alternatives if each is not None])
    if not objects or len(objects) == len(choice.ag_alternatives):
        return choice
    raise_at_run_time(error, unless=holds(choice, [choice.ag_alternatives.position(each) for each in objects]))
    return among(choice, objects)


def _binary(symbol: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    return (
        lambda self, other: select(self, lambda each: operate(each, symbol, other)),
        lambda self, other: select(self, lambda each: operate(other, symbol, each)),
    )


def _iterated(self: Choice) -> Iterator[Any]:
    rows = [tuple(each) for each in self.ag_alternatives]
    if len({len(row) for row in rows}) > 1:
        refuse(self, "is run over", "give all of the objects the same length")
    return iter([selected(self, list(column)) for column in zip(*rows)])


def _characters(self: TextChoice) -> Any:
    """What a loop over the chosen string runs over: None for Python, where all have the same length."""
    return None if len(set(map(len, self.ag_alternatives))) == 1 else ListItems(characters(self))


def _known(self: Choice, what: str, function: Callable[[Any], Any]) -> Any:
    """What Python needs now: the same of all objects."""
    found = select(self, function)
    if type(found) not in (bool, int, float, complex):
        refuse(self, f"is asked for its {what} by code that isn't converted", f"ask for it before: `{what}(x)`")
    return found


def _with_each(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python's that changes nothing: of choices what it gives for their objects."""

    def called(*arguments: Any, **options: Any) -> Any:
        for position, given in enumerate(arguments):
            if isinstance(given, Choice):
                before, after = arguments[:position], arguments[position + 1 :]
                return select(given, lambda each: called(*before, each, *after, **options))  # noqa: B023  it runs at once
        return function(*arguments, **options)

    called.__name__, called.__doc__ = getattr(function, "__name__", "called"), function.__doc__
    return called


def _member(kind: EnumMeta, *arguments: Any, **options: Any) -> Any:
    """``Phase(value)``: the member with a value, which may be known only when the program runs."""
    value = arguments[0] if len(arguments) == 1 and not options else None
    if isinstance(value, Choice):
        return select(value, lambda each: _member(kind, each))
    if symbolic(value) is not None and issubclass(kind, Flag):
        raise StagingTypeError(
            f"{kind.__name__}(...) of a number that is known only when the program runs",
            location=user_location(),
            cause="flags have a member for each combination, and the program would have to make it",
            fix="combine members with |, & and ~, or compute with their `.value`",
        )
    if symbolic(value) is None:
        return kind(*arguments, **options)
    members = Alternatives.of(*kind.__members__.values())
    index, found = convert_to_tensor(0, dtypes.int32), convert_to_tensor(False)
    for position, each in enumerate(members):
        same = equal(value, each.value)
        index, found = where(same, position, index), logical_or(found, same)
    error = ValueError(f"this is not a valid {kind.__qualname__}")
    raise_at_run_time(error, unless=found)
    return Choice(index, members)


def _by_identity(function: Callable[[Any], int]) -> Callable[[Any], Any]:
    """``id`` or ``hash``: of a copy of objects what it gives for these."""

    def called(value: Any) -> Any:
        key = as_key(value, function.__name__)
        return select(key, function) if isinstance(key, Choice) else function(key)

    return called


def install() -> None:
    """Gives `Choice` its methods, and the functions of Python's that take choices their form in traces."""
    methods: dict[str, Any] = {
        "__getattr__": _attribute,
        "__call__": _called,
        "__getitem__": lambda self, key: select(self, lambda each: each[key]),
        "__iter__": _iterated,
        "__bool__": lambda self: _known(self, "bool", bool),
        "__len__": lambda self: _known(self, "len", len),
        "__int__": lambda self: _known(self, "int", int),
        "__float__": lambda self: _known(self, "float", float),
        "__index__": lambda self: _known(self, "int", operator.index),
        "__abs__": lambda self: select(self, abs),
    }
    for symbol, name in {"-": "neg", "+": "pos", "~": "invert"}.items():
        methods[f"__{name}__"] = lambda self, symbol=symbol: select(self, lambda each: operate_alone(symbol, each))
    for symbol, (_, name, reflected) in BINARY.items():
        forward, backward = _binary(symbol)
        methods[name] = forward
        if symbol not in COMPARISONS:
            methods[reflected] = backward
    for name, method in methods.items():
        setattr(Choice, name, method)
    text: Any = TextChoice
    text.__getitem__, text.__mod__ = character, percent_of
    text.__str__, text.__format__ = refused("str"), refused("format")
    text.__staged_items__ = _characters
    install_strings(OVERLOADS)
    install_methods(lambda name: OVERLOADS.get(getattr(str, name)))
    OVERLOADS[id], OVERLOADS[hash] = _by_identity(id), _by_identity(hash)
    install_search(refuse_copies)
    for function in (
        bool,
        int,
        float,
        str,
        abs,
        len,
        ord,
        ascii,
        isinstance,
        issubclass,
        type,
        getattr,
        hasattr,
        callable,
        repr,
    ):
        OVERLOADS[function] = _with_each(OVERLOADS.get(function, function))
    OVERLOADS[EnumMeta.__call__] = _member
    OVERLOADS[dict.get] = get
