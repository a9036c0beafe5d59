"""Which values wait in expressions of the functions being traced, where no variable holds them.

    change(rows[0], swap(rows))     # while `swap` is traced, only this expression still has what was `rows[0]`

They lie on the stacks of frames, which can't be looked into. The bytecode tells which places of a stack are taken, and
by what instructions; what these could reach may lie there. Where it isn't understood, all may that a function names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from autograph.operators.calls import is_library
from autograph.operators.live import ATOMS, frames_from, may_hold_anything, places_of
from runtime.bytecode import Place, places_at
from runtime.interpreter import understands

Originals = Callable[[Any], Iterable[Any]]


Expression = tuple[int, CodeType, int, int]


def may_wait(value: Any, originals: Originals) -> bool:
    """Whether an expression of a function that is being traced may have an object that it has not used yet.

    originals: what a copy stands for, which expressions may have had before it.
    """
    return any(_reaches(held, place, value, originals) for _, place, held in _waiting(sys._getframe(1)))


def expressions_with(values: Iterable[Any]) -> list[Expression]:
    """The expressions that may have one of some objects: for each its frame's id and code, and where it stands."""
    values = list(values)
    return [
        (id(frame), frame.f_code, frame.f_lasti if understands(frame.f_code) else 0, place.last)
        for frame, place, held in _waiting(sys._getframe(1))
        if any(_reaches(held, place, value, lambda _: ()) for value in values)
    ]


def are_running(expressions: Iterable[Expression]) -> bool:
    """Whether one of some expressions has not used its values yet."""
    frames = {id(frame): frame for frame in frames_from(sys._getframe(1))}
    return any(
        key in frames and frames[key].f_code is code and first <= frames[key].f_lasti <= last
        for key, code, first, last in expressions
    )


def _waiting(frame: FrameType) -> Iterator[tuple[FrameType, Place, list[Any]]]:
    """The places of the stacks that may have a container, each with the values of its variables."""
    for each in frames_from(frame):
        places = _places(each)
        variables = each.f_locals if places else {}
        for place in places:
            values = [variables[name] if name in variables else each.f_globals.get(name) for name in place.names]
            held = [value for value in values if type(value) not in ATOMS and not _is_harmless(value)]
            if held:
                yield each, place, held


def _reaches(held: list[Any], place: Place, value: Any, originals: Originals) -> bool:
    if not place.is_plain:
        return _reach(held, value, originals)
    return any(each is value or any(before is value for before in originals(each)) for each in held)


def _is_harmless(found: Any) -> bool:
    return isinstance(found, (type, ModuleType)) or (type(found) is FunctionType and is_library(found))


def _reach(held: list[Any], value: Any, originals: Originals) -> bool:
    """Whether an object can be reached from others, through what copies among these stand for, and globals."""
    waiting, seen = list(held), {id(each): each for each in held}
    while waiting:
        each = waiting.pop()
        if each is value or may_hold_anything(each):
            return True
        if _is_harmless(each):
            continue
        places = places_of(each)
        items = list(() if places is None else places.values() if hasattr(places, "values") else places)
        if type(each) is FunctionType:
            items += _globals_of(each.__code__, each.__globals__)
        for item in [*items, *originals(each)]:
            if type(item) not in ATOMS and id(item) not in seen:
                seen[id(item)] = item
                waiting.append(item)
    return False


def _globals_of(code: CodeType, namespace: dict[str, Any]) -> Iterator[Any]:
    for name in code.co_names:
        if name in namespace and not isinstance(namespace[name], ModuleType):
            yield namespace[name]
    for nested in code.co_consts:
        if isinstance(nested, CodeType):
            yield from _globals_of(nested, namespace)


def _places(frame: FrameType) -> tuple[Place, ...]:
    """The places of a frame's stack. Where its bytecode isn't understood, one that may have all that it names."""
    code = frame.f_code
    if understands(code):
        return places_at(code, frame.f_lasti)
    return (Place((*code.co_varnames, *code.co_cellvars, *code.co_freevars, *code.co_names), False, len(code.co_code)),)
