"""Which local variables of the functions being traced hold an object and will be read again.

    a = b = [1.0]
    for v in xs:
        a = a + [v]         # while this loop is traced: does `b` matter later?
    b.append(2.0)

No block mentions ``b``, so no closure cell tells. The frames of the functions do, and their bytecode tells whether a
variable is read on some way from where each of them stands. Where it isn't understood, each variable counts as read.
"""

from __future__ import annotations

import gc
import operator
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from ctypes import c_int, py_object, pythonapi
from functools import partial
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any

from autograph.errors import StagingError, is_own_file, user_location
from autograph.operators.attributes import attributes_of
from autograph.operators.libraries import package_of
from autograph.operators.state import Block, read_cell
from runtime.bytecode import read_after, read_from, read_in_expression
from runtime.interpreter import SEES_ITERATORS, referents, understands
from runtime.staged_array import ArrayView
from runtime.staged_list import Moved
from runtime.tensor import EagerTensor, SymbolicTensor
from runtime.thread_state import propagated

ATOMS = frozenset({int, float, bool, str, bytes, complex, type(None), SymbolicTensor, EagerTensor})
# Instances of their classes hold nothing of a program's.
_OTHERS = ("builtins", "numpy", "autograph", "runtime")
# Of iterators and the like that are not the program's own the garbage collector knows what they hold.
_COMPREHENSIONS = "autograph.operators.comprehensions"
# Of iterators over tensors and staged lists the attributes are what they run over.
_ITERABLES = "autograph.operators.iterables"
_DRAWN = "autograph.operators.drawn"
_WITH_REFERENTS = ("builtins", "collections", "_collections", "functools", "itertools", _COMPREHENSIONS, _DRAWN)
LIST_ITERATOR: Any = type(iter([]))
_ITERATORS: tuple[Any, ...] = (LIST_ITERATOR, type(reversed([])), GeneratorType)
TRACE = "autograph.function.trace"


class _Pending(threading.local):
    """What statements that are being traced use later, whether or not a variable holds it.

    The context managers of `with` statements, the frames of generators among these, and the lists that loops run over.
    """

    def __init__(self) -> None:
        self.objects: list[Any] = []


pending = propagated(_Pending())


def is_live(value: Any, in_loops_only: bool = False, without: Collection[str] = ()) -> bool:
    """Whether a local variable of a function that is being traced holds an object and may be read again.

    in_loops_only: of the blocks that are being traced only those of loops run again, and the expression that asks
        doesn't count (``next(items)``).
    without: names of variables that don't count.
    """
    search = _Search(value)
    for frame in frames_from(sys._getframe(1)):
        code = frame.f_code
        # A copy: up to Python 3.12 each question for `f_locals` writes the dictionary anew.
        for name, held in list(frame.f_locals.items()):
            again = name in code.co_freevars and not (in_loops_only and _is_branch(frame))
            if name not in without and search.holds(held) and _is_read(name, frame, again, not in_loops_only):
                return True
        if any(search.holds(frame.f_globals.get(name)) for name in code.co_names):
            return True
    return not in_loops_only and any(search.holds(each) for each in pending.objects)


def is_in_variable(value: Any) -> bool:
    """Whether a local variable of a function that is being traced, or a global that it names, holds an object."""
    search = _Search(value)
    return any(
        any(search.holds(held) for held in frame.f_locals.values())
        or any(search.holds(frame.f_globals.get(name)) for name in frame.f_code.co_names)
        for frame in frames_from(sys._getframe(1))
    ) or any(search.holds(each) for each in pending.objects)


def is_run_over(value: list[Any]) -> bool:
    """Whether an iterator other than a plain one runs over a list and will be used again: enumerate, a generator."""
    holders = _Search(value)
    search = _Search(value, lambda each: type(each) in _ITERATORS and holders.holds(each))
    if any(not _can_follow(each) and search.holds(each) for each in pending.objects):
        return True
    for frame in frames_from(sys._getframe(1)):
        again = frame.f_code.co_freevars
        for name, held in list(frame.f_locals.items()):
            if not _can_follow(held) and search.holds(held) and _is_read(name, frame, name in again, True):
                return True
    return False


def _can_follow(held: Any) -> bool:
    """Whether an object is an iterator for which loops find the staged list that a list has become."""
    kind = type(held)
    return kind is LIST_ITERATOR or (kind.__module__ == _COMPREHENSIONS and not held.has_started)


def is_read_in(blocks: Sequence[Block], value: Any, without: Collection[str] = ()) -> bool:
    """Whether blocks that will run again read a variable that holds an object.

    without: names of variables that don't count.
    """
    search = _Search(value)
    return any(
        name not in without and search.holds(read_cell(cell)) and _is_read_in(block.__code__, name)
        for block in blocks
        for name, cell in zip(block.__code__.co_freevars, block.__closure__ or ())
    )


def rebind(old: Any, new: Any) -> None:
    """Puts one object in the place of another in the variables of the functions that are being traced.

    Also in lists, dictionaries and objects that these hold.
    """
    seen: dict[int, Any] = {}
    for each in pending.objects:
        _exchange(each, old, new, seen)
    for frame in frames_from(sys._getframe(1)):
        variables = frame.f_locals
        names = [name for name, held in variables.items() if held is old]
        for held in list(variables.values()):
            _exchange(held, old, new, seen)
        if names:
            for name in names:
                variables[name] = new
            if sys.version_info < (3, 13):  # since then what is written there is written to the variables
                pythonapi.PyFrame_LocalsToFast(py_object(frame), c_int(0))
            _check_bound(frame, names, new)


def _check_bound(frame: FrameType, names: Sequence[str], value: Any) -> None:
    """Raises StagingError if the variables of a frame don't hold what was put there."""
    variables = frame.f_locals
    for name in names:
        if variables[name] is not value:
            raise StagingError(
                f"'{name}' can't be given the staged list that its list has become",
                location=user_location(),
                cause="this Python doesn't let the variables of a running function be set",
                fix="make the list in the function that grows it, or use an ag.TensorArray",
            )


def _exchange(held: Any, old: Any, new: Any, seen: dict[int, Any]) -> None:
    waiting = [held]
    while waiting:
        each = waiting.pop()
        items = None if id(each) in seen else places_of(each)
        if items is None:
            continue
        seen[id(each)] = each
        for key, item in list(items.items() if isinstance(items, Mapping) else enumerate(items)):
            if item is old and type(items) is not tuple:
                items[key] = new
            if type(item) not in ATOMS:
                waiting.append(item)


def frames_from(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames of the functions that are being traced, the innermost first, and of generators that wait."""
    yield from [each for each in pending.objects if isinstance(each, FrameType)]
    while frame is not None and frame.f_globals.get("__name__") != TRACE:
        if not is_own_file(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def _is_branch(frame: FrameType) -> bool:
    """Whether a frame is that of a conditional's block."""
    operator, caller = None, frame.f_back
    while caller is not None and is_own_file(caller.f_code.co_filename):
        operator, caller = caller.f_code.co_name, caller.f_back
    return operator == "if_stmt"


class _Search:
    """Who holds an object; what has been looked through for it isn't looked through again."""

    def __init__(self, value: Any, found: Callable[[Any], bool] | None = None) -> None:
        """found: whether what is looked for is reached; by default, whether it is the object."""
        self.found = partial(operator.is_, value) if found is None else found
        self._without: dict[int, Any] = {}  # what doesn't hold it, by id

    def holds(self, held: Any) -> bool:
        """Whether an object is the one, or holds it in containers, attributes and so on."""
        waiting, seen = [held], {id(held): held}
        while waiting:
            each = waiting.pop()
            if self.found(each) or may_hold_anything(each):
                return True
            places = None if id(each) in self._without else places_of(each)
            if places is None:
                continue
            for item in places.values() if isinstance(places, Mapping) else places:
                if type(item) not in ATOMS and id(item) not in seen:
                    seen[id(item)] = item
                    waiting.append(item)
        self._without.update(seen)
        return False


def may_hold_anything(held: Any) -> bool:
    """Whether an object may hold others that can't be listed, such as a generator's variables."""
    return not SEES_ITERATORS and (type(held) is GeneratorType or _has_referents(held))


def _has_referents(held: Any) -> bool:
    kinds = (partial, KeysView, ValuesView, ItemsView, Iterator)
    return type(held).__module__ in _WITH_REFERENTS and isinstance(held, kinds)


def places_of(held: Any) -> Any:
    """What an object consists of: a list, tuple or dictionary itself, the attributes of others. None for values.

    Of iterators and views, what they run over or look at; of a list that has become a staged one, that.
    """
    kind = type(held)
    if kind is list and held and type(held[0]) is Moved:
        return (held[0].moved_to,)
    if kind in (list, tuple, deque) or isinstance(held, dict):
        return held
    if kind is CellType:  # in frames of generators, before Python 3.11
        return (read_cell(held),)
    if kind is FunctionType:
        return tuple([read_cell(cell) for cell in held.__closure__ or ()])
    if kind in (MethodType, BuiltinFunctionType):
        return (held.__self__, getattr(held, "__func__", None))
    if kind is GeneratorType:
        return tuple(referents(held))
    if kind is ArrayView:
        return (held.base,)
    if isinstance(held, tuple):
        return tuple(held)
    if _has_referents(held):
        return tuple(gc.get_referents(held))
    if kind.__module__ == _ITERABLES:
        return attributes_of(held)
    if isinstance(held, (type, ModuleType)) or package_of(kind.__module__) in _OTHERS:
        return None
    return attributes_of(held)


def _is_read(name: str, frame: FrameType, again: bool, in_expression: bool) -> bool:
    code = frame.f_code
    if not understands(code):
        return True
    if again and read_from(code, 0, name):  # a loop's body runs again
        return True
    is_waiting = in_expression and type(frame.f_locals[name]) is not FunctionType
    if is_waiting and name in read_in_expression(code, frame.f_lasti):
        return True
    return read_after(code, frame.f_lasti, name)


def _is_read_in(code: CodeType, name: str) -> bool:
    return not understands(code) or read_from(code, 0, name)
