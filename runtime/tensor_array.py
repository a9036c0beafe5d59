"""`TensorArray`: a list of tensors of one dtype and shape that staged loops can write and read by index.

It is a value: `write` gives the array to go on with. Inside a function it is a buffer tensor and a size, so it passes
through loops and gradients like any pair of tensors; `__tf_flatten__` and `__tf_unflatten__` say so to `nest`. Elements
of different shapes are kept one behind the other, with a place and a shape for each (`UnequalTensorArray`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.context import ctx
from runtime.ops.arrays.creation import range as number_range
from runtime.ops.arrays.creation import zeros
from runtime.ops.arrays.joining import concat
from runtime.ops.arrays.miscellaneous import repeat
from runtime.ops.arrays.rearrange import tile
from runtime.ops.arrays.reduce import reduce_all, reduce_max, reduce_prod, reduce_sum
from runtime.ops.arrays.scan import cumsum
from runtime.ops.arrays.shape_ops import ensure_shape, reshape, shape
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor, static_value
from runtime.ops.dispatch import apply, call
from runtime.ops.growable import ARRAY_WRITE, ROW, first_rows, growable
from runtime.ops.rules import dims
from runtime.shapes import Shape, TensorShape, as_shape, covers
from runtime.tensor import SymbolicTensor, Tensor


class TensorArray:
    """A growable array of tensors, as `tf.TensorArray`.

    Args:
        dtype: of the elements.
        size: number of elements, an int or scalar int tensor.
        dynamic_size: whether writing beyond `size` grows the array; otherwise it raises OutOfRangeError.
        infer_shape: False if elements have different shapes, of one rank: see `element_shape`.
        element_shape: shape of an element, if known before the first write. If it is the shape of a tensor (`x.shape`,
            `x.shape[1:]`), dimensions that are unknown while tracing are taken from that tensor at run time. With
            `infer_shape=False` dimensions that aren't known may differ between elements.

    Reading an element that was never written gives zeros, as in TensorFlow. Use the result of `write`; the array it was
    called on keeps its old contents.
    """

    __ag_composite__ = "array"

    def __new__(cls, *args: Any, infer_shape: bool = True, element_shape: Any = None, **kwargs: Any) -> TensorArray:
        if cls is TensorArray and not infer_shape and not TensorShape(as_shape(element_shape)).is_fully_defined():
            return super().__new__(UnequalTensorArray)
        return super().__new__(cls)

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        *,
        infer_shape: bool = True,
        element_shape: Any = None,
        name: str | None = None,
    ) -> None:
        self.dtype = dtypes.as_dtype(dtype)
        self.dynamic_size = bool(dynamic_size)
        self._element: Shape = as_shape(element_shape)
        self._size = convert_to_tensor(
            0 if size is None else size, dtype=None if isinstance(size, Tensor) else dtypes.int32
        )
        self._buffer: Tensor | None = None
        sizes = _run_time_sizes(element_shape)
        if sizes is not None:
            self._buffer = zeros([0 if self.dynamic_size else self._size, *sizes], self.dtype)

    # --- structure -----------------------------------------------------------------------------------------------

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return (self.dtype, self.dynamic_size, self._element), (self._buffer, self._size)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> TensorArray:
        array = cls.__new__(cls)
        array.dtype, array.dynamic_size, array._element = metadata
        array._buffer, array._size = components
        return array

    def _with(self, buffer: Tensor, size: Tensor) -> TensorArray:
        return self.__tf_unflatten__((self.dtype, self.dynamic_size, self._element), (buffer, size))

    def allocated(self, element_shape: Any) -> TensorArray:
        """An empty array with memory for elements of a fully known shape."""
        return self._with(zeros([self._size, *(as_shape(element_shape) or ())], self.dtype), self._size)

    # --- elements ------------------------------------------------------------------------------------------------

    @property
    def element_shape(self) -> Any:
        return TensorShape(
            self._buffer._shape[1:] if self._buffer is not None and self._buffer._shape else self._element
        )

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, a scalar int32 tensor."""
        return self._size

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with element `index` set to `value`.

        Raises OutOfRangeError for an index beyond the size of an array that isn't dynamic, ValueError for a wrong
        dtype.
        """
        value = convert_to_tensor(value, dtype=None if isinstance(value, Tensor) else self.dtype)
        if value.dtype is not self.dtype:
            raise ValueError(
                f"TensorArray of {self.dtype.name} can't hold a value of dtype {value.dtype.name}: {value!r}"
            )
        index = convert_to_tensor(index)
        buffer = self._buffer
        if buffer is None:
            element = self._element if self._element is not None else value._shape
            # The buffer has its final shape from the start where that is known.
            size = 0 if self.dynamic_size else self._size
            if element is None:
                rows = call("cast", reshape(convert_to_tensor(size), [1]), dtype=dtypes.int32)
                buffer = zeros(concat([rows, shape(value)], 0), self.dtype)
            else:
                sizes = [call("dim", value, axis=axis) if d is None else d for axis, d in enumerate(element)]
                buffer = zeros([size, *sizes], self.dtype)
        fixed = not self.dynamic_size
        buffer = apply(ARRAY_WRITE, (buffer, index, value, self._size), {"fixed": fixed})
        if fixed:
            return self._with(buffer, self._size)
        position = call("cast", index, dtype=self._size.dtype) if index.dtype is not self._size.dtype else index
        return self._with(buffer, call("maximum", self._size, position + 1))

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Element `index`. Raises OutOfRangeError beyond the array, InvalidArgumentError for an array without elements
        whose element shape isn't known; in a loop or branch elements count as scalars until one is written."""
        place = convert_to_tensor(index)
        if self._buffer is None:
            rows = self._rows(scalars=ctx.builder is not None and ctx.builder.parent is not None)
            return apply(ROW, (rows, place))
        return apply(ROW, (self._buffer, place, self._size))

    def _rows(self, scalars: bool = False) -> Tensor:
        """All elements, exactly `size` rows. scalars: what elements are where nothing says it."""
        if self._buffer is None:
            if self._element is None and scalars:
                # A loop that writes one is traced again, with the shape that this has.
                return first_rows(convert_to_tensor(np.zeros(0, self.dtype.np)), self._size)
            if self._element is None or None in self._element:
                if static_value(self._size) == 0:
                    rows = (0,) if self._element is None else (0, *(dim or 0 for dim in self._element))
                    return convert_to_tensor(np.zeros(rows, self.dtype.np))
                raise errors.InvalidArgumentError(
                    "TensorArray has no element yet and its element_shape isn't fully known, so neither is its shape. "
                    "Fix: give element_shape, as in ag.TensorArray(dtype, size, element_shape=[])."
                )
            return first_rows(convert_to_tensor(np.zeros((0, *self._element), self.dtype.np)), self._size)
        return first_rows(self._buffer, self._size)

    def stack(self, name: str | None = None) -> Tensor:
        """The elements as one tensor, along a new first axis."""
        return self._rows()

    def concat(self, name: str | None = None) -> Tensor:
        """The elements joined along their first axis."""
        rows = self._rows()
        known = rows._shape
        if known is None:
            return reshape(rows, concat([[-1], shape(rows)[2:]], 0))
        if len(known) < 2:
            raise ValueError(f"TensorArray.concat needs elements of rank 1 or more, not rows of {known}")
        # Not -1, which says nothing where there are no elements.
        count, length, *rest = dims(rows)
        return reshape(rows, [count * length, *rest])

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at `indices` (a vector), stacked."""
        return call("gather", self._rows(), convert_to_tensor(indices), axis=0)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """An array whose elements are the rows of `value`."""
        value = convert_to_tensor(value, dtype_hint=self.dtype)
        count = call("dim", value, axis=0)
        if self.dynamic_size and type(value) is SymbolicTensor:
            return self._with(growable(value), count)
        return self._with(value, count)

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """An array whose elements are parts of `value` along its first axis, of the given lengths (a vector of ints).

        Raises ValueError for lengths that aren't known to be equal, unless the array has `infer_shape=False`.
        """
        value = convert_to_tensor(value, dtype_hint=self.dtype)
        known = static_value(convert_to_tensor(lengths))
        if known is None or len(set(known.tolist())) != 1:
            raise ValueError(
                f"TensorArray.split makes elements of different lengths of {lengths}: make the array with "
                "infer_shape=False"
            )
        rest = [call("dim", value, axis=axis) for axis in range(1, len(_known_shape(value)))]
        return self.unstack(reshape(value, [len(known), int(known[0]), *rest]))

    def identity(self) -> TensorArray:
        return self

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Writes the rows of `value` at `indices`, which must be known."""
        positions = static_value(convert_to_tensor(indices))
        if positions is None:
            raise ValueError("TensorArray.scatter needs known indices")
        array = self
        for row, position in enumerate(positions.tolist()):
            array = array.write(position, value[row])
        return array

    def close(self, name: str | None = None) -> None:
        """Does nothing; memory goes with the last reference."""

    def __len__(self) -> int:
        size = static_value(self._size)
        if size is None:
            raise TypeError("the size of this TensorArray isn't known while tracing; use .size()")
        return int(size)

    def __repr__(self) -> str:
        return f"<ag.TensorArray dtype={self.dtype.name} element_shape={self.element_shape}>"


class UnequalTensorArray(TensorArray):
    """Elements of different shapes and one rank: all their numbers in a row, and where each ends, and its shape."""

    __ag_composite__ = "unequal array"

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        *,
        infer_shape: bool = False,
        element_shape: Any = None,
        name: str | None = None,
    ) -> None:
        self.dtype = dtypes.as_dtype(dtype)
        self.dynamic_size = bool(dynamic_size)
        self._element: Shape = as_shape(element_shape)
        self._values = zeros([0], self.dtype)
        self._ends = TensorArray(dtypes.int64, size, dynamic_size, element_shape=[])
        rank = None if self._element is None else [len(self._element)]
        self._shapes = TensorArray(dtypes.int64, size, dynamic_size, element_shape=rank)

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return (self.dtype, self.dynamic_size, self._element), (self._values, self._ends, self._shapes)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> UnequalTensorArray:
        array: Any = cls.__new__(cls)
        array.dtype, array.dynamic_size, array._element = metadata
        array._values, array._ends, array._shapes = components
        return array

    def _holding(self, values: Tensor, ends: TensorArray, shapes: TensorArray) -> UnequalTensorArray:
        return self.__tf_unflatten__((self.dtype, self.dynamic_size, self._element), (values, ends, shapes))

    @property
    def _size(self) -> Tensor:  # type: ignore[override]
        return self._ends._size

    @property
    def element_shape(self) -> Any:
        return TensorShape(self._element)

    def size(self, name: str | None = None) -> Tensor:
        return self._size

    def write(self, index: Any, value: Any, name: str | None = None) -> UnequalTensorArray:
        value = convert_to_tensor(value, dtype=None if isinstance(value, Tensor) else self.dtype)
        if value.dtype is not self.dtype:
            raise ValueError(
                f"TensorArray of {self.dtype.name} can't hold a value of dtype {value.dtype.name}: {value!r}"
            )
        if not covers(self._element, _known_shape(value)):
            raise ValueError(f"TensorArray of elements of shape {self.element_shape} can't hold {value!r}")
        values = concat([self._values, reshape(value, [-1])], 0)
        ends = self._ends.write(index, shape(values, dtypes.int64)[0])
        return self._holding(values, ends, self._shapes.write(index, shape(value, dtypes.int64)))

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Element `index`. Raises OutOfRangeError beyond the array. One that was never written is empty."""
        end, sizes = self._ends.read(index), self._shapes.read(index)
        begin = call("maximum", end - reduce_prod(sizes), convert_to_tensor(0, dtypes.int64))
        return self._with_static(reshape(self._values[begin:end], sizes))

    def stack(self, name: str | None = None) -> Tensor:
        """The elements as one tensor, along a new first axis. Raises InvalidArgumentError for those of different
        shapes."""
        return self._stacked(self._ends.stack(), self._shapes.stack())

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at `indices` (a vector), stacked. Raises InvalidArgumentError for those of different shapes."""
        return self._stacked(self._ends.gather(indices), self._shapes.gather(indices))

    def concat(self, name: str | None = None) -> Tensor:
        """The elements joined along their first axis. Raises InvalidArgumentError if they differ in other axes."""
        ends, sizes = self._ends.stack(), self._shapes.stack()
        if sizes._shape is not None and sizes._shape[1] == 0:
            raise ValueError("TensorArray.concat needs elements of rank 1 or more, not scalars")
        rest = _common(sizes[:, 1:], "joined")
        return reshape(self._joined(ends, sizes), concat([convert_to_tensor([-1], dtypes.int64), rest], 0))

    def unstack(self, value: Any, name: str | None = None) -> UnequalTensorArray:
        value = convert_to_tensor(value, dtype_hint=self.dtype)
        sizes = shape(value, dtypes.int64)
        return self._cut(value, tile(sizes[None, 1:], [sizes[0], 1]))

    def split(self, value: Any, lengths: Any, name: str | None = None) -> UnequalTensorArray:
        """An array whose elements are parts of `value` along its first axis, of the given lengths, a vector of ints."""
        value = convert_to_tensor(value, dtype_hint=self.dtype)
        lengths = call("cast", convert_to_tensor(lengths), dtype=dtypes.int64)
        rest = shape(value, dtypes.int64)[None, 1:]
        return self._cut(value, concat([lengths[:, None], tile(rest, [shape(lengths)[0], 1])], 1))

    def _cut(self, value: Tensor, sizes: Tensor) -> UnequalTensorArray:
        """An array of elements of these shapes, whose numbers follow one another in `value`."""
        ends = cumsum(_counts(sizes))
        return self._holding(reshape(value, [-1]), self._ends.unstack(ends), self._shapes.unstack(sizes))

    def _joined(self, ends: Tensor, sizes: Tensor) -> Tensor:
        """The numbers of some elements, one after the other."""
        counts = _counts(sizes)
        before = cumsum(counts, exclusive=True)
        places = number_range(reduce_sum(counts)) + repeat(ends - counts - before, counts)
        return call("gather", self._values, places, axis=0)

    def _stacked(self, ends: Tensor, sizes: Tensor) -> Tensor:
        common = _common(sizes, "stacked")
        return reshape(self._joined(ends, sizes), concat([shape(sizes, dtypes.int64)[:1], common], 0))

    def _with_static(self, element: Tensor) -> Tensor:
        return element if self._element is None else ensure_shape(element, self._element)


def _counts(sizes: Tensor) -> Tensor:
    """The number of entries of each element. `sizes`: int64 [n, rank], the shape of an element in each row. Returns
    int64 [n]."""
    return reduce_prod(sizes, 1)


def _common(sizes: Tensor, what: str) -> Tensor:
    """The shape that all elements have, given theirs as the rows of `sizes` (int64 [n, rank]); zeros if n is 0.

    Raises InvalidArgumentError at run time if they differ; `what` says what can't be done then.
    """
    common = reduce_max(concat([zeros([1, shape(sizes)[1]], dtypes.int64), sizes], 0), 0)
    assert_op(
        reduce_all(call("equal", sizes, common)),
        f"the elements of a TensorArray have different shapes, so they can't be {what}",
        "InvalidArgumentError",
    )
    return common


def _known_shape(value: Tensor) -> tuple[int | None, ...]:
    if value._shape is None:
        raise ValueError(f"TensorArray can't hold a value of unknown rank: {value!r}")
    return value._shape


def _run_time_sizes(element_shape: Any) -> list[Any] | None:
    """The sizes of an element of which some are known only at run time, from the tensors that the shape was read from;
    None where there are no such sizes, or no such tensors that the function being traced can see."""
    if not isinstance(element_shape, TensorShape) or not element_shape._sources or element_shape.is_fully_defined():
        return None
    graphs = set()
    builder = ctx.builder
    while builder is not None:
        graphs.update([builder.graph, *builder.foreign])
        builder = builder.parent
    sizes: list[Any] = []
    for size, source in zip(element_shape, element_shape._sources):
        if size is None:
            if source is None or source[0].graph not in graphs:
                return None
            size = call("dim", source[0], axis=source[1])
        sizes.append(size)
    return sizes
