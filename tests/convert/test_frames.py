"""What looks at frames sees the user's functions: recursion limits, `stacklevel`, `locals`."""

from __future__ import annotations

import sys
import warnings

import pytest

import autograph as ag
from autograph.convert.api import converted


def warns(x, level):
    if x > 0:
        for _ in range(1):
            warnings.warn("here", stacklevel=level)
    return x


def calls_warns(x, level):
    if x > 0:
        while x > 0:
            x = warns(x, level) - 1
    return x


def line_of(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    found = [each for each in caught if str(each.message) == "here"]
    return found[0].filename, found[0].lineno


@pytest.mark.parametrize("level", [1, 2])
def test_stacklevel_counts_the_users_functions(level):
    expected = line_of(lambda: calls_warns(1, level))
    assert expected[0] == __file__
    assert line_of(lambda: converted(calls_warns)(1, level)) == expected
    assert line_of(lambda: ag.function(lambda t: t + calls_warns(1, level))(ag.constant(1))) == expected


def lists_names(x):
    y = [k for k in range(x)]
    if x > 0:
        z = 1
    for _ in y:
        z += len(y)
    return sorted(locals()), sorted(vars()), dir(), locals()["z"]


def test_locals_shows_the_users_names():
    assert converted(lists_names)(3) == lists_names(3)


def depth(n):
    if n == 0:
        return 0
    for _ in range(1):
        below = depth(n - 1)
    return 1 + below


def test_recursion_is_as_deep_as_in_python():
    limit = sys.getrecursionlimit()
    n = limit - 150 - len(_frames())
    assert depth(n) == n
    assert converted(depth)(n) == n
    assert int(ag.function(lambda t: t + depth(n))(ag.constant(1))) == n + 1
    assert sys.getrecursionlimit() == limit
    with pytest.raises(RecursionError):
        ag.function(lambda t: t + depth(-1))(ag.constant(1))
    assert sys.getrecursionlimit() == limit


def _frames():
    frame, found = sys._getframe(1), []
    while frame is not None:
        found.append(frame.f_code.co_name)
        frame = frame.f_back
    return found
