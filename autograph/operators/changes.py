"""What blocks have changed: as state, and as containers and objects were at the end of a block."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from autograph.operators.attributes import twin
from autograph.operators.containers import STAGED
from autograph.operators.state import Slot
from autograph.operators.structure import children, rebuild, stands_for, which
from runtime.dataclass import dataclass
from runtime.staged_list import StagedList


@dataclass
class Change:
    """State that a block has changed: what it is now, and the places that differ from before.

    slot      makes the slot; raises StagingError for a container that can't be state
    place     what the slot will name as its place
    owner     the container whose contents have changed, None for a variable or an attribute
    """

    slot: Callable[[], Slot]
    now: Any
    place: Any
    places: frozenset[Any]
    owner: Any = None

    def is_known(self, known: Collection[Any]) -> bool:
        """Whether the places are state already, one by one or as the contents of their owner."""
        return self.places <= set(known) or self.place in known


class Images:
    """The containers and objects that a block has changed as they were at its end."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Any, Any]] = {}  # by id of the original, which must live on; and what was in it
        self._originals: dict[int, tuple[Any, Any]] = {}  # by id of a staged list, the list that it was before

    def add(self, original: Any, inside: Any) -> None:
        """inside: a copy of a container, the attributes of an object."""
        self._found[id(original)] = original, inside

    def became(self, staged: StagedList, original: list[Any]) -> None:
        self._originals[id(staged)] = staged, original

    def original(self, value: Any) -> Any:
        """The list that has become a staged one in the block; any other value itself."""
        return self._originals[id(value)][1] if id(value) in self._originals else value

    def of(self, value: Any) -> Any:
        """A value as it was at the end of the block."""
        if id(value) not in self._found:
            return value
        _, inside = self._found[id(value)]
        if isinstance(value, (list, dict, *STAGED)):
            return inside
        made = twin(value, inside)
        stands_for(made, which(value))
        return made

    def inside(self, value: Any) -> Any:
        """A value with the images of all that is in it."""
        if not self._found:
            return value
        after = self.of(value)
        items = children(after)
        if items is None:
            return value
        inside = [self.inside(item) for _, item in items]
        return value if after is value and all(a is b for a, (_, b) in zip(inside, items)) else rebuild(after, inside)
