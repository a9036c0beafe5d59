"""How much the converter tells about what it does.

Levels as in TensorFlow: 0 says nothing, from 3 on every converted function is named, from 10 on its converted source
is shown. The environment variable AUTOGRAPH_VERBOSITY sets the level at the start.
"""

from __future__ import annotations

import logging
import os
from types import FunctionType
from typing import Any

from autograph.syntax.unparse import unparse

_log = logging.getLogger("autograph")
_level = int(os.environ.get("AUTOGRAPH_VERBOSITY", "0") or 0)
_to_stdout = False


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Sets how much the converter logs (logger "autograph"): 0 nothing, 3 functions, 10 their converted source.

    alsologtostdout: print it to standard output too.
    """
    global _level, _to_stdout
    _level, _to_stdout = int(level), bool(alsologtostdout)


def tells() -> bool:
    """Whether conversions are to be told of."""
    return _level >= 3


def report_conversion(function: FunctionType, node: Any) -> None:
    """Tells of a function that was converted, as far as the level says so."""
    if tells():
        _tell(f"Converted {function.__module__}.{function.__qualname__}")
    if _level >= 10:
        _tell(unparse(node))


def _tell(message: str) -> None:
    _log.info("%s", message)
    if _to_stdout:
        print(message)


def trace(*arguments: Any) -> None:
    """Prints its arguments while a function is traced (not when the program runs)."""
    print(*arguments)
