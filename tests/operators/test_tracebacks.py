"""Tracebacks and debuggers see the user's functions, each once, under its own lines."""

from __future__ import annotations

import bdb
import inspect
import sys
import traceback

import numpy as np
import pytest

import autograph as ag
from autograph.convert.api import converted

needs_311 = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python raises on with the traceback it caught")


def helper(x):
    return 1 / x


def nested(x, n):
    """Fails in a loop, in a conditional, in the third operand of a condition."""
    while n > 0:
        if n == 2:
            for i in [1]:
                y = x or (i and helper(x))
        n -= 1
    return y


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(index for index, line in enumerate(lines) if text in line)


def frames(function, *arguments):
    """The traceback of a call as (function name, line) pairs, without the caller's own entry."""
    with pytest.raises(Exception) as caught:
        function(*arguments)
    return [(each.name, each.lineno) for each in traceback.extract_tb(caught.value.__traceback__)][1:]


@needs_311
def test_converted_function():
    expected = [("nested", line_of(nested, "and helper(x)")), ("helper", line_of(helper, "1 / x"))]
    assert frames(nested, 0, 3) == expected
    assert frames(converted(nested), 0, 3) == expected


@needs_311
def test_function_that_is_traced():
    @ag.function
    def step(x):
        while ag.reduce_sum(x) > 0:
            if x[0] > 0:
                x = x - ag.ones([3, 5])
        return x

    assert frames(step, ag.constant([1.0, 2.0])) == [("step", line_of(step.python_function, "x = x - ag.ones"))]


def test_no_frame_of_the_project_on_any_python():
    with pytest.raises(ZeroDivisionError) as caught:
        converted(nested)(0, 3)
    names = [each.filename for each in traceback.extract_tb(caught.value.__traceback__)]
    assert set(names) == {__file__}


def test_the_switch():
    assert ag.debugging.is_traceback_filtering_enabled()
    ag.debugging.disable_traceback_filtering()
    try:
        assert not ag.debugging.is_traceback_filtering_enabled()
        found = frames(converted(nested), 0, 3)
    finally:
        ag.debugging.enable_traceback_filtering()
    names = [name for name, _ in found]
    assert {"while_stmt", "if_stmt", "for_stmt", "nested", "helper"} <= set(names)
    lines = [line for name, line in found if name == "nested"]
    # The calls of the operators stand where the user's headers do.
    for text in ("while n > 0:", "if n == 2:", "for i in [1]:"):
        assert line_of(nested, text) in lines


@needs_311
def test_recursion_keeps_each_call():
    def countdown(n):
        if n == 0:
            raise KeyError("done")
        else:
            return countdown(n - 1)

    deep = line_of(countdown, "countdown(n - 1)")
    assert frames(converted(countdown), 2) == [("countdown", deep)] * 2 + [("countdown", line_of(countdown, "raise"))]


@needs_311
def test_caught_and_raised_again():
    def outer(x):
        try:
            if x == 0:
                helper(x)
        except ZeroDivisionError as error:
            if x == 0:
                raise ValueError("wrapped") from error

    with pytest.raises(ValueError) as caught:
        converted(outer)(0)
    raised = traceback.extract_tb(caught.value.__traceback__)
    cause = traceback.extract_tb(caught.value.__cause__.__traceback__)
    assert [(each.name, each.lineno) for each in raised][1:] == [("outer", line_of(outer, "raise"))]
    assert [each.name for each in cause if each.filename == __file__][-1] == "helper"


@needs_311
def test_raised_again_by_raise_alone():
    def outer(x):
        try:
            while x == 0:
                if x == 0:
                    helper(x)
        except ZeroDivisionError:
            if x == 0:
                raise

    assert frames(converted(outer), 0) == frames(outer, 0)
    assert [name for name, _ in frames(outer, 0)] == ["outer", "helper"]


class Breakpoints(bdb.Bdb):
    """Stops at breakpoints and remembers where, and what the variables were."""

    def __init__(self):
        super().__init__()
        self.stops = []

    def user_line(self, frame):
        if self.get_breaks(frame.f_code.co_filename, frame.f_lineno):
            self.stops.append((frame.f_code.co_name, frame.f_lineno, dict(frame.f_locals)))
        self.set_continue()


def test_breakpoints_stop_in_blocks():
    def total(xs):
        s = 0
        for x in xs:
            if x > 1:
                s += x
        return s

    line = line_of(total, "s += x")
    debugger = Breakpoints()
    assert debugger.set_break(__file__, line) is None
    try:
        result = debugger.runcall(converted(total), [1, 2, 3])
    finally:
        debugger.clear_all_breaks()
    assert result == 5
    assert [(name, where, found["s"], found["x"]) for name, where, found in debugger.stops] == [
        ("total", line, 0, 2),
        ("total", line, 2, 3),
    ]


def test_breakpoints_stop_while_tracing():
    @ag.function
    def step(x):
        if x > 0:
            x = x * 2
        return x

    line = line_of(step.python_function, "x = x * 2")
    debugger = Breakpoints()
    assert debugger.set_break(__file__, line) is None
    try:
        result = debugger.runcall(step, ag.constant(np.float32(3)))
    finally:
        debugger.clear_all_breaks()
    assert float(result) == 6
    assert [(name, where) for name, where, _ in debugger.stops] == [("step", line)]
