"""List comprehensions and generator expressions: Python's own on Python values, loops on staged iterables.

``python`` is the comprehension as a function of its first iterable; ``loop`` adds what one item of it gives to a list.
``keeps_variables``: the elements share the comprehension's variables (closures), which only ``python`` respects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from autograph.operators.calls import converted_call
from autograph.operators.containers import Reads
from autograph.operators.iterables import SelfIterator, Staged, refuse_outdated, staged
from autograph.operators.iterators import taking_all_from
from autograph.operators.live import LIST_ITERATOR
from autograph.operators.loops import for_stmt
from autograph.operators.unbound import run
from runtime.context import ctx
from runtime.ops.strings.staged_string import StandsForString
from runtime.staged_list import StagedList, moved

Python = Callable[[Any], Any]
Loop = Callable[[list[Any], Any], Any]


def list_comp(iterable: Any, python: Python, loop: Loop, keeps_variables: bool = False) -> Any:
    """The list of a comprehension's elements; a staged one when their number is known only at run time."""
    if ctx.builder is None or (keeps_variables and staged(iterable) is None):
        return run(python, iterable)
    return collect(iterable, loop)


def generator_exp(iterable: Any, python: Python, loop: Loop, keeps_variables: bool = False) -> Any:
    """A generator of a comprehension's elements; over a staged iterable all of them, as a list."""
    if ctx.builder is None:
        return run(python, iterable)
    if staged(iterable) is not None:
        reads = Reads.of(loop)
        return as_generator(collect(iterable, loop), iterable, reads)
    if keeps_variables:
        return run(python, iterable)
    iterator = iter(iterable)
    return TracedGenerator(run(python, iterator), lambda: collect(iterator, loop))


def extend(method: Any, iterable: Any, python: Python, loop: Loop, keeps_variables: bool = False) -> Any:
    """``items.extend(...)`` of a generator expression: the elements come one by one, and may read the list."""
    owner = getattr(method, "__self__", None)
    if _is_staged_extension(owner, iterable):
        _add_each(owner, iterable, loop)
        return None
    return converted_call(method)(generator_exp(iterable, python, loop, keeps_variables))


def extended(owner: Any, iterable: Any, python: Python, loop: Loop, keeps_variables: bool = False) -> Any:
    """What ``owner += ...`` of a generator expression assigns."""
    if not _is_staged_extension(owner, iterable):
        owner += generator_exp(iterable, python, loop, keeps_variables)
        return owner
    _add_each(owner, iterable, loop)
    became = moved(owner)
    return owner if became is None else became


def _is_staged_extension(owner: Any, iterable: Any) -> bool:
    return ctx.builder is not None and type(owner) in (list, StagedList) and staged(iterable) is not None


def as_generator(found: Any, iterable: Any, reads: Reads | None = None) -> Any:
    """A list of the items that a generator over something staged would give, as that. reads: what they depend on."""
    if isinstance(found, StagedList):
        found.is_generator = True
        found.reads = reads
        became = iterable if isinstance(iterable, StagedList) else moved(iterable)
        if became is not None:
            found.taken_from = became, became.__tf_flatten__()[1]
    return found


def collect(iterable: Any, loop: Loop) -> Any:
    """What ``loop`` adds to a list for every item: a Python list, or a staged one."""
    found: list[Any] = []
    _add_each(found, iterable, loop)
    became = moved(found)
    return found if became is None else became


def _add_each(comprehension: Any, iterable: Any, loop: Loop) -> None:
    """Adds to a list what ``loop`` gives for every item. Messages call the list by its name here."""

    def loop_body(item: Any) -> None:
        current = moved(comprehension)
        run(loop, comprehension if current is None else current, item)

    for_stmt(iterable, loop_body)


class TracedGenerator:
    """A generator over a Python iterable in a trace: whoever takes all of its elements may stage its conditions."""

    is_iterator = True

    def __init__(self, generator: Iterator[Any], everything: Callable[[], Any]) -> None:
        self._generator: Iterator[Any] | None = generator
        self._everything = everything
        self.has_started = False

    def __iter__(self) -> TracedGenerator:
        return self

    def __next__(self) -> Any:
        self.has_started = True
        if self._generator is None:
            raise StopIteration
        return next(self._generator)

    def close(self) -> None:
        """Ends the generator."""
        self._generator = None

    def everything(self) -> Any:
        """All elements that are left, as a list or a staged list."""
        generator, self._generator = self._generator, None
        if generator is None:
            return []
        return list(generator) if self.has_started else self._everything()


def drained(iterable: Any, may_stop: bool = False) -> Any:
    """The list of the items of a staged iterable or a traced generator; anything else as it is.

    may_stop: Python takes items until one decides. Raises StagingError if the others are used.
    """
    if may_stop and (isinstance(iterable, SelfIterator) or (type(iterable) is StagedList and iterable.is_generator)):
        taking_all_from(iterable)
    if type(iterable) is TracedGenerator:
        return iterable.everything()
    if isinstance(iterable, StagedList):
        refuse_outdated(iterable)
        return iterable.taken()
    if (items_of := getattr(type(iterable), "__staged_list__", None)) is not None:
        return items_of(iterable)
    if isinstance(iterable, StandsForString):
        characters, known = staged(iterable), cast(Any, iterable)
        return list(known) if characters is None else characters.lists[0]
    if type(iterable) is LIST_ITERATOR and staged(iterable) is not None:
        return collect(iterable, lambda found, item: found.append(item))
    if isinstance(iterable, Staged):
        return collect(iterable, lambda found, item: found.append(item))
    return iterable
