"""What a function gives for the object that a program chooses: it is asked for each of them, the program selects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograph.operators.choices import Alternatives, Choice, among, constant_of, holds, is_choosable
from autograph.operators.frame import Frame
from autograph.operators.raising import keeps_refusals, refuse_to_catch
from autograph.operators.staged_if import stage_branches
from autograph.operators.symbolic import same_python_value
from runtime import dtypes
from runtime.ops.control import raise_op
from runtime.ops.elementwise.compare import less
from runtime.ops.flags import flagged
from runtime.ops.staged_number import StagedNumber, storage
from runtime.ops.values import common_default, default_of


@keeps_refusals
def select(choice: Choice, function: Callable[[Any], Any]) -> Any:
    """What a function that changes nothing gives for the object.

    Where it fails for some of the objects, so does the program when it gets here with one of these.
    """
    values: list[Any] = []
    errors: dict[int, Exception] = {}
    fine: list[int] = []
    for position, each in enumerate(choice.ag_alternatives):
        try:
            values.append(function(each))
            fine.append(position)
        except Exception as error:
            if type(error).__module__ != "builtins":
                raise
            errors[position] = error
    if not fine:
        raise errors[0]
    if errors:
        for position, found in errors.items():
            raise_at_run_time(found, unless=holds(choice, {*range(len(choice.ag_alternatives))} - {position}))
        choice = among(choice, Alternatives([choice.ag_alternatives[each] for each in fine]))
    return selected(choice, values)


def raise_at_run_time(error: Exception, unless: Any) -> None:
    """Raises an error of Python's when the program gets here, unless a boolean tensor holds."""
    refuse_to_catch(error)
    raise_op(error.with_traceback(None), unless=unless)


def selected(choice: Choice, values: list[Any]) -> Any:
    """The value at the position of the object."""
    first = values[0]
    if all(same_python_value(first, each) for each in values):
        return first
    kinds = {type(each) for each in values}
    if kinds == {bool}:
        return flagged(holds(choice, [position for position, each in enumerate(values) if each]))
    if kinds == {int} or kinds == {float}:
        default = common_default(*map(default_of, values))
        return StagedNumber(constant_of(choice, values, storage(default)), default)
    # Functions of a table, too: they can be called.
    if not any(issubclass(kind, Choice) for kind in kinds) and all(
        each is None or is_choosable(each) or callable(each) for each in values
    ):
        found = Alternatives.of(*values)
        return Choice(
            constant_of(choice, [found.position(each) for each in values], dtypes.int32), found, found.are_texts
        )
    return _branches(choice, lambda position: values[position], 0, len(values), Frame(()))


@keeps_refusals
def call(choice: Choice, function: Callable[[Any], Any], *reached: Any) -> Any:
    """What a function that may change state gives; it runs for the object alone.

    reached: what leads to that state.
    """
    objects = choice.ag_alternatives
    return _branches(choice, lambda each: function(objects[each]), 0, len(objects), Frame.of(*objects, *reached))


def _branches(choice: Choice, of: Callable[[int], Any], first: int, end: int, frame: Frame) -> Any:
    if end - first == 1:
        return of(first)
    middle = (first + end) // 2
    sides = [lambda: _branches(choice, of, first, middle, frame), lambda: _branches(choice, of, middle, end, frame)]
    return stage_branches(less(choice.ag_index, middle), sides, [], frame)
