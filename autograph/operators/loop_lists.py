"""Lists that a loop makes staged: those that its body makes longer or shorter, and those that a tensor indexes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from autograph.errors import StagingTypeError
from autograph.operators.aliases import chosen
from autograph.operators.containers import ListRequest, convert, is_listed, without_refs
from autograph.operators.frame import Frame
from autograph.operators.loop_memory import Memory
from autograph.operators.state import Block, Slot
from autograph.operators.structure import map_leaves
from runtime.context import ctx
from runtime.staged_list import StagedList, moved
from runtime.types import TensorType


def stage_list(request: ListRequest, frame: Frame) -> StagedList | None:
    """Makes a list staged, for everybody who holds it; None where it is so already."""
    place = request.place
    old = place.get() if isinstance(place, Slot) else place
    if type(old) is not list or moved(old) is not None:
        return None
    convert(request, frame.replace)
    if not isinstance(place, Slot):
        return moved(old)
    made: StagedList = place.get()
    chosen(request.label, made, [[old]], frame.all_holders)
    return made


def remember_lists(memory: Memory, requests: Sequence[ListRequest]) -> None:
    """Notes what the next trace of a loop begins with; keeps no container of the program alive."""
    for request in requests:
        is_variable = isinstance(request.place, Slot)
        like = None if request.like is None else request.like.clone()
        items = [map_leaves(item, lambda leaf: leaf) for item in map(without_refs, request.items)]
        memory.lists[is_variable, request.label] = ListRequest(request.label, None, items, like)


def stage_known_lists(memory: Memory, frame: Frame, state: Sequence[Slot]) -> bool:
    """Makes the lists staged that an earlier trace of a loop has asked for; gives whether there were any."""
    count = 0
    for (is_variable, _), request in memory.lists.items():
        places: list[Any] = [slot for slot in state if slot.label == request.label]
        if not is_variable:
            places = [each.owner for each in frame.containers if each.label == request.label]
        if len(places) == 1:
            count += stage_list(replace(request, place=places[0]), frame) is not None
    return count > 0


def stage_lists_in_sight(frame: Frame) -> list[tuple[list[Any], list[Any]]]:
    """Makes all lists staged that could be; gives them with what they held, for `give_back`."""
    lists = [each for each in frame.containers if is_listed(each.owner)]
    found = [(each.owner, list(each.owner)) for each in lists]
    for each in lists:
        convert(ListRequest(each.label, each.owner, ()), frame.replace)
    return found


def give_back(owner: list[Any], items: list[Any], blocks: Sequence[Block]) -> None:
    """Makes a list that a loop only read a Python list again."""
    staged = moved(owner)
    if staged is not None and staged.is_unchanged():
        owner[:] = items
        Frame(blocks).replace(staged, owner)


def with_any_contents(request: ListRequest, frame: Frame) -> None:
    """Makes a list staged of which nothing is known but the type of its elements; none where they have no type yet."""
    try:
        staged = stage_list(request, frame)
    except StagingTypeError:
        return
    if staged is None:
        return
    kind, (*buffers, size) = staged.__tf_flatten__()
    shapes = [None if buffer.type.shape is None else (None, *buffer.type.shape[1:]) for buffer in buffers]
    types = [TensorType(buffer.dtype, shape) for buffer, shape in zip(buffers, shapes)]
    staged.restore(kind, [ctx.builder.unknown(type_) for type_ in (*types, size.type)])
