"""Items of Python lists and tuples at an index that is a tensor."""

from __future__ import annotations

from typing import Any

from autograph.errors import StagingTypeError, user_location
from autograph.operators.containers import is_listed
from autograph.operators.raising import keeps_refusals
from autograph.operators.symbolic import symbolic
from runtime.context import ctx
from runtime.staged_list import StagedList, moved


@keeps_refusals
def item(items: Any, index: Any) -> Any:
    """``items[index]``; at a symbolic tensor what the program chooses from a list or tuple of things of one kind."""
    if type(index) is int or ctx.builder is None or type(items) not in (list, tuple) or symbolic(index) is None:
        return items[index]
    staged = moved(items)
    if staged is not None:
        return staged[index]
    if _in_loop() and is_listed(items):
        return items[index]  # the loop makes its lists staged, and does so once
    try:
        return StagedList(items)[index]
    except (TypeError, ValueError) as error:
        raise StagingTypeError(
            f"a tensor is the index of a {type(items).__name__} whose items are not of one kind",
            location=user_location(),
            cause=f"which item it is, is known only at run time, so all need one dtype, shape and structure: {error}",
            fix="choose with `if`, or ag.switch_case for functions; convert items with ag.cast",
        ) from error


def _in_loop() -> bool:
    builder = ctx.builder
    while builder.parent is not None:
        if builder.name in ("body", "test"):
            return True
        builder = builder.parent
    return False
