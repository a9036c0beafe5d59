"""Static shapes: what is known of a tensor's dimensions before it has a value.

Inside the runtime a shape is a plain tuple of `int | None` (None: known only at run time), or None when
even the rank is unknown. `TensorShape` is the public face of the same facts.

>>> broadcast((3, 1), (None, 4))
(3, 4)
>>> broadcast((2,), (3,))
Traceback (most recent call last):
ValueError: Incompatible shapes: (2,) and (3,)
>>> TensorShape([None, 3])
TensorShape([None, 3])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Shape = tuple[int | None, ...] | None


def is_static(shape: Shape) -> bool:
    """Whether every dimension is known."""
    return shape is not None and None not in shape


def broadcast_dim(a: int | None, b: int | None) -> int | None:
    """One dimension of a broadcast. An unknown dimension against n > 1 must be 1 or n, so the result is n."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if a is None:
        return b
    if b is None:
        return a
    raise ValueError


def broadcast(a: Shape, b: Shape) -> Shape:
    """The static shape of `a op b`. Raises ValueError when no run-time values could make them broadcast."""
    if a is None or b is None:
        return None
    if a == b:
        return a
    rank = max(len(a), len(b))
    left = (1,) * (rank - len(a)) + a
    right = (1,) * (rank - len(b)) + b
    try:
        return tuple(map(broadcast_dim, left, right))
    except ValueError:
        raise ValueError(f"Incompatible shapes: {a} and {b}") from None


def merge(a: Shape, b: Shape) -> Shape:
    """What both facts say together. Raises ValueError when they contradict."""
    if a is None:
        return b
    if b is None or a == b:
        return a
    if len(a) != len(b) or any(x is not None and y is not None and x != y for x, y in zip(a, b)):
        raise ValueError(f"Shapes {a} and {b} are incompatible")
    return tuple(x if x is not None else y for x, y in zip(a, b))


def widen(a: Shape, b: Shape) -> Shape:
    """The most precise shape that covers both."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b))


def covers(general: Shape, special: Shape) -> bool:
    """Whether every tensor of shape `special` also has shape `general`."""
    if general is None:
        return True
    if special is None or len(general) != len(special):
        return False
    return all(g is None or g == s for g, s in zip(general, special))


def element_count(shape: Shape) -> int | None:
    """Number of elements, or None when unknown."""
    if shape is None or None in shape:
        return None
    count = 1
    for dim in shape:
        count *= dim  # type: ignore[operator]
    return count


class TensorShape:
    """TensorFlow's shape object: a list of dimensions, each an int or None, or of unknown rank.

    Compares equal to lists and tuples; `as_list()` raises ValueError for an unknown rank.
    """

    __slots__ = ("_dims", "_sources")

    def __init__(self, dims: Any = None, sources: tuple[Any, ...] = ()) -> None:
        self._dims: Shape = as_shape(dims)
        # For each dimension the symbolic tensor and the axis that it was read from, or None; () where none was. What
        # makes an array of such elements can ask for the sizes when the program runs.
        self._sources = sources

    @property
    def rank(self) -> int | None:
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self) -> int | None:
        return self.rank

    @property
    def dims(self) -> list[int | None] | None:
        return None if self._dims is None else list(self._dims)

    def as_list(self) -> list[int | None]:
        """The dimensions as a list. Raises ValueError for an unknown rank."""
        return list(self._known())

    def _known(self) -> tuple[int | None, ...]:
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return self._dims

    def is_fully_defined(self) -> bool:
        return is_static(self._dims)

    def num_elements(self) -> int | None:
        return element_count(self._dims)

    def is_compatible_with(self, other: Any) -> bool:
        try:
            merge(self._dims, as_shape(other))
        except ValueError:
            return False
        return True

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError when no tensor could have both shapes."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {TensorShape(other)} are incompatible")

    def merge_with(self, other: Any) -> TensorShape:
        """The combination of both shapes. Raises ValueError if they contradict each other."""
        return TensorShape(merge(self._dims, as_shape(other)))

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """The shape with the dimensions that both share, and unknown ones where they differ."""
        mine, theirs = self._dims, as_shape(other)
        if mine is None or theirs is None or len(mine) != len(theirs):
            return TensorShape(None)
        return TensorShape([a if a == b else None for a, b in zip(mine, theirs)])

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every tensor of this shape also has the other one, which is the same or less specific."""
        mine, theirs = self._dims, as_shape(other)
        if theirs is None:
            return True
        return mine is not None and len(mine) == len(theirs) and all(b in (None, a) for a, b in zip(mine, theirs))

    def with_rank(self, rank: int) -> TensorShape:
        """The shape, of this rank. Raises ValueError for another one."""
        if self._dims is None:
            return TensorShape([None] * rank)
        if len(self._dims) != rank:
            raise ValueError(f"Shape {self} must have rank {rank}")
        return self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """The shape. Raises ValueError for a smaller rank."""
        if self._dims is not None and len(self._dims) < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """The shape. Raises ValueError for a larger rank."""
        if self._dims is not None and len(self._dims) > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def assert_has_rank(self, rank: int) -> None:
        """Raises ValueError unless the rank is known to be this, or unknown."""
        self.with_rank(rank)

    def assert_same_rank(self, other: Any) -> None:
        """Raises ValueError for two known ranks that differ."""
        theirs = as_shape(other)
        if self._dims is not None and theirs is not None and len(self._dims) != len(theirs):
            raise ValueError(f"Shapes {self} and {format_shape(theirs)} must have the same rank")

    def assert_is_fully_defined(self) -> None:
        """Raises ValueError when a dimension is unknown."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def concatenate(self, other: Any) -> TensorShape:
        left, right = self._dims, as_shape(other)
        if left is None or right is None:
            return type(self)(None)
        theirs = other._sources if isinstance(other, TensorShape) else ()
        both = (self._sources or (None,) * len(left)) + (theirs or (None,) * len(right))
        return type(self)(left + right, both if self._sources or theirs else ())

    def __iter__(self) -> Iterator[int | None]:
        return iter(self._known())

    def __len__(self) -> int:
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __getitem__(self, key: Any) -> Any:
        if self._dims is None:
            return type(self)(None) if isinstance(key, slice) else None
        return type(self)(self._dims[key], self._sources[key]) if isinstance(key, slice) else self._dims[key]

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """The position of the first dimension equal to `value`. Raises ValueError if there is none."""
        return self._known().index(value, start, len(self) if stop is None else stop)

    def count(self, value: Any) -> int:
        """How many dimensions are equal to `value`."""
        return self._known().count(value)

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return type(self)(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == as_shape(other)
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return f"TensorShape({'None' if self._dims is None else list(self._dims)})"

    def __str__(self) -> str:
        return format_shape(self._dims)

    def __reduce__(self) -> tuple:
        return TensorShape, (self._dims,)


class SequenceShape(TensorShape):
    """A TensorShape that is a `collections.abc.Sequence`, as libraries for the array API standard expect of shapes.

    TensorFlow's shapes aren't: libraries written for it take a sequence for a structure with parts. So tensors have
    such shapes only while NumPy's behaviour is on (`experimental_enable_numpy_behavior`).
    """

    __slots__ = ()
    enabled = False


Sequence.register(SequenceShape)


def public_shape(shape: Shape, sources: tuple[Any, ...] = ()) -> TensorShape:
    """What a tensor's or variable's `shape` returns."""
    return (SequenceShape if SequenceShape.enabled else TensorShape)(shape, sources)


def format_shape(shape: Shape) -> str:
    """`(2, None)`, or `<unknown>`: how TensorFlow prints a shape."""
    return "<unknown>" if shape is None else str(shape)


def as_shape(value: Any) -> Shape:
    """A tuple of `int | None`, or None, from a TensorShape, a sequence, an int or None.

    Raises TypeError for anything else, ValueError for a negative dimension.
    """
    if value is None:
        return None
    if isinstance(value, TensorShape):
        return value._dims
    if isinstance(value, (str, bytes)):
        raise TypeError(f"Cannot convert {value!r} to a shape")
    if not isinstance(value, Sequence) and hasattr(value, "__index__") and not getattr(value, "shape", ()):
        value = (value,)
    dims = tuple(None if d is None else _dimension(d) for d in value)
    return dims


def _dimension(value: Any) -> int:
    try:
        dim = value.__index__()
    except AttributeError:
        raise TypeError(f"Dimension value must be integer or None, got {value!r} of type {type(value)}") from None
    if dim < 0:
        raise ValueError(f"Dimension {dim} must be >= 0")
    return dim
