"""`autograph compile`: a function as a C library. Runs the file."""

from __future__ import annotations

import sys
from typing import Any

from autograph.c_library import c_library
from autograph.commands.files import UsageError
from autograph.commands.graph import function_of, untraceable
from autograph.function.polymorphic import Function
from runtime.errors import OpError


def run(options: Any) -> int:
    """Writes the library and prints its files; exit code 1 where the function can't be traced or exported."""
    name, function, arguments = function_of(options)
    try:
        concrete = Function(function).get_concrete_function(**arguments)
    except Exception as error:
        return untraceable(name, error)
    try:
        made = c_library(concrete, options.output, options.name, options.gradient)
    except OpError as error:
        print(f"autograph: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        raise UsageError(f"cannot write to {options.output}: {error.strerror}") from None
    for path in (made.header, made.object, made.static, made.shared, made.example):
        if path is not None:
            print(path)
    if made.shared is None:
        print("autograph: no C compiler was found (CC, by default cc), so nothing is linked", file=sys.stderr)
    return 0
