"""The methods of staged lists that work on all of their elements: slices, ``insert``, ``index``, ``sort`` ...

They see a list as its rows: one tensor per tensor of an element, along a new first axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from runtime import dtypes, errors
from runtime.list_elements import Elements
from runtime.ops.arrays.creation import range as counted
from runtime.ops.arrays.gather import boolean_mask, gather
from runtime.ops.arrays.joining import concat
from runtime.ops.arrays.rearrange import reverse, tile
from runtime.ops.arrays.reduce import argmax, reduce_all, reduce_any, reduce_sum
from runtime.ops.arrays.scatter import tensor_scatter_nd_update
from runtime.ops.arrays.shape_ops import expand_dims
from runtime.ops.arrays.sorting import argsort
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor, is_tensor_like, static_value
from runtime.ops.dispatch import call
from runtime.ops.elementwise.arithmetic import maximum, minimum
from runtime.ops.elementwise.compare import equal, less, logical_not, where
from runtime.ops.elementwise.elementary import cast
from runtime.ops.growable import growable
from runtime.ops.staged_number import StagedNumber
from runtime.tensor import Tensor


class ListMethods:
    """Base of `StagedList`, which has the buffers, the size, and access to single elements."""

    _like: Any
    _buffers: list[Any]
    _size: Any
    _numbers: Any
    _rows: Callable[[Any], Tensor]
    _parts: Callable[[Any], list[Tensor]]
    elements: ClassVar[Elements]
    copy: Callable[[], Any]
    clone: Callable[[], Any]
    rows: Callable[[], Tensor]
    wide_rows: Callable[[], Tensor]
    extend: Callable[[Any], None]

    def _hold(self, rows: Sequence[Tensor]) -> None:
        """Takes tensors for the buffers."""
        self._buffers = [growable(each) for each in rows]

    def _replace_rows(self, rows: Sequence[Tensor]) -> None:
        self._hold(rows)
        self._size = call("dim", rows[0], axis=0)

    def _all_rows(self) -> list[Tensor]:
        self.elements.settle(self)
        return [self._rows(buffer) for buffer in self._buffers]

    # --- single places ---------------------------------------------------------------------------------------------

    def _remove(self, position: Any) -> None:
        self._hold([concat([rows[:position], rows[position + 1 :]], 0) for rows in self._all_rows()])
        self._size = self._size - 1
        self.elements.moved(self)

    def insert(self, index: Any, value: Any) -> None:
        """Puts an element before position `index`, which counts from the end when negative."""
        parts = self._parts(value)
        before = self._boundary(index)
        self._hold(
            [
                concat([rows[:before], expand_dims(part, 0), rows[before:]], 0)
                for rows, part in zip(self._all_rows(), parts)
            ]
        )
        self._size = self._size + 1
        self.elements.moved(self)
        self.elements.stored(self, value, before)

    def _boundary(self, index: Any) -> Any:
        """An index of a slice as a position from 0 to the size, a scalar int32 tensor."""
        place = convert_to_tensor(index, dtypes.int32) if type(index) is int else cast(index, dtypes.int32)
        return minimum(where(less(place, 0), maximum(place + self._size, 0), place), self._size)

    # --- slices ----------------------------------------------------------------------------------------------------

    def _slice(self, index: slice) -> Any:
        made = self.copy()
        made._replace_rows([rows[index] for rows in self._all_rows()])
        return made

    def _set_slice(self, index: slice, values: Any) -> None:
        """Puts other elements in the place of a slice: as many as there are, or as it has if it has a step."""
        middle = self.clone()
        middle.clear()
        middle.extend(values)  # may change the dtype of plain numbers
        pairs = [(cast(a, b.dtype), b) for a, b in zip(self._all_rows(), middle._all_rows())]
        self._numbers = middle._numbers
        if _has_step(index):
            places = self._places(index)
            same = equal(call("dim", places, axis=0), middle._size)
            assert_op(same, "attempt to assign sequence to extended slice of another size", "ValueError")
            self._hold([tensor_scatter_nd_update(a, expand_dims(places, 1), b) for a, b in pairs])
        else:
            start, stop = self._boundaries(index)
            self._replace_rows([concat([a[:start], b, a[stop:]], 0) for a, b in pairs])
        self.elements.moved(self)
        self.elements.moved(middle)

    def _delete_slice(self, index: slice) -> None:
        rows = self._all_rows()
        if _has_step(index):
            stays = logical_not(reduce_any(equal(expand_dims(self._all_places(), 1), self._places(index)), axis=1))
            self._replace_rows([boolean_mask(each, stays) for each in rows])
        else:
            start, stop = self._boundaries(index)
            self._replace_rows([concat([each[:start], each[stop:]], 0) for each in rows])
        self.elements.moved(self)

    def _all_places(self) -> Tensor:
        return counted(0, self._size)

    def _places(self, index: slice) -> Tensor:
        """The positions that a slice has, in its order."""
        return self._all_places()[index]

    def _boundaries(self, index: slice) -> tuple[Any, Any]:
        start = self._boundary(0 if index.start is None else index.start)
        return start, self._size if index.stop is None else maximum(self._boundary(index.stop), start)

    def __mul__(self, times: Any) -> Any:
        count = maximum(convert_to_tensor(times, dtypes.int32) if type(times) is int else cast(times, dtypes.int32), 0)
        made = self.copy()
        made._replace_rows([_repeated(rows, count) for rows in self._all_rows()])
        return made

    __rmul__ = __mul__

    def __imul__(self, times: Any) -> Any:
        self._replace_rows(self.__mul__(times)._buffers)
        self.elements.moved(self)
        return self

    # --- order and search ------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Removes all elements."""
        self._size = convert_to_tensor(0, dtypes.int32)
        self.elements.cleared(self)

    def reverse(self) -> None:
        """Reverses the order of the elements."""
        self._hold([reverse(rows, [0]) for rows in self._all_rows()])
        self.elements.moved(self)

    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
        """Sorts the elements, which must be scalars. Raises UnimplementedError for a `key`, which takes a loop."""
        if key is not None:
            raise errors.UnimplementedError(
                "a staged list can't be sorted by a key in code that isn't converted; convert it"
            )
        self.reorder(argsort(self.wide_rows(), 0, "DESCENDING" if reverse else "ASCENDING", stable=True))

    def reorder(self, order: Any) -> None:
        """Puts the elements at the indices in ``order`` in the place of the elements."""
        self._hold([gather(rows, order) for rows in self._all_rows()])
        self.elements.moved(self)

    def _matches(self, value: Any) -> Tensor:
        """For each element whether it equals a value."""
        same = equal(self.wide_rows(), value)
        axes = tuple(range(1, len(same.type.shape or ())))
        return reduce_all(same, axis=axes) if axes else same

    def count(self, value: Any) -> StagedNumber:
        """How many elements equal a value."""
        return StagedNumber(reduce_sum(cast(self._matches(value), dtypes.int32)), dtypes.int32)

    def contains(self, value: Any) -> Tensor:
        """Whether an element equals a value; what `value in list` gives in converted code."""
        return reduce_any(self._matches(value))

    __hash__ = object.__hash__  # it is found by its identity

    def index(self, value: Any, start: Any = 0, stop: Any = None) -> StagedNumber:
        """Where the first element stands that equals a value. Raises ValueError when there is none, at run time."""
        found = self._matches(value)
        first = self._boundary(start)
        last = self._size if stop is None else self._boundary(stop)
        shown = "list.index(x): x not in list" if is_tensor_like(value) else f"{value!r} is not in list"
        chosen = found[first:last]
        assert_op(reduce_any(chosen), shown, "ValueError")
        place = argmax(cast(_padded(chosen), dtypes.int32), axis=0, output_type=dtypes.int32)
        return StagedNumber(place + first, dtypes.int32)

    def remove(self, value: Any) -> None:
        """Removes the first element that equals a value. Raises ValueError when there is none, at run time."""
        found = self._matches(value)
        assert_op(reduce_any(found), "list.remove(x): x not in list", "ValueError")
        self._remove(argmax(cast(_padded(found), dtypes.int32), axis=0, output_type=dtypes.int32))


def _has_step(index: slice) -> bool:
    return index.step is not None and static_value(convert_to_tensor(index.step)) != 1


def _padded(flags: Tensor) -> Tensor:
    """With one more element, so that the position of the largest can be asked for where there is none."""
    return concat([flags, convert_to_tensor([False])], 0)


def _repeated(rows: Any, count: Any) -> Tensor:
    known = static_value(count)
    if known is not None:
        return concat([rows] * int(known), 0) if int(known) else rows[:0]
    shape = rows.type.shape
    return tile(rows, [count] + [1] * (len(shape) - 1))
