"""Iterators of ``itertools`` over Python values, made while a function is traced: their position is state.

    ids = itertools.count()
    for v in t:                 # a tensor
        total += next(ids)      # the loop carries how far `ids` has come

Python's own iterators can't tell where they are, let alone be told. These can. In a trace they stand for those of
``itertools`` whose arguments are plain Python values; others stay Python's, and are refused where staged code takes
items from them (iterators.py).
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

from autograph.errors import StagingError, user_location
from autograph.operators.builtins import OVERLOADS
from autograph.operators.conditional import if_exp
from autograph.operators.items import item
from autograph.operators.iterators import Positioned
from runtime.context import ctx
from runtime.ops.control import assert_op

# Of a finite iterator at most so many items become part of a program.
_MOST_ITEMS = 10_000
_SEQUENCES = (list, tuple, range, str)
_PLAIN = (*_SEQUENCES, int, type(None))


class Drawn(Positioned):
    """An iterator whose position is a Python value, or one of the program where staged code has taken items."""

    position: Any = 0

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments
        self.lists = [(each, list(each)) for each in arguments if type(each) is list]

    def __iter__(self) -> Drawn:
        return self

    def __next__(self) -> Any:
        if type(self.position) is not int:
            raise StagingError(
                "Python takes an item from an iterator whose position is known only at run time",
                location=user_location(),
                cause="a branch or loop on tensors has taken items, and how many is known only at run time",
                fix="take the items with next(), or use a list and an index",
            )
        return self.take()

    def take(self, *default: Any) -> Any:
        """The next item; ``default`` where there is none."""
        raise NotImplementedError

    def check(self) -> None:
        """Raises StagingError if a list that it runs over isn't what it was."""
        if any(len(held) != len(before) or any(map(operator.is_not, held, before)) for held, before in self.lists):
            raise _refused("runs over a list that has changed since")


class Counted(Drawn):
    """``count(start, step)``."""

    def __init__(self, start: Any = 0, step: Any = 1) -> None:
        super().__init__(())
        self.position = start
        self.step = step

    def __next__(self) -> Any:
        return self.take()

    def __repr__(self) -> str:
        return f"count({self.position!r})" if self.step == 1 else f"count({self.position!r}, {self.step!r})"

    def take(self, *default: Any) -> Any:
        """The next number."""
        found = self.position
        self.position = found + self.step
        return found


class Repeated(Drawn):
    """``cycle(items)``, and ``repeat(value)``."""

    def __init__(self, items: Any) -> None:
        super().__init__((items,))
        self.items = list(items)

    def take(self, *default: Any) -> Any:
        """The next item, the first one after the last."""
        self.check()
        if not self.items:
            if default:
                return default[0]
            raise StopIteration
        found = item(self.items, self.position)
        self.position = (self.position + 1) % len(self.items)
        return found


class Listed(Drawn):
    """An iterator with an end, whose items are taken from Python's own when they are asked for."""

    def __init__(self, source: Iterator[Any], arguments: tuple[Any, ...]) -> None:
        super().__init__(arguments)
        self.source = source
        self.items: list[Any] = []  # those that were taken

    def take(self, *default: Any) -> Any:
        """The next item; a StopIteration, at run time if need be, or ``default`` if there is none."""
        position = self.position
        if type(position) is not int:
            return self._chosen(*default)
        if position == len(self.items):
            try:
                self.items.append(next(self.source))
            except StopIteration:
                if default:
                    return default[0]
                raise
        self.position = position + 1
        return self.items[position]

    def _chosen(self, *default: Any) -> Any:
        self._take_all()
        position = self.position
        there = position < len(self.items)
        if not default:
            assert_op(there, "the iterator has no further item", "StopIteration")
            self.position = position + 1
            return item(self.items, position)
        self.position = position + if_exp(there, lambda: 1, lambda: 0)
        if not self.items:
            return default[0]
        return if_exp(there, lambda: item(self.items, position), lambda: default[0])

    def _take_all(self) -> None:
        rest = list(itertools.islice(self.source, _MOST_ITEMS + 1))
        self.items += rest
        if len(rest) > _MOST_ITEMS:
            raise _refused(f"has more than {_MOST_ITEMS} items")
        self.check()


def _refused(why: str) -> StagingError:
    return StagingError(
        f"a branch or loop on tensors takes items from an iterator that {why}",
        location=user_location(),
        cause="which item comes next is known only at run time, so all of them become part of the program",
        fix="use a tensor or list and an index",
    )


def _count(*arguments: Any, **options: Any) -> Any:
    """``itertools.count``."""
    made = itertools.count(*arguments, **options)  # checks the arguments
    values = [*arguments, *options.values()]
    return Counted(*arguments, **options) if _traced() and all(type(each) in (int, float) for each in values) else made


def _cycle(*arguments: Any, **options: Any) -> Any:
    """``itertools.cycle``."""
    if _traced() and len(arguments) == 1 and not options and type(arguments[0]) in _SEQUENCES:
        return Repeated(arguments[0])
    return itertools.cycle(*arguments, **options)


def _finite(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ``itertools`` that makes an iterator with an end."""

    def make(*arguments: Any, **options: Any) -> Any:
        made = function(*arguments, **options)
        if not _traced() or not all(type(each) in _PLAIN for each in (*arguments, *options.values())):
            return made
        return Listed(made, arguments)

    return make


def _repeat(*arguments: Any, **options: Any) -> Any:
    """``itertools.repeat``."""
    made = itertools.repeat(*arguments, **options)
    if not _traced():
        return made
    if len(arguments) + len(options) == 1:
        return Repeated((next(made),))
    return Listed(made, (*arguments, *options.values()))


def _traced() -> bool:
    return ctx.builder is not None


OVERLOADS.update({itertools.count: _count, itertools.cycle: _cycle, itertools.repeat: _repeat})
for _each in (
    itertools.chain,
    itertools.islice,
    itertools.pairwise,
    itertools.product,
    itertools.permutations,
    itertools.combinations,
    itertools.combinations_with_replacement,
):
    OVERLOADS[_each] = _finite(_each)
