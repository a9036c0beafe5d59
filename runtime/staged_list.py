"""`StagedList`: a Python list whose length may be known only when the program runs.

A list that a staged loop or branch changes becomes one. Like a list it is an object with contents that its methods
change in place; its contents are a growable buffer per tensor of an element, and a size. All elements have one dtype
and shape, or the same structure (tuple, dict) of such.

    scores.append(x)        scores[i]        scores[-1] = x        scores.pop()        ag.stack(scores)

What a function returns as a `StagedList` arrives outside as a Python list of tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from runtime import dtypes, errors, nest
from runtime.context import ctx
from runtime.dtypes import DType
from runtime.list_elements import Elements
from runtime.list_methods import ListMethods
from runtime.ops.arrays.joining import concat, stack
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor, has_dtype, is_tensor_like, static_value
from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise.compare import greater_equal, less, logical_and, where
from runtime.ops.elementwise.elementary import cast
from runtime.ops.growable import ARRAY_WRITE, ROW, first_rows, growable
from runtime.ops.staged_number import as_dtype, is_number, is_text, staged_value, storage
from runtime.ops.values import common_default, default_of
from runtime.shapes import widen
from runtime.tensor import EagerTensor, Tensor
from runtime.types import TensorType

Numbers = tuple[DType | None, ...] | None

# Why code that isn't converted can't use such a list, and what to do.
IS_STAGED = (
    "a list that a loop or branch on tensors changes becomes part of the program and is no longer a Python list, so "
    "code that isn't converted (random, itertools, C extensions) can't use it"
)
IN_PYTHON = (
    "to sort it, write `ag.sort(ag.stack(items))`; to keep a Python list, change it only in loops over Python values, "
    "which are unrolled"
)


class StagedList(ListMethods):
    """A list of elements of one kind in a buffer that grows.

    items: the elements at first; each must convert to tensors.
    more: elements that will come, to learn from; all items must agree with them in structure, dtype and rank.
    like: another list, whose elements' types hold here too.
    Raises TypeError or ValueError when they don't.

    Reading or writing beyond the list raises IndexError when the program runs, as Python does.
    """

    _like: Any
    # For each part of an element that is a Python number the dtype that it has where nothing else decides, for the
    # other parts None; None for all where no part is a number. The buffers have the numbers in 64 bits.
    _numbers: Numbers
    origin: list[Any] | None = None  # the Python list that has become this one
    is_generator = False  # whether it stands for a generator, which has taken all of its items
    elements: ClassVar[Elements] = Elements()
    reads: Any = None  # of a generator: what its items were made from besides (operators/containers.py)
    taken_from: tuple[StagedList, tuple] | None = None  # the list that these came from, and its tensors at that time

    def __init__(self, items: Sequence[Any], more: Sequence[Any] = (), like: StagedList | None = None) -> None:
        items = [_element(item) for item in items]
        # Those to come may belong to another trace: only their types count here.
        everything = [*items, *map(self.elements.taken_apart, more)]
        if like is None and not everything:
            raise ValueError("a list without elements has no element type")
        self._like = _template(everything[0]) if like is None else like._like
        for item in everything:
            nest.assert_same_structure(self._like, _template(item))
        width = 1 if self._like is None else len(nest.flatten(self._like))
        columns = list(zip(*map(_leaves, everything))) or [()] * width
        learned = [None] * width if like is None else like._defaults()
        given: list[Any] = [None] * width if like is None else list(like.element_types)
        numbers: list[DType | None] = [None] * width
        for part, (column, default) in enumerate(zip(columns, learned)):
            if like is not None and default is None:
                continue  # tensors
            given[part] = None
            if all(map(is_number, column)) or (
                column and all(map(is_text, column))
            ):  # they take the dtype of the first tensor that comes
                found = common_default(*map(default_of, column), *([] if default is None else [default]))
                numbers[part], given[part] = found, TensorType(storage(found), ())
        self._numbers = _numbers(numbers)
        self._size: Any = convert_to_tensor(len(items), dtypes.int32)
        self._buffers: list[Any] = [_buffer(c[: len(items)], c, type_) for c, type_ in zip(columns, given)]
        self._first = (*self._buffers, self._size)

    @classmethod
    def of_rows(cls, tensor: Any) -> StagedList:
        """The list of a tensor's elements along its first axis."""
        made = cls.__new__(cls)
        made.restore(_Kind(None, None), (growable(tensor), call("dim", tensor, axis=0)))
        return made

    def with_rows(self, tensor: Any) -> StagedList:
        """The list of the same numbers as `wide_rows` of this one, or some of them."""
        made = StagedList.of_rows(tensor)
        made._numbers = self._numbers
        return made

    # --- structure -------------------------------------------------------------------------------------------------

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return _Kind(self._like, self._numbers), (*self._buffers, self._size)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> Any:
        made = cls.__new__(cls)
        made.restore(metadata, components)
        if ctx.builder is None and all(isinstance(each, EagerTensor) for each in components):
            return made._elements()
        return made

    def _elements(self) -> list[Any]:
        """The elements of a list of eager tensors."""
        self._buffers = self._settled()
        self._numbers = None
        count = int(self._size)
        is_text = any(buffer.dtype is dtypes.string for buffer in self._buffers)  # rows would be Python's own bytes
        if ctx.recorders or is_text or count > min(len(buffer) for buffer in self._buffers):
            return [self[index] for index in range(count)]
        # No tape asks where they come from: rows of the arrays, without an operation for each.
        columns = [[EagerTensor(row, b.dtype) for row in b._array[:count]] for b in self._buffers]
        return [self._pack(parts) for parts in zip(*columns)]

    def restore(self, metadata: Any, components: Sequence[Any]) -> None:
        """Sets the contents to what `__tf_flatten__` gave."""
        self._like, self._numbers = metadata.like, metadata.numbers
        *self._buffers, self._size = components
        if not hasattr(self, "_first"):
            self._first = tuple(components)

    @property
    def numbers(self) -> Numbers:
        """The dtypes that the Python numbers in an element have where nothing else decides; None for other parts."""
        return self._numbers

    def _defaults(self) -> Sequence[DType | None]:
        return [None] * len(self._buffers) if self._numbers is None else self._numbers

    @property
    def is_weak(self) -> bool:
        """Whether all elements came from Python numbers, whose dtype gives way to a tensor's."""
        return self._numbers is not None and None not in self._numbers

    @property
    def holds_containers(self) -> bool:
        """Whether an element is a container, which Python would share with whoever reads it."""
        return self._like is not None or bool(self.element_types[0].shape)

    @property
    def holds_structures(self) -> bool:
        """Whether an element is a container of tensors: no tensor has the elements' rows."""
        return self._like is not None

    @property
    def structure(self) -> Any:
        """The structure of an element, with None for its tensors."""
        return self._like

    def columns(self) -> list[Tensor]:
        """For each tensor of an element those of all elements, numbers in 64 bits, along a new first axis."""
        return self._all_rows()

    def is_unchanged(self) -> bool:
        """Whether nothing has changed the list since it was made."""
        return all(a is b for a, b in zip(self._first, (*self._buffers, self._size)))

    def taken(self) -> StagedList:
        """The list to iterate over. A list that represents a generator hands its elements to a copy and is empty
        afterwards."""
        if not self.is_generator:
            return self
        made = self.clone()
        self.taken_from = self.reads = None
        self.clear()
        return made

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Tensor:
        return convert_to_tensor(self.rows(), dtype)

    def rows(self) -> Tensor:
        """The elements as one tensor, along a new first axis."""
        self.elements.settle(self)
        if self._like is not None:
            raise TypeError(
                "the elements of this list are structures, which can't be stacked; stack a list of each part instead"
            )
        return self._rows(self._settled()[0])

    def wide_rows(self) -> Tensor:
        """The elements as one tensor, along a new first axis; Python numbers in it have 64 bits."""
        self.elements.settle(self)
        return self._rows(self._buffers[0])

    def _rows(self, buffer: Any) -> Tensor:
        return first_rows(buffer, self._size, within=True)

    @property
    def size(self) -> Tensor:
        """The number of elements, a scalar int32 tensor."""
        return self._size

    @property
    def element_types(self) -> list[TensorType]:
        """The types of an element's tensors."""
        return [
            TensorType(b.dtype, None if b._shape is None else b._shape[1:])
            if default is None
            else TensorType(default, ())
            for b, default in zip(self._buffers, self._defaults())
        ]

    @property
    def rows_type(self) -> TensorType:
        """The type of all elements as one tensor. Raises TypeError for a list of structures."""
        if self._like is not None:
            raise TypeError("a list of structures can't be an element of a list whose length changes")
        (type_,) = self.element_types
        if type_.shape is None:
            raise ValueError("the elements of a list need a known rank")
        count = static_value(self._size)
        return TensorType(type_.dtype, (None if count is None else int(count), *type_.shape))

    def _pack(self, parts: Sequence[Any]) -> Any:
        if self._like is None:
            return parts[0]
        return self.elements.put_together(nest.pack_sequence_as(self._like, parts))

    def _parts(self, value: Any) -> list[Tensor]:
        """The tensors of an element that is to be stored."""
        value = _element(value)
        nest.assert_same_structure(self._like, _template(value))
        leaves = nest.flatten(value)
        self._meet(leaves)
        made = []
        for buffer, leaf in zip(self._buffers, leaves):
            tensor = convert_to_tensor(leaf) if has_dtype(leaf) else convert_to_tensor(leaf, buffer.dtype)
            if tensor.dtype is not buffer.dtype:
                raise TypeError(
                    f"{dtypes.article(tensor.dtype.name)} tensor can't be an element of a list of "
                    f"{buffer.dtype.name} tensors"
                )
            made.append(tensor)
        return made

    # --- elements --------------------------------------------------------------------------------------------------

    def _meet(self, leaves: Sequence[Any]) -> None:
        """Prepares Python numbers for the parts of an element: a tensor's dtype becomes theirs."""
        if self._numbers is None:
            return
        pairs = zip(self._numbers, leaves)
        numbers = [
            None if a is None or not (is_number(b) or is_text(b)) else common_default(a, default_of(b))
            for a, b in pairs
        ]
        types = [convert_to_tensor(leaf).type if _has_dtype(leaf) else None for leaf in leaves]  # type: ignore[attr-defined]
        self._take(self.fitting(types, numbers))

    def _take(self, other: StagedList) -> None:
        self._buffers, self._numbers = list(other._buffers), other._numbers

    def fitting(self, types: Sequence[TensorType | None], numbers: Sequence[DType | None] | None = None) -> StagedList:
        """The list with its Python numbers in dtypes that are asked for, where these hold such numbers.

        numbers: other defaults for those that remain numbers, None for the others.
        """
        if self._numbers is None:
            return self
        made = self.clone()
        made._numbers = _numbers(numbers or [])
        made._buffers = [
            buffer if default is None
            else cast(buffer, storage(number)) if number is not None
            else as_dtype(buffer, _dtype_for(default, type_))
            for buffer, default, number, type_ in zip(self._buffers, self._numbers, made._defaults(), types)
        ]  # fmt: skip
        return made

    def numbers_beside(self, other: StagedList) -> Numbers:
        """The `numbers` of a list that is this one or another one."""
        pairs = zip(self._defaults(), other._defaults())
        return _numbers([None if a is None or b is None else common_default(a, b) for a, b in pairs])

    def alongside(self, other: StagedList) -> StagedList:
        """The list as it must be for another one to stand in its place, if only Python numbers are in the way."""
        return self.fitting(other.element_types, self.numbers_beside(other))

    def _settled(self) -> list[Any]:
        """The buffers with Python numbers in the dtypes that they have where nothing else decides."""
        return self.fitting([None] * len(self._buffers))._buffers

    def stacked(self) -> Any:
        """The elements along a new first axis: a tensor, or for a list of structures a structure of tensors."""
        return self._pack([self._rows(buffer) for buffer in self._settled()])

    def append(self, value: Any) -> None:
        """Adds an element at the end."""
        position = self._size
        self._write(position, self._parts(value))
        self._size = position + 1
        self.elements.stored(self, value, position)

    def write_through(self, position: Any, value: Any) -> None:
        """Has the element at a position that is known to lie in the list hold what its container holds now."""
        self._write(position, self._parts(value))

    def _write(self, index: Any, parts: Sequence[Tensor]) -> None:
        attrs = {"fixed": False}
        self._buffers = [apply(ARRAY_WRITE, (b, index, p, self._size), attrs) for b, p in zip(self._buffers, parts)]

    def extend(self, values: Any) -> None:
        """Adds the elements of a list, of a tensor along its first axis, or of a Python iterable."""
        self.elements.settle(self)
        if isinstance(values, StagedList):
            self.elements.settle(values)
            self.elements.copied(values)
            values = values.taken()
            own, values = self.alongside(values), values.alongside(self)
            self._take(own)
            buffers = [concat([self._rows(a), values._rows(b)], 0) for a, b in zip(self._buffers, values._buffers)]
            self._size = self._size + values._size
            self._hold(buffers)
        elif is_tensor_like(values):
            tensor = convert_to_tensor(values)
            self._meet([tensor])
            self._hold([concat([self._rows(self._buffers[0]), tensor], 0)])
            self._size = self._size + call("dim", tensor, axis=0)
        else:
            for value in values:
                self.append(value)

    def __iadd__(self, values: Any) -> StagedList:
        self.extend(values)
        return self

    def __add__(self, values: Any) -> StagedList:
        made = self.copy()
        made.extend(values)
        return made

    def __radd__(self, values: Any) -> StagedList:
        made = self.copy()
        for index, value in enumerate(values):
            made.insert(index, value)
        return made

    def pop(self, index: Any = -1) -> Any:
        """Removes and gives an element, the last one by default. Raises IndexError when there is none, at run time."""
        assert_op(self._size > 0, "pop from empty list", "IndexError")
        self.elements.settle(self)
        if type(index) is int and index == -1:
            last = self._size - 1
            value = self.elements.taken(self, self._at(last), last)
            self._size = last
            return value
        position = self._position(index, "pop index out of range")
        value = self.elements.taken(self, self._at(position), position)
        self._remove(position)
        return value

    def copy(self) -> StagedList:
        """A new list with the same elements."""
        self.elements.settle(self)
        self.elements.copied(self)
        return self.clone()

    __copy__ = copy

    def clone(self) -> StagedList:
        """The same list as another object."""
        made = StagedList.__new__(StagedList)
        made.restore(*self.__tf_flatten__())
        return made

    def _at(self, position: Any) -> Any:
        parts = [apply(ROW, (buffer, position)) for buffer in self._buffers]
        return self._pack([self.element(part, index) for index, part in enumerate(parts)])

    def element(self, tensor: Any, part: int = 0) -> Any:
        """A part of an element, or what is made of such: a number where that part of all elements is."""
        default = None if self._numbers is None else self._numbers[part]
        if default is None or not (tensor.dtype.is_numeric or tensor.dtype is default):
            return tensor
        return staged_value(tensor, default)

    def with_numbers(self, numbers: Numbers) -> StagedList:
        """A list with the same tensors that holds numbers with other defaults, or tensors."""
        made = self.clone()
        made._numbers = numbers
        return made

    def item(self, position: Any) -> Any:
        """The element at a position that is known to lie in the list."""
        self.elements.settle(self)
        return self.elements.read(self, self._at(position), position)

    def _position(self, index: Any, message: str) -> Any:
        """An index as a scalar tensor that counts from the start; checked against the size at run time."""
        if type(index) is int or isinstance(index, np.integer):
            size = static_value(self._size)
            if size is not None and -int(size) <= index < int(size):
                return convert_to_tensor(int(index) % int(size), dtypes.int32)
        return checked_position(index, self._size, message)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._slice(index)
        self.elements.settle(self)
        position = self._position(index, "list index out of range")
        return self.elements.read(self, self._at(position), position)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            self._set_slice(index, values=value)
            return
        self.elements.settle(self)
        parts = self._parts(value)
        position = self._position(index, "list assignment index out of range")
        self._write(position, parts)
        self.elements.replaced(self, position)
        self.elements.stored(self, value, position)

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            self._delete_slice(index)
            return
        self._remove(self._position(index, "list assignment index out of range"))

    def __len__(self) -> int:
        size = static_value(self._size)
        if size is None:
            raise errors.no_value(
                "the length of a list that a staged loop or branch changed is known only at run time",
                f"call len() in a converted function, where it returns a tensor; {IN_PYTHON}",
                IS_STAGED,
            )
        return int(size)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[Any]:
        size = static_value(self._size)
        if size is None:
            raise errors.no_value(
                "a list that a staged loop or branch changed can be iterated only by a `for` statement of a converted "
                "function; its length is known only at run time",
                f"loop over it with `for`; {IN_PYTHON}",
                IS_STAGED,
            )
        items = self.taken()
        return (items[index] for index in range(int(size)))

    def __contains__(self, value: Any) -> bool:
        return bool(self.contains(value))

    def __repr__(self) -> str:
        return f"<list of {', '.join(str(each) for each in self.element_types)} with a size known at run time>"


def checked_position(index: Any, size: Any, message: str) -> Tensor:
    """An index of a list as a scalar tensor that counts from the start. Raises IndexError with the message, at run
    time, where the list has no such item.

    size: the list's, a scalar int32 tensor or a number. Raises TypeError unless the index is an integer.
    """
    position: Any
    if type(index) is int or isinstance(index, np.integer):
        position = convert_to_tensor(int(index), dtypes.int32) if index >= 0 else size + int(index)
    else:
        given = convert_to_tensor(index)
        if not given.dtype.is_integer:
            raise TypeError(f"list indices must be integers or slices, not {given.dtype.name} tensors")
        given = cast(given, dtypes.int32)
        position = where(less(given, 0), given + size, given)
    assert_op(logical_and(greater_equal(position, 0), less(position, size)), message, "IndexError")
    return position


def _element(value: Any) -> Any:
    """What a list holds for an element: a tensor for another staged list, whose length is no part of the structure."""
    staged = moved(value)
    if staged is not None:
        value = staged
    return value.rows() if isinstance(value, StagedList) else StagedList.elements.taken_apart(value)


def _leaves(item: Any) -> list[Any]:
    """The parts of an element; a staged list among those to come is one, its rows."""
    return [item] if isinstance(item, StagedList) else nest.flatten(item)


def _template(value: Any) -> Any:
    """The structure of an element, with None for its tensors."""
    if isinstance(value, StagedList) or not nest.is_nested(value):
        return None
    return nest.map_structure(lambda leaf: None, value)


class _Kind:
    """What two staged lists share that can stand for each other: the structure of an element."""

    __slots__ = ("like", "numbers")

    def __init__(self, like: Any, numbers: Numbers) -> None:
        self.like = like
        self.numbers = numbers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kind) and self.like == other.like

    __hash__ = None  # type: ignore[assignment]


def _numbers(parts: Sequence[DType | None]) -> Numbers:
    return tuple(parts) if any(each is not None for each in parts) else None


def _dtype_for(default: DType, type_: TensorType | None) -> DType:
    """The dtype that a Python number takes where a tensor's type is asked for."""
    return default if type_ is None or (default.is_floating and not type_.dtype.is_floating) else type_.dtype


def _has_dtype(item: Any) -> bool:
    return has_dtype(item) or (not (is_number(item) or is_text(item)) and hasattr(item, "dtype"))


def _buffer(items: Sequence[Any], everything: Sequence[Any], given: TensorType | None) -> Tensor:
    """A buffer with a row per item, of the dtype and shape that all items share."""
    types = [] if given is None else [given]
    for item in everything:
        if isinstance(item, StagedList):
            types.append(item.rows_type)
        elif _has_dtype(item):
            tensor: Any = convert_to_tensor(item)
            types.append(tensor.type)
    if types:
        dtype, shape = types[0].dtype, types[0].shape
        for type_ in types[1:]:
            if type_.dtype is not dtype:
                raise TypeError(
                    f"the elements of a list need one dtype, got {dtype.name} and {type_.dtype.name} tensors"
                )
            shape = widen(shape, type_.shape)
    else:
        first = convert_to_tensor(everything[0])
        dtype, shape = first.dtype, first._shape
    if shape is None:
        raise ValueError("the elements of a list need a known rank")
    if items:
        rows = stack(
            [convert_to_tensor(item) if _has_dtype(item) else convert_to_tensor(item, dtype) for item in items]
        )
        return growable(rows)
    empty = (0, *[size or 0 for size in shape])
    if dtype is dtypes.string:
        return convert_to_tensor(np.full(empty, "", object), dtypes.string)
    return convert_to_tensor(np.zeros(empty, dtype.np))


Sequence.register(StagedList)  # for `match`


class Moved:
    """The only item of a Python list that a `StagedList` has replaced: it refers to that. Converted code that still has
    the Python list follows the reference; other uses of it fail."""

    __slots__ = ("moved_to", "owner")

    def __init__(self, staged: StagedList, owner: list[Any]) -> None:
        self.moved_to = staged
        self.owner = owner

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Tensor:
        raise TypeError(_MOVED)


_MOVED = (
    "a staged loop or branch changed this list, and replaced it by another object in the variables that it could see; "
    "use the list through one of these variables, or return it from the function that changes it"
)


def moved(value: Any) -> StagedList | None:
    """The staged list that has replaced a Python list; None if none has. Raises TypeError for a copy of a list that was
    replaced."""
    if type(value) is not list or not value or type(value[0]) is not Moved:
        return None
    if value[0].owner is not value:
        raise TypeError(_MOVED)
    return value[0].moved_to


def resolved(value: Any) -> Any:
    """A structure as a function returns it: with the staged lists that Python lists in it have become."""
    kind = type(value)
    if kind is Moved:  # from an iterator over the Python list
        raise TypeError(_MOVED)
    if kind is StagedList:
        value.elements.settle(value)
        return value.fitting([None] * len(value.element_types))
    if kind is list:
        staged = moved(value)
        return [resolved(item) for item in value] if staged is None else resolved(staged)
    if kind is tuple:
        return tuple([resolved(item) for item in value])
    if hasattr(kind, "__as_result__"):
        return value.__as_result__()
    return {key: resolved(item) for key, item in value.items()} if kind is dict else value


def _moves_items(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose ops only move items, which in Python is no operation: a paused tape knows the items on."""

    @functools.wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        before, ctx.moving_items = ctx.moving_items, True
        try:
            return method(*args, **kwargs)
        finally:
            ctx.moving_items = before

    return run


for _name in (
    "_at", "_write", "_slice", "_set_slice", "_delete_slice", "_remove", "__add__", "__radd__", "__iadd__", "__mul__",
    "__imul__", "extend", "insert", "pop", "copy", "reverse", "reorder",
):  # fmt: skip
    setattr(StagedList, _name, _moves_items(getattr(StagedList, _name)))
