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


def plain(value: Any) -> Any:
    """A result with Python's values in the place of tensors."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (ag.Tensor, np.ndarray, np.generic)):
        value = np.asarray(value).tolist()
        return plain(value) if isinstance(value, list) else plain_item(value)
    return plain_item(value)


def plain_item(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def outcome(program: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a call, or the type of the error that it raises."""
    try:
        found = plain(program(*arguments))
    except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        return next(kind for kind in (IndexError, KeyError, TypeError, AttributeError, ValueError) if isinstance(error, kind))
    return found
