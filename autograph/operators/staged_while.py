"""Staging a ``while`` loop, again and again until it fits: what one attempt teaches, the next one starts from.

- A list that the body makes longer or shorter becomes a staged list.
- Lists that a tensor indexes become staged, and Python's own again if the loop only reads them.
- Objects that the body exchanges count by their attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from autograph.errors import StagingError, user_location
from autograph.operators.containers import NeedsStagedLists
from autograph.operators.frame import Frame
from autograph.operators.loop_lists import (
    give_back,
    remember_lists,
    stage_known_lists,
    stage_list,
    stage_lists_in_sight,
)
from autograph.operators.loop_memory import memory_of
from autograph.operators.loop_variables import NeedsAttributes
from autograph.operators.raising import forget_refused, keeps_refusals
from autograph.operators.staged_loop import Loop
from autograph.operators.state import Block, Slot, single_places
from runtime.context import ctx
from runtime.errors import OperatorNotAllowedInGraphError
from runtime.staged_list import StagedList


@keeps_refusals
def stage_while(
    test: Callable[[], Any],
    body: Callable[[], Any],
    state: Sequence[Slot],
    blocks: Sequence[Block],
    reached: Sequence[StagedList] = (),
) -> None:
    """Emits a ``while`` node for a loop in its current state, and sets the variables in ``state`` to its results.

    blocks: the functions whose closure cells the loop may change. reached: lists that it may change besides.
    """
    read_only: list[tuple[list[Any], list[Any]]] = []
    memory = memory_of([block.__code__ for block in blocks])

    def look_around() -> Frame:
        return Frame(blocks, [each for each in reached if each.holds_containers])

    frame = look_around()
    if memory.has_index:
        read_only += stage_lists_in_sight(frame)
        frame = look_around()
    if stage_known_lists(memory, frame, state):
        frame = look_around()
    while True:
        try:
            Loop(test, body, single_places(state), frame, memory).stage()
        except NeedsAttributes:
            pass  # the next attempt takes the objects apart
        except NeedsStagedLists as needed:
            remember_lists(memory, needed.requests)
            made = [stage_list(request, frame) for request in needed.requests]
            if all(each is None for each in made):
                raise _unreachable_list(needed.requests[0].label) from None
        except OperatorNotAllowedInGraphError:
            # A tensor as the index of a Python list: all lists in sight become staged, and those that turn out to be
            # only read become Python's own again.
            found = stage_lists_in_sight(frame)
            if not found:
                raise
            forget_refused(ctx.builder)
            memory.has_index = True
            read_only += found
        else:
            break
        frame = look_around()
    for owner, items in read_only:
        give_back(owner, items, blocks)


def _unreachable_list(label: str) -> StagingError:
    return StagingError(
        f"'{label}' is a list that a loop on tensors makes, and makes longer or shorter in a later iteration",
        location=user_location(),
        cause="its length is known only at run time, so it must be part of the program from the start",
        fix=f"create '{label}' before the loop",
    )
