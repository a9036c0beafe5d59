"""The end of a trace: lists, deques and numbers of objects are Python's again."""

from __future__ import annotations

from typing import Any

from autograph.errors import StagingError
from autograph.operators.containers import conversions
from autograph.operators.frame import Frame
from autograph.operators.raising import check_refused
from autograph.operators.restored_numbers import restore_numbers
from autograph.operators.standard_library import leave_deques, makes_deques


def end_trace(builder: Any, *outside: Any) -> None:
    """Puts the lists and deques back that became staged in a trace, and the numbers of objects of libraries' classes.

    outside: what the caller of the trace can still see. Raises StagingError if such a list is reached from there, or if
    the function has swallowed one.
    """
    restore_numbers(builder)
    found = conversions(builder)
    check_refused(builder)
    if not found and not makes_deques(builder):
        return
    frame = Frame.of(*outside)
    labels = {id(each.owner): each.label for each in frame.containers}
    for each in found:
        frame.replace(each.staged, each.owner)
    for each in found:
        label = labels.get(id(each.owner), labels.get(id(each.staged)))
        if label is not None:
            raise StagingError(
                f"'{label}' is a list from outside of the function, and a branch or loop on tensors changes its "
                "length, or an item at an index that is a tensor",
                location=each.location,
                cause="it would then hold tensors that exist only inside of the function",
                fix="make the list in the function and return it",
            )
    leave_deques([(each.owner, each.way) for each in frame.objects], frame.replace)
