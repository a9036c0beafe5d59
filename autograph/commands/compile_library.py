"""`autograph compile`: a function as a C library. Runs the file."""

from __future__ import annotations

import sys
from typing import Any

from autograph.c_library import c_library
from autograph.commands.exporting import exported


def run(options: Any) -> int:
    """Writes the library and prints its files; exit code 1 where the function can't be traced or exported."""

    def export(concrete: Any) -> Any:
        return c_library(concrete, options.output, options.name, options.gradient, options.weights)

    return exported(options, export, _show)


def _show(made: Any) -> None:
    for path in (made.header, made.object, made.static, made.shared, made.example, made.weights):
        if path is not None:
            print(path)
    if made.shared is None:
        print("autograph: no C compiler was found (CC, by default cc), so nothing is linked", file=sys.stderr)
