"""Functions of Python's standard library that are C, and in a trace are converted from Python text.

The texts are in `autograph/standard_library`. Outside of traces, and for lists of classes of the user's, Python's own
run.
"""

from __future__ import annotations

import bisect
import functools
import heapq
from collections.abc import Callable
from types import FunctionType
from typing import Any

from autograph.operators.builtins import OVERLOADS
from autograph.operators.calls import maker_of
from autograph.standard_library import bisection, heaps


def from_text(function: Any) -> Callable[..., Any]:
    """The converted form of a function of the texts; converted at its first call."""

    @functools.wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        maker = maker_of(function)
        assert isinstance(function, FunctionType) and maker is not None
        return maker(function)(*arguments, **options)

    return called


def install() -> None:
    """Gives the functions that have a text their form in traces."""
    for module, text in ((heapq, heaps), (bisect, bisection)):
        for name, function in vars(text).items():
            if not name.startswith("_"):
                OVERLOADS[getattr(module, name)] = from_text(function)
