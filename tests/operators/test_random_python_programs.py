"""Random programs with lists, dictionaries, objects, `try`, `with`, `match`: staged they do what they do eagerly.

So do those with enums, classes, strings and the state of helpers.

`RANDOM_PROGRAMS=500 pytest tests/operators/test_random_python_programs.py` tries that many; `python -m
tests.fuzz_programs --minutes N` goes on for longer, and makes small what differs.
"""

from __future__ import annotations

import os

import pytest

from tests.fuzz_programs.compare import Difference, check, forget, shrink
from tests.fuzz_programs.kinds import random_kinds_program
from tests.fuzz_programs.writer import PRELUDE, random_program

COUNT = int(os.environ.get("RANDOM_PROGRAMS", "0")) or 40


@pytest.mark.parametrize("seed", range(COUNT))
def test_staged_as_eager(seed):
    try:
        check(random_program(seed), compiled=seed % 20 == 0)
    finally:
        forget()


@pytest.mark.parametrize("seed", range(COUNT))
def test_what_is_no_number(seed):
    try:
        check(random_kinds_program(seed), compiled=seed % 20 == 0)
    finally:
        forget()


def test_a_difference_is_found_and_made_small():
    text = PRELUDE + (
        "def program(x, y, n):\n"
        "    a = x * 2.0\n"
        "    if x > 0.5:\n"
        "        a = y if ag.executing_eagerly() else x\n"
        "    b = y\n"
        "    return a, b\n"
    )
    with pytest.raises(Difference) as caught:
        check(text)
    assert caught.value.kind == "value"
    small = shrink(text, "value", compiled=False)
    assert "executing_eagerly" in small and "x * 2.0" not in small and "if x > 0.5:" not in small


@pytest.mark.parametrize("more", ["[v + 1.0 for v in L]", "list(L)"])
def test_a_program_that_doubles_a_list_without_end_is_given_up(more):
    body = f"""def program(x, y, n):
    L = [x]
    while len(L) > 0:
        try:
            L.extend({more})
        except Exception:
            pass
    return L
"""
    assert check(PRELUDE + body) == "too long"
