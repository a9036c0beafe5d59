"""Runs a program eagerly and staged, with gradients, and says how they differ."""

from __future__ import annotations

import contextlib
import itertools
import linecache
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np

import autograph as ag
from autograph.errors import StagingError
from runtime.engine.settings import wait_for_background
from tests.fuzz_programs.writer import PRELUDE

POINTS = ((0.9, 0.7, 3), (0.15, 0.05, 2), (-0.4, 0.45, 4), (0.55, -0.6, 0), (0.25, 0.85, 1))
# Calls after which functions are compiled in the background.
_CALLS = 4
# Lines that an eager run may execute, and the length that its lists may have. A list that is doubled in nested loops
# takes all of the machine's memory.
_LINES, _LENGTH = 20_000, 10_000
_FILENAME = "<random Python program "
_names = itertools.count()


class TooLong(BaseException):
    """An eager run takes too many lines, or makes too long a list. No `except Exception` of a program catches this."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raises TooLong where programs execute more lines than `_LINES`, or have a list longer than `_LENGTH`."""
    left = _LINES

    def line(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0 or any(type(value) is list and len(value) > _LENGTH for value in frame.f_locals.values()):
            raise TooLong
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(_FILENAME) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(before)


def load(text: str) -> Callable[..., Any]:
    """The function that a program's text defines; conversion finds its source through linecache."""
    filename = f"{_FILENAME}{next(_names)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace: dict[str, Any] = {"__name__": "random_program"}
    exec(compile(text, filename, "exec", dont_inherit=True), namespace)
    return namespace["program"]


def forget() -> None:
    """Drops the sources of programs that were loaded."""
    for name in [name for name in linecache.cache if name.startswith(_FILENAME)]:
        del linecache.cache[name]


def plain(value: Any) -> Any:
    """A result as lists, dictionaries and floats."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if value is None:
        return None
    array = np.asarray(value)
    return float(array) if array.ndim == 0 else array.tolist()


def same(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two plain results have the same structure and nearly the same numbers."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(a, b, tolerance) for a, b in zip(one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(each, other[key], tolerance) for key, each in one.items())
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance) or (one != one and other != other)
    return one is None and other is None


def value_and_slopes(function: Callable[..., Any], x: Any, y: Any, n: Any) -> Any:
    """What a function gives and the gradient of the sum of its float results by x and y."""
    with ag.GradientTape() as tape:
        tape.watch([x, y])
        result = function(x, y, n)
        found = [each for each in ag.nest.flatten(result) if isinstance(each, ag.Tensor) and each.dtype.is_floating]
        target = ag.add_n(found) if found else ag.constant(0.0)
    return result, tape.gradient(target, [x, y], unconnected_gradients="zero")


def outcome(function: Callable[..., Any], point: tuple[float, float, int]) -> Any:
    """("value", plain value and slopes), ("refused", error) or ("raised", error)."""
    x, y, n = point
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "value", plain(value_and_slopes(function, ag.constant(x), ag.constant(y), ag.constant(n)))
    except (StagingError, ag.errors.OperatorNotAllowedInGraphError) as error:
        return "refused", error
    except RecursionError:
        raise
    except Exception as error:
        return "raised", error


def first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"


class Difference(Exception):
    """A program does something else staged than eagerly.

    kind: what two differences have in common that are probably the same fault.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def check(text: str, compiled: bool = False) -> str:
    """Compares the ways to run a program at some points: "agree", "refused: why", "fails" (eagerly) or "too long".

    compiled: also with `jit_compile=True`, and the default mode after native code has taken over.
    Raises Difference.
    """
    program = load(text)
    try:
        with limited():
            expected = [outcome(program, point) for point in POINTS]
    except TooLong:
        return "too long"
    if all(kind != "value" for kind, _ in expected):
        return "fails"
    modes = {"default": ag.function(program)}
    if compiled:
        modes["jit"] = ag.function(program, jit_compile=True)
    verdict = "agree"
    for mode, function in modes.items():
        for round_ in range(2 if compiled and mode == "default" else 1):
            for point, given in zip(POINTS, expected):
                found = outcome(function, point)
                if found[0] == "refused":
                    return "refused: " + first_line(found[1])
                if given[0] == "value" and type(found[1]) is IndexError and "except Exception" in text:
                    return "refused: an index out of range is an error of the program, which no `try` in it catches"
                _compare(f"{mode}{' again' * round_}", point, given, found)
                if compiled and mode == "default" and not round_:
                    for _ in range(_CALLS):
                        outcome(function, point)
            wait_for_background(60.0)
    return verdict


def _compare(mode: str, point: Any, given: Any, found: Any) -> None:
    (kind, expected), (found_kind, value) = given, found
    if kind == "value" and found_kind == "value":
        tolerance = 2e-4
        if not same(expected[0], value[0], tolerance):
            raise Difference("value", f"{mode} at {point}: {value[0]} instead of {expected[0]}")
        if not same(expected[1], value[1], 10 * tolerance):
            raise Difference("gradient", f"{mode} at {point}: gradient {value[1]} instead of {expected[1]}")
    elif kind != found_kind:
        shown = value if found_kind == "value" else first_line(value)
        wanted = expected if kind == "value" else first_line(expected)
        what = "no error" if kind == "raised" else f"error {type(value).__name__}"
        raise Difference(what, f"{mode} at {point}: {shown} instead of {wanted}")


# --- smaller programs ----------------------------------------------------------------------------------------------


def shrink(text: str, kind: str, compiled: bool, most: int = 150) -> str:
    """A smaller program with a difference of the same kind."""
    assert text.startswith(PRELUDE)
    lines = text[len(PRELUDE) :].splitlines()
    tries = 0
    progress = True
    while progress:
        progress = False
        for candidate in _smaller(lines):
            tries += 1
            if tries > most:
                return PRELUDE + "\n".join(lines) + "\n"
            if difference_of("\n".join(candidate) + "\n", compiled) == kind:
                lines, progress = candidate, True
                break
    return PRELUDE + "\n".join(lines) + "\n"


def difference_of(body: str, compiled: bool) -> str | None:
    """The kind of a program's difference, None if it has none or is no program."""
    try:
        compile(body, "candidate", "exec", dont_inherit=True)
        check(PRELUDE + body, compiled)
    except Difference as found:
        return found.kind
    except Exception:
        return None
    finally:
        forget()
    return None


def _smaller(lines: list[str]) -> Any:
    """The program without one statement or clause, and with the body of one in its place."""
    for index in range(1, len(lines)):
        if re.fullmatch(r" *k\d+ \+= 1", lines[index]):
            continue  # a loop that doesn't count never ends
        depth = _depth(lines[index])
        end = index + 1
        while end < len(lines) and _depth(lines[end]) > depth:
            end += 1
        yield lines[:index] + lines[end:]
        last = end
        while last < len(lines) and _depth(lines[last]) == depth and _continues(lines[last]):
            last += 1
            while last < len(lines) and _depth(lines[last]) > depth:
                last += 1
        if last > end:
            yield lines[:index] + lines[last:]
        if end > index + 1:
            yield lines[:index] + [line[4:] for line in lines[index + 1 : end]] + lines[last:]


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _continues(line: str) -> bool:
    return line.lstrip().startswith(("else", "elif", "except", "finally"))
