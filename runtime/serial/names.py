"""The names of ops, and of functions whose calls may be deferred (`deferrable`), in files.

Files of earlier versions have earlier names:

RENAMED_OPS = {"roll_rows": "roll"}                                     `roll_rows` was renamed
RENAMED_FUNCTIONS = {"nn.nn_ops.conv2d": "nn.convolution.conv2d"}       `conv2d` was moved
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime.ops.deferred_calls import FUNCTIONS
from runtime.ops.table import OPS, OpDef

RENAMED_OPS: dict[str, str] = {}
RENAMED_FUNCTIONS: dict[str, str] = {
    "arrays.segments.segment_sqrt_n": "arrays.segments.sparse_segment_sqrt_n",
}


def op_called(name: Any) -> OpDef | None:
    """The op that files call so."""
    return OPS.get(RENAMED_OPS.get(name, name)) if isinstance(name, str) else None


def function_called(name: Any) -> Callable[..., Any] | None:
    """The function that files call so."""
    return FUNCTIONS.get(RENAMED_FUNCTIONS.get(name, name)) if isinstance(name, str) else None
