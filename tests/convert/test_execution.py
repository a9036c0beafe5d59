"""On Python values a converted function does exactly what the original does."""

from __future__ import annotations

import contextlib
import copy
import io

import pytest

from autograph.convert.api import converted
from tests.convert import programs_blocks, programs_expressions, programs_flow, programs_scopes
from tests.convert.programs import CASES

# Importing them fills the table.
MODULES = (programs_blocks, programs_expressions, programs_flow, programs_scopes)

RUNS = [
    pytest.param(function, arguments, id=f"{function.__name__}-{index}")
    for function, argument_lists in CASES
    for index, arguments in enumerate(argument_lists)
]


def outcome(function, arguments):
    """Result, output and exception of a call, in comparable form."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        try:
            result = ("returned", repr(function(*copy.deepcopy(arguments))))
        except Exception as error:
            result = ("raised", type(error), str(error), repr(error.__cause__))
    return result, output.getvalue()


@pytest.mark.parametrize(("function", "arguments"), RUNS)
def test_same_as_python(function, arguments):
    made = converted(function)
    assert made is not function
    assert outcome(made, arguments) == outcome(function, arguments)
