"""`autograph explain`: how the program of a function runs: kernels, loops, what isn't native. Runs the file."""

from __future__ import annotations

from typing import Any

from autograph.commands.files import UsageError
from autograph.commands.graph import function_of, untraceable
from autograph.function.polymorphic import Function


def run(options: Any) -> int:
    """Prints the report, and writes the page where one is asked for; exit code 1 where tracing fails."""
    name, function, arguments = function_of(options)
    traced = Function(function, jit_compile=True)
    try:
        concrete = traced.get_concrete_function(**arguments)
    except Exception as error:
        return untraceable(name, error)
    if options.compile:
        concrete.function.executable.compile()
    try:
        print(traced.explain(**arguments, html=options.html), flush=True)
    except OSError as error:
        raise UsageError(f"cannot write {options.html}: {error.strerror}") from None
    return 0
