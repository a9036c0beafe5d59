"""Python's functions that give something else at each call: random numbers, the time, identifiers, what a user types.

    np.random.normal(size=3)     →     host_call(function=a call of np.random.normal)

In a trace such a call becomes a call of the program: it is made whenever the program gets there. Its result is a
number, a string or a tensor, or a `HostObject`, which stands for an object that exists only while the program runs.
What kind of result it has is found out by a trial, after which random streams are as they were.

A generator that the function makes from a seed of Python's gives the same numbers at each call. It draws them while the
function is traced, so they may also decide what is traced, and not in a loop or branch on tensors.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import datetime
import functools
import io
import os
import random
import types
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from autograph.errors import StagingError, user_location
from autograph.operators.builtins import OVERLOADS
from autograph.operators.foreign import is_outside_of_block, refuse_call
from autograph.operators.frame import Frame
from autograph.operators.host_calls import GENERATORS, IN_PLACE, HostObject, refuse_in_place, run_anew
from autograph.operators.items import item
from autograph.operators.opaque import cached, is_cache, refuse_counts, refuse_read
from autograph.operators.symbolic import symbolic
from runtime import nest
from runtime.context import ctx
from runtime.ops.strings.staged_string import StandsForString

# Methods of theirs that draw nothing.
_STATES = frozenset({"getstate", "setstate", "get_state", "set_state", "__getstate__", "__setstate__", "__reduce__"})
_SEEDS = frozenset({"seed"})
_BY_INDEX = frozenset({"choice", "choices", "sample"})
_MODULES = frozenset({"time", "secrets"})
# Functions that give the same for the same arguments.
_PURE = frozenset({"mktime", "strptime", "get_clock_info", "compare_digest", "clock_getres", "tzset"})
_FUNCTIONS = frozenset({
    os.urandom, uuid.uuid1, uuid.uuid4, uuid.getnode, builtins.input, np.random.default_rng, os.times,
})  # fmt: skip
_SEEDED = (np.random.default_rng, np.random.RandomState, random.Random)
# The generators that a trace has made from seeds that are known.
_seeded: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
_CLASSES = (np.random.RandomState, random.Random, random.SystemRandom)
_NOW = frozenset({"now", "utcnow", "today"})


def impure(callee: Any) -> Callable[..., Any] | None:
    """What to call in a trace in place of a function that gives something else at each call; None for any other."""
    if is_cache(callee):
        return cached(callee, _root(), _watch) if ctx.builder is not None and ctx.builder.parent is not None else None
    owner = np.random.mtrand._rand if callee is np.random.seed else getattr(callee, "__self__", None)
    name = getattr(callee, "__name__", "")
    if isinstance(owner, GENERATORS) and not isinstance(owner, types.ModuleType):
        if name in _STATES:
            return None
        if any(owner is each for each in _seeded.get(_root(), ())):
            _refuse_in_block(name)
            return None
        return lambda *given, **options: _drawn(callee, owner, name, given, options)
    if is_outside_of_block(owner):
        if name in _WRITING and isinstance(owner, io.TextIOBase):
            return functools.partial(_WRITING[name], owner)
        refuse_call(owner, name)
    if is_cache(owner):
        refuse_counts(_root(), owner, name)
    if isinstance(owner, type) and issubclass(owner, datetime.date) and name in _NOW:
        return lambda *given, **options: run_anew(callee, given, options)
    if isinstance(owner, io.TextIOBase):
        refuse_read(_root(), owner, name)
    if isinstance(owner, np.ufunc) and name == "at":
        return lambda array, *given: _write_at(callee, array, given)
    module = getattr(callee, "__module__", "")
    is_listed = module in _MODULES and name not in _PURE and not isinstance(callee, type)
    if is_listed or any(callee is each for each in (*_FUNCTIONS, *_CLASSES)):
        if any(callee is each for each in _SEEDED):
            return lambda *given, **options: _generator(callee, given, options)
        if name == "choice":
            return lambda population: _picked(random.SystemRandom().choice, name, population)
        given_result = {"sleep": None, "input": ""}
        if name in given_result and module in ("time", "builtins"):
            return lambda *given, **options: run_anew(callee, given, options, lambda *_: given_result[name])
        return lambda *given, **options: run_anew(callee, given, options, is_wide=module == "time" or "bits" in name)
    return None


def _write(stream: Any, text: Any) -> Any:
    """``stream.write(text)`` where the program gets there, as ``print`` does it."""
    if not isinstance(text, (str, StandsForString)):
        raise TypeError(f"write() argument must be str, not {type(text).__name__}")
    OVERLOADS[print](text, end="", file=stream)
    return OVERLOADS[len](text)


def _write_all(stream: Any, texts: Sequence[Any]) -> None:
    for each in texts:
        _write(stream, each)


# Methods of files of text that are called when the program gets there.
_WRITING: dict[str, Callable[..., Any]] = {
    "write": _write,
    "writelines": _write_all,
    "flush": lambda stream: run_anew(stream.flush, (), {}, lambda: None),
}


def _watch(function: Callable[..., Any]) -> Callable[[], bool]:
    """Begins to watch what a function changes; what this gives tells whether something has."""
    frame = Frame.of(function)
    return lambda: bool(frame.changed())


def _write_at(callee: Callable[..., None], array: Any, given: Sequence[Any]) -> None:
    """``np.add.at(array, ...)``, which writes also where writing isn't allowed."""
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        raise ValueError("assignment destination is read-only")  # as NumPy says of all other ways to write
    callee(array, *given)


def _root() -> Any:
    """The trace that is being made, without the blocks in it."""
    builder = ctx.builder
    while builder is not None and builder.parent is not None:
        builder = builder.parent
    return builder


def _generator(kind: Any, given: Sequence[Any], options: dict[str, Any]) -> Any:
    """A generator: of this trace if its seed is known, else of each run."""
    leaves = nest.flatten((list(given), options))
    is_seeded = any(each is not None for each in leaves)
    builder = ctx.builder
    is_known = is_seeded and all(type(each) is not HostObject and symbolic(each) is None for each in leaves)
    if builder is None or builder.parent is not None or not is_known:
        return run_anew(kind, given, options)
    made = kind(*given, **options)
    _seeded.setdefault(builder, []).append(made)
    return made


def _refuse_in_block(name: str) -> None:
    """Raises StagingError where a generator of the trace would draw in a block that is traced once for all trips."""
    if ctx.builder is not None and ctx.builder.parent is not None:
        raise StagingError(
            f"{name}() of a generator that this function makes from a seed is called in a branch or loop on tensors",
            location=user_location(),
            cause="such a generator draws while the function is traced, once, and not in each iteration",
            fix="make the generator outside of the function, or use ag.random.Generator",
        )


def _drawn(callee: Any, owner: Any, name: str, given: Sequence[Any], options: dict[str, Any]) -> Any:
    """A method of a random generator."""
    if name in IN_PLACE:
        refuse_in_place(name)
    if isinstance(owner, random.Random) and name in _BY_INDEX and given:
        return _picked(callee, name, *given, **options)

    def trial(*given: Any, **options: Any) -> Any:
        if name in _SEEDS:
            return None
        with _restored(owner):
            return callee(*given, **options)

    return run_anew(callee, given, options, trial, is_wide="bits" in name)


def _picked(callee: Any, name: str, population: Any, *given: Any, **options: Any) -> Any:
    """Items of a population that Python knows: drawn are their positions."""
    owner = getattr(callee, "__self__", None)
    items = list(population)

    def trial(places: Any, *given: Any, **options: Any) -> Any:
        with _restored(owner):
            return callee(places, *given, **options)

    places = run_anew(callee, (range(len(items)), *given), options, trial)
    return [item(items, each) for each in places] if name != "choice" else item(items, places)


@contextlib.contextmanager
def _restored(owner: Any) -> Iterator[None]:
    """Within it draws from a generator leave its stream as it was."""
    if isinstance(owner, np.random.Generator):
        bits: Any = owner.bit_generator
        before = copy.deepcopy(bits.state)
        try:
            yield
        finally:
            bits.state = before
    elif isinstance(owner, np.random.RandomState):
        state = owner.get_state(legacy=False)
        try:
            yield
        finally:
            owner.set_state(state)
    elif isinstance(owner, random.Random) and not isinstance(owner, random.SystemRandom):
        known = owner.getstate()
        try:
            yield
        finally:
            owner.setstate(known)
    else:
        yield


def _install() -> None:
    import operator

    def binary(function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
        return (
            lambda self, other: run_anew(function, (self, other), {}),
            lambda self, other: run_anew(function, (other, self), {}),
        )

    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
        forward, backward = binary(getattr(operator, name))
        setattr(HostObject, f"__{name}__", forward)
        setattr(HostObject, f"__r{name}__", backward)
    for name in ("lt", "le", "gt", "ge", "eq", "ne", "getitem"):
        setattr(HostObject, f"__{name}__", binary(getattr(operator, name))[0])
    for function in (str, int, float, len):
        known = OVERLOADS.get(function, function)
        OVERLOADS[function] = lambda *given, known=known, function=function, **options: (
            run_anew(function, given, options) if given and type(given[0]) is HostObject else known(*given, **options)
        )


_install()
