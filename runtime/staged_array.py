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
from runtime.context import ctx
from runtime.ops.arrays.assignment import sliced_update
from runtime.ops.arrays.broadcasting import broadcast_to
from runtime.ops.arrays.creation import range as range_of
from runtime.ops.arrays.joining import concat, stack
from runtime.ops.arrays.shape_ops import reshape, shape, size
from runtime.ops.arrays.slicing import getitem
from runtime.ops.convert import convert_to_tensor, is_tensor_like
from runtime.ops.dispatch import call
from runtime.ops.elementwise.compare import where
from runtime.ops.elementwise.elementary import cast
from runtime.ops.host_array import HostArray
from runtime.ops.staged_number import StagedNumber
from runtime.tensor import EagerTensor, Tensor

Contents = Any  # an array of NumPy's, or a tensor


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
        return self._view(_normal(key))

    def _view(self, key: tuple[Any, ...]) -> Any:
        self._check(key)
        if not all(map(_is_basic, key)):
            return as_array(_read(self.contents, key))
        if self.ndim == sum(_is_integer(part) for part in key) and None not in _kinds(key):
            return as_array(_read(self.contents, key))
        return ArrayView(self, Selection.of(key), _parts(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check_home()
        key = _normal(key)
        # `a[i] += x` has set the elements of the view, which is stored again.
        if not (isinstance(value, ArrayView) and value.is_of(self, key)):
            self._set(key, value)

    def _check(self, key: tuple[Any, ...]) -> None:
        """Raises NumPy's IndexError for what is no place of the array, as far as that is known."""
        sizes = self._sizes
        if None not in sizes and all(map(_is_basic, key)):
            np.broadcast_to(0, sizes)[tuple([part if _is_known((part,)) else slice(0) for part in key])]  # type: ignore[arg-type]

    def _set(self, key: tuple[Any, ...], value: Any) -> None:
        self._check(key)
        self.contents = _written(self.contents, key, value)

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
        return StagedArray(contents.astype(wanted) if isinstance(contents, np.ndarray) else _cast(contents, wanted))

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
        known = [_known(each) for each in inputs]
        if None not in _kinds(known):
            made = as_array(function(*known, **kwargs))
        elif method == "__call__" and ufunc in _OPERATORS and not kwargs:
            made = _computed(_OPERATORS[ufunc], *inputs)
        else:
            decides = any(map(_decides, inputs))
            is_promoted = ufunc.nin == 2 and method == "__call__" and not decides
            made = function(*(_alike(inputs) if is_promoted else map(_as_tensor, inputs)), **kwargs)
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
        tensor, key = self.tensor, _normal(key)
        places = _places(tensor, key)
        added = call("broadcast_like", _cast(value, tensor.dtype), places)
        made = call("tensor_scatter_nd_add", _flat(tensor), reshape(places, [-1, 1]), _flat(added))
        self.contents = reshape(made, shape(tensor))

    def _changed_by(self, function: Any, args: Any, kwargs: Any, known: Any) -> None:
        """``np.put(a, indices, values)`` and the like."""
        target = args[0]
        is_known = all(_known(each) is not None for each in nest.flatten((args, kwargs)))
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
        known = nest.map_structure(_known, (args, kwargs))
        if function in _AS_METHODS and args and args[0] is self:
            return getattr(self, _AS_METHODS[function])(*args[1:], **kwargs)
        if function in _IN_PLACE and args:
            return self._changed_by(function, args, kwargs, known)
        if function in _MAY_SHARE and args and args[0] is self and not any(map(_decides, given)):
            return ArrayView(self, Computed(function, args[1:], kwargs))
        if all(_known(each) is not None or each is None for each in given):
            return nest.map_structure(as_array, function(*known[0], **known[1]))
        first = _summed(args[0]) if function in _SUMS and args and "dtype" not in kwargs else None
        args = args if first is None else (first, *args[1:])
        args, kwargs = nest.map_structure(_as_tensor, (args, kwargs))
        made = function(*args, **kwargs)
        return made if any(map(_decides, given)) else nest.map_structure(as_array, made)


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
        if self.base is not base or not all(map(_is_basic, key)) or self.way != Selection.of(key):
            return False
        return all(one is other or (type(one) is int and one == other) for one, other in zip(self.parts, _parts(key)))

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
        is_row = isinstance(self.way, Selection) and set(self.way.pattern) == {_INTEGER}
        return (*map(_part, self.parts), *key) if is_row and all(map(_is_basic, key)) else None

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


_INTEGER = "integer"


class Selection:
    """What a key of integers, slices and the like selects. pattern: the key without its integers."""

    def __init__(self, pattern: tuple[Any, ...]) -> None:
        self.pattern = pattern

    @classmethod
    def of(cls, key: tuple[Any, ...]) -> Selection:
        """That of a key."""
        return cls(tuple([_pattern(part) for part in key]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selection) and self.pattern == other.pattern

    def __hash__(self) -> int:
        return hash(self.pattern)

    def _key(self, parts: Sequence[Any]) -> tuple[Any, ...]:
        left = iter(map(_part, parts))
        return tuple([
            slice(*[next(left) if bound is _INTEGER else None for bound in each]) if isinstance(each, tuple)
            else next(left) if each is _INTEGER else each
            for each in self.pattern
        ])  # fmt: skip

    def read(self, contents: Contents, parts: Sequence[Any]) -> Contents:
        """The elements of an array."""
        return _read(contents, self._key(parts))

    def written(self, contents: Contents, parts: Sequence[Any], new: Contents) -> Contents:
        """The array with others in their place."""
        return _written(contents, self._key(parts), new)


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
    """What another function of NumPy's gives that may share the memory of the array: it may be read."""

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


# --- keys ------------------------------------------------------------------------------------------------------------


def _normal(key: Any) -> tuple[Any, ...]:
    return tuple([_part(part) for part in (key if isinstance(key, tuple) else (key,))])


def _part(part: Any) -> Any:
    """A part of a key: an int, slice, None or ellipsis, an array of NumPy's, or a tensor of the program."""
    if part is None or part is Ellipsis or type(part) in (int, bool):
        return part
    if isinstance(part, slice):
        return slice(*[None if each is None else _part(each) for each in (part.start, part.stop, part.step)])
    if isinstance(part, list):
        return np.asarray(part) if _known(part) is not None else _as_tensor(part)
    known = _known(part)
    if known is None:
        return _as_tensor(part)
    return int(known) if np.ndim(known) == 0 and np.asarray(known).dtype.kind in "iu" else np.asarray(known)


def _is_integer(part: Any) -> bool:
    return type(part) is int or (isinstance(part, Tensor) and part._shape == () and part.dtype.is_integer)


def _is_basic(part: Any) -> bool:
    return part is None or part is Ellipsis or isinstance(part, slice) or _is_integer(part)


def _pattern(part: Any) -> Any:
    if isinstance(part, slice):
        return tuple([None if each is None else _INTEGER for each in (part.start, part.stop, part.step)])
    return _INTEGER if _is_integer(part) else part


def _parts(key: tuple[Any, ...]) -> tuple[Any, ...]:
    found: list[Any] = []
    for part in key:
        bounds = (part.start, part.stop, part.step) if isinstance(part, slice) else (part,)
        found += [each for each in bounds if each is not None and each is not Ellipsis]
    return tuple(found)


def _kinds(values: Sequence[Any]) -> list[Any]:
    """For each value None if it is None, and something else if not: tensors can't be looked for in a list."""
    return [None if each is None else True for each in values]


def _is_known(key: tuple[Any, ...]) -> bool:
    return not any(isinstance(part, Tensor) for part in (*key, *_parts(key)))


def _read(contents: Contents, key: tuple[Any, ...]) -> Contents:
    if isinstance(contents, np.ndarray) and _is_known(key):
        return contents[key]
    return getitem(convert_to_tensor(contents), key[0] if len(key) == 1 else key)


def _written(contents: Contents, key: tuple[Any, ...], value: Any) -> Contents:
    """The contents with other elements at a key."""
    known = _known(value)
    if isinstance(contents, np.ndarray) and _is_known(key) and known is not None:
        made = contents.copy()
        made[key] = known
        return made
    x = convert_to_tensor(contents)
    new = _cast(value, x.dtype)
    if all(map(_is_basic, key)):
        return sliced_update(x, key, new)
    if len(key) == 1 and new._shape == ():
        mask = convert_to_tensor(key[0])
        if mask.dtype.is_bool:
            more = len(x._shape or ()) - len(mask._shape or ())
            return where(getitem(mask, (..., *[None] * more)) if more else mask, new, x)
    if len(key) == 1 and not convert_to_tensor(key[0]).dtype.is_bool:
        return _with_rows(x, convert_to_tensor(key[0]), new)
    places = _places(x, key)
    values = call("broadcast_like", new, places)
    made = call("tensor_scatter_nd_update", _flat(x), reshape(places, [-1, 1]), _flat(values))
    return reshape(made, shape(x))


def _with_rows(x: Tensor, indices: Tensor, rows: Tensor) -> Tensor:
    """x with others in the place of its rows at some indices."""
    indices = where(indices < 0, indices + cast(call("dim", x, axis=0), indices.dtype), indices)
    like = getitem(call("zeros_like", x), 0)
    sizes = concat([shape(indices), shape(like)], 0)
    return call("tensor_scatter_nd_update", x, getitem(indices, (..., None)), broadcast_to(rows, sizes))


def _places(x: Tensor, key: tuple[Any, ...]) -> Tensor:
    """Where in the order of `ravel` the elements at a key are."""
    sizes = x._shape or (None,)
    if None in sizes:
        every = reshape(range_of(size(x)), shape(x))
    else:  # a constant, which no loop makes anew
        every = convert_to_tensor(np.arange(math.prod(sizes), dtype=np.int32).reshape(sizes))  # type: ignore[arg-type]
    return getitem(every, key[0] if len(key) == 1 else key)


def _flat(x: Any) -> Tensor:
    return reshape(x, [-1])


# --- values ----------------------------------------------------------------------------------------------------------


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
    return StagedArray(_as_tensor(value))


def numpy_dtype(dtype: Any) -> np.dtype:
    """A dtype as NumPy's."""
    return np.dtype(getattr(dtype, "np", dtype))


def _known(value: Any) -> Any:
    """A value of NumPy's or Python's with what Python knows; None if it is known only when the program runs."""
    if isinstance(value, WritableArray):
        contents = value.contents
        if not isinstance(contents, np.ndarray):
            return None
        contents = contents.view()
        contents.flags.writeable = False  # other arrays may have them too
        return contents
    if isinstance(value, (list, tuple)):
        found = [_known(each) for each in value]
        return None if None in _kinds(found) else type(value)(found)
    if isinstance(value, EagerTensor):
        return value._array
    if isinstance(value, Tensor) or is_tensor_like(value):
        tensor = _as_tensor(value)
        return tensor._array if isinstance(tensor, EagerTensor) else None
    return value


def _as_tensor(value: Any) -> Any:
    """A number, array or list of the program as a tensor; anything else as it is."""
    if isinstance(value, (HostArray, StagedNumber)):
        return value.tensor
    if isinstance(value, (list, tuple)) and any(_known(each) is None for each in value):
        return stack(
            _alike([as_array(_as_tensor(each)) if isinstance(each, (list, tuple)) else each for each in value])
        )
    return convert_to_tensor(value) if is_tensor_like(value) else value


def _decides(value: Any) -> bool:
    """Whether NumPy's arrays take the dtype of a value: a tensor or a variable."""
    return is_tensor_like(value) and not isinstance(value, (HostArray, StagedNumber))


def _cast(value: Any, dtype: Any) -> Tensor:
    """A value as a tensor of a dtype, by NumPy's rules for assignments: all numbers become those of the array."""
    wanted = dtypes.as_dtype(dtype)
    known = _known(value)
    if known is not None:
        return convert_to_tensor(np.asarray(known).astype(wanted.np))
    return cast(convert_to_tensor(_as_tensor(value)), wanted)


def _numpy_operand(value: Any) -> Any:
    """What NumPy's promotion looks at: Python's numbers give way."""
    if type(value) in (bool, int, float, complex):
        return value
    if isinstance(value, StagedNumber):
        return value.kind(0)
    if isinstance(value, WritableArray) and isinstance(value.contents, np.ndarray):
        return value.contents.dtype
    return value.tensor.dtype.np if isinstance(value, HostArray) else np.asarray(value).dtype


def _alike(values: Sequence[Any], is_division: bool = False) -> list[Any]:
    """Operands as tensors of one dtype: that of a tensor among them, else NumPy's."""
    deciding = [convert_to_tensor(each).dtype for each in values if _decides(each)]
    if deciding:
        return [each if _decides(each) else _beside(each, deciding[0]) for each in values]
    dtype = np.result_type(*map(_numpy_operand, values))
    if is_division and dtype.kind in "biu":
        dtype = np.dtype(np.float64)
    return [_cast(each, dtypes.as_dtype(dtype)) for each in values]


def _beside(value: Any, dtype: Any) -> Any:
    if not isinstance(value, HostArray):
        return value
    try:
        return value.__tf_tensor__(dtype)
    except TypeError:
        return value.tensor


def _computed(function: Callable[..., Any], *operands: Any) -> Any:
    """An operator of Python's on arrays and what they meet."""
    known = [_known(each) for each in operands]
    decides = any(map(_decides, operands))
    if None not in _kinds(known) and not decides:
        return as_array(function(*known))
    if len(operands) == 1:
        return as_array(function(operands[0].tensor))
    made = function(*_alike(operands, function is operator.truediv))
    return made if decides else as_array(made)


def _summed(value: Any) -> Any:
    """An array whose integers NumPy sums in 64 bits."""
    if isinstance(value, WritableArray) and value.tensor.dtype.kind in "bi":
        return _cast(value, dtypes.int64)
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
            known = None if _decides(other) else _known(other)
            if isinstance(self.contents, np.ndarray) and known is not None:
                self.contents = on_arrays(self.contents.copy(), known)
                return self
            made = _computed(function, self, other)
            contents = made.contents if isinstance(made, WritableArray) else convert_to_tensor(made)
            shape = contents._shape if isinstance(contents, Tensor) else contents.shape
            if shape is not None and tuple(shape) == self._sizes and None not in shape:
                self.contents = _cast(contents, self.tensor.dtype)
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
