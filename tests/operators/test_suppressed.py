"""`contextlib.suppress` around a staged ``raise`` does what it does in Python, where it can be told by its name."""

from __future__ import annotations

import contextlib

import pytest

import autograph as ag
from autograph.convert.api import converted
from autograph.errors import StagingError
from tests.operators.test_caught import outcome


def under_suppress_in_a_loop(x):
    total = x * 0
    for i in ag.range(4):
        with contextlib.suppress(KeyError, ValueError):
            if i > x:
                raise KeyError(i)
            if i == 1:
                continue
            assert i < 3, "i"
            total += i + 1
        total += 10
    return total


def under_another_suppress(x):
    with contextlib.suppress(KeyError):
        with contextlib.suppress(IndexError):
            if x > 3:
                raise KeyError("x")
            if x > 0:
                raise ValueError("x")
            x = x * 2
        x = x * 3
    return x * 5


def under_a_suppress_from_elsewhere(x, suppress=contextlib.suppress):
    with suppress(ValueError):
        if x > 0:
            raise ValueError("x")
        x = x * 2
    return x


@pytest.mark.parametrize("program", [under_suppress_in_a_loop, under_another_suppress])
@pytest.mark.parametrize("x", [-1, 1, 3, 30])
def test_as_in_python(program, x, capsys):
    x = ag.constant(x)
    expected = outcome(program, x, capsys)
    assert outcome(converted(program), x, capsys) == expected
    assert outcome(ag.function(program, jit_compile=False), x, capsys) == expected


def test_a_manager_whose_name_says_nothing_is_refused():
    with pytest.raises(StagingError, match="around the condition would swallow it"):
        ag.function(under_a_suppress_from_elsewhere)(ag.constant(1))
