"""Tracebacks that hold the user's frames only, each function once and under its own lines.

A block of a converted function is a function of its own, called by an operator. Where Python shows, for an error in the
body of an ``if``,

    model.py:5 in step          if x > 0:
    conditional.py in if_stmt   return run(block)
    unbound.py in run           return block(*arguments)
    model.py:6 in step          return 1 / x

what is left is the last line. Every converted function drops such frames from the errors that leave it, and traced
functions, public functions and public methods all frames of this project (up to Python 3.10 the first of them stays).
`disable_traceback_filtering` keeps everything, and so does AUTOGRAPH_TRACEBACKS=full in the environment.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

from runtime.context import ctx
from runtime.errors import AT_SPAN, InternalError, is_own_file
from runtime.interpreter import is_raise

F = TypeVar("F")

_enabled = os.environ.get("AUTOGRAPH_TRACEBACKS") != "full"
# The files of operators that call lambdas made from the operands of an expression.
operand_callers: set[str] = set()
# What Python raises by itself where this project's code is wrong.
_MISTAKES = (InternalError, AttributeError, NameError, AssertionError, ImportError, SystemError)
_MEANT = "_autograph_meant"
_OURS = "_autograph_ours"


def enable_traceback_filtering() -> None:
    """Tracebacks show only your own frames. This is the default."""
    global _enabled
    _enabled = True


def disable_traceback_filtering() -> None:
    """Tracebacks also show this project's frames, and the functions that blocks were converted to."""
    global _enabled
    _enabled = False


def is_traceback_filtering_enabled() -> bool:
    """Whether tracebacks show only your own frames."""
    return _enabled


def drop_frames() -> tuple[()]:
    """Cleans the traceback of the error being handled as far as the frame that handles it reaches.

    Converted functions are compiled with `except ag__.drop_frames(): pass` around their body. The empty tuple matches
    no error, which makes Python raise the error on, without an entry of its own in the traceback.
    """
    error = sys.exc_info()[1]
    if _enabled and error is not None and error.__traceback__ is not None:
        is_ours(error)  # which the frames don't tell any more then
        error.__traceback__, _ = _cleaned(error.__traceback__)
    return ()


def is_ours(error: BaseException) -> bool:
    """Whether this project's code has raised an error, whatever has been dropped of its traceback since.

    What Python raises where this project calls it in the user's place (`int`) is Python's.
    """
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    if entry is not None:
        code = entry.tb_frame.f_code
        if is_own_file(code.co_filename) and is_raise(code, entry.tb_lasti):
            setattr(error, _OURS, True)
    return getattr(error, _OURS, False)


def drop_own_frames() -> tuple[()]:
    """Drops this project's frames from the traceback of the error being handled, the frame of the handler included."""
    error = sys.exc_info()[1]
    if _enabled and error is not None:
        _clean_all(error)
        # What Python shows before it.
        seen = {id(error)}
        while error is not None:
            error = error.__cause__ if error.__suppress_context__ else error.__cause__ or error.__context__
            if error is None or id(error) in seen:
                break
            seen.add(id(error))
            _clean_all(error)
    return ()


def leaving() -> tuple[()]:
    """Drops this project's frames, unless a function is being traced: there the frames tell the user's errors from
    ours, and the traced function drops them later."""
    return drop_own_frames() if ctx.builder is None else ()


def shows_no_frames(function: F) -> F:
    """The function, from whose errors this project's frames are dropped."""

    @functools.wraps(function)  # type: ignore[arg-type]
    def public(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)  # type: ignore[operator]
        except leaving():  # matches nothing: the error goes on, its traceback cleaned
            raise

    return mark(public)


def mark(function: Any) -> Any:
    """Notes of a function that it drops frames by itself. Wrappers copy the attribute, but they have other code."""
    function.shows_no_frames = function.__code__
    return function


def is_marked(function: Any) -> bool:
    """Whether a function drops frames by itself."""
    return getattr(function, "shows_no_frames", None) is function.__code__


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that isn't this project's, from a frame outwards. (A thread of our own has none.)"""
    while frame is not None and (
        is_own_file(frame.f_code.co_filename) or frame.f_code.co_filename == contextlib.__file__
    ):
        frame = frame.f_back
    return frame


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points at the user's line. (In a thread of our own Python says `sys:1`.)"""
    inner: FrameType | None = sys._getframe(0)
    found, level = user_frame(inner), 1
    while inner is not found and inner is not None:
        inner = inner.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level if found is not None else sys.maxsize)


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
        if _is_meant(error, first):
            error.__traceback__ = None
        return
    for one, following in zip(kept, [*kept[1:], None]):
        one.tb_next = following
    error.__traceback__ = kept[0]
    if kept[0] is not first and sys.version_info < (3, 11):
        first.tb_next = kept[0]  # Python raises on with the traceback that it has caught


def _is_meant(error: BaseException, entry: TracebackType) -> bool:
    """Whether an error that came up in this project is a refusal. Others are mistakes of ours, whose frames help."""
    if not isinstance(error, _MISTAKES) or getattr(error, _MEANT, False):
        return True
    if isinstance(error, InternalError):
        return False
    while entry.tb_next is not None:
        entry = entry.tb_next
    if AT_SPAN in str(error) or is_raise(entry.tb_frame.f_code, entry.tb_lasti):
        setattr(error, _MEANT, True)  # for the function around this one, whose frame doesn't say so
        return True
    return False


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
    return code.co_name == around.co_name or (code.co_name == "<lambda>" and caller.co_filename in operand_callers)
