"""`StagedArray`: a NumPy array of a traced function whose elements may be known only when the program runs.

Like an array it is an object whose elements are set in place, under all of its names. It holds a NumPy array as long as
Python knows all elements, and a tensor from the first one on that exists only in the program. Neither changes: a write
puts another one in its place.

    best = np.zeros(5)          best[c] = 3.0          table[i, j] += x          best.sum()

What indices and slices select is an `ArrayView`, as in NumPy: reading it reads the array, setting its elements sets the
array's.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from runtime import dtypes, nest
from runtime.array_contents import (
    INTEGER,
    Contents,
    alike,
    as_tensor,
    cast_as_array,
    flat,
    has_own_dtype,
    is_basic,
    is_integer,
    is_known_key,
    key_part,
    known_value,
    nones,
    normal_key,
    numpy_dtype,
    parts_of,
    pattern_of,
    places_of,
    read,
    written,
)
from runtime.context import ctx
from runtime.ops.arrays.shape_ops import reshape, shape
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import call
from runtime.ops.host_array import HostArray
from runtime.ops.staged_number import StagedNumber
from runtime.tensor import Tensor


class WritableArray(HostArray):
    """What arrays and views have in common: all that follows from `contents`, which may be set."""

    __slots__ = ()
    contents: Contents

    @property
    def tensor(self) -> Tensor:
        """The elements as a tensor."""
        return convert_to_tensor(self.contents)

    # --- items -----------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        return self._view(normal_key(key))

    def _view(self, key: tuple[Any, ...]) -> Any:
        self._check(key)
        if not all(map(is_basic, key)):
            return as_array(read(self.contents, key))
        if self.ndim == sum(is_integer(part) for part in key) and None not in nones(key):
            return as_array(read(self.contents, key))
        return ArrayView(self, Selection.of(key), parts_of(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check_home()
        key = normal_key(key)
        # `a[i] += x` has set the elements of the view, which is stored again.
        if not (isinstance(value, ArrayView) and value.is_of(self, key)):
            self._set(key, value)

    def _check(self, key: tuple[Any, ...]) -> None:
        """Raises NumPy's IndexError for an index out of range, as far as shapes are known."""
        sizes = self._sizes
        if None not in sizes and all(map(is_basic, key)):
            np.broadcast_to(0, sizes)[tuple([part if is_known_key((part,)) else slice(0) for part in key])]  # type: ignore[arg-type]

    def _set(self, key: tuple[Any, ...], value: Any) -> None:
        self._check(key)
        self.contents = written(self.contents, key, value)

    def _check_home(self) -> None:
        """Raises TypeError where another function is being traced than the one that has made the array."""
        made = self
        while isinstance(made, ArrayView):
            made = made.base
        here = _root()
        if made.home is not here:
            name = "eager code" if here is None else f"'{here.name}'"
            raise TypeError(
                f"an array of another traced function is written to in {name}, which has "
                "a program of its own: return the new elements from it, or leave out its ag.function"
            )

    def __iter__(self) -> Iterator[Any]:
        return iter([self[index] for index in range(len(self))])

    def __len__(self) -> int:
        return len(self.contents)

    def __bool__(self) -> bool:
        return bool(self.contents)

    def __repr__(self) -> str:
        return repr(self.contents)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.contents.__array__(dtype) if copy is None else np.array(self.contents.__array__(dtype))

    # --- what arrays tell of themselves ----------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._sizes)

    @property
    def _sizes(self) -> tuple[int | None, ...]:
        shape = self.contents.shape if isinstance(self.contents, np.ndarray) else self.contents._shape
        if shape is None:
            raise TypeError("an array that the program makes needs a known number of dimensions")
        return tuple(shape)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes: ints, or numbers of the program."""
        return tuple([
            StagedNumber(call("dim", self.contents, axis=axis), dtypes.int32) if size is None else size
            for axis, size in enumerate(self._sizes)
        ])  # fmt: skip

    @property
    def size(self) -> Any:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def T(self) -> ArrayView:
        """The array with its axes reversed."""
        return self.transpose()

    # --- other arrays ----------------------------------------------------------------------------------------------

    def copy(self) -> StagedArray:
        """An array of its own with the same elements."""
        return StagedArray(self.contents)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> StagedArray:
        return self.copy()

    def flatten(self) -> StagedArray:
        """A copy in one dimension."""
        return self.reshape(-1).copy()

    def astype(self, dtype: Any) -> StagedArray:
        """A copy in another dtype."""
        wanted, contents = numpy_dtype(dtype), self.contents
        return StagedArray(
            contents.astype(wanted) if isinstance(contents, np.ndarray) else cast_as_array(contents, wanted)
        )

    def reshape(self, *shape: Any) -> ArrayView:
        """The same elements in another shape."""
        (sizes,) = shape if len(shape) == 1 else (shape,)
        return ArrayView(self, Rearranged("reshape", tuple(sizes) if isinstance(sizes, (tuple, list)) else (sizes,)))

    def ravel(self) -> ArrayView:
        """The same elements in one dimension."""
        return self.reshape(-1)

    def transpose(self, *axes: Any) -> ArrayView:
        """The same elements with the axes in another order."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        rank = self.ndim
        return ArrayView(self, Rearranged("transpose", tuple([axis % rank for axis in order or range(rank)[::-1]])))

    def swapaxes(self, one: int, other: int) -> ArrayView:
        """The same elements with two axes exchanged."""
        order = list(range(self.ndim))
        order[one], order[other] = order[other], order[one]
        return self.transpose(order)

    def tolist(self) -> list[Any]:
        """The elements in lists."""
        return [each.tolist() if isinstance(each, (WritableArray, np.generic)) else each for each in self]

    def item(self, *index: Any) -> Any:
        """One element; by one number, in the order of `ravel`."""
        return self.ravel()[index[0] if index else 0] if len(index) < 2 else self[index]

    def sort(self, axis: int = -1) -> None:
        """Sorts the elements."""
        self[...] = np.sort(self, axis)

    def fill(self, value: Any) -> None:
        """Sets all elements."""
        self[...] = value

    # --- NumPy's functions -----------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        if method == "at":
            return self._changed_at(ufunc, *inputs)
        function = getattr(ufunc, method)
        known = [known_value(each) for each in inputs]
        if None not in nones(known):
            made = as_array(function(*known, **kwargs))
        elif method == "__call__" and ufunc in _OPERATORS and not kwargs:
            made = _computed(_OPERATORS[ufunc], *inputs)
        else:
            decides = any(map(has_own_dtype, inputs))
            is_promoted = ufunc.nin == 2 and method == "__call__" and not decides
            made = function(*(alike(inputs) if is_promoted else map(as_tensor, inputs)), **kwargs)
            made = made if decides else as_array(made)
        if out is None:
            return made
        (target,) = out
        target[...] = made
        return target

    def _changed_at(self, ufunc: Any, target: Any, key: Any, value: Any = None) -> None:
        """``np.add.at(a, indices, values)``"""
        if target is not self or ufunc is not np.add:
            raise TypeError(f"np.{ufunc.__name__}.at can't be staged; use np.add.at, or set the elements in a loop")
        tensor, key = self.tensor, normal_key(key)
        places = places_of(tensor, key)
        added = call("broadcast_like", cast_as_array(value, tensor.dtype), places)
        made = call("tensor_scatter_nd_add", flat(tensor), reshape(places, [-1, 1]), flat(added))
        self.contents = reshape(made, shape(tensor))

    def _changed_by(self, function: Any, args: Any, kwargs: Any, known: Any) -> None:
        """``np.put(a, indices, values)`` and the like."""
        target = args[0]
        is_known = all(known_value(each) is not None for each in nest.flatten((args, kwargs)))
        if function is np.copyto and isinstance(target, WritableArray) and len(args) == 2 and not kwargs:
            target[...] = args[1]
        elif isinstance(target, WritableArray) and is_known:
            contents = target.contents.copy()
            function(contents, *known[0][1:], **known[1])
            target.contents = contents
        else:
            raise TypeError(
                f"np.{function.__name__} can't be staged: what it writes is known only when the program runs; set the "
                "elements by indices, `a[i] = v`"
            )

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        given = nest.flatten((args, kwargs))
        known = nest.map_structure(known_value, (args, kwargs))
        if function in _AS_METHODS and args and args[0] is self:
            return getattr(self, _AS_METHODS[function])(*args[1:], **kwargs)
        if function in _IN_PLACE and args:
            return self._changed_by(function, args, kwargs, known)
        if function in _MAY_SHARE and args and args[0] is self and not any(map(has_own_dtype, given)):
            return ArrayView(self, Computed(function, args[1:], kwargs))
        if all(known_value(each) is not None or each is None for each in given):
            return nest.map_structure(as_array, function(*known[0], **known[1]))
        first = _summed(args[0]) if function in _SUMS and args and "dtype" not in kwargs else None
        args = args if first is None else (first, *args[1:])
        args, kwargs = nest.map_structure(as_tensor, (args, kwargs))
        made = function(*args, **kwargs)
        return made if any(map(has_own_dtype, given)) else nest.map_structure(as_array, made)


@nest.leaf
class StagedArray(WritableArray):
    """An array of the program.

    contents    an array of NumPy's, or a tensor; nobody changes it
    home        the root builder of the trace that it belongs to
    """

    __slots__ = ("contents", "home")

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.home = _root()

    def __tf_flatten__(self) -> tuple[Any, tuple[Any, ...]]:
        return "array", (self.contents,)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> StagedArray:
        return cls(components[0])

    def clone(self) -> StagedArray:
        """Another array with the same contents."""
        return StagedArray(self.contents)

    def restore(self, metadata: Any, components: Sequence[Any]) -> None:
        """Sets the contents to what `__tf_flatten__` gave."""
        (self.contents,) = components


@nest.leaf
class ArrayView(WritableArray):
    """Elements of an array, or an array in another form.

    base    the array, or another view
    way     what is done with the base's contents; parts: the integers in it, which may be numbers of the program
    """

    __slots__ = ("base", "parts", "way")

    def __init__(self, base: WritableArray, way: Any, parts: Sequence[Any] = ()) -> None:
        self.base = base
        self.way = way
        self.parts = tuple(parts)

    @property
    def contents(self) -> Contents:
        return self.way.read(self.base.contents, self.parts)

    @contents.setter
    def contents(self, contents: Contents) -> None:
        self.base.contents = self.way.written(self.base.contents, self.parts, contents)

    def is_of(self, base: WritableArray, key: tuple[Any, ...]) -> bool:
        """Whether it is what an array has at a key."""
        if self.base is not base or not all(map(is_basic, key)) or self.way != Selection.of(key):
            return False
        return all(one is other or (type(one) is int and one == other) for one, other in zip(self.parts, parts_of(key)))

    def _view(self, key: tuple[Any, ...]) -> Any:
        whole = self._joined(key)
        return super()._view(key) if whole is None else self.base._view(whole)

    def _set(self, key: tuple[Any, ...], value: Any) -> None:
        whole = self._joined(key)
        if whole is None:
            super()._set(key, value)
        else:
            self.base._set(whole, value)

    def _joined(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The key of the base that selects the same; None where it takes two."""
        is_row = isinstance(self.way, Selection) and set(self.way.pattern) == {INTEGER}
        return (*map(key_part, self.parts), *key) if is_row and all(map(is_basic, key)) else None

    def __tf_flatten__(self) -> tuple[Any, tuple[Any, ...]]:
        return (_Same(self.base), self.way), self.parts

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> ArrayView:
        return cls(metadata[0].array, metadata[1], components)


class _Same:
    """An array that is equal to itself alone."""

    def __init__(self, array: WritableArray) -> None:
        self.array = array

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.array is other.array

    __hash__ = None  # type: ignore[assignment]


class Selection:
    """What a key of integers, slices and the like selects. pattern: the key without its integers."""

    def __init__(self, pattern: tuple[Any, ...]) -> None:
        self.pattern = pattern

    @classmethod
    def of(cls, key: tuple[Any, ...]) -> Selection:
        """The selection that a key (a tuple of indices, slices, Ellipsis and None) makes."""
        return cls(tuple([pattern_of(part) for part in key]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selection) and self.pattern == other.pattern

    def __hash__(self) -> int:
        return hash(self.pattern)

    def _key(self, parts: Sequence[Any]) -> tuple[Any, ...]:
        left = iter(map(key_part, parts))
        return tuple([
            slice(*[next(left) if bound is INTEGER else None for bound in each]) if isinstance(each, tuple)
            else next(left) if each is INTEGER else each
            for each in self.pattern
        ])  # fmt: skip

    def read(self, contents: Contents, parts: Sequence[Any]) -> Contents:
        """The elements of an array."""
        return read(contents, self._key(parts))

    def written(self, contents: Contents, parts: Sequence[Any], new: Contents) -> Contents:
        """The array with others in their place."""
        return written(contents, self._key(parts), new)


class Rearranged:
    """``a.reshape(...)`` and ``a.transpose(...)``."""

    def __init__(self, function: str, argument: tuple[Any, ...]) -> None:
        self.function = function
        self.argument = argument

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rearranged) and (self.function, self.argument) == (other.function, other.argument)

    __hash__ = None  # type: ignore[assignment]

    def read(self, contents: Contents, parts: Sequence[Any]) -> Contents:
        """The array in its other form."""
        return getattr(np, self.function)(contents, self.argument)

    def written(self, contents: Contents, parts: Sequence[Any], new: Contents) -> Contents:
        """The array that has this other form."""
        if self.function == "transpose":
            return np.transpose(new, tuple(np.argsort(self.argument).tolist()))
        return np.reshape(new, tuple(contents.shape))


class Computed:
    """The result of a NumPy function that may share the array's memory: it can be read, not written."""

    def __init__(self, function: Any, args: Any, kwargs: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs

    def read(self, contents: Contents, parts: Sequence[Any]) -> Contents:
        """What the function gives now."""
        return self.function(contents, *self.args, **self.kwargs)

    def written(self, contents: Contents, parts: Sequence[Any], new: Contents) -> Contents:
        """Raises TypeError."""
        name = self.function.__name__
        raise TypeError(
            f"the elements of what np.{name} gives can't be set: NumPy would set those of its argument too; set them "
            f"there, or use a copy, np.{name}(...).copy()"
        )


def _root() -> Any:
    builder = ctx.builder
    while builder is not None and builder.parent is not None:
        builder = builder.parent
    return builder


def as_array(value: Any) -> Any:
    """What NumPy gives as the program has it: an array, or a number if it has no dimensions."""
    if isinstance(value, np.ndarray):
        return StagedArray(value) if value.dtype.kind in "biufc" else value
    if not isinstance(value, Tensor):
        return value
    if value._shape != ():
        return StagedArray(value)
    return HostArray(value) if value.dtype.is_numeric else value


def array_of(value: Any) -> StagedArray:
    """The array of a list or tuple, in which there are values of the program."""
    return StagedArray(as_tensor(value))


def _computed(function: Callable[..., Any], *operands: Any) -> Any:
    """An operator of Python's on arrays and what they meet."""
    known = [known_value(each) for each in operands]
    decides = any(map(has_own_dtype, operands))
    if None not in nones(known) and not decides:
        return as_array(function(*known))
    if len(operands) == 1:
        return as_array(function(operands[0].tensor))
    made = function(*alike(operands, function is operator.truediv))
    return made if decides else as_array(made)


def _summed(value: Any) -> Any:
    """An array whose integers NumPy sums in 64 bits."""
    if isinstance(value, WritableArray) and value.tensor.dtype.kind in "bi":
        return cast_as_array(value, dtypes.int64)
    return value


_OPERATORS: dict[Any, Callable[..., Any]] = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul, np.divide: operator.truediv,
    np.floor_divide: operator.floordiv, np.remainder: operator.mod, np.power: operator.pow, np.matmul: np.matmul,
    np.equal: operator.eq, np.not_equal: operator.ne, np.less: operator.lt, np.less_equal: operator.le,
    np.greater: operator.gt, np.greater_equal: operator.ge, np.bitwise_and: operator.and_, np.bitwise_or: operator.or_,
    np.bitwise_xor: operator.xor,
}  # fmt: skip
_SUMS = frozenset({np.sum, np.prod, np.cumsum, np.cumprod})
_AS_METHODS: dict[Any, str] = {
    np.reshape: "reshape", np.ravel: "ravel", np.transpose: "transpose", np.swapaxes: "swapaxes", np.copy: "copy",
}  # fmt: skip
_IN_PLACE = frozenset({np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis})
# Other functions whose results share their argument's memory.
_MAY_SHARE = frozenset({
    np.squeeze, np.expand_dims, np.flip, np.fliplr, np.flipud, np.rot90, np.diagonal, np.diag, np.broadcast_to,
    np.moveaxis, np.rollaxis, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.real, np.imag,
})  # fmt: skip
_METHODS = (
    "sum", "prod", "mean", "std", "var", "max", "min", "argmax", "argmin", "any", "all", "cumsum", "cumprod", "round",
    "clip", "dot", "argsort", "nonzero", "repeat", "take", "trace", "ptp", "squeeze", "diagonal",
)  # fmt: skip


def _install() -> None:
    def forward(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, other: _computed(function, self, other)

    def reflected(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, other: _computed(function, other, self)

    def in_place(function: Callable[..., Any], on_arrays: Callable[..., Any]) -> Callable[..., Any]:
        def change(self: WritableArray, other: Any) -> WritableArray:
            self._check_home()
            known = None if has_own_dtype(other) else known_value(other)
            if isinstance(self.contents, np.ndarray) and known is not None:
                self.contents = on_arrays(self.contents.copy(), known)
                return self
            made = _computed(function, self, other)
            contents = made.contents if isinstance(made, WritableArray) else convert_to_tensor(made)
            shape = contents._shape if isinstance(contents, Tensor) else contents.shape
            if shape is not None and tuple(shape) == self._sizes and None not in shape:
                self.contents = cast_as_array(contents, self.tensor.dtype)
            else:
                self[...] = made
            return self

        return change

    kind: Any = WritableArray
    for function in _OPERATORS.values():
        name = function.__name__.strip("_")
        setattr(kind, f"__{name}__", forward(function))
        if name not in ("lt", "le", "gt", "ge", "eq", "ne"):
            setattr(kind, f"__r{name}__", reflected(function))
            setattr(kind, f"__i{name}__", in_place(function, getattr(operator, f"i{name}")))
    for function in (operator.neg, operator.abs, operator.pos, operator.invert):
        setattr(kind, f"__{function.__name__}__", lambda self, function=function: _computed(function, self))
    for name in _METHODS:
        function = getattr(np, name)
        setattr(kind, name, lambda self, *args, function=function, **options: function(self, *args, **options))
    kind.__hash__ = None


_install()
