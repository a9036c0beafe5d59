"""Comparing programs with strings in plain Python, staged and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import autograph as ag

MODES: dict[str, Callable[[Any], Any]] = {
    "function": ag.function,
    "jit_compile": lambda program: ag.function(program, jit_compile=True),
}
_ERRORS = (IndexError, KeyError, TypeError, AttributeError, ValueError)


def plain(value: Any) -> Any:
    """A result with Python's values in the place of tensors, and text in the place of bytes."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (ag.Tensor, np.ndarray, np.generic)):
        return plain(np.asarray(value).tolist())
    return value.decode() if isinstance(value, bytes) else value


def outcome(program: Callable[..., Any], argument: Any) -> Any:
    """The result of a call, or the class of the error that it raises."""
    try:
        return plain(program(argument))
    except (ag.errors.StagingError, ag.errors.OperatorNotAllowedInGraphError):
        raise
    except _ERRORS as error:
        return next(kind for kind in _ERRORS if isinstance(error, kind))


def check(program: Callable[..., Any], arguments: list[Any], mode: str) -> None:
    """Compares a program in a mode with plain Python, by values and their types."""
    made = MODES[mode](program)
    for each in arguments:
        right, found = outcome(program, each), outcome(made, ag.constant(each))
        assert (found, _types(found)) == (right, _types(right)), each


def _types(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _types(each) for key, each in value.items()}
    return [_types(each) for each in value] if isinstance(value, list) else type(value)
