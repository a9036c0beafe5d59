"""`TensorArray`: a list of tensors of one dtype and shape that staged loops can write and read by index.

It is a value: `write` gives the array to go on with. Inside a function it is a buffer tensor and a size, so it passes
through loops and gradients like any pair of tensors; `__tf_flatten__` and `__tf_unflatten__` say so to `nest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.context import ctx
from runtime.ops.arrays.creation import zeros
from runtime.ops.arrays.joining import concat
from runtime.ops.arrays.shape_ops import reshape, shape
from runtime.ops.convert import convert_to_tensor, static_value
from runtime.ops.dispatch import apply, call
from runtime.ops.growable import ARRAY_WRITE, ROW, first_rows, growable
from runtime.ops.rules import dims
from runtime.shapes import Shape, TensorShape, as_shape
from runtime.tensor import SymbolicTensor, Tensor


class TensorArray:
    """A growable array of tensors, as `tf.TensorArray`.

    Args:
        dtype: of the elements.
        size: number of elements, an int or scalar int tensor.
        dynamic_size: whether writing beyond `size` grows the array; otherwise it raises OutOfRangeError.
        element_shape: shape of an element, if known before the first write. If it is the shape of a tensor (`x.shape`,
            `x.shape[1:]`), dimensions that are unknown while tracing are taken from that tensor at run time.

    Reading an element that was never written gives zeros, as in TensorFlow. Use the result of `write`; the array it was
    called on keeps its old contents.
    """

    __ag_composite__ = "array"

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
