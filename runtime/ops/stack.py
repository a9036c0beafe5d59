"""Stacks: last-in first-out stores of tensors of one dtype, which loop adjoints keep their residuals in.

A `Stack` is a value: pushing gives a new handle. Handles share one contiguous, growing buffer as long as pushes go on
at its top, which is how generated code uses them; a push on an older handle copies. Shapes may differ from element to
element (their dimensions are kept beside the data, after them the rank if that isn't known either), so nothing has to
be known of a loop's trip count or shapes.

    stack_empty(room?)       -> stack
    stack_push(stack, value) -> stack          adjoint: pop from the cotangent stack
    stack_pop(stack)         -> stack, value   adjoint: push on the cotangent stack
    stack_add(stack, stack)  -> stack          cotangents of one stack that two places pop from
    stack_zeros(stack)       -> stack          the cotangent of a stack that nothing has popped from
    stack_size(stack)        -> count          how many elements there are
    stack_join(stack, segment) -> stack, count all elements of `segment` on top of the stack; the stack's size before
    stack_split(stack, count)  -> rest, segment    the first `count` elements, and the others; each other's adjoint
    stack_room(share, size)  -> count          how many elements fit into so many bytes
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.ops.dispatch import apply
from runtime.ops.table import OpDef, register
from runtime.ops.zeros import zeros_of
from runtime.tensor import EagerTensor
from runtime.types import StackType, TensorType

_FIRST_CAPACITY = 16
_COUNT = TensorType(dtypes.int64, ())


class Store:
    """The shared buffers: elements one after the other, flattened, and the dimensions of each."""

    __slots__ = ("data", "dims", "used", "dims_used")

    def __init__(self, data: np.ndarray, dims: np.ndarray, used: int, dims_used: int) -> None:
        self.data = data
        self.dims = dims
        self.used = used
        self.dims_used = dims_used


class Stack:
    """A handle on the first `top` scalars (and `dims_top` dimensions) of a store, which are `size` elements; rank: None
    if elements differ."""

    __slots__ = ("store", "top", "dims_top", "rank", "size")

    def __init__(self, store: Store, top: int, dims_top: int, rank: int | None, size: int) -> None:
        self.store = store
        self.top = top
        self.dims_top = dims_top
        self.rank = rank
        self.size = size

    @staticmethod
    def empty(dtype: np.dtype, shape: Sequence[int | None] | None, count: int = 0) -> Stack:
        """A stack with room for `count` elements, where their shape is known."""
        if shape is None:
            return Stack(Store(np.empty(0, dtype), np.empty(0, np.int64), 0, 0), 0, 0, None, 0)
        rank = len(shape)
        room = 0 if None in shape else max(count, 0)
        size = room * math.prod([d or 0 for d in shape])
        return Stack(Store(np.empty(size, dtype), np.empty(room * rank, np.int64), 0, 0), 0, 0, rank, 0)

    def push(self, value: Any) -> Stack:
        store, top = self.store, self.top
        if self.rank == 0 and store.used == top:  # numbers that an interpreted loop keeps: once a trip
            if top == store.data.size:
                store.data = _reserve(store.data, top, top + 1)
            store.data[top] = value
            store.used = top + 1
            return Stack(store, top + 1, 0, 0, top + 1)
        value = np.asarray(value)
        dims = value.shape if self.rank is not None else (*value.shape, value.ndim)
        return self._extended(value.reshape(-1), dims, 1)

    def _extended(self, data: np.ndarray, dims: Sequence[int] | np.ndarray, count: int) -> Stack:
        """`count` more elements on top, flattened, with their dimensions."""
        store = self.store
        if store.used != self.top or store.dims_used != self.dims_top:
            store = Store(store.data[: self.top].copy(), store.dims[: self.dims_top].copy(), self.top, self.dims_top)
        top, dims_top = self.top + data.size, self.dims_top + len(dims)
        store.data = _reserve(store.data, self.top, top)
        store.data[self.top : top] = data
        if len(dims):
            store.dims = _reserve(store.dims, self.dims_top, dims_top)
            store.dims[self.dims_top : dims_top] = dims
        store.used, store.dims_used = top, dims_top
        return Stack(store, top, dims_top, self.rank, self.size + count)

    def join(self, segment: Stack) -> tuple[Stack, int]:
        """A stack with the elements of `segment` on top of this one's, and this one's size."""
        other = segment.store
        return self._extended(other.data[: segment.top], other.dims[: segment.dims_top], segment.size), self.size

    def split(self, size: int) -> tuple[Stack, Stack]:
        """The first `size` elements, and the others as a stack of their own. Raises IndexError if there are fewer."""
        if not 0 <= size <= self.size:
            raise IndexError("split of a stack beyond its end")
        top, dims_top, store = size, 0, self.store
        if self.rank is None:
            top, dims_top = self.top, self.dims_top
            for _ in range(self.size - size):
                shape = self._shape(dims_top)
                dims_top -= len(shape) + 1
                top -= math.prod(shape)
        elif self.rank:
            dims_top = size * self.rank
            shapes = store.dims[dims_top : self.dims_top].reshape(-1, self.rank)
            top = self.top - int(np.prod(shapes, axis=1, dtype=np.int64).sum())
        # Nothing writes below the top of a handle, so the segment needs no copy.
        data, dims = store.data[top : self.top], store.dims[dims_top : self.dims_top]
        segment = Stack(Store(data, dims, data.size, dims.size), data.size, dims.size, self.rank, self.size - size)
        return Stack(store, top, dims_top, self.rank, size), segment

    def _shape(self, dims_top: int) -> tuple[int, ...]:
        """The shape of the element whose dimensions end at `dims_top`."""
        dims = self.store.dims
        if self.rank is None:
            dims_top -= 1
        rank = int(dims[dims_top]) if self.rank is None else self.rank
        return tuple(dims[dims_top - rank : dims_top].tolist())

    def pop(self) -> tuple[Stack, Any]:
        """The rest and the last value. Raises IndexError on an empty stack."""
        if self.top == 0 and self.dims_top == 0:
            raise IndexError("pop from an empty stack")
        store = self.store
        if self.rank == 0:
            return Stack(store, self.top - 1, 0, 0, self.top - 1), store.data[self.top - 1]
        shape = self._shape(self.dims_top)
        dims_top = self.dims_top - len(shape) - (self.rank is None)
        top = self.top - math.prod(shape)
        value = store.data[top : self.top].copy().reshape(shape)
        return Stack(store, top, dims_top, self.rank, self.size - 1), value

    def zeros_like(self) -> Stack:
        """A stack of zeros with the same elements."""
        return self.plus(None)

    def plus(self, other: Stack | None) -> Stack:
        """A stack whose elements are the sums of both (None: zeros of this one's layout)."""
        data = np.zeros(self.top, self.store.data.dtype)
        if other is not None:
            if other.top != self.top:
                raise IndexError("sum of stacks of different sizes")
            np.add(self.store.data[: self.top], other.store.data[: other.top], out=data)
        store = Store(data, self.store.dims[: self.dims_top].copy(), self.top, self.dims_top)
        return Stack(store, self.top, self.dims_top, self.rank, self.size)

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        return self.top * self.store.data.itemsize + self.dims_top * 8


def _reserve(buffer: np.ndarray, used: int, needed: int) -> np.ndarray:
    if needed <= buffer.size:
        return buffer
    grown = np.empty(max(needed, 2 * buffer.size, _FIRST_CAPACITY), buffer.dtype)
    grown[:used] = buffer[:used]
    return grown


class EagerStack(EagerTensor):
    """A stack as an operand of eager calls: what a forward kernel hands to its backward kernel."""

    __slots__ = ()

    @property
    def type(self) -> Any:
        rank = self._array.rank
        return StackType(TensorType(self.dtype, None if rank is None else (None,) * rank))


def _push_type(inputs: Sequence[Any], attrs: dict) -> tuple:
    stack, value = inputs
    if stack.element.dtype is not value.dtype or stack.element.rank not in (None, value.rank):
        raise TypeError(f"can't push {value} on {stack}")
    return (stack,)


def _grad_push(call: Any, cotangent: Any) -> Sequence[Any]:
    if cotangent is None:
        return None, None
    return apply(POP, [cotangent])


def _grad_pop(call: Any, rest: Any, value: Any) -> Sequence[Any]:
    if rest is None:
        rest = empty(call.inputs[0].type.element)
    if value is None:
        value = zeros_of(call.outputs[1])
    return (apply(PUSH, [rest, value]),)


def _grad_join(call: Any, joined: Any, size: Any) -> Sequence[Any]:
    return (None, None) if joined is None else apply(SPLIT, [joined, call.outputs[1]])


def _grad_split(call: Any, *parts: Any) -> Sequence[Any]:
    parts = tuple(apply(ZEROS, [own]) if part is None else part for own, part in zip(call.outputs, parts))
    return apply(JOIN, parts)[0], None


def _room_kernel(share: Any, size: Any, message: str) -> Any:
    if size > share and message:
        raise errors.InvalidArgumentError(message)
    return np.int64(max(share // max(size, 1), 1))


def empty(element: TensorType, count: Any = None) -> Any:
    """An empty stack for tensors of `element`'s dtype and rank, in the graph being traced. count: how many it will
    hold, an int64 tensor, if that is known."""
    return apply(EMPTY, [] if count is None else [count], {"dtype": element.dtype, "shape": element.shape})


ADD = register(
    OpDef(
        "stack_add",
        lambda inputs, attrs: (inputs[0],),
        lambda a, b: a.plus(b),
        grad=lambda call, cotangent: (cotangent, cotangent),
        kinds="biufc",
        doc="Sums two stacks element by element.",
        keeps_rows=True,
        by_parts=True,
    )
)
ZEROS = register(
    OpDef(
        "stack_zeros",
        lambda inputs, attrs: (inputs[0],),
        lambda stack: stack.zeros_like(),
        grad=lambda call, cotangent: (None,),
        doc="A stack of zeros, of the same size and with elements of the same shapes.",
        keeps_rows=True,
        can_fail=False,
        by_parts=True,
    )
)
EMPTY = register(
    OpDef(
        "stack_empty",
        lambda inputs, attrs: (StackType(TensorType(attrs["dtype"], attrs["shape"])),),
        lambda *count, dtype, shape: Stack.empty(dtype.np, shape, *map(int, count)),
        doc="An empty stack; an operand gives the number of elements to allocate room for.",
        by_parts=True,
    )
)
PUSH = register(
    OpDef(
        "stack_push",
        _push_type,
        lambda stack, value: stack.push(value),
        grad=_grad_push,
        doc="Pushes a value.",
        can_fail=False,
        by_parts=True,
    )
)
POP = register(
    OpDef(
        "stack_pop",
        lambda inputs, attrs: (inputs[0], inputs[0].element),
        lambda stack: stack.pop(),
        grad=_grad_pop,
        multiple=True,
        doc="Pops a value: gives the rest of the stack and the value.",
        is_quiet=True,
        by_parts=True,
    )
)
SIZE = register(
    OpDef(
        "stack_size",
        lambda inputs, attrs: (_COUNT,),
        lambda stack: np.int64(stack.size),
        doc="The number of elements.",
        shape_only=(0,),
        can_fail=False,
        by_parts=True,
    )
)
JOIN = register(
    OpDef(
        "stack_join",
        lambda inputs, attrs: (inputs[0], _COUNT),
        lambda stack, segment: stack.join(segment),
        grad=_grad_join,
        multiple=True,
        doc="Pushes all elements of another stack, the lowest first: gives the stack and its size before.",
        can_fail=False,
        by_parts=True,
    )
)
SPLIT = register(
    OpDef(
        "stack_split",
        lambda inputs, attrs: (inputs[0], inputs[0]),
        lambda stack, size: stack.split(int(size)),
        grad=_grad_split,
        multiple=True,
        doc="Takes a stack apart: gives its first elements, and the others as another stack.",
        is_quiet=True,
        by_parts=True,
    )
)
ROOM = register(
    OpDef(
        "stack_room",
        lambda inputs, attrs: (inputs[0],),
        _room_kernel,
        doc="How many elements of `size` bytes fit into `share` bytes. If none does: an error with the message, or 1.",
        by_parts=True,
    )
)
