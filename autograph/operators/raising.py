"""``raise`` in staged code: the error is raised when the program gets there, at the user's line.

A ``raise`` statement of the user's that leaves a branch or loop body that is being traced ends the trace of that block,
and becomes an effect of the program. Within the block it is Python's own, so that ``try`` in the same block works as it
does in Python. Where a ``try`` of the same function stands around the conditional, the converter has put a flag and a
`Raised` before the ``raise``, and the flag leads to the ``except`` clause. No other ``try`` could catch the error, and
so one that would is a staging error.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from types import FrameType, TracebackType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from autograph.errors import StagingError, user_location
from autograph.operators.calls import is_library_code
from autograph.operators.state import Slot
from autograph.operators.swallowing import catches, swallower, tries
from runtime.context import ctx
from runtime.ops.control import raise_op
from runtime.ops.convert import is_tensor_like

_OWN = ("autograph", "runtime")
# What Python raises for values that don't depend on tensors, and so whenever the program gets there.
_CERTAIN = (IndexError, KeyError, ZeroDivisionError)
_RAISE = dis.opmap["RAISE_VARARGS"]


_Operator = TypeVar("_Operator", bound=Callable[..., Any])


class AlwaysRaises(StagingError):
    """Whatever way the program takes here, it raises; what follows can't be reached."""


class Raised:
    """The error of a ``raise`` that a ``try`` around its branch catches; its tensors leave the branch with it.

    Made just before the ``raise``, which has no error yet.
    """

    def __init__(self) -> None:
        frame = sys._getframe(1)
        self.place = frame.f_code, frame.f_lineno
        self.given: Exception | None = None
        self.arguments: Sequence[Any] = ()
        self.is_caught = False

    @property
    def error(self) -> Exception:
        """The error, with the tensors that its arguments are here."""
        assert self.given is not None
        tensors = iter(self.arguments)
        self.given.args = tuple([next(tensors) if is_tensor_like(each) else each for each in self.given.args])
        return self.given

    @property
    def uncaught(self) -> Exception:
        """The error, unless an ``except`` clause has caught it: then nothing comes here."""
        if self.is_caught:
            return AlwaysRaises("an error that has been caught isn't raised again")
        return self.error

    def __tf_flatten__(self) -> tuple[Any, tuple[Any, ...]]:
        return _Kind(self.place, self.given), tuple(self.arguments)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> Raised:
        made = cls.__new__(cls)
        made.place, made.given = metadata.place, metadata.given
        made.arguments, made.is_caught = components, False
        return made


class _Kind:
    """What the errors of one ``raise`` statement have in common: their type, and the arguments that are no tensors."""

    def __init__(self, place: Any, given: Exception | None) -> None:
        self.place = place
        self.given = given
        fixed = [None if is_tensor_like(each) else repr(each) for each in given.args] if given is not None else ()
        self.key = place, type(given), tuple(fixed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kind) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def caught(failure: Raised, types: Any) -> bool:
    """Whether an ``except`` clause for these types catches an error."""
    catches = isinstance(failure.given, types)
    failure.is_caught |= catches
    return catches


def hand_over(error: Exception, state: Iterable[Slot]) -> bool:
    """Gives an error that leaves a branch to the `Raised` that stands before its ``raise``, if there is one."""
    traceback = _raise_statement(error)
    if traceback is None:
        return False
    place = traceback.tb_frame.f_code, traceback.tb_lineno
    for slot in state:
        failure = slot.get()
        if type(failure) is Raised and failure.place == place:
            _refuse_managers(error, is_flagged=True)
            failure.given = error.with_traceback(None)
            failure.arguments = [each for each in error.args if is_tensor_like(each)]
            return True
    return False


def stage_raise(error: BaseException) -> bool:
    """Makes an error that leaves a traced block part of the program, if a ``raise`` of the user's raised it.

    So is what the user's code itself raises for a missing key or index (``empty[0]``), or a division by zero.
    """
    if isinstance(error, AlwaysRaises):
        return True
    if not isinstance(error, Exception):
        return False
    traceback = _raise_statement(error)
    if traceback is None:
        return False
    _refuse_managers(error)
    refuse_handlers(error)
    code = traceback.tb_frame.f_code
    # An OSError keeps the file's name out of its `args`.
    arguments: Any = OSError.__reduce__(error)[1] if isinstance(error, OSError) else error.args
    attributes = {name: value for name, value in vars(error).items() if name != "__notes__"}
    raise_op(type(error), arguments, (code.co_filename, traceback.tb_lineno, code.co_name), attributes=attributes)
    return True


def _raise_statement(error: Exception) -> TracebackType | None:
    """Where a ``raise`` statement of the user's raised an error, or Python in the user's code, or None."""
    traceback = error.__traceback__
    if isinstance(error, StagingError) or traceback is None:
        return None
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    frame = traceback.tb_frame
    is_raise = isinstance(error, _CERTAIN) or frame.f_code.co_code[traceback.tb_lasti] == _RAISE
    return traceback if is_raise and not is_library_code(frame.f_code, frame.f_globals) else None


def refuse_handlers(error: Exception) -> None:
    """Raises StagingError if a ``try`` of the user's around a block that an error leaves would catch it."""
    if type(error).__module__.partition(".")[0] in _OWN:  # what can't be staged is no error of the program
        return
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if "ag__" in frame.f_code.co_freevars:
            for handler in _handlers_around(frame.f_code.co_filename, frame.f_lineno):
                if catches(handler, frame.f_globals, frame.f_locals, error):
                    raise StagingError(
                        f"{type(error).__name__} is raised under a condition on a tensor, and a `try` around the "
                        "condition would catch it",
                        location=user_location(),
                        cause="whether it is raised is known only at run time, when the `try` is long over",
                        fix="put the `try` into the branch, or set a flag instead of raising;"
                        " a `raise` statement in the `try` statement itself is caught",
                    ) from error
        frame = frame.f_back


def _refuse_managers(error: Exception, is_flagged: bool = False) -> None:
    """Raises StagingError if a ``with`` of the user's around a block that an error leaves would swallow it.

    is_flagged: a flag leads to an ``except`` clause; if `contextlib.suppress` is nearer, it has got a clause too.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        manager = swallower(frame, error, is_flagged) if "ag__" in frame.f_code.co_freevars else None
        if manager is not None:
            raise StagingError(
                f"{type(error).__name__} is raised under a condition on a tensor, and `with {manager}` around the "
                "condition would swallow it",
                location=user_location(),
                cause="whether it is raised is known only at run time, when the `with` is long over",
                fix="use `try` and `except` around the `if` that raises",
            ) from error
        frame = frame.f_back


# By builder: a staging error that has left a block of its region. Whoever catches it must not hide it.
_refused: WeakKeyDictionary[Any, StagingError] = WeakKeyDictionary()


def refused(builder: Any, error: StagingError) -> None:
    """Remembers that a block in the region of a builder can't be staged."""
    _refused[builder] = error


def keeps_refusals(operator: _Operator) -> _Operator:
    """An operator whose staging errors end the trace, even if a handler of the user's swallows them."""

    @functools.wraps(operator)
    def keeping(*arguments: Any, **options: Any) -> Any:
        try:
            return operator(*arguments, **options)
        except StagingError as error:
            if ctx.builder is not None and not isinstance(error, AlwaysRaises):
                refused(ctx.builder, error)
            raise

    return keeping  # type: ignore[return-value]


def forget_refused(builder: Any) -> None:
    """Drops what was remembered: the block is traced in another way."""
    _refused.pop(builder, None)


def check_refused(builder: Any) -> None:
    """Raises at the end of a region the staging error that a handler of the user's has swallowed in it."""
    error = _refused.pop(builder, None)
    if error is not None:
        raise error


def _handlers_around(filename: str, line: int) -> list[str]:
    """The types that the ``except`` clauses around a line catch, as text; empty for a bare one."""
    return [handler for first, last, handlers in tries(filename) if first <= line <= last for handler in handlers]
