"""What a program asks of strings that it has chosen or built is answered as in Python: a product of both."""

from __future__ import annotations

from typing import Any

import pytest

from tests.texts.harness import MODES, check
from tests.texts.string_programs import ASKS, SOURCES

VALUES = [[-1.0, -1.0], [3.0, -1.0], [1.0, 2.0]]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES.values(), ids=list(SOURCES))
@pytest.mark.parametrize("ask", ASKS.values(), ids=list(ASKS))
def test_answers_are_pythons(ask: Any, source: Any, mode: str) -> None:
    def program(t):
        return ask(source(t))

    check(program, VALUES, mode)
