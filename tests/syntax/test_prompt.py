"""Functions typed at Python's interactive prompt: their text is found in the history of lines."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from typing import Any

import pytest

from autograph.syntax.prompt import FILENAME, statement_of

DOUBLE = ["def double(x):", "    y = x", "    return 2 * y"]
OTHER = ["def double(x):", "    return x + x"]
DECORATED = ["@wrap", "def double(x):", "    return x - 1"]
NESTED = ["if True:", "    def double(x):", "        return 3 * x"]
BRACKETS = ["double = wrap(lambda x: (", "x", "    + 1))"]


def wrap(function: Any) -> Any:
    return function


def code_of(lines: list[str]) -> types.CodeType:
    space: dict[str, Any] = {"wrap": wrap}
    exec(compile("\n".join(lines) + "\n", FILENAME, "single"), space)
    return space["double"].__code__


@pytest.mark.parametrize("statement", [DOUBLE, OTHER, DECORATED, NESTED, BRACKETS])
def test_the_statement_is_found_among_others(statement: list[str]) -> None:
    history = [
        "import math",
        *DOUBLE,
        "x = 1",
        *OTHER,
        *DECORATED,
        "double(2)",
        *NESTED,
        *BRACKETS,
        "for i in range(3):",
    ]
    assert statement_of(code_of(statement), history) == [f"{line}\n" for line in statement]


def test_of_equal_statements_either_serves_and_of_none_nothing() -> None:
    assert statement_of(code_of(DOUBLE), [*DOUBLE, *DOUBLE]) == [f"{line}\n" for line in DOUBLE]
    assert statement_of(code_of(DOUBLE), [*OTHER, "pass"]) == []
    assert statement_of(code_of(DOUBLE), []) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_functions_typed_at_the_prompt_are_converted() -> None:
    pytest.importorskip("readline")
    pty = pytest.importorskip("pty")
    typed = [
        "import autograph as ag", "@ag.function", "def grow(x):", "    while x < 10.0:", "        x = x * 2.0",
        "    return x", "", "print('grown', float(grow(ag.constant(1.5))))",
        "pair = [ag.function(lambda x: x if x > 0 else -x), ag.function(lambda x: x if x < 0 else -x)]",
        "print('pair', [float(each(ag.constant(-3.0))) for each in pair])", "exit()",
    ]  # fmt: skip
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-q", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**os.environ, "PYTHON_BASIC_REPL": "1", "TERM": "dumb"},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    try:
        for line in typed:
            os.write(ours, line.encode() + b"\n")
        while True:
            try:
                found = os.read(ours, 4096)
            except OSError:  # the other side is closed
                break
            if not found:
                break
            shown += found
        process.wait(60)
    finally:
        process.kill()
        os.close(ours)
    text = shown.decode()
    assert "grown 12.0" in text, text
    assert "pair [3.0, -3.0]" in text, text
