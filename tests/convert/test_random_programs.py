"""Random programs do the same natively and converted, and on tensors, staged, give the same numbers.

`RANDOM_PROGRAMS=5000 pytest tests/convert/test_random_programs.py` tries that many new ones of each kind; without it a
few, the same each time.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import linecache
import os

import numpy as np
from hypothesis import HealthCheck, given, note, settings

from autograph.convert.api import converted
from runtime.python_text import without_syntax_warnings
from tests.convert.random_programs import ARGUMENTS, programs
from tests.operators.harness import run_staged

_COUNT = int(os.environ.get("RANDOM_PROGRAMS", "0"))
_SETTINGS = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "derandomize": not _COUNT,
    "database": None,
    "print_blob": False,
}
_numbers = itertools.count()


def load(text):
    """The function that a program's text defines; conversion finds its source through linecache."""
    filename = f"<random program {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace = {"__name__": "random_program"}
    with without_syntax_warnings():
        exec(compile(text, filename, "exec"), namespace)
    return namespace["program"]


def outcome(function, arguments):
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        try:
            result = ("returned", function(*arguments))
        except Exception as error:
            result = ("raised", type(error), str(error))
    return result, output.getvalue()


@settings(max_examples=_COUNT or 150, **_SETTINGS)
@given(programs(), ARGUMENTS)
def test_converted_programs_do_the_same(text, arguments):
    note(text)
    program = load(text)
    made = converted(program)
    assert made is not program
    assert outcome(made, arguments) == outcome(program, arguments)


@settings(max_examples=_COUNT or 60, **_SETTINGS)
@given(programs(numeric=True), ARGUMENTS)
def test_staged_programs_give_the_same_numbers(text, arguments):
    note(text)
    program = load(text)
    expected = program(*arguments)
    found = run_staged(program, *[np.int32(argument) for argument in arguments])
    assert np.array_equal(np.hstack(found), np.hstack(expected))
