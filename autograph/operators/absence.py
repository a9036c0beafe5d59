"""Variables that have a tensor only on some ways through a program: unbound, or None, on the others.

``best = None`` before a loop that sets it to a tensor; ``y = x`` in one branch of an ``if``. Which of the two holds is
known when the program runs. Such a variable holds a tensor (a placeholder where there is none) with a `Guard`: boolean
tensors that tell whether it is there. Whoever uses the tensor demands that first, in the graph that uses it, so that
the error comes up at run time, at the line of the use, and only on a way that leads there:

    if c:
        y = x           # y: the tensor x or zeros, present: c
    return y            # assert present; y

Tests (``best is None``) read the guard instead, and what they find out holds in their branches.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from autograph.errors import Location, StagingError
from autograph.operators.structure import children, flatten, map_leaves
from runtime.context import ctx
from runtime.dataclass import dataclass
from runtime.errors import NoneValueError, UnsetAttributeError, UnsetItemError, UnsetVariableError
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.compare import logical_not
from runtime.ops.staged_number import StagedNumber, staged_value
from runtime.ops.strings.staged_string import StagedString
from runtime.tensor import SymbolicTensor
from runtime.thread_state import propagated

# The kinds of absence.
NONE = "none"
UNBOUND = "unbound"


@dataclass(frozen=True)
class Absence:
    """One way in which a tensor may not be there.

    label    how the user spells the variable
    level    how many containers lie between what is absent and the tensor: 1 for a pair of tensors that may be None
    present  a boolean tensor: false if it is absent
    origin   the statement that may set the variable
    refusal  what to raise if a traced function returns it
    reason   why it may have no value, for the message
    """

    kind: str
    level: int
    present: Any
    label: str
    origin: Location | None
    refusal: StagingError | None = None
    reason: str = ""

    @property
    def key(self) -> tuple[str, int]:
        return self.kind, self.level

    def demand(self, at: Location | None = None) -> None:
        """Emits the check that the value is there; ``at`` is where it is used, if no frame of the user's tells."""
        ctx.builder.known.add(self.present.value)
        assert_present(self.present, self.kind, self.label, self.reason)
        if at is not None:
            ctx.builder.read_token().node.span = (at.filename, at.line, at.function)


class Guard:
    """What a tensor that may be absent carries. ``plain`` is the tensor without it."""

    __slots__ = ("absences", "plain")

    def __init__(self, absences: tuple[Absence, ...], plain: SymbolicTensor) -> None:
        self.absences = absences
        self.plain = plain

    def demand(self, builder: Any) -> None:
        """Makes sure that the program fails here if the tensor is absent. Builders call this when it is used."""
        for absence in self.absences:
            if is_known(builder, absence.present):
                continue
            with builder:
                absence.demand()


def assert_present(present: Any, kind: str, label: str, reason: str = "") -> None:
    """Emits the check that a variable, an item or an attribute has a value."""
    error: type[Exception]
    why = reason or "nothing has set it on the way here"
    if kind == NONE:
        error = NoneValueError
        message = f"'{label}' is None here: it has a tensor only on other ways through the program"
    elif label.endswith("]"):
        error, message = UnsetItemError, f'"{label}" has no value: {why}'
    elif "." in label:
        error, message = UnsetAttributeError, f"'{label}' has no value: {why}"
    else:
        message = f"cannot access local variable '{label}' where it is not associated with a value"
        error, message = UnsetVariableError, f"{message}: {reason}" if reason else message
    assert_op(present, message, error.__name__)


def no_iteration(label: str) -> str:
    """The reason why a variable that a loop sets may have no value."""
    return f"its loop must iterate at least once to initialize {label}"


# --- tensors with guards -------------------------------------------------------------------------------------------


def guarded(value: Any, absences: Sequence[Absence]) -> Any:
    """The tensor, which may be absent in these ways."""
    if not absences:
        return value
    if type(value) in (StagedNumber, StagedString):
        return staged_value(guarded(value.tensor, absences), value.default)
    tensor = convert_to_tensor(value)
    if type(tensor) is not SymbolicTensor:
        tensor = ctx.builder.tensor(ctx.builder.use(tensor))
    made = SymbolicTensor(tensor.value, tensor.builder)
    made.guard = Guard(tuple(replace(each, present=_tensor(each.present)) for each in absences), tensor)
    made.flag, made.chosen = tensor.flag, tensor.chosen
    return made


def plain(value: Any) -> Any:
    """The value without its guard, for those who hand it on together with it."""
    guard = _guard(value)
    if guard is None:
        return value
    return staged_value(guard.plain, value.default) if type(value) in (StagedNumber, StagedString) else guard.plain


def _guard(value: Any) -> Guard | None:
    tensor = value.tensor if type(value) in (StagedNumber, StagedString) else value
    return tensor.guard if type(tensor) is SymbolicTensor else None


def absences(value: Any, builder: Any) -> list[Absence]:
    """In which ways a value may be absent as far as is known where ``builder`` stands."""
    guard = _guard(value)
    return [] if guard is None else [each for each in guard.absences if not is_known(builder, each.present)]


def bound(value: Any) -> Any:
    """The value of a variable, which the program has checked to be bound here."""
    if ctx.builder is None or not any(_guard(leaf) for _, leaf in flatten(value)):
        return value
    return map_leaves(value, _bound)


def _bound(value: Any) -> Any:
    found = absences(value, ctx.builder)
    for absence in found:
        if absence.kind == UNBOUND:
            absence.demand()
    return guarded(plain(value), [each for each in found if each.kind != UNBOUND])


def returned(value: Any) -> None:
    """What a traced function gives out must be there. Raises StagingTypeError if it says itself that it may be None."""
    for absence in absences(value, ctx.builder):
        if absence.refusal is not None:
            raise absence.refusal
        absence.demand(absence.origin)


def none_test(value: Any) -> Any:
    """``value is None``: a Python bool, or a boolean tensor."""
    if value is None:
        return True
    builder = ctx.builder
    if builder is None:
        return False
    for leaf, depth in _leaves(value):
        guard = _guard(leaf)
        about = [] if guard is None else [each for each in guard.absences if each.level >= depth]
        if not about:
            continue
        found: Any = False
        for absence in about:
            if is_known(builder, absence.present):
                continue
            if absence.key == (NONE, depth):
                found = logical_not(absence.present)
            else:
                absence.demand()
        return found  # the other leaves say the same
    return False


def unset_test(value: Any) -> Any:
    """Whether an attribute with this value isn't set: a Python bool, or a boolean tensor."""
    for leaf, _ in _leaves(value) if ctx.builder is not None else ():
        for absence in absences(leaf, ctx.builder):
            if absence.kind == UNBOUND:
                return logical_not(absence.present)  # the other leaves say the same
    return False


def _leaves(value: Any, depth: int = 0) -> Iterator[tuple[Any, int]]:
    """The leaves of a structure, each with the number of containers that it is in."""
    items = children(value)
    if items is None:
        yield value, depth
    for _, item in items or ():
        yield from _leaves(item, depth + 1)


def _tensor(present: Any) -> SymbolicTensor:
    tensor = convert_to_tensor(present)
    return tensor if type(tensor) is SymbolicTensor else ctx.builder.tensor(ctx.builder.use(tensor))


# --- what is known where -------------------------------------------------------------------------------------------


def is_known(builder: Any, present: Any) -> bool:
    """Whether a boolean tensor is known to be true in the graph of a builder."""
    value = present.value
    while builder is not None:
        if value in builder.known:
            return True
        builder = builder.parent
    return False


def facts(predicate: Any, holds: bool) -> set[Any]:
    """The values of the current graph, and of those around it, that are true if a predicate holds, or if it doesn't."""
    found: set[Any] = set()
    waiting = [(predicate.value, holds)] if type(predicate) is SymbolicTensor else []
    while waiting:
        value, true = waiting.pop()
        value, _ = outer_source(ctx.builder, value)
        operation = value.node.op.name if value.node is not None else ""
        if true:
            found.add(value)
        if operation == "logical_not":
            waiting.append((value.node.inputs[0], not true))
        elif operation == ("logical_and" if true else "logical_or"):
            waiting += [(each, true) for each in value.node.inputs]
    return found


def outer_source(builder: Any, value: Any) -> tuple[Any, Any]:
    """The value that an input of a region stands for, and the builder of the region around that it belongs to."""
    while builder is not None and value.node is None and value.graph is builder.graph:
        outer = next((outer for outer, own in builder.captured.items() if own is value), None)
        if outer is None:
            break
        value, builder = outer, builder.parent
    return value, builder


# --- trial runs ----------------------------------------------------------------------------------------------------


class _Trials(threading.local):
    def __init__(self) -> None:
        self.open: list[list[BaseException]] = []


_trials = propagated(_Trials())
_EXPECTED = (TypeError, ValueError, AttributeError, NameError, UnboundLocalError)


@contextlib.contextmanager
def trial(wanted: bool) -> Iterator[list[BaseException]]:
    """A trace to find out what the variables without a value get; branches that need the value already may fail.

    Gives the errors that were put up with: the trace is of no use for anything else then.
    """
    errors: list[BaseException] = []
    if not wanted:
        yield errors
        return
    _trials.open.append(errors)
    try:
        yield errors
    finally:
        _trials.open.pop()


def tolerates(error: BaseException) -> bool:
    """Whether a branch that fails with this error may be left out, since it is only a trial."""
    if not _trials.open or type(error) not in _EXPECTED:
        return False
    _trials.open[-1].append(error)
    return True
