"""Built-in functions that take every item: ``sum``, ``any``, ``max``, ``sorted``, ``list`` ... of what is staged.

Of a tensor they take the elements along its first axis, of a range, a ``map`` or a generator expression the items.
"""

from __future__ import annotations

import builtins
import math
import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

from autograph.errors import StagingTypeError, user_location
from autograph.operators.builtins import OVERLOADS
from autograph.operators.calls import converted_call
from autograph.operators.comprehensions import collect, drained
from autograph.operators.conditional import if_exp
from autograph.operators.containers import become_staged, staged_list
from autograph.operators.deciding import decided
from autograph.operators.iterables import Staged, TensorItems, refuse_reading
from autograph.operators.live import rebind
from autograph.operators.staged_strings import FORMS, joined
from autograph.operators.standard_library import as_staged_list, is_lexicographic, largest, smallest, sorted_places
from autograph.operators.structure import children, flatten
from autograph.operators.symbolic import condition, symbolic, truth
from runtime import dtypes, nest
from runtime.context import ctx
from runtime.ops.arrays.gather import gather
from runtime.ops.arrays.reduce import (
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from runtime.ops.arrays.shape_ops import shape as shape_of
from runtime.ops.arrays.sorting import argsort, sort
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor, static_value
from runtime.ops.dispatch import call
from runtime.ops.elementwise.arithmetic import maximum, minimum
from runtime.ops.elementwise.compare import logical_or
from runtime.ops.elementwise.elementary import cast
from runtime.ops.host_array import of_arrays
from runtime.ops.staged_number import StagedNumber, as_number, as_storage, computed, is_number, kind_of
from runtime.ops.table import BEYOND_64_BITS
from runtime.staged_array import WritableArray, as_array
from runtime.staged_list import StagedList, moved
from runtime.tensor import Tensor

# A tensor with at most this many elements becomes a Python list of them, a longer one a staged list.
_MOST_LISTED = 256
_EMPTY = "{}() iterable argument is empty" if sys.version_info >= (3, 12) else "{}() arg is an empty sequence"


def sum_(*arguments: Any, **options: Any) -> Any:
    """``sum``; of something staged along its first axis."""
    items, others = _taken(arguments)
    tensor = symbolic(items)
    if tensor is None or not tensor.type.shape:
        return builtins.sum(*others(items), **options)
    start = arguments[1] if len(arguments) > 1 else options.get("start", 0)
    return _reduced(items, tensor, reduce_sum, start, operator.add, 0)


def _reduced(
    items: Any, tensor: Any, reduction: Callable[..., Any], start: Any, combine: Callable[[Any, Any], Any], neutral: int
) -> Any:
    """What a reduction makes of a tensor's rows and the number to start with; of a staged list of Python numbers a
    number."""
    if not (isinstance(items, StagedList) and items.is_weak and len(tensor.type.shape or ()) == 1):
        whole = reduction(tensor, axis=0)
        whole = as_array(whole) if isinstance(items, WritableArray) else whole
    else:
        if items.element_types[0].dtype.is_bool:
            items = items.fitting([None], [dtypes.int32])
        rows = items.wide_rows()
        if rows.dtype.is_integer and is_number(start) and kind_of(start) is not float:
            return items.element(_OF_INTEGERS[reduction](rows, as_storage(start, rows.dtype)))
        whole = items.element(reduction(rows, axis=0))
    return whole if type(start) is int and start == neutral else combine(start, whole)


def _sum_of_integers(rows: Any, start: Any) -> Any:
    """The sum of Python's integers: OverflowError where 64 bits don't hold it. The halves of that many don't wrap."""
    low = reduce_sum(rows & _LOW, axis=0) + (start & _LOW)
    high = reduce_sum(rows >> _HALF, axis=0) + (start >> _HALF) + (low >> _HALF)
    return call("checked_left_shift", high, convert_to_tensor(_HALF, rows.dtype)) | (low & _LOW)


def _product_of_integers(rows: Any, start: Any) -> Any:
    """The product likewise. A float tells how large it is: one that has wrapped around is off by 2**64 or more, and
    the float, of at most 65 factors that aren't 1 before it is larger than that, by less than 2**20."""
    whole = reduce_prod(rows, axis=0) * start
    size = reduce_prod(cast(rows, dtypes.float64), axis=0) * cast(start, dtypes.float64)
    is_zero = logical_or(reduce_any(rows == 0, axis=0), start == 0)  # the float may be infinity times zero
    assert_op(logical_or(abs(size - cast(whole, dtypes.float64)) < 2.0**62, is_zero), BEYOND_64_BITS, "OverflowError")
    return whole


_HALF, _LOW = 32, 2**32 - 1
_OF_INTEGERS: dict[Any, Callable[[Any, Any], Any]] = {reduce_sum: _sum_of_integers, reduce_prod: _product_of_integers}


def prod_(*arguments: Any, **options: Any) -> Any:
    """``math.prod``; of something staged along its first axis."""
    items, others = _taken(arguments)
    tensor = symbolic(items)
    if tensor is None or tensor.type.shape == ():
        return math.prod(*others(items), **options)
    return _reduced(items, tensor, reduce_prod, options.get("start", 1), operator.mul, 1)


def fsum_(*arguments: Any) -> Any:
    """``math.fsum``; of something staged along its first axis, as a float."""
    items, others = _taken(arguments)
    numbers = _staged_numbers(items)
    if numbers is not None:
        return StagedNumber(reduce_sum(_floats(numbers), axis=0), dtypes.float32)
    tensor = _tensor_of(items)
    if tensor is None:
        return math.fsum(*others(items))
    return reduce_sum(tensor if tensor.dtype.is_floating else cast(tensor, dtypes.float32), axis=0)


def dist_(*points: Any) -> Any:
    """``math.dist``; of points that are tensors, or consist of them."""
    if len(points) != 2 or all(_tensor_of(point) is None for point in points):
        return math.dist(*points)
    p, q = (drained(point) for point in points)
    one, other = _numbers(p), _numbers(q)
    if one is not None and other is not None:
        if len(p) != len(q):
            raise ValueError("both points must have the same number of dimensions")
        sides = _floats(one) - _floats(other)
        return StagedNumber(reduce_sum(sides * sides) ** 0.5, dtypes.float32)
    p, q = convert_to_tensor(p), convert_to_tensor(q)
    square = reduce_sum((p - q) * (p - q))
    return square**0.5 if square.dtype.is_floating else cast(square, dtypes.float32) ** 0.5


def _numbers(items: Any) -> StagedList | None:
    """The staged list of the Python numbers that something staged, or a Python list or tuple, consists of; None for
    what doesn't consist of numbers alone."""
    many = as_staged_list(items)
    if many is not None:
        return many if many.is_weak else None
    if type(items) not in (list, tuple) or not items:
        return None
    numbers = [as_number(each) for each in items]
    return StagedList(numbers) if all(map(is_number, numbers)) else None


def _staged_numbers(items: Any) -> StagedList | None:
    """`_numbers` of something staged, or of a Python list or tuple with a number of the program in it."""
    known = type(items) in (list, tuple) and moved(items) is None and not _has_symbolic(items)
    return None if known else _numbers(items)


def _floats(numbers: StagedList) -> Tensor:
    return cast(numbers.wide_rows(), dtypes.float64)


def _tensor_of(items: Any) -> Any:
    """The tensor that something staged is, or a Python list with tensors in it; else None."""
    tensor = symbolic(items)
    if tensor is None and type(items) in (list, tuple) and _has_symbolic(items):
        return convert_to_tensor(items)
    return None if tensor is None or tensor.type.shape == () else tensor


def any_(*arguments: Any, **options: Any) -> Any:
    """``any``; of something staged whether one of its elements holds."""
    return _quantified(builtins.any, reduce_any, arguments, options)


def all_(*arguments: Any, **options: Any) -> Any:
    """``all``; of something staged whether all of its elements hold."""
    return _quantified(builtins.all, reduce_all, arguments, options)


def _quantified(python: Any, whole: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    items, others = _taken(arguments, may_stop=True)
    tensor = None if len(arguments) != 1 or options else symbolic(items)
    if tensor is not None:
        return whole(cast(tensor, dtypes.bool_))
    if type(items) not in (list, tuple) or not any(truth(each) is not None for each in items):
        return python(*others(items), **options)
    tensors = []
    for each in items:
        decided = truth(each)
        if decided is not None:
            tensors.append(condition(decided, python.__name__))
        elif bool(each) == (python is builtins.any):
            return python is builtins.any  # whatever the tensors are
    return whole(convert_to_tensor(tensors))


def min_(*arguments: Any, **options: Any) -> Any:
    """``min``; of several tensors elementwise, of something staged its smallest element."""
    return _extreme(builtins.min, minimum, (reduce_min, operator.lt), arguments, options)


def max_(*arguments: Any, **options: Any) -> Any:
    """``max``; of several tensors elementwise, of something staged its largest element."""
    return _extreme(builtins.max, maximum, (reduce_max, operator.gt), arguments, options)


def _extreme(
    python: Any, pairwise: Any, of_many: tuple[Any, Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    items, others = _taken(arguments) if len(arguments) == 1 else (arguments, lambda _: arguments)
    if set(options) - {"key", "default"} or (len(arguments) != 1 and "default" in options):
        return python(*others(items), **options)
    key = options.get("key")
    many = as_staged_list(items) if len(arguments) == 1 else None
    if many is not None and (many.holds_structures or key is not None):
        return _extreme_of_list(python, many, key, options)
    key = None if key is None else converted_call(key)
    tensor = symbolic(items) if len(arguments) == 1 else None
    if tensor is not None and tensor.type.shape != ():
        if key is not None:
            return _extreme_of_list(python, StagedList.of_rows(tensor), key, options)
        return _extreme_of_tensor(python, items, tensor, of_many[0], options)
    if ctx.builder is not None and _is_plain_iterable(items):
        items = builtins.list(items)
    if type(items) not in (list, tuple) or not items:
        return python(*others(items), **options)
    keys = items if key is None else [key(each) for each in items]
    if any(_is_structure(each) for each in keys):
        return _in_order(items, keys, python is builtins.max)[0]
    with_fields = any(_has_fields(each) for each in keys)
    if not with_fields and not any(symbolic(each) is not None for each in keys):
        return python(list(zip(keys, items)), key=lambda pair: pair[0])[1]
    if key is None and not with_fields:
        items = [as_number(each) for each in items]
        if all(map(is_number, items)):
            return reduce(lambda a, b: computed(pairwise.row.name, a, b), items)
        return reduce(lambda a, b: of_arrays(pairwise(a, b), a, b), items)
    beats = of_many[1]
    best, best_key = items[0], keys[0]
    for item, its_key in zip(items[1:], keys[1:]):
        better = decided(lambda one=its_key, other=best_key: beats(one, other), python.__name__)  # type: ignore[misc]
        best = if_exp(better, lambda item=item: item, lambda best=best: best)
        best_key = if_exp(better, lambda its_key=its_key: its_key, lambda best_key=best_key: best_key)
    return best


def _extreme_of_tensor(python: Any, items: Any, tensor: Any, whole: Any, options: dict[str, Any]) -> Any:
    if isinstance(items, StagedList) and items.is_weak:
        tensor = items.wide_rows()

    def found() -> Any:
        made = whole(tensor)
        if isinstance(items, WritableArray):
            return as_array(made)
        return items.element(made) if isinstance(items, StagedList) else made

    if "default" in options:
        return if_exp(shape_of(tensor)[0] > 0, found, lambda: options["default"])
    if isinstance(items, list | StagedList):  # Python's error; of a tensor TensorFlow gives the smallest number
        assert_op(shape_of(tensor)[0] > 0, _EMPTY.format(python.__name__), "ValueError")
    return found()


def _extreme_of_list(python: Any, items: StagedList, key: Any, options: dict[str, Any]) -> Any:
    """The smallest or largest element of a staged list by what ``<`` says of the elements, or of their keys."""

    def found() -> Any:
        return (smallest if python is builtins.min else largest)(items, key)

    if "default" in options:
        return if_exp(items.size > 0, found, lambda: options["default"])
    assert_op(items.size > 0, _EMPTY.format(python.__name__), "ValueError")
    return found()


def sorted_(*arguments: Any, **options: Any) -> Any:
    """``sorted``; of a symbolic tensor its elements in order, as a tensor; of a staged list a staged list."""
    items, others = _taken(arguments)
    if len(arguments) != 1 or set(options) - {"reverse", "key"}:
        return builtins.sorted(*others(items), **options)
    reverse, key = bool(options.get("reverse")), options.get("key")
    many = as_staged_list(items)
    if many is not None and (many.holds_structures or key is not None):
        copied = many.copy()
        sort_in_place(copied, key=key, reverse=reverse)
        return copied
    if ctx.builder is not None and symbolic(items) is None and _is_plain_iterable(items):
        items = items if type(items) is tuple else builtins.list(items)
        keys = items if key is None else [converted_call(key)(each) for each in items]
        if any(_is_structure(each) or _has_fields(each) for each in keys) or (key is not None and _has_symbolic(keys)):
            return _in_order(items, keys, reverse)
        if key is not None:
            pairs = builtins.sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
            return [items[index] for index in pairs]
    numbers = _staged_numbers(items)
    tensor = _tensor_of(items) if numbers is None else numbers.wide_rows()
    if tensor is None:
        return builtins.sorted(*others(items), **options)
    if key is not None:
        return gather(tensor, _order(_keys(TensorItems(tensor), key), reverse))
    made = sort(tensor, axis=0, direction=_DIRECTIONS[reverse])
    if symbolic(arguments[0]) is not None and not _is_list(arguments[0]):
        return made
    result = StagedList.of_rows(made) if numbers is None else numbers.with_rows(made)
    if type(items) not in (list, tuple) or many is not None:
        return result
    return [result[index] for index in range(len(items))]


_DIRECTIONS = ("ASCENDING", "DESCENDING")


def _keys(items: Any, key: Any) -> Any:
    """What a key function gives for each item, as a list."""
    function = converted_call(key)
    return collect(items, lambda found, item: found.append(function(item)))


def _order(keys: Any, reverse: bool) -> Any:
    """The positions of keys in the order of the keys, as a tensor."""
    if not isinstance(keys, StagedList):
        keys = StagedList(keys)
    if not is_lexicographic(keys.structure):
        return convert_to_tensor(sorted_places(keys, reverse))
    # By the last column first: sorting is stable.
    *others, last = keys.columns()
    order = argsort(last, direction=_DIRECTIONS[reverse], stable=True)
    for column in reversed(others):
        order = gather(order, argsort(gather(column, order), direction=_DIRECTIONS[reverse], stable=True))
    return order


def _is_plain_iterable(items: Any) -> bool:
    return isinstance(items, Iterable) and not isinstance(items, (Tensor, StagedList, Staged))


def _has_symbolic(values: Iterable[Any]) -> bool:
    return any(symbolic(each) is not None for each in values)


def _is_structure(value: Any) -> bool:
    """Whether a value is a tuple or list of tensors."""
    return type(value) in (tuple, list) and any(symbolic(leaf) is not None for leaf in nest.flatten(value))


def _has_fields(value: Any) -> bool:
    """Whether a value is an object with tensors in its fields."""
    return children(value) is not None and any(symbolic(leaf) is not None for _, leaf in flatten(value))


def _in_order(items: Any, keys: Any, reverse: bool) -> list[Any]:
    """Items of one structure, sorted by keys of one structure."""
    order, many = _order(keys, reverse), StagedList(items)
    return [many.item(order[index]) for index in range(len(items))]


def sort_list(items: list[Any], *, key: Any = None, reverse: bool = False) -> None:
    """``items.sort()`` of a Python list; of one with tensors in it by operations of the program."""
    if any(symbolic(leaf) is not None for _, leaf in flatten(items)):
        made = sorted_(items, key=key, reverse=reverse)
        items[:] = [made[index] for index in range(len(items))]
    else:
        items.sort(key=key, reverse=reverse)


def sort_in_place(items: StagedList, *, key: Any = None, reverse: bool = False) -> None:
    """``items.sort()`` of a staged list: what ``key`` gives for its items is collected by a loop of the program."""
    if key is None and not items.holds_structures:
        items.sort(reverse=reverse)
    else:
        items.reorder(_order(items if key is None else _keys(items, key), reverse))


def extend_list(items: list[Any], more: Any) -> None:
    """``items.extend(more)`` of a Python list, which becomes a staged one if ``more`` is one."""
    refuse_reading(items, more)
    made = list_(more) if ctx.builder is not None and type(more) in (StagedList, list) else more
    if not isinstance(made, StagedList):
        items.extend(made)
        return
    grown = staged_list("the list", items, (), made)
    become_staged(items, grown, rebind)
    grown.extend(made)


def extend_staged(items: StagedList, more: Any) -> None:
    """``items.extend(more)`` of a staged list."""
    refuse_reading(items, more)
    items.extend(more)


def list_(*arguments: Any, **options: Any) -> Any:
    """``list``; of something staged the list of its items, a staged one when their number isn't known."""
    items, others = _taken(arguments)
    if len(arguments) != 1 or options:
        return builtins.list(*others(items), **options)
    staged = items if isinstance(items, StagedList) else moved(items)
    if staged is not None:
        return staged if items is not arguments[0] else staged.copy()
    tensor = symbolic(items)
    if tensor is None or tensor.type.shape == ():
        return builtins.list(items)
    size = tensor.type.shape[0] if tensor.type.shape else None
    if size is None or size > _MOST_LISTED:
        return StagedList.of_rows(tensor)
    return [tensor[index] for index in range(size)]


def tuple_(*arguments: Any, **options: Any) -> Any:
    """``tuple``; of something staged the tuple of its items, whose number must be known."""
    if len(arguments) != 1 or options:
        return builtins.tuple(*arguments, **options)
    items = list_(*arguments)
    if isinstance(items, StagedList) and static_value(items.size) is None:
        raise StagingTypeError(
            "tuple() of something whose length is known only at run time",
            location=user_location(),
            cause="a tuple in a staged program has a fixed number of items",
            fix="use list(): lists may have any length",
        )
    return builtins.tuple(items)


class _Spread:
    """What is starred in a list display and has a length that may be known only at run time."""

    def __init__(self, items: StagedList) -> None:
        self.items = items


def spread(items: Any) -> Any:
    """``*items`` in a list display; something staged stays one item for `list_display`."""
    if ctx.builder is None:
        return items
    made = list_(items) if type(items) is not list or moved(items) is not None else items
    return (_Spread(made),) if isinstance(made, StagedList) else made


def list_display(items: list[Any]) -> Any:
    """The list ``[a, *b, c]``, whose starred items have gone through `spread`."""
    if ctx.builder is None or not any(type(each) is _Spread for each in items):
        return items
    first = next(index for index, each in enumerate(items) if type(each) is _Spread)
    made = items[:first] + items[first].items
    for each in items[first + 1 :]:
        if type(each) is _Spread:
            made.extend(each.items)
        else:
            made.append(each)
    return made


def _is_list(value: Any) -> bool:
    return isinstance(value, list | StagedList)


def _taken(arguments: tuple[Any, ...], may_stop: bool = False) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """The items that the first argument gives, and what makes the arguments with other items in its place.

    may_stop: not all are taken where one decides.
    """
    if not arguments:
        return None, lambda _: arguments
    return drained(arguments[0], may_stop), lambda items: (items, *arguments[1:])


def _join(text: Any, given: Sequence[Any], options: dict[str, Any]) -> Any:
    """``text.join(items)``; of something staged the items that the program has then."""
    if len(given) != 1 or options or not isinstance(given[0], Iterable):
        return "".join(*given, **options)  # Python's own error
    items = drained(given[0])
    return joined(text, items if isinstance(items, (list, StagedList)) else list(items))


FORMS["join"] = _join
OVERLOADS.update(
    {
        builtins.all: all_,
        builtins.any: any_,
        builtins.list: list_,
        builtins.max: max_,
        builtins.min: min_,
        builtins.sorted: sorted_,
        builtins.sum: sum_,
        builtins.tuple: tuple_,
        StagedList.sort: sort_in_place,
        builtins.list.sort: sort_list,
        builtins.list.extend: extend_list,
        StagedList.extend: extend_staged,
        math.dist: dist_,
        math.fsum: fsum_,
        math.prod: prod_,
    }
)
