"""Tracebacks that hold the user's frames only, each function once and under its own lines.

A block of a converted function is a function of its own, called by an operator. Where Python shows, for an error in the
body of an ``if``,

    model.py:5 in step          if x > 0:
    conditional.py in if_stmt   return run(block)
    unbound.py in run           return block(*arguments)
    model.py:6 in step          return 1 / x

what is left is the last line. Every converted function drops such frames from the errors that leave it, and a
traced function all frames of this project (up to Python 3.10 the first of them stays). `disable_traceback_filtering`
keeps everything.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, TracebackType

from autograph.errors import is_own_file
from runtime.errors import OpError
from runtime.graph.spans import AT_SPAN

_enabled = True
# The operators that call lambdas made from the operands of an expression.
_ROOM = Path(__file__).resolve().parent
_OPERAND_CALLERS = {str(_ROOM / name) for name in ("logic.py", "conditional.py", "loops.py", "unbound.py")}


def enable_traceback_filtering() -> None:
    """Errors show the user's frames only. This is the default."""
    global _enabled
    _enabled = True


def disable_traceback_filtering() -> None:
    """Errors show this project's frames too, and the functions that blocks of code were made into."""
    global _enabled
    _enabled = False


def is_traceback_filtering_enabled() -> bool:
    """Whether errors show the user's frames only."""
    return _enabled


def drop_frames() -> tuple[()]:
    """Cleans the traceback of the error being handled as far as the frame that handles it reaches.

    Converted functions are compiled with `except ag__.drop_frames(): pass` around their body. The empty tuple matches
    no error, which makes Python raise the error on, without an entry of its own in the traceback.
    """
    error = sys.exc_info()[1]
    if _enabled and error is not None and error.__traceback__ is not None:
        error.__traceback__, _ = _cleaned(error.__traceback__)
    return ()


def drop_own_frames() -> tuple[()]:
    """The same for the whole traceback, the handling frame's own entry included."""
    error = sys.exc_info()[1]
    if _enabled and error is not None:
        _clean_all(error)
    return ()


def _clean_all(error: BaseException) -> None:
    first, kept = error.__traceback__, []
    entry = first
    while entry is not None:
        if is_own_file(entry.tb_frame.f_code.co_filename):
            entry = entry.tb_next
            continue
        head, entry = _cleaned(entry)
        kept.append(head)
    if first is None:
        return
    if not kept:
        # A program that fails while it runs names the user's line itself; anything else, Ctrl-C aside, is an error in
        # this project, which is worth seeing.
        if isinstance(error, (OpError, KeyboardInterrupt)) or AT_SPAN in str(error):
            error.__traceback__ = None
        return
    for one, following in zip(kept, [*kept[1:], None]):
        one.tb_next = following
    error.__traceback__ = kept[0]
    if kept[0] is not first and sys.version_info < (3, 11):
        first.tb_next = kept[0]  # Python raises on with the traceback that it has caught


def _cleaned(entry: TracebackType) -> tuple[TracebackType, TracebackType | None]:
    """The entry of a function, moved to the block that it was in, and the entry of the function that it called."""
    head, around, caller = entry, entry.tb_frame.f_code, None
    frames = [entry.tb_frame]
    following = entry.tb_next
    while following is not None:
        code = following.tb_frame.f_code
        if is_own_file(code.co_filename):
            caller = code
        elif caller is not None and following.tb_frame in frames:
            # `raise` alone, in a block of an `except` clause: it leaves no entry, and the error's first way follows.
            head, around, caller = following, code, None
        elif caller is not None and _is_block(code, around, caller):
            around = code
            frames.append(following.tb_frame)
            if code.co_name == "<lambda>" != head.tb_frame.f_code.co_name:
                # An operand: the function's name and the operand's line. Python reads columns off the instruction.
                head = TracebackType(following.tb_next, head.tb_frame, -1, following.tb_lineno)
            else:
                head = following
            caller = None
        else:
            break
        following = following.tb_next
    if head.tb_next is not following:
        head.tb_next = following
    if head is not entry and sys.version_info < (3, 11):
        entry.tb_next = head  # see above
        head = entry
    return head, following


def _is_block(code: CodeType, around: CodeType, caller: CodeType) -> bool:
    """Whether ``code`` was made from a piece of the function that has the code ``around``."""
    if not any(const is code for const in around.co_consts):
        return False
    return code.co_name == around.co_name or (code.co_name == "<lambda>" and caller.co_filename in _OPERAND_CALLERS)
