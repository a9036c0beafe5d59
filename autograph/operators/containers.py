"""The contents of lists, dictionaries and other Python containers as state of staged loops and branches.

``scores.append(x)`` changes no variable but the list behind it. When a block that is traced changes a container, its
contents become state: item by item while the number of items stays (``d['k'] = x``); otherwise the list becomes a
`StagedList`, in every variable, attribute and container that can be reached from the block. Whoever else holds the
Python list finds a `Moved` in it.

Containers that no program can carry (sets, lists of unlike things) raise a staging error.
"""

from __future__ import annotations

import copy
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import CellType
from typing import Any
from weakref import WeakKeyDictionary

from autograph.errors import Location, StagingError, StagingTypeError, user_location
from autograph.operators.aliases import is_exchanged
from autograph.operators.choices import holds_choice
from autograph.operators.live import is_run_over
from autograph.operators.records import take_apart
from autograph.operators.state import Slot, read_cell, text_of
from autograph.operators.structure import children, is_frozen, rebuild
from runtime.context import ctx
from runtime.dataclass import dataclass
from runtime.interpreter import doubt
from runtime.ops.convert import is_tensor_like
from runtime.staged_array import StagedArray
from runtime.staged_list import Moved, StagedList, moved

# Objects of the program's own whose contents are tensors.
STAGED = (StagedList, StagedArray)
CONTAINERS = (list, dict, set, deque, bytearray, array, *STAGED)


class Ref:
    """An item that is a container itself: its owner's contents hold only the reference."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ref) and self.held is other.held

    __hash__ = None  # type: ignore[assignment]


@dataclass
class ListRequest:
    """A list that must become a staged one.

    place     the list itself, or the slot that holds it, when the variable was given another list
    items     elements that it will get, to learn their type from; like: a staged list with such elements
    """

    label: str
    place: Any
    items: Sequence[Any]
    like: StagedList | None = None


class NeedsStagedLists(Exception):
    """Tracing found that lists must become staged ones: the trace is void, the lists convert, and it starts again."""

    def __init__(self, requests: Sequence[ListRequest]) -> None:
        super().__init__(*[request.label for request in requests])
        self.requests = requests


class ContentSlot(Slot):
    """The contents of one container, whatever the way to it."""

    def __init__(self, label: str, owner: Any) -> None:
        super().__init__(label)
        self.owner = owner

    @property
    def place(self) -> Any:
        return "contents", id(self.owner)

    def get(self) -> Any:
        return contents(self.owner)

    def set(self, value: Any) -> None:
        put(self.owner, value)


def contents(owner: Any) -> Any:
    """A copy of what a container holds; of a list that has become a staged one, the staged list's."""
    if isinstance(owner, STAGED):
        return owner.clone()
    staged = moved(owner)
    if staged is not None:
        return staged.clone()
    if isinstance(owner, list):
        return [_wrap(item) for item in owner]
    if isinstance(owner, dict):
        return {key: _wrap(item) for key, item in owner.items()}
    return copy.copy(owner)


def put(owner: Any, value: Any) -> None:
    """Makes ``value``, from `contents`, what a container holds."""
    if isinstance(owner, STAGED):
        owner.restore(*value.__tf_flatten__())
    elif isinstance(owner, list):
        owner[:] = [without_refs(item) for item in value]
    elif isinstance(owner, (bytearray, array)):
        owner[:] = value
    elif isinstance(owner, dict):
        _put_items(owner, {key: without_refs(item) for key, item in value.items()})
    else:
        owner.clear()
        owner.extend(value) if isinstance(owner, deque) else owner.update(value)


def _put_items(owner: dict[Any, Any], items: dict[Any, Any]) -> None:
    """Makes a dictionary hold some items; with the keys that it has, whoever runs over it notices nothing."""
    if list(owner) != list(items):
        owner.clear()
    for key, item in items.items():
        owner[key] = item


def _wrap(item: Any) -> Any:
    items = children(item)
    if items is None:
        return item
    return rebuild(item, [_wrap(each) for _, each in items]) if is_frozen(item) else Ref(item)


def without_refs(item: Any) -> Any:
    """An item of `contents` as the container holds it."""
    if isinstance(item, Ref):
        return item.held
    items = children(item) if is_frozen(item) else None
    return item if items is None else rebuild(item, [without_refs(each) for _, each in items])


def unwrapped(item: Any) -> Any:
    """The container that a `Ref` refers to; any other item is returned unchanged."""
    return item.held if isinstance(item, Ref) else item


class Snapshot:
    """A copy of a container's content, taken when the snapshot is made, to find later changes."""

    def __init__(self, way: Any, owner: Any) -> None:
        self.way = way
        self.owner = owner
        staged = isinstance(owner, STAGED)
        self.before = owner.__tf_flatten__() if staged else copy.copy(owner)

    @property
    def label(self) -> str:
        """How the container is reached."""
        return str(self.way)

    def changed(self) -> bool:
        owner, before = self.owner, self.before
        if isinstance(owner, STAGED):
            return any(a is not b for a, b in zip(owner.__tf_flatten__()[1], before[1]))
        if len(owner) != len(before):
            return True
        if isinstance(owner, dict):
            return any(key not in owner or _differ(owner[key], item) for key, item in before.items())
        if isinstance(owner, (list, deque)):
            return any(_differ(a, b) for a, b in zip(owner, before))
        return bool(owner != before)

    def touched(self) -> bool:
        """Whether it must be put back: ``changed``, or a list that it holds has become a staged one."""
        items = self.before.values() if isinstance(self.owner, dict) else self.before
        held = isinstance(self.owner, (list, dict)) and any(type(each) is list for each in items)
        return held or self.changed()

    def changed_places(self) -> set[Any]:
        """Where single items have changed, as `PathSlot` names these places."""
        owner, before = self.owner, self.before
        if isinstance(owner, dict):
            keys = [
                key
                for key in {**before, **owner}
                if key not in before or key not in owner or _differ(owner[key], before[key])
            ]
        elif isinstance(owner, list) and len(owner) == len(before):
            keys = [index for index, (a, b) in enumerate(zip(owner, before)) if _differ(a, b)]
        else:
            return {None}
        return {(id(owner), text_of(key)) for key in keys}

    def slot(self) -> ContentSlot:
        """The contents as state. Raises StagingError for a container that can't be."""
        is_grown = type(self.owner) is not list and isinstance(self.owner, list) and len(self.owner) != len(self.before)
        if is_grown or not isinstance(self.owner, (list, dict, *STAGED)):
            kind = type(self.owner).__name__
            kind = f"an {kind}" if kind.startswith("a") else f"a {kind}"
            raise StagingError(
                f"'{self.label}', {kind}, is changed in a branch or loop on tensors",
                location=user_location(),
                cause=f"whether the change happens is known only at run time, but {kind} isn't part of the program",
                fix="change it outside of the staged code, or use a list or tensor",
            )
        return ContentSlot(self.label, self.owner)

    def restore(self) -> None:
        if isinstance(self.owner, STAGED):
            self.owner.restore(*self.before)
        elif isinstance(self.owner, dict):
            _put_items(self.owner, self.before)
        elif isinstance(self.owner, (list, bytearray, array)):
            self.owner[:] = self.before
        else:
            self.owner.clear()
            self.owner.extend(self.before) if isinstance(self.owner, deque) else self.owner.update(self.before)


class Reads:
    """Variables that a function reads from around it, and the containers in them, as they were when this was made."""

    def __init__(self, cells: Iterable[CellType]) -> None:
        self.cells = [(each, read_cell(each)) for each in cells]
        self.containers = [Snapshot("", value) for _, value in self.cells if isinstance(value, CONTAINERS)]

    @classmethod
    def of(cls, function: Any) -> Reads:
        """What a function reads."""
        return cls(function.__closure__ or ())

    def again(self) -> Reads:
        """A new record of the same cells with the values that they have now."""
        return Reads([cell for cell, _ in self.cells])

    def hold(self, owner: Any) -> bool:
        """Whether a list is one of them."""
        return any(value is owner or (type(value) is list and moved(value) is owner) for _, value in self.cells)

    def have_changed(self) -> bool:
        """Whether the function might give something else now."""
        return any(each.changed() for each in self.containers) or any(
            read_cell(cell) is not value and moved(value) is not read_cell(cell) for cell, value in self.cells
        )


def _differ(now: Any, before: Any) -> bool:
    if not is_exchanged(before, now):
        return False
    return not (isinstance(now, StagedList) and moved(before) is now)  # the same list: only its form has changed


# --- lists that become staged --------------------------------------------------------------------------------------


def staged_list(
    label: str, items: Sequence[Any], more: Sequence[Any] = (), like: StagedList | None = None
) -> StagedList:
    """A staged list of ``items``. Raises StagingTypeError when they, and those to come, can't share a type."""
    items = [without_refs(item) for item in items]
    more = [without_refs(item) for item in more]
    if any(holds_choice(take_apart(item)) for item in (*items, *more)):
        raise StagingTypeError(
            f"'{label}' gets or loses elements in a branch or loop on tensors, and members of an enum are among them",
            location=user_location(),
            cause="its length is known only at run time, so it is stored as tensors",
            fix="put the `.value` of the members into it, and `Phase(value)` gives the member again",
        )
    try:
        made = StagedList(items, more, like)
    except (TypeError, ValueError) as error:
        label = label[1:].replace("'", "", 1) if label.startswith("'") else label
        raise StagingTypeError(
            f"'{label}' gets or loses elements in a branch or loop on tensors, and they have different types",
            location=user_location(),
            cause=f"its length is known only at run time, so all elements need one dtype, shape and structure: {error}",
            fix="keep values of different types in several lists, or convert them with ag.cast",
        ) from error
    made.elements.made(made, items)
    return made


def convert(request: ListRequest, replace: Callable[[Any, Any], None]) -> None:
    """Answers a request: makes the list staged and hands it to everything that held it."""
    place = request.place
    if isinstance(place, Slot):
        value = place.get()
        place.set(staged_list(request.label, value, request.items, request.like))
        return
    become_staged(place, staged_list(request.label, place, request.items, request.like), replace)


@dataclass
class _Conversion:
    owner: list[Any]
    items: list[Any]  # what it held
    staged: StagedList
    location: Location | None


def become_staged(owner: list[Any], staged: StagedList, replace: Callable[[Any, Any], None]) -> None:
    """Puts a staged list in the place of a Python list, wherever that is held.

    Raises StagingError if an iterator runs over the list that can't go on in the staged one.
    """
    if is_run_over(owner):
        raise iterator_over_staged_list()
    replace(owner, staged)
    staged.origin = owner
    root = ctx.builder
    while root.parent is not None:
        root = root.parent
    _converted.setdefault(root, []).append(_Conversion(owner, list(owner), staged, user_location()))
    # One more than before: whoever is just running over the list sees that it has moved.
    owner[:] = [Moved(staged, owner)] * (len(owner) + 1)


def iterator_over_staged_list() -> StagingError:
    """The error for an iterator that would have to go on in a list that has become a staged one."""
    return StagingError(
        "a branch or loop on tensors changes a list that an iterator runs over",
        location=user_location(),
        cause="from then on the list's length is known only at run time, but the Python iterator runs now" + doubt(),
        fix="run over a copy (list(items)), over the list itself with `for`, or by index",
    )


# By root builder: the lists that have become staged while it was tracing.
_converted: WeakKeyDictionary[Any, list[_Conversion]] = WeakKeyDictionary()


def conversions(builder: Any) -> list[_Conversion]:
    """The lists that became staged in a trace, given back the contents that they had."""
    found = _converted.pop(builder, [])
    for each in reversed(found):
        each.owner[:] = each.items
        each.staged.origin = None
    return found


def is_list(value: Any) -> bool:
    """Whether a value is a list, staged or Python's own."""
    return type(value) is list or isinstance(value, StagedList)


def is_content(value: Any) -> bool:
    """Whether a value is a list or an array of the program: an object whose contents are state by themselves."""
    return is_list(value) or type(value) is StagedArray


def is_listed(value: Any) -> bool:
    """Whether a value is a Python list that could become a staged one, as far as can be told without its use.

    A list of staged lists stays: their lengths may differ, and its items are changed in place.
    """
    if type(value) is not list or not value:
        return False
    return all(type(each) in (int, float) or (is_tensor_like(each) and type(each) is not StagedList) for each in value)
