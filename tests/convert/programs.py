"""The table of programs that test_execution.py runs both ways. The programs_*.py modules fill it."""

from __future__ import annotations

import contextlib

CASES: list[tuple] = []


def case(*argument_lists):
    """Registers a function with the argument tuples to run it on."""

    def register(function):
        CASES.append((function, argument_lists))
        return function

    return register


class Boom(Exception):
    """An error of a program's own."""


@contextlib.contextmanager
def logged(name):
    """Prints when it is entered and left."""
    print("enter", name)
    try:
        yield name
    finally:
        print("exit", name)
