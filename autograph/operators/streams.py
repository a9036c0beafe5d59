"""Staged ``for`` loops over what gives its items one by one and can't count them, such as an iterator of a dataset.

item = fetch()                      # before the loop
while there was one:
    body(item)
    item = fetch(unless left)       # a loop that is left by `break` takes no further item
"""

from __future__ import annotations

from typing import Any

from autograph.errors import StagingError, user_location
from autograph.operators.conditional import if_exp
from autograph.operators.containers import iterator_over_staged_list
from autograph.operators.drawn import Drawn
from autograph.operators.iterables import SelfIterator, refuse_outdated
from autograph.operators.iterators import taking_from
from autograph.operators.logic import and_
from autograph.operators.raising import keeps_refusals
from autograph.operators.staged_while import stage_while
from autograph.operators.state import Block, LocalSlot, slots
from autograph.operators.symbolic import condition, truth
from autograph.operators.unbound import run
from runtime.context import ctx
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor, static_value
from runtime.staged_list import Moved, StagedList, moved


class Stream:
    """Items that come one by one; asking for one uses it up."""

    def fetch(self, wanted: Any) -> tuple[Any, Any]:
        """Whether there was another item, a boolean tensor, and the item, or blanks if there was none.

        Nothing is used up where ``wanted``, a boolean tensor, is false.
        """
        raise NotImplementedError


def stream_of(iterable: Any) -> Stream | None:
    """The stream behind an object with `__staged_stream__`, a dataset or its iterator; None for any other."""
    if ctx.builder is None:
        return None
    make = getattr(type(iterable), "__staged_stream__", None)
    return None if make is None else make(iterable)


def stage_stream(stream: Stream, body: Block, test: Block | None, names: tuple[str, ...]) -> None:
    """Emits the loop ``for item in stream: body(item)``, which ``test`` may end after an iteration."""
    there, first = stream.fetch(convert_to_tensor(True))
    more, item = LocalSlot("more", there), LocalSlot("item", first)

    def step() -> None:
        run(body, item.get())
        going = True if test is None else run(test)
        tensor = truth(going)
        wanted = convert_to_tensor(bool(going)) if tensor is None else condition(tensor, "break")
        another, following = stream.fetch(wanted)
        more.set(and_(wanted, lambda: another))
        item.set(following)

    blocks = (body,) if test is None else (body, test)
    stage_while(more.get, step, [more, item, *slots(names, blocks)], blocks)


@keeps_refusals
def iter_(*arguments: Any) -> Any:
    """``iter``; of a list whose length is known only at run time a StagingError, which no handler swallows."""
    items = arguments[0] if len(arguments) == 1 and ctx.builder is not None else None
    became = items if isinstance(items, StagedList) else moved(items)
    if became is not None and static_value(became.size) is None:
        raise StagingError(
            "iter() of a list whose length is known only at run time",
            location=user_location(),
            cause="a Python iterator runs while the function is traced, when the list has no length yet",
            fix="loop over the list itself with `for`, or by index",
        )
    return iter(*arguments)


@keeps_refusals
def next_(*arguments: Any) -> Any:
    """``next``; of an iterator over a dataset its next element when the program gets there.

    Of ``enumerate`` and its like over tensors, if their length is known, the items one after another. Of a generator
    expression over something staged, whose items are all there, the first that is left.
    """
    if not arguments or ctx.builder is None:
        return next(*arguments)
    iterator = arguments[0]
    if len(arguments) == 1 and isinstance(iterator, StagedIterator):
        return iterator.get_next()
    if isinstance(iterator, SelfIterator):
        return next(iterator.rest(), *arguments[1:])
    if isinstance(iterator, StagedList) and iterator.is_generator:
        refuse_outdated(iterator)
        if len(arguments) == 1:
            assert_op(iterator.size > 0, "the generator has no further item", "StopIteration")
            return iterator.pop(0)
        return if_exp(iterator.size > 0, lambda: iterator.pop(0), lambda: arguments[1])
    if isinstance(iterator, Drawn):
        return iterator.take(*arguments[1:])
    taking_from(iterator)
    found = next(*arguments)
    if type(found) is Moved:
        raise iterator_over_staged_list()
    return found


class StagedIterator:
    """What ``next`` of converted code calls `get_next` of while a function is being traced."""

    def get_next(self) -> Any:
        """The next element."""
        raise NotImplementedError
