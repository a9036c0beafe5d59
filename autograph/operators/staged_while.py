"""Staging a ``while`` loop, again and again until it fits: what one attempt teaches, the next one starts from.

- A list that the body makes longer or shorter becomes a staged list.
- Lists that a tensor indexes become staged, and Python's own again if the loop only reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from autograph.operators.aliases import chosen
from autograph.operators.containers import NeedsStagedList, convert, is_listed
from autograph.operators.frame import Frame
from autograph.operators.logic import and_
from autograph.operators.loop_memory import memory_of
from autograph.operators.loop_options import HasLimit, Options, options_of, set_loop_options
from autograph.operators.loop_variables import NeedsAttributes
from autograph.operators.raising import keeps_refusals
from autograph.operators.staged_loop import Loop
from autograph.operators.state import Block, LocalSlot, Slot, single_places
from runtime import dtypes
from runtime.errors import OperatorNotAllowedInGraphError
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.elementary import cast
from runtime.staged_list import StagedList, moved


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
    plain_test, plain_body, counted = test, body, None
    memory = memory_of([block.__code__ for block in blocks])
    while True:
        frame = Frame(blocks, [each for each in reached if each.holds_containers])
        try:
            Loop(test, body, single_places(state), frame, memory).stage()
        except HasLimit as found:
            if counted is None:
                counted = LocalSlot("trips", convert_to_tensor(0, dtypes.int32))
                state = [counted, *state]
            test, body = _limited(found.limit, counted, plain_test, plain_body)
        except NeedsAttributes:
            pass  # the next attempt takes the objects apart
        except NeedsStagedList as request:
            old = request.place.get() if isinstance(request.place, Slot) else None
            convert(request, frame.replace)
            if isinstance(request.place, Slot):
                chosen(request.label, request.place.get(), [[old]], frame.all_holders)
        except OperatorNotAllowedInGraphError:
            # A tensor as the index of a Python list: all lists in sight become staged, and those that turn out to be
            # only read become Python's own again.
            lists = [each for each in frame.containers if is_listed(each.owner)]
            if not lists:
                raise
            for each in lists:
                read_only.append((each.owner, list(each.owner)))
                convert(NeedsStagedList(each.label, each.owner, ()), frame.replace)
        else:
            break
    for owner, items in read_only:
        _give_back(owner, items, blocks)


def _limited(
    limit: Any, trips: LocalSlot, test: Callable[[], Any], body: Callable[[], Any]
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """A loop that runs at most ``limit`` times."""

    def step() -> None:
        options = Options()
        with options_of(options):  # what the body says about the loop's limit is known
            body()
        set_loop_options(gradient_memory=None if options.memory is None else options.memory.bytes)
        trips.set(trips.get() + 1)

    return lambda: and_(trips.get() < cast(convert_to_tensor(limit), dtypes.int32), test), step


def _give_back(owner: list[Any], items: list[Any], blocks: Sequence[Block]) -> None:
    """Makes a list that a loop only read a Python list again."""
    staged = moved(owner)
    if staged is not None and staged.is_unchanged():
        owner[:] = items
        Frame(blocks).replace(staged, owner)
