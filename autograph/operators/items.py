"""Items of Python lists and tuples at an index that is a tensor.

A list of numbers and tensors becomes a staged list when such an item is set, added or removed. Of other lists each item
is exchanged under the condition that it is the one, as an ``if`` statement for each would do.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from numpy import ndarray

from autograph.errors import StagingTypeError, user_location
from autograph.operators.arrays import ArrayItems, element, is_array
from autograph.operators.builtins import OVERLOADS
from autograph.operators.choices import Choice
from autograph.operators.containers import become_staged, is_listed
from autograph.operators.frame import Frame
from autograph.operators.keys import at_key, is_unknown, key_to_change
from autograph.operators.live import rebind
from autograph.operators.objects import as_key
from autograph.operators.raising import keeps_refusals
from autograph.operators.selecting import call, select
from autograph.operators.staged_if import stage_branches
from autograph.operators.staged_strings import character, is_staged_text
from autograph.operators.structure import is_mutable
from autograph.operators.symbolic import is_tensorable, symbolic
from runtime.context import ctx
from runtime.ops.elementwise.compare import equal, less
from runtime.ops.staged_number import as_number
from runtime.staged_list import StagedList, checked_position, moved

# By the builder of a loop's body: what the loop can reach.
_reach: WeakKeyDictionary[Any, Frame] = WeakKeyDictionary()


def note_reach(builder: Any, frame: Frame) -> None:
    """Notes what the loop can reach whose body or test a builder is for."""
    _reach[builder] = frame


@keeps_refusals
def item(owner: Any, *path: Any) -> Any:
    """``owner[i]``, or ``owner[i][k]`` and so on; at symbolic tensors what the program chooses from lists or tuples."""
    for depth, index in enumerate(map(as_number, path), 1):
        index = as_key(index, "[]")
        if _is_choice(owner, index):
            position = _position(owner, index)
            return _chosen(owner, position, 0, len(owner), lambda each, rest=path[depth:]: item(each, *rest))  # type: ignore[misc]
        owner = _item(owner, index)
    return owner


def look_up(owner: Any, index: Any) -> Any:
    """``owner[index]`` where no index is a tensor that Python would have to know."""
    index = as_key(index, "[]")
    if type(owner) is str and ctx.builder is not None:
        return character(owner, index)
    if isinstance(owner, dict) and is_unknown(index):
        return at_key(owner, index)
    if isinstance(index, Choice):
        return select(index, lambda each: owner[each])
    if type(index) is tuple:
        index = tuple([as_key(each, "[]") for each in index])
        for place, each in enumerate(index):
            if isinstance(each, Choice):
                before, after = index[:place], index[place + 1 :]
                return select(each, lambda each: look_up(owner, (*before, each, *after)))  # noqa: B023  it runs at once
    return owner[index] if type(owner) is not ndarray or ctx.builder is None else element(owner, index)


def _item(owner: Any, index: Any) -> Any:
    if type(owner) is str:
        return character(owner, index)
    if isinstance(index, Choice) or is_staged_text(index) or type(index) is tuple or isinstance(owner, dict):
        return look_up(owner, index)
    index = as_number(index)
    if type(owner) is ndarray and ctx.builder is not None:
        return element(owner, index)
    if type(index) is int or ctx.builder is None or type(owner) not in (list, tuple) or not _is_staged(index):
        return owner[index]
    staged = moved(owner)
    if staged is not None:
        return staged[index]
    if not owner:
        # If a loop appends to it, the next trace of the loop's body has a staged list.
        if type(index) is slice:
            return owner[:]
        raise IndexError(f"{type(owner).__name__} index out of range")
    if _is_loops(owner):
        return owner[index]  # the loop makes its lists staged, and does so once
    try:
        items = StagedList(owner)
        return items[index] if type(index) is slice else items.item(_position(owner, index))
    except (TypeError, ValueError) as error:
        raise _unlike(owner, f"a tensor is the index of a {type(owner).__name__}", error) from error


def items(owner: Any, *path: Any) -> Any:
    """What ``owner[index] = value`` and ``del owner[index]`` change in place of ``owner``, or of what indices reach."""
    for depth, index in enumerate(path, 1):
        if _is_choice(owner, index):
            return _ChosenItems(owner, index, path[depth:])
        owner = _item(owner, index)
    if ctx.builder is None:
        return owner
    if type(owner) is list:
        return _Items(owner)
    if isinstance(owner, dict):
        return _Entries(owner)
    return ArrayItems(owner) if is_array(owner) else owner


class _Items:
    """The items of a Python list in a trace."""

    __slots__ = ("owner",)

    def __init__(self, owner: list[Any]) -> None:
        self.owner = owner

    def __getitem__(self, index: Any) -> Any:
        return item(self.owner, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        _set_item(self.owner, index, value)

    def __delitem__(self, index: Any) -> None:
        _delete_item(self.owner, index)


class _Entries:
    """The items of a dictionary in a trace: what is at a chosen key changes under the condition that it is the key."""

    __slots__ = ("owner",)

    def __init__(self, owner: dict[Any, Any]) -> None:
        self.owner = owner

    def __getitem__(self, key: Any) -> Any:
        return look_up(self.owner, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        key = key_to_change(self.owner, key)
        if isinstance(key, Choice):
            call(key, lambda each: self.owner.__setitem__(each, value), self.owner, value)
        else:
            self.owner[key] = value

    def __delitem__(self, key: Any) -> None:
        key = key_to_change(self.owner, key)
        if isinstance(key, Choice):
            call(key, self.owner.__delitem__, self.owner)
        else:
            del self.owner[key]


class _ChosenItems:
    """The items of an item that a tensor chooses from a Python list: each is changed under the condition that it is the
    one."""

    __slots__ = ("owner", "path", "position")

    def __init__(self, owner: list[Any], index: Any, path: tuple[Any, ...]) -> None:
        self.owner = owner
        self.position = _position(owner, index)
        self.path = path

    def __getitem__(self, index: Any) -> Any:
        return _chosen(self.owner, self.position, 0, len(self.owner), lambda each: items(each, *self.path)[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        self._change(lambda each: items(each, *self.path).__setitem__(index, value), value)

    def __delitem__(self, index: Any) -> None:
        self._change(lambda each: items(each, *self.path).__delitem__(index))

    @keeps_refusals
    def _change(self, change: Callable[[Any], None], *given: Any) -> None:
        for place, each in enumerate(self.owner):
            frame = Frame.of(self.owner, *given)
            branches = [lambda each=each: change(each), lambda: None]  # type: ignore[misc]
            stage_branches(equal(self.position, place), branches, [], frame)


def _is_choice(owner: Any, index: Any) -> bool:
    """Whether a tensor chooses one of the items of a list or tuple that can be changed."""
    if type(index) in (int, slice) or ctx.builder is None or type(owner) not in (list, tuple) or not _is_staged(index):
        return False
    return moved(owner) is None and any(is_mutable(each) or isinstance(each, StagedList) for each in owner)


def _position(owner: Any, index: Any) -> Any:
    return checked_position(index, len(owner), f"{type(owner).__name__} index out of range")


@keeps_refusals
def _set_item(owner: list[Any], index: Any, value: Any) -> None:
    staged = moved(owner)
    if isinstance(index, Choice):
        call(index, lambda each: _set_item(owner, each, value), owner, value)
    elif staged is not None:
        staged[index] = value
    elif type(index) is int or not _is_staged(index) or _is_loops(owner):
        owner[index] = value
    elif type(index) is slice:
        _staged(owner, [] if isinstance(value, StagedList) else list(value))[index] = value
    elif owner and all(map(is_tensorable, (*owner, value))):
        _staged(owner, [value])[index] = value
    else:
        position = checked_position(index, len(owner), "list assignment index out of range")
        for place in range(len(owner)):
            _exchange(owner, place, value, equal(position, place))


def _exchange(owner: list[Any], place: int, value: Any, condition: Any) -> None:
    def exchanged() -> None:
        owner[place] = value

    stage_branches(condition, [exchanged, lambda: None], [], Frame.of(owner, value))


@keeps_refusals
def _delete_item(owner: list[Any], index: Any) -> None:
    staged = moved(owner)
    if staged is None and _is_staged(index) and not _is_loops(owner):
        if not owner:
            if type(index) is slice:
                return
            raise IndexError("list assignment index out of range")
        staged = _staged(owner)
    del (owner if staged is None else staged)[index]


@keeps_refusals
def _pop(owner: list[Any], *arguments: Any) -> Any:
    """``owner.pop(index)``."""
    if len(arguments) != 1 or not _is_staged(arguments[0]) or _is_loops(owner):
        return owner.pop(*arguments)
    if not owner and moved(owner) is None:
        raise IndexError("pop from empty list")
    return _staged(owner).pop(arguments[0])


@keeps_refusals
def _insert(owner: list[Any], *arguments: Any) -> None:
    """``owner.insert(index, value)``."""
    if len(arguments) != 2 or not _is_staged(arguments[0]) or _is_loops(owner):
        owner.insert(*arguments)
    else:
        _staged(owner, arguments[1:]).insert(*arguments)


def _is_staged(index: Any) -> bool:
    """Whether an index, or a bound of a slice, is known only when the program runs."""
    if type(index) is slice:
        return any(symbolic(each) is not None for each in (index.start, index.stop, index.step))
    return symbolic(index) is not None


def _is_loops(owner: Any) -> bool:
    """Whether a list is one that a loop which is being traced makes staged, where an item is asked for in Python."""
    builder = ctx.builder if is_listed(owner) else None
    while builder is not None:
        if builder in _reach and _reach[builder].is_outside(owner):
            return True
        builder = builder.parent
    return False


def _staged(owner: list[Any], more: Any = ()) -> StagedList:
    """The staged list that a list becomes. more: items that it will get."""
    try:
        staged = StagedList(owner, more)
    except (TypeError, ValueError) as error:
        raise _unlike(owner, "a list is changed at an index that is a tensor", error) from error
    staged.elements.made(staged, owner)
    become_staged(owner, staged, rebind)
    return staged


def _chosen(owner: Any, position: Any, first: int, end: int, of: Callable[[Any], Any]) -> Any:
    """``of`` one of the items from ``first`` to ``end``, as ``if`` statements choose it."""
    if end - first == 1:
        return of(owner[first])
    middle = (first + end) // 2
    branches = [lambda: _chosen(owner, position, first, middle, of), lambda: _chosen(owner, position, middle, end, of)]
    return stage_branches(less(position, middle), branches, [], Frame.of(owner))


def _unlike(owner: Any, what: str, error: Exception) -> StagingTypeError:
    return StagingTypeError(
        f"{what}, and the items have different types",
        location=user_location(),
        cause=f"the index is known only at run time, so all items need one dtype, shape and structure: {error}",
        fix="choose with `if`, or ag.switch_case for functions; convert items with ag.cast",
    )


OVERLOADS.update({builtins.list.pop: _pop, builtins.list.insert: _insert})
