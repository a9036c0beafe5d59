"""`isinstance` and `type` of what is a Python value on some ways through the program and a tensor on others."""

from __future__ import annotations

from typing import Any

import pytest

import autograph as ag
from tests.texts.harness import MODES, plain


def branch(x):
    y = 1.0
    if x > 0:
        y = x * 2
    return isinstance(y, float), isinstance(y, (int, str))


def branch_of_a_branch(x):
    y = 1.0
    if x > 0:
        y = x * 2
    if x > -5:
        if isinstance(y, float):
            return 5
    return 6


def pattern(x):
    y = 1.0
    if x > 0:
        y = x * 2
    match y:
        case float():
            return 1
        case _:
            return 2


def string(x):
    y = "a"
    if x > 0:
        y = ag.constant("b")
    return isinstance(y, str), type(y) is str


def strings(x):
    y = "a"
    if x > 0:
        y = "b"
    z = ""
    for _ in ag.range(2):
        z += y
    return [(isinstance(each, str), isinstance(each, int), type(each) is str) for each in (y, z, f"{y}{z}")]


def numbers(x):
    y = 1
    if x > 0:
        y = 2
    return isinstance(y, int), isinstance(y, float), type(y) is int


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", [branch, branch_of_a_branch, pattern, string, strings, numbers])
def test_the_answer_is_pythons(program: Any, mode: str) -> None:
    for x in (-1.0, 1.0):
        assert plain(MODES[mode](program)(ag.constant(x))) == plain(program(ag.constant(x)))


def in_the_body(x):
    y = 1.0
    for _ in ag.range(2):
        if isinstance(y, float):
            y = y + 1.0
        y = y * x
    return y


def after_the_loop(x):
    y = 0.0
    for _ in ag.range(3):
        y = y + x
    return isinstance(y, float)


def a_tensor_at_first(x):
    y = x * 2.0
    for _ in ag.range(3):
        if isinstance(y, float):
            x = x + 1
        y = 1.0
    return x


def a_string_at_first(x):
    y = "a"
    for _ in ag.range(2):
        if x > 0:
            y = ag.strings.upper(y)
    return isinstance(y, str)


def chosen_in_a_branch_around(x):
    y = 1.0
    if x > -5:
        if x > 0:
            y = x * 2
    return type(y) is float


@pytest.mark.parametrize(
    "program", [in_the_body, after_the_loop, a_tensor_at_first, a_string_at_first, chosen_in_a_branch_around]
)
def test_where_it_is_not_known_the_question_is_refused(program: Any) -> None:
    with pytest.raises(ag.errors.StagingTypeError, match=r"(?s)a tensor on some ways.*test_kinds.py.*cause: .*fix: "):
        ag.function(program)(ag.constant(1.0))
