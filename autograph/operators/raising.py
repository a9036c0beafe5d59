"""``raise`` in staged code: the error is raised when the program gets there, at the user's line.

A ``raise`` statement of the user's that leaves a branch or loop body that is being traced ends the trace of that block,
and becomes an effect of the program. Within the block it is Python's own, so that ``try`` in the same block works as it
does in Python. Where a ``try`` of the same function stands around the conditional, the converter has put a flag and a
`Raised` before the ``raise``, and the flag leads to the ``except`` clause. No other ``try`` could catch the error, and
so one that would is a staging error.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from autograph.errors import StagingError, user_location
from autograph.operators.calls import is_library_code
from autograph.operators.state import Slot
from autograph.operators.swallowing import catches, swallower, tries
from runtime import nest
from runtime.context import ctx
from runtime.errors import OperatorNotAllowedInGraphError, is_own_file
from runtime.graph.callers import user_span
from runtime.interpreter import is_raise
from runtime.ops.control import raise_op
from runtime.ops.convert import is_tensor_like
from runtime.ops.strings.staged_string import StagedString, StagedText

_OWN = ("autograph", "runtime")
# What Python raises for values that don't depend on tensors, and so whenever the program gets there.
_CERTAIN = (IndexError, KeyError, ZeroDivisionError)
# Operators do what Python does where nothing is staged, and so their errors are the user's.
_STANDING_FOR_PYTHON = ("autograph.operators.items", "autograph.operators.calls", "autograph.operators.keys", __name__)


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
        self.given: BaseException | None = None
        self.tensors: Sequence[Any] = ()
        self.is_caught = False

    def take(self, error: BaseException) -> None:
        """Makes this the error that the ``raise`` has raised."""
        self.given, self.tensors = error, []
        for each in _chain(error):
            each.with_traceback(None)
            self.tensors += [
                t for value in _held(each).values() for leaf in nest.flatten(value) for t in _tensors(leaf)
            ]

    @property
    def error(self) -> BaseException:
        """The error, with the tensors that it holds here."""
        assert self.given is not None
        tensors = iter(self.tensors)
        for each in _chain(self.given):
            for name, value in _held(each).items():
                setattr(each, name, nest.map_structure(lambda leaf: _with_tensors(leaf, tensors), value))
        return self.given

    @property
    def uncaught(self) -> BaseException:
        """The error, unless an ``except`` clause has caught it: then nothing comes here."""
        if self.is_caught:
            return AlwaysRaises("an error that has been caught isn't raised again")
        return self.error

    def __tf_flatten__(self) -> tuple[Any, tuple[Any, ...]]:
        return _Kind(self.place, self.given), tuple(self.tensors)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> Raised:
        made = cls.__new__(cls)
        made.place, made.given = metadata.place, metadata.given
        made.tensors, made.is_caught = components, False
        return made


def _chain(error: BaseException | None) -> list[BaseException]:
    """An error, its cause, the cause of that, and so on."""
    found: list[BaseException] = []
    while error is not None and not any(error is each for each in found):
        found.append(error)
        error = error.__cause__
    return found


def _held(error: BaseException) -> dict[str, Any]:
    """The arguments and attributes of an error that have tensors in them, by the attribute's name."""
    held = {"args": error.args, **vars(error)}
    return {name: value for name, value in held.items() if any(map(_tensors, nest.flatten(value)))}


def _tensors(leaf: Any) -> list[Any]:
    """The tensors in a part of an error: the part itself, or those that a staged text shows."""
    if type(leaf) is StagedText:
        return [piece[0] for piece in leaf.pieces if not isinstance(piece, str)]
    if type(leaf) is StagedString:
        return [leaf.tensor]
    return [leaf] if is_tensor_like(leaf) else []


def _with_tensors(leaf: Any, tensors: Iterator[Any]) -> Any:
    """A part of an error with `tensors` in the place of its own, in the order of `_tensors`."""
    if type(leaf) is StagedString:
        return StagedString(next(tensors))
    if type(leaf) is StagedText:
        return StagedText(*[each if isinstance(each, str) else (next(tensors), each[1]) for each in leaf.pieces])
    return next(tensors) if is_tensor_like(leaf) else leaf


class _Kind:
    """What the errors of one ``raise`` statement have in common: their types, and the arguments that are no tensors."""

    def __init__(self, place: Any, given: BaseException | None) -> None:
        self.place = place
        self.given = given
        fixed = [
            (type(error), *[None if _tensors(each) else repr(each) for each in error.args]) for error in _chain(given)
        ]
        self.key = place, tuple(fixed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kind) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def caught(failure: Raised, types: Any = BaseException) -> bool:
    """Whether an ``except`` clause for these types catches an error; one without types catches all."""
    catches = isinstance(failure.given, types)
    failure.is_caught |= catches
    return catches


def hand_over(error: BaseException, state: Iterable[Slot]) -> bool:
    """Gives an error that leaves a branch to the `Raised` that stands before its ``raise``, if there is one."""
    traceback = _raise_statement(error)
    if traceback is None:
        return False
    place = traceback.tb_frame.f_code, traceback.tb_lineno
    for slot in state:
        failure = slot.get()
        if type(failure) is Raised and failure.place == place:
            _refuse_managers(error, is_flagged=True)
            failure.take(error)
            return True
    return False


def stage_raise(error: BaseException) -> bool:
    """Makes an error that leaves a traced block part of the program, if a ``raise`` of the user's raised it.

    So is what the user's code itself raises for a missing key or index (``empty[0]``), or a division by zero.
    """
    if isinstance(error, AlwaysRaises):
        return True
    traceback = _raise_statement(error)
    if traceback is None:
        return False
    _refuse_managers(error)
    _refuse_clauses(error)
    code = traceback.tb_frame.f_code
    # What a converted function of the standard library raises has its place where the user calls that.
    is_own = is_own_file(code.co_filename)
    raise_op(error, user_span() if is_own else (code.co_filename, traceback.tb_lineno, code.co_name))
    return True


def is_of_program(error: BaseException) -> bool:
    """Whether an error that leaves a traced block would become part of the program."""
    return isinstance(error, AlwaysRaises) or _raise_statement(error) is not None


def _raise_statement(error: BaseException) -> TracebackType | None:
    """Where a ``raise`` statement of the user's raised an error, or Python in the user's code, or None."""
    traceback = error.__traceback__
    if isinstance(error, StagingError) or traceback is None:
        return None
    entries = [traceback]
    while entries[-1].tb_next is not None:
        entries.append(entries[-1].tb_next)
    if isinstance(error, SystemExit):  # `sys.exit` is always meant, whoever has called it
        entries = [each for each in entries if not is_library_code(each.tb_frame.f_code, each.tb_frame.f_globals)]
        return entries[-1] if entries else None
    while len(entries) > 1 and entries[-1].tb_frame.f_globals.get("__name__") in _STANDING_FOR_PYTHON:
        entries.pop()
    frame = entries[-1].tb_frame
    is_certain = isinstance(error, _CERTAIN) or is_raise(frame.f_code, entries[-1].tb_lasti)
    return entries[-1] if is_certain and not is_library_code(frame.f_code, frame.f_globals) else None


def refuse_handlers(error: BaseException) -> None:
    """Raises StagingError if a ``try`` of the user's around a block that an error leaves would catch it."""
    # What can't be staged is no error of the program, nor is Ctrl-C.
    if type(error).__module__.partition(".")[0] not in _OWN and isinstance(error, Exception):
        _refuse_clauses(error)


def refuse_to_catch(error: BaseException) -> None:
    """Raises StagingError if anything of the user's around would catch an error that comes when the program runs."""
    _refuse_managers(error)
    _refuse_clauses(error)


def _refuse_clauses(error: BaseException) -> None:
    frame: FrameType | None = sys._getframe(3)
    while frame is not None:
        if "ag__" in frame.f_code.co_freevars:
            for handler in _handlers_around(frame.f_code.co_filename, frame.f_lineno):
                if catches(handler, frame.f_globals, frame.f_locals, error):
                    raise StagingError(
                        f"{type(error).__name__} is raised under a condition on a tensor, and a `try` around the "
                        "condition would catch it",
                        location=user_location(),
                        cause="whether it is raised is known only at run time, after the `try` has ended",
                        fix="put the `try` into the branch, or set a flag instead of raising;"
                        " a `raise` statement in the `try` statement itself is caught",
                    ) from error
        frame = frame.f_back


def _refuse_managers(error: BaseException, is_flagged: bool = False) -> None:
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
                cause="whether it is raised is known only at run time, after the `with` has ended",
                fix="use `try` and `except` around the `if` that raises",
            ) from error
        frame = frame.f_back


# By builder: a staging error that has left a block of its region. Whoever catches it must not hide it.
_refused: WeakKeyDictionary[Any, Exception] = WeakKeyDictionary()


def refused(builder: Any, error: Exception) -> None:
    """Remembers that a block in the region of a builder can't be staged."""
    _refused[builder] = error


def keeps_refusals(operator: _Operator) -> _Operator:
    """An operator whose staging errors end the trace, even if a handler of the user's swallows them."""

    @functools.wraps(operator)
    def keeping(*arguments: Any, **options: Any) -> Any:
        try:
            return operator(*arguments, **options)
        except (StagingError, OperatorNotAllowedInGraphError) as error:
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
