"""Functions of Python's that are C, and in a trace are converted from Python text (`autograph/standard_library`).

The texts compare and call as the user's code would, and so take lists of tuples and objects whose length is known only
when the program runs. Outside of traces Python's own functions run.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import functools
import heapq
import operator
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import Any
from weakref import WeakSet

from autograph.errors import StagingError, user_location
from autograph.operators.builtins import OVERLOADS, pow_
from autograph.operators.calls import converted_form, maker_of
from autograph.operators.iterables import ListItems
from autograph.operators.property_names import is_generated
from autograph.operators.structure import flatten
from autograph.operators.symbolic import symbolic
from autograph.standard_library import bisection, heaps, lists, numbers
from autograph.standard_library.deques import Deque
from runtime import nest
from runtime.context import ctx
from runtime.ops.elementwise.compare import logical_not
from runtime.ops.flags import flagged
from runtime.ops.staged_number import as_number
from runtime.staged_list import StagedList, moved, resolved


def from_text(function: Any) -> Callable[..., Any]:
    """The converted form of a function of the texts; converted at its first call."""

    @functools.wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        maker = maker_of(function)
        assert maker is not None
        return maker(function)(*arguments, **options)

    return called


smallest = from_text(lists.smallest)
largest = from_text(lists.largest)
sorted_places = from_text(lists.sorted_places)
_contains = from_text(lists.contains)
_require_length = from_text(lists.require_length)


def as_staged_list(items: Any) -> StagedList | None:
    """The staged list that something is, or has become."""
    return items if isinstance(items, StagedList) else moved(items)


def contains(item: Any, items: StagedList) -> Any:
    """``item in items``"""
    return _contains(items, item) if items.holds_structures else items.contains(item)


def unpacked(items: Any, before: int, after: int | None) -> Any:
    """What is assigned by ``a, b = items``, or ``a, *b, c = items``: the items, with those for the star as a list.

    before, after: how many names stand before and after the star; after is None if there is none.
    """
    many = as_staged_list(items_of_deque(items) if type(items) is Deque else items)
    if many is None:
        if after is None:
            return items
        rest = list(items)
        if len(rest) < before + after:
            raise ValueError(f"not enough values to unpack (expected at least {before + after}, got {len(rest)})")
        first, last = rest[:before], rest[len(rest) - after :]
        return (*first, rest[before : len(rest) - after], *last)
    size = many.size
    if after is None:
        _require_length(size, before, before, f"values to unpack (expected {before})")
        return tuple([many[index] for index in range(before)])
    least = before + after
    _require_length(size, least, None, f"values to unpack (expected at least {least})")
    first, last = [many[index] for index in range(before)], [many[index - after] for index in range(after)]
    return (*first, many[before : size - after], *last)


def is_lexicographic(structure: Any) -> bool:
    """Whether elements of a structure are in the order of their tensors: the first that differ decide."""
    if not nest.is_nested(structure):
        return True
    if isinstance(structure, (tuple, list)):
        return all(map(is_lexicographic, structure))
    kind = type(structure)
    if not (dataclasses.is_dataclass(kind) and is_generated(getattr(kind, "__lt__", None))):
        return False
    fields = dataclasses.fields(kind)
    return all(each.compare and each.init and is_lexicographic(getattr(structure, each.name)) for each in fields)


def _compared(
    text: Any, of_lengths: Callable[[Any, Any], Any], is_swapped: bool = False, is_negated: bool = False
) -> Callable[[Any, Any], Any]:
    """A comparison of staged lists. Outside of traces there are none. of_lengths: that of the lengths, which decides
    where one list has no items."""
    function = from_text(text)

    def compare(one: Any, other: Any) -> Any:
        if not isinstance(other, (list, StagedList)):
            return NotImplemented
        pair = (other, one) if is_swapped else (one, other)
        if isinstance(other, list) and not other:  # it has no items that a loop could read
            found = flagged(of_lengths(*[each.size if isinstance(each, StagedList) else 0 for each in pair]))
        else:
            found = function(*pair)
        if not is_negated:
            return found
        return not found if type(found) is bool else flagged(logical_not(found))

    return compare


def _of_known(text: Any, python: Callable[..., Any]) -> Callable[..., Any]:
    """The same of Python's lists, with tensors among the items or in what is looked for."""
    function = from_text(text)

    def search(items: list[Any], *arguments: Any) -> Any:
        return (function if _holds_symbolic(items) or _holds_symbolic(arguments) else python)(items, *arguments)

    return search


def _holds_symbolic(value: Any) -> bool:
    return any(symbolic(leaf) is not None for _, leaf in flatten(value))


def _of_structures(text: Any, python: Callable[..., Any]) -> Callable[..., Any]:
    """A method of staged lists that looks for an element: of numbers and tensors that looks at all of them at once."""
    function = from_text(text)

    def search(items: StagedList, *arguments: Any) -> Any:
        return (function if items.holds_structures else python)(items, *arguments)

    return search


def install() -> None:
    """Gives the functions that have a text their form in traces."""
    for module, text in ((heapq, heaps), (bisect, bisection)):
        for name, function in _functions(text):
            OVERLOADS[getattr(module, name)] = from_text(function)
    for name in ("index", "remove", "count"):
        method, of_list = getattr(StagedList, name), getattr(list, name)
        OVERLOADS[method] = _of_structures(getattr(lists, name), method)
        OVERLOADS[of_list] = _of_known(getattr(lists, name), of_list)
    OVERLOADS[pow] = functools.partial(pow_, from_text(numbers.power_modulo))
    kind: Any = StagedList
    equal, less, less_equal = (lists.equal, operator.eq), (lists.less, operator.lt), (lists.less_equal, operator.le)
    kind.__eq__, kind.__ne__ = _compared(*equal), _compared(*equal, is_negated=True)
    kind.__lt__, kind.__gt__ = _compared(*less), _compared(*less, is_swapped=True)
    kind.__le__, kind.__ge__ = _compared(*less_equal), _compared(*less_equal, is_swapped=True)

    OVERLOADS[collections.deque] = _make_deque
    staged_deque: Any = Deque
    for name, function in list(vars(Deque).items()):
        if name.startswith("__") and type(function) is FunctionType and name != "__init__":
            setattr(Deque, name, from_text(function))  # Python calls it
    staged_deque.__staged_list__, staged_deque.__staged_size__ = items_of_deque, _size_of_deque
    staged_deque.__staged_items__ = _run_over_deque
    staged_deque.__iter__ = lambda self: iter(items_of_deque(self))
    staged_deque.__reversed__ = lambda self: reversed(items_of_deque(self))
    staged_deque.__len__ = lambda self: len(items_of_deque(self))
    staged_deque.__repr__ = lambda self: f"deque({items_of_deque(self)})"
    staged_deque.__as_result__ = lambda self: DequeResult(self.maxlen, resolved(items_of_deque(self)))


# The root builders of traces that make deques.
_with_deques: WeakSet[Any] = WeakSet()


def _make_deque(*arguments: Any, **options: Any) -> Any:
    _with_deques.add(ctx.builder.root)
    return converted_form(Deque)(*arguments, **options)


def makes_deques(builder: Any) -> bool:
    """Whether a trace, by its root builder, has made a deque."""
    return builder in _with_deques


def leave_deques(owners: Iterable[tuple[Any, Any]], replace: Callable[[Any, Any], None]) -> None:
    """Puts Python's deques in the place of those that a trace leaves outside.

    owners: objects, and the ways to them. Raises StagingError if only the program knows the items of one.
    """
    for queue, way in owners:
        if type(queue) is not Deque:
            continue
        items, head = _contents(queue)
        if items is not None:
            raise StagingError(
                f"'{way}' is a deque that a traced function keeps, and a branch or loop on tensors changes it",
                location=user_location(),
                cause="it would then hold tensors that exist only inside of the function",
                fix="make the deque in the function and return it",
            )
        replace(queue, collections.deque(queue.items[head:], queue.maxlen))


def _contents(queue: Deque) -> tuple[StagedList | None, Any]:
    """The staged list that holds a deque's items, and where they start; None if both are known."""
    items, head = as_staged_list(queue.items), as_number(queue.head)
    if items is None and not queue.items:
        return None, 0  # until a loop has appended to it
    if items is None and type(head) is not int:
        items = StagedList(queue.items)
    return items, head


def items_of_deque(queue: Deque) -> Any:
    """The items as a list of their own."""
    items, head = _contents(queue)
    return queue.items[head:] if items is None else items[head:]


def _size_of_deque(queue: Deque) -> Any:
    """The number of items as a tensor, or None if it is known."""
    items, head = _contents(queue)
    if items is None:
        return None
    return items.size if type(head) is int and head == 0 else items.size - head


def _run_over_deque(queue: Deque) -> ListItems | None:
    items, head = _contents(queue)
    return None if items is None else ListItems(items, head)


class DequeResult:
    """A deque among the results of a function: arrives outside as Python's."""

    def __init__(self, maxlen: int | None, items: Any) -> None:
        self.maxlen = maxlen
        self.items = items

    def __tf_flatten__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.maxlen, (self.items,)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Any) -> Any:
        (items,) = components
        return collections.deque(items, metadata) if type(items) is list else cls(metadata, items)


def _functions(module: ModuleType) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in vars(module).items() if not name.startswith("_")]
