"""The error for a variable without a value, as Python words it.

Inside a block function an unbound variable of the converted function is an empty closure cell, for which Python raises
NameError ("free variable"); in the user's function it is a local variable, for which Python raises UnboundLocalError.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

_OPERATORS = str(Path(__file__).resolve().parent)
_LOCAL = re.compile(r"local variable '([^']+)'")
_FREE = re.compile(r"free variable '([^']+)'")


def run(block: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a block function; its empty cells raise what the user's unbound variables would."""
    try:
        return block(*arguments)
    except NameError as error:
        changed = as_unbound_local(error, block.__code__)
        if changed is error:
            raise
    # Raised outside the handler, so that the replaced error doesn't show up as its context.
    raise changed


def as_unbound_local(error: NameError, *blocks: CodeType) -> NameError:
    """The error to raise in place of a NameError that came out of calling block functions; often the same one."""
    if type(error) is not NameError or not error.args:
        return error
    match = _FREE.search(str(error.args[0]))
    traceback = error.__traceback__
    if match is None or traceback is None:
        return error
    frame = _raised_in(blocks, traceback)
    if frame is None or not _is_local_of_user(match[1], frame):
        return error
    name = match[1]
    if sys.version_info >= (3, 11):
        message = f"cannot access local variable '{name}' where it is not associated with a value"
    else:
        message = f"local variable '{name}' referenced before assignment"
    changed = UnboundLocalError(message)
    changed.name = name
    # The operator that raises this adds its own frame, the first of the traceback, again.
    return changed.with_traceback(traceback.tb_next)


def name_assignment(error: UnboundLocalError) -> None:
    """Adds TensorFlow's words to Python's, for a variable that is unbound while a function is being traced."""
    if type(error) is UnboundLocalError and len(error.args) == 1 and "used before assignment" not in str(error):
        match = _LOCAL.search(str(error))
        if match is not None:
            error.args = (f"{error}: '{match[1]}' is used before assignment",)


def _raised_in(blocks: tuple[CodeType, ...], traceback: TracebackType) -> FrameType | None:
    """The frame that raised, if it is a block's own."""
    last = traceback
    while last.tb_next is not None:
        last = last.tb_next
    return last.tb_frame if last.tb_frame.f_code in blocks else None


def _is_local_of_user(name: str, frame: FrameType) -> bool:
    """Whether a free variable of a block belongs to the user's function that the block is part of."""
    definer = frame.f_back
    while definer is not None and frame.f_code not in definer.f_code.co_consts:
        definer = definer.f_back
    if definer is None:
        return False
    if name in definer.f_code.co_cellvars:
        return True
    return _is_block(definer) and _is_local_of_user(name, definer)


def _is_block(frame: FrameType) -> bool:
    """Whether a frame runs a block function: only operators call those."""
    return frame.f_back is not None and frame.f_back.f_code.co_filename.startswith(_OPERATORS)
