"""What a staged ``for`` loop runs over: tensors along their first axis, ranges, and combinations of them.

``range``, ``enumerate``, ``zip`` and ``reversed`` of tensors give these objects; only a ``for`` statement of a
converted function understands them.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from numpy import ndarray

from autograph.errors import StagingError, StagingTypeError, StagingValueError, user_location
from autograph.operators.iterators import taking_all_from, taking_from
from autograph.operators.live import LIST_ITERATOR
from autograph.operators.symbolic import symbolic
from runtime import dtypes
from runtime.context import ctx
from runtime.errors import OperatorNotAllowedInGraphError
from runtime.ops.arrays.shape_ops import shape as shape_of
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor, has_dtype, is_tensor_like, operands, static_value
from runtime.ops.elementwise.arithmetic import floordiv, maximum, minimum
from runtime.ops.elementwise.compare import logical_and, where
from runtime.ops.elementwise.elementary import cast, ceil
from runtime.ops.staged_number import StagedNumber
from runtime.ragged.partition import rows_in
from runtime.ragged.tensor import RaggedTensor
from runtime.staged_array import WritableArray
from runtime.staged_list import StagedList, moved
from runtime.tensor import DeviceTensor, EagerTensor, SymbolicTensor

_NO_STEP = "range() arg 3 must not be zero"


class Staged:
    """A sequence whose length may be known only at run time."""

    def count(self) -> Any:
        """The number of items: a Python int or a scalar tensor of the index's dtype."""
        raise NotImplementedError

    def item(self, index: Any) -> Any:
        """The item at an index, a scalar tensor from 0 to ``count() - 1``."""
        raise NotImplementedError

    def more(self, index: Any) -> Any:
        """Whether there is an item at an index after the ones before it, as the lists that it runs over are now."""
        return index < self.count()

    def first_index(self) -> Any:
        """The index 0."""
        return convert_to_tensor(0, dtypes.int32)

    def __iter__(self) -> Iterator[Any]:
        """For Python, which can run over it only if its length is known: that unrolls."""
        count = self.count()
        if not isinstance(count, int):
            static = static_value(count)
            if static is None:
                raise OperatorNotAllowedInGraphError(
                    f"{self.name} of tensors is run over by Python here, and its length is known only at run time: a "
                    "set, a dictionary, iter() and next() need a known one. Use a `for` statement or a list "
                    "comprehension of a converted function."
                )
            count = max(int(static), 0)
        return (self.item(index) for index in range(count))

    @property
    def lists(self) -> list[StagedList]:
        """The staged lists that its items are elements of, or made from."""
        return []

    @property
    def name(self) -> str:
        """The call that made it, as error texts name it: `zip()`, `enumerate()`."""
        return f"{type(self).__name__.removeprefix('Staged').lower()}()"


class TensorItems(Staged):
    """A tensor along its first axis."""

    def __init__(self, tensor: Any) -> None:
        static = tensor.type.shape
        if static == ():
            raise StagingTypeError(
                "a loop over a scalar tensor",
                location=user_location(),
                cause="a `for` loop runs along the first axis of a tensor, and a scalar has none",
                fix="use range(n) or ag.range(n) to count up to n",
            )
        self.tensor = tensor
        self.length = None if static is None else static[0]

    def count(self) -> Any:
        return self.length if self.length is not None else shape_of(self.tensor)[0]

    def item(self, index: Any) -> Any:
        return self.tensor[index]


class ArrayRows(Staged):
    """The rows of an array of the program, as they are at each step: the loop may set their elements."""

    def __init__(self, array: WritableArray) -> None:
        self.array = array

    def count(self) -> Any:
        count = self.array.shape[0]
        return count if isinstance(count, int) else count.tensor

    def item(self, index: Any) -> Any:
        return self.array[index]


class RaggedItems(Staged):
    """The rows of a ragged tensor."""

    def __init__(self, ragged: RaggedTensor) -> None:
        self.ragged = ragged

    def count(self) -> Any:
        rows = rows_in(self.ragged.row_splits)
        return rows if isinstance(rows, int) else cast(rows, dtypes.int32)

    def item(self, index: Any) -> Any:
        return self.ragged[index]  # type: ignore[index]  # `runtime.ragged.indexing` adds it


class ListItems(Staged):
    """A staged list, as it is at each step: it may change while a loop runs over it."""

    def __init__(self, items: StagedList, start: Any = 0) -> None:
        self.items = items
        self.start = start

    @property
    def lists(self) -> list[StagedList]:
        return [self.items]

    def count(self) -> Any:
        return self.items.size if self._is_whole else self.items.size - self.start

    def item(self, index: Any) -> Any:
        return self.items.item(index if self._is_whole else index + self.start)

    @property
    def _is_whole(self) -> bool:
        return type(self.start) is int and self.start == 0


class StagedRange(Staged):
    """``range(start, stop, step)`` of tensors."""

    def __init__(self, start: Any, stop: Any, step: Any, of_numbers: bool = False) -> None:
        self.of_numbers = of_numbers  # `range` gives Python ints, `ag.range` tensors
        self.start, self.stop, self.step = operands("range", start, stop, step)
        if not self.start.dtype.is_numeric:
            raise StagingTypeError(
                f"range() of {dtypes.article(self.start.dtype.name)} tensor",
                location=user_location(),
                cause="a range counts with numbers",
                fix="convert the bounds with ag.cast(x, ag.int32)",
            )
        if static_value(self.step) is not None and static_value(self.step) == 0:
            raise ValueError(_NO_STEP)
        if static_value(self.step) is None:
            assert_op(self.step != 0, _NO_STEP, "ValueError")

    def __len__(self) -> int:
        raise StagingTypeError(
            "len() of a range of symbolic tensors",
            location=user_location(),
            cause="the length is known only at run time, and Python's len() must be an int",
            fix="compute it from the bounds",
        )

    def _is(self, tensor: Any, value: int) -> bool:
        static = static_value(tensor)
        return static is not None and bool(static == value)

    def count(self) -> Any:
        span = self.stop if self._is(self.start, 0) else self.stop - self.start
        if self._is(self.step, 1):
            return span
        if span.dtype.is_floating:
            return cast(ceil(span / self.step), dtypes.int32)
        # Rounding up without leaving the integers: -(-span // step); an empty range counts below zero.
        return maximum(-floordiv(-span, self.step), 0)

    def first_index(self) -> Any:
        dtype = self.start.dtype
        return convert_to_tensor(0, dtype if dtype.is_integer or self._is(self.step, 1) else dtypes.int32)

    def item(self, index: Any) -> Any:
        item = self._item(index)
        return StagedNumber(item, item.dtype) if self.of_numbers else item

    def _item(self, index: Any) -> Any:
        offset = index
        if not self._is(self.step, 1):
            offset = (index if isinstance(index, int) else cast(index, self.step.dtype)) * self.step
        if isinstance(offset, int):
            return self.start + offset
        return offset if self._is(self.start, 0) else self.start + offset


class StagedView(Staged):
    """The elements of ``source``, one for one, seen in another way."""

    source: Staged

    def count(self) -> Any:
        return self.source.count()

    def more(self, index: Any) -> Any:
        return self.source.more(index)

    @property
    def lists(self) -> list[StagedList]:
        return self.source.lists

    @property
    def sources(self) -> Sequence[Staged]:
        """What it takes its items from."""
        return [self.source]

    def first_index(self) -> Any:
        return self.source.first_index()


class SelfIterator(Staged):
    """What is its own iterator in Python: `next` takes an item off, and who runs over it gets the rest.

    used_in: the builder of the region in which a loop has run over all items.
    """

    is_iterator = True
    sources: Sequence[Staged]
    used_in: Any = None
    _rest: Iterator[Any] | None = None

    def use(self, may_be_left: bool) -> bool:
        """Notes that a loop takes all items; False if an earlier one has. may_be_left: not all, if a tensor says so.

        Raises StagingError if that is known only at run time.
        """
        taking_from(self)
        if may_be_left:
            taking_all_from(self)
        is_new = not self.is_used()
        self.used_in = ctx.builder
        for each in self.sources:
            if isinstance(each, SelfIterator):
                is_new = each.use(may_be_left) and is_new
        return is_new

    def is_used(self) -> bool:
        """Whether an earlier loop, which surely runs before this point, has taken all items."""
        builder = ctx.builder
        while builder is not None and self.used_in is not None:
            if builder is self.used_in:
                return True
            builder = builder.parent
        return False

    def rest(self) -> Iterator[Any]:
        """A Python iterator over the remaining items. Later uses continue with it."""
        if self._rest is None:
            self._rest = super().__iter__()
        return self._rest

    def __iter__(self) -> Iterator[Any]:
        return super().__iter__() if self._rest is None else self._rest

    @property
    def started(self) -> bool:
        """Whether an item has been taken off."""
        return self._rest is not None


class StagedEnumerate(SelfIterator, StagedView):
    """``enumerate(iterable, start)``."""

    def __init__(self, source: Staged, start: Any) -> None:
        self.source = source
        self.begin = start

    def item(self, index: Any) -> Any:
        number = index if isinstance(index, int) else StagedNumber(index, index.dtype)
        return number if type(self.begin) is int and self.begin == 0 else number + self.begin, self.source.item(index)


class StagedZip(SelfIterator):
    """``zip(...)``: as long as the shortest of its parts."""

    def __init__(self, sources: list[Staged]) -> None:
        self.sources = sources

    @property
    def lists(self) -> list[StagedList]:
        return [each for source in self.sources for each in source.lists]

    def count(self) -> Any:
        counts = [source.count() for source in self.sources]
        known = [count for count in counts if isinstance(count, int)]
        tensors = [cast(count, dtypes.int32) for count in counts if not isinstance(count, int)]
        result: Any = min(known) if known else tensors.pop()
        for tensor in tensors:
            result = minimum(result, tensor)
        return result

    def more(self, index: Any) -> Any:
        found = [source.more(cast(index, source.first_index().dtype)) for source in self.sources]
        return functools.reduce(logical_and, found)

    def item(self, index: Any) -> Any:
        if isinstance(index, int):
            return tuple(source.item(index) for source in self.sources)
        return tuple(source.item(cast(index, source.first_index().dtype)) for source in self.sources)


class StagedReversed(SelfIterator, StagedView):
    """``reversed(...)``; of a list from the item that was the last one when this was made."""

    def __init__(self, source: Staged) -> None:
        self.source = source
        self.start = source.count()

    def count(self) -> Any:
        size = self.source.count()
        return size if size is self.start or not self.lists else where(self.start <= size, self.start, 0)

    def more(self, index: Any) -> Any:
        return logical_and(index < self.start, self.start - 1 - index < self.source.count())

    def item(self, index: Any) -> Any:
        return self.source.item(self.start - 1 - index)


class StagedMap(SelfIterator, StagedView):
    """``map(function, ...)``."""

    def __init__(self, function: Callable[..., Any], source: Staged) -> None:
        self.function = function
        self.source = source

    def item(self, index: Any) -> Any:
        return self.function(*self.source.item(index))


def staged(iterable: Any) -> Staged | None:
    """The staged form of what a ``for`` statement runs over, or None if Python can run over it."""
    kind = type(iterable)
    if kind is StagedList:
        refuse_outdated(iterable)
        return ListItems(iterable)
    if kind is list:
        became = moved(iterable) if ctx.builder is not None else None
        return None if became is None else ListItems(became)
    if kind in (tuple, dict, range, str):
        return None
    if kind is LIST_ITERATOR:
        return rest_of(iterable) if ctx.builder is not None else None
    if isinstance(iterable, WritableArray):
        return None if isinstance(iterable.contents, ndarray) else ArrayRows(iterable)
    if isinstance(iterable, Staged):
        return None if isinstance(iterable, SelfIterator) and iterable.started else iterable
    if kind is RaggedTensor:
        return RaggedItems(iterable) if ctx.builder is not None else None
    if kind is EagerTensor or kind is DeviceTensor:
        # A tensor from outside the trace: a loop over it is a loop of the program, not a thousand copies of its body.
        return TensorItems(iterable) if ctx.builder is not None else None
    counted = getattr(kind, "__staged_items__", None) if ctx.builder is not None else None
    if counted is not None:
        return counted(iterable)
    tensor = symbolic(iterable)
    if tensor is None:
        return None
    behind = _range_behind(tensor)
    return TensorItems(tensor) if behind is None else behind


def rest_of(iterator: Iterator[Any], taken: int = 0) -> ListItems | None:
    """What is left of an iterator over a list that has become a staged one, but for items that didn't count."""
    state: Any = iterator.__reduce__()
    became = moved(state[1][0]) if len(state) == 3 and state[1] else None
    return None if became is None else ListItems(became, state[2] - taken)


def refuse_outdated(items: StagedList) -> None:
    """Raises StagingError for a generator whose items were made from what has changed since."""
    if items.is_generator and items.reads is not None and items.reads.have_changed():
        raise StagingError(
            "a generator expression over something staged reads a variable or list that has changed since it was made",
            location=user_location(),
            cause="its items are made when the generator is created, but in Python they would see the change",
            fix="use the generator before the change, or make a list of its items ([...] in place of (...))",
        )
    if items.is_generator and items.taken_from is not None:
        source, before = items.taken_from
        if any(one is not other for one, other in zip(source.__tf_flatten__()[1], before)):
            raise StagingError(
                "a generator over a list whose length is known only at run time, which has changed since",
                location=user_location(),
                cause="its items are taken when the generator is created, but in Python it would see the change",
                fix="use the generator before the change, or make a list of its items ([...] in place of (...))",
            )


def refuse_reading(owner: Any, more: Any) -> None:
    """Raises StagingError for a generator that reads the list which its items are going to be added to."""
    if isinstance(more, StagedList) and more.is_generator and more.reads is not None and more.reads.hold(owner):
        raise StagingError(
            "a generator expression over something staged reads the list that its items are added to",
            location=user_location(),
            cause="its items are made when the generator is created, but in Python each would see those before it",
            fix="write `items.extend(...)` of the generator expression itself, or append in a loop",
        )


def watched(generator: StagedList, body: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A loop's body that must leave the list alone that the items of the generator have been taken from."""
    reads = generator.reads
    if generator.taken_from is None and reads is None:
        return body
    source = generator if generator.taken_from is None else generator.taken_from[0]

    def checked(item: Any) -> None:
        before = source.__tf_flatten__()[1]
        now = None if reads is None else reads.again()
        body(item)
        if now is not None and now.have_changed():
            raise StagingError(
                "a loop over a generator expression changes a variable or list that the generator reads",
                location=user_location(),
                cause="its items are made when the generator is created, but in Python they would see the change",
                fix="compute the items in the loop",
            )
        if any(one is not other for one, other in zip(source.__tf_flatten__()[1], before)):
            raise StagingError(
                "a loop over a generator changes the list that the generator runs over",
                location=user_location(),
                cause="its items are taken when the generator is created, but in Python it would see the change",
                fix="run over the list itself",
            )

    return checked


def _range_behind(tensor: SymbolicTensor) -> StagedRange | None:
    """The range whose elements a tensor holds: a loop over it needs no array."""
    node = tensor.value.node
    if node is None or node.op.name != "range" or len(node.inputs) != 3:
        return None
    start, stop, step = (SymbolicTensor(value, tensor.builder) for value in node.inputs)
    return StagedRange(start, stop, step) if start.dtype.is_integer else None


# --- the built-in functions ----------------------------------------------------------------------------------------


def range_(*arguments: Any, **options: Any) -> Any:
    """``range``; staged when a bound is a symbolic tensor."""
    if options or not any(symbolic(each) is not None for each in arguments):
        return builtins.range(*arguments, **options)
    if len(arguments) > 3:
        raise TypeError(f"range expected at most 3 arguments, got {len(arguments)}")
    start, stop, step = (0, *arguments, 1) if len(arguments) == 1 else (*arguments, 1)[:3]
    for bound in (start, stop, step):
        if is_tensor_like(bound) and not convert_to_tensor(bound).dtype.is_integer:
            name = convert_to_tensor(bound).dtype.name
            raise TypeError(f"'{name}' tensor cannot be interpreted as an integer in range()")
    if not any(map(has_dtype, (start, stop, step))):
        is_mixed = len({each.tensor.dtype for each in (start, stop, step) if type(each) is StagedNumber}) > 1
        start, stop, step = (
            each if type(each) is not StagedNumber else each.to(dtypes.int64) if is_mixed else each.tensor
            for each in (start, stop, step)
        )
    return StagedRange(start, stop, step, of_numbers=True)


def enumerate_(*arguments: Any, **options: Any) -> Any:
    """``enumerate``; staged when it runs over a staged iterable."""
    source = staged(arguments[0]) if arguments else None
    if source is None:
        return builtins.enumerate(*arguments, **options)
    return StagedEnumerate(source, arguments[1] if len(arguments) > 1 else options.get("start", 0))


def zip_(*iterables: Any, **options: Any) -> Any:
    """``zip``; staged when its iterables are, unless one of them can be run over only by Python."""
    sources = [staged(each) for each in iterables]
    if all(source is None for source in sources):
        return builtins.zip(*iterables, **options)
    once = [each for each in iterables if _is_iterator(each)]
    if len({id(each) for each in once}) < len(once):
        raise StagingError(
            "zip() of one iterator with itself, over something staged",
            location=user_location(),
            cause="in Python each part takes items that the others then don't get",
            fix="use indices: `x[0::2]`, `x[1::2]`",
        )
    found = [source for source in sources if source is not None]
    if len(found) != len(sources):
        for source in found:
            if not isinstance(source.count(), int):
                raise StagingValueError(
                    "zip() of a Python iterable and a staged one",
                    location=user_location(),
                    cause="the number of iterations is known only at run time, but the Python iterable runs now",
                    fix="convert the Python iterable to a tensor",
                )
        return builtins.zip(*iterables, **options)
    if options.get("strict") and len(found) > 1:
        first = cast(found[0].count(), dtypes.int32)
        for position, source in enumerate(found[1:], 2):
            other = cast(source.count(), dtypes.int32)
            before = "argument 1" if position == 2 else f"arguments 1-{position - 1}"
            for fits, word in ((other >= first, "shorter"), (other <= first, "longer")):
                assert_op(fits, f"zip() argument {position} is {word} than {before}", "ValueError")
    return StagedZip(found)


def _is_iterator(value: Any) -> bool:
    return isinstance(value, SelfIterator) or (type(value) is StagedList and value.is_generator)


def reversed_(*arguments: Any, **options: Any) -> Any:
    """``reversed``; staged when it runs over a staged iterable."""
    source = staged(arguments[0]) if arguments else None
    return builtins.reversed(*arguments, **options) if source is None else StagedReversed(source)
