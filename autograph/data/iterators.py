"""Iterators over datasets: Python's while nothing is traced, and a Python object that the program asks otherwise.

A traced program can't hold a Python iterator, so it asks for each element by calling Python; the call keeps its place
in the program's order. An iterator made inside a traced function is new in every run of it.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from autograph.data.elements import blank, types_of
from autograph.data.nested import computed, filled
from autograph.data.none_values import holds_none, shown
from autograph.data.optional import Optional
from autograph.data.plans import Calling, Plan
from autograph.data.streams import Shuffled
from autograph.operators.streams import StagedIterator, Stream
from runtime import composites, dtypes, nest
from runtime.context import ctx
from runtime.errors import (
    FailedPreconditionError,
    InaccessibleTensorError,
    InvalidArgumentError,
    OperatorNotAllowedInGraphError,
    OutOfRangeError,
)
from runtime.ops.control import HOST_CALL, assert_op
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply
from runtime.ops.random.stateful import Restarted
from runtime.profiling import span
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor, Tensor
from runtime.tracebacks import shows_no_frames
from runtime.types import TensorType

_ENDED = "End of sequence"
_BOOL = TensorType(dtypes.bool_, ())


class _Source:
    """Gives the elements of one iteration, also to programs: as the one element of a tensor of objects.

    taken   how many elements it has given
    lock    several threads may share it
    owner   a weak reference to the `DatasetIterator` whose it is; None of one that a program has made
    """

    __slots__ = ("iterator", "lock", "owner", "taken")

    def __init__(self, iterator: Iterator[Any], owner: DatasetIterator | None = None) -> None:
        self.iterator = iterator
        self.taken = 0
        self.lock = threading.RLock()
        self.owner = None if owner is None else weakref.ref(owner)

    def next(self) -> Any:
        """The next element. Raises StopIteration at the end."""
        device = ctx.device
        with self.lock:
            ctx.device = None  # a block is about what uses the element
            try:
                with span("data", "next element"):
                    element = next(self.iterator)
            finally:
                ctx.device = device
            self.taken += 1
            return element

    def pull(self, wanted: Any, types: list[TensorType]) -> list[Any]:
        """For programs: whether there was another element, and its leaves. None is taken unless it is wanted."""
        try:
            leaves = nest.flatten(self.next()) if wanted else None
        except StopIteration:
            leaves = None
        return [False, *map(blank, types)] if leaves is None else [True, *map(_array, leaves)]


class IteratorSpec:
    """Describes an iterator over elements of a spec; functions share one trace for all of them."""

    __ag_composite__ = "iterator"
    __ag_exact__ = True

    def __init__(self, element_spec: Any) -> None:
        self.element_spec = element_spec
        self._hash: int | None = None  # asked for by each call of a function with an iterator

    @classmethod
    def from_value(cls, value: DatasetIterator) -> IteratorSpec:
        """The spec of an iterator."""
        return cls(value.element_spec)

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return self, (TensorSpec((), dtypes.string),)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> Any:
        return DatasetIterator.__tf_unflatten__(metadata, components)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IteratorSpec) and self.element_spec == other.element_spec

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(tuple(nest.flatten(self.element_spec)))
        return self._hash

    def __reduce__(self) -> tuple:
        return IteratorSpec, (self.element_spec,)  # without the hash, which is another one in another process

    def __repr__(self) -> str:
        return f"IteratorSpec({self.element_spec!r})"


class DatasetIterator(StagedIterator, Stream):
    """Runs through a dataset once. `next` raises StopIteration at its end, `get_next` OutOfRangeError.

    `iter(dataset)` makes it. A traced function continues an iterator from outside at its position; iterators over
    elements of one spec share a trace.
    """

    __ag_composite__ = "iterator"
    __ag_exact__ = True

    def __init__(self, plan: Plan) -> None:
        self.element_spec = plan.spec
        self._spec = IteratorSpec(plan.spec)
        self._types = types_of(plan.spec)
        self._holds_none = holds_none(plan.spec)
        self._handle: Any = None  # of one that lives in a program
        self._source: _Source | None = None
        self._plan = plan
        if ctx.builder is None:
            self._shuffles = [shuffle.seeds.position() for shuffle in shuffles_of(plan)]
            self._source = _Source(Restarted(plan.elements()), self)
        else:
            what = TensorType(dtypes.string, ())
            _check_functions(plan)
            inputs = computed(plan)

            def started(*arrays: Any) -> _Source:
                given = {id(x): EagerTensor(np.array(array), x.dtype) for x, array in zip(inputs, arrays)}
                return _Source(Restarted(filled(plan, given).elements()))

            attrs = {"function": started, "types": (what,)}
            self._handle = apply(HOST_CALL, tuple(inputs), attrs)[0]

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        spec = self._spec
        if self._source is None:
            return spec, (self._handle,)
        array = np.empty((), object)
        array[()] = self._source
        return spec, (EagerTensor(array, dtypes.string),)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> Any:
        (handle,) = components
        if isinstance(handle, TensorSpec):
            return metadata
        source = handle._array.item() if isinstance(handle, EagerTensor) else None
        owner = source.owner() if isinstance(source, _Source) and source.owner is not None else None
        if owner is not None:
            return owner
        made = cls.__new__(cls)
        made.element_spec, made._spec = metadata.element_spec, metadata
        made._types = types_of(metadata.element_spec)
        made._holds_none = holds_none(metadata.element_spec)
        made._handle, made._source = handle, None
        return made

    def __iter__(self) -> DatasetIterator:
        return self

    @shows_no_frames
    def __next__(self) -> Any:
        if ctx.builder is not None:
            raise OperatorNotAllowedInGraphError(
                "the elements of a dataset aren't known while a function is traced: use a `for` statement or next(...) "
                "in converted code, which reads them at run time"
            )
        return self._shown(self._eager().next())

    def __staged_stream__(self) -> Stream:
        return self

    def _eager(self) -> _Source:
        if self._source is None:
            raise FailedPreconditionError(
                "This iterator was made inside a traced function and can't be used outside it."
            )
        return self._source

    def __reduce__(self) -> tuple:
        """In a pickle: its dataset, and how far it has come. The copy makes the elements up to there again."""
        return _iterator_at, (self._plan, self.state())

    # --- checkpoints ---------------------------------------------------------------------------------------------

    def state(self) -> list[int]:
        """The iterator's position, for `set_state`: the number of elements it has produced and, for each shuffle, its
        two seeds and the number of words that its stream had produced when the iterator began.

        Raises FailedPreconditionError for an iterator that was made inside a traced function.
        """
        source = self._eager()
        with source.lock:
            return [source.taken, *(word for position in self._shuffles for word in position)]

    def check_state(self, state: Any) -> None:
        """Raises InvalidArgumentError if `set_state` can't take a state."""
        count = 1 + 3 * len(self._shuffles)
        if np.shape(state) != (count,) or min(int(number) for number in state) < 0:
            raise InvalidArgumentError(
                f"The state was saved from a different dataset: this one has {len(self._shuffles)} shuffles"
            )

    def set_state(self, state: Any) -> None:
        """Moves the iterator to the position of another one over an equal dataset, by producing the elements again."""
        self.check_state(state)
        numbers = [int(number) for number in state]
        source = self._eager()
        with source.lock:
            self._shuffles = list(zip(numbers[1::3], numbers[2::3], numbers[3::3]))
            for shuffle, position in zip(shuffles_of(self._plan), self._shuffles):
                shuffle.seeds.set_position(*position)
            source.iterator = Restarted(self._plan.elements())
            source.taken = sum(1 for _ in itertools.islice(source.iterator, numbers[0]))

    @shows_no_frames
    def get_next(self, name: str | None = None) -> Any:
        """The next element. Raises OutOfRangeError at the end."""
        if ctx.builder is None:
            try:
                return next(self)
            except StopIteration:
                raise OutOfRangeError(_ENDED) from None
        there, element = self.fetch(convert_to_tensor(True))
        assert_op(there, _ENDED, "OutOfRangeError")
        return element

    def next(self) -> Any:
        """The next element, as `next(iterator)` gives it outside of traced functions."""
        return self.__next__()

    def get_next_as_optional(self) -> Optional:
        """The next element or, at the end, an `Optional` without a value."""
        there, element = self._fetch(convert_to_tensor(True))
        return Optional(there, element, self.element_spec)

    def _shown(self, element: Any) -> Any:
        return shown(element) if self._holds_none else element

    def fetch(self, wanted: Any) -> tuple[Any, Any]:
        there, element = self._fetch(wanted)
        return there, self._shown(element)

    def _fetch(self, wanted: Any) -> tuple[Any, Any]:
        inputs = (wanted,) if self._handle is None else (self._handle, wanted)
        pull = self._pull_from_outside() if self._handle is None else self._pull_from_handle()
        attrs = {"function": pull, "types": (_BOOL, *self._types)}
        there, *leaves = apply(HOST_CALL, inputs, attrs)
        return there, nest.pack_sequence_as(self.element_spec, leaves)

    def _pull_from_handle(self) -> Callable[..., list[Any]]:
        types = self._types

        return lambda handle, wanted: handle.item().pull(wanted, types)

    def _pull_from_outside(self) -> Callable[..., list[Any]]:
        reference, types = weakref.ref(self), self._types  # a trace doesn't keep its arguments alive

        def pull(wanted: Any) -> list[Any]:
            iterator = reference()
            if iterator is None:
                raise FailedPreconditionError(
                    "The iterator that this function was traced with no longer exists: keep a reference to it."
                )
            return iterator._eager().pull(wanted, types)

        return pull


def _iterator_at(plan: Plan, state: list[int]) -> DatasetIterator:
    iterator = DatasetIterator(plan)
    iterator.set_state(state)
    return iterator


def get_next_as_optional(iterator: DatasetIterator) -> Optional:
    """The next element of an iterator over a dataset or, at the end, an `Optional` without a value.

    Raises TypeError for another object.
    """
    if not isinstance(iterator, DatasetIterator):
        raise TypeError(f"`iterator` must be an iterator over a dataset, got {iterator!r}: iter(dataset) makes one")
    return iterator.get_next_as_optional()


def _check_functions(plan: Plan) -> None:
    if isinstance(plan, Calling) and plan.batching.is_of_program:
        raise InaccessibleTensorError(
            "A dataset calls a function that uses a tensor of the traced function around it, and this iterator can't "
            "hand it on: iterators make their elements outside of traced functions. Make the tensor part of the "
            "elements (Dataset.zip with Dataset.from_tensors(x).repeat()), or do this work in the loop's body"
        )
    for source in plan.sources:
        _check_functions(source)


def shuffles_of(plan: Plan) -> list[Shuffled]:
    """The shuffles that a plan takes its elements from."""
    found = [plan] if isinstance(plan, Shuffled) else []
    return found + [shuffle for source in plan.sources for shuffle in shuffles_of(source)]


def _array(leaf: Tensor) -> np.ndarray:
    return np.asarray(leaf._array)  # type: ignore[attr-defined]


class NumpyIterator:
    """Runs through a dataset once, with elements of NumPy arrays and scalars. `Dataset.as_numpy_iterator` makes it."""

    def __init__(self, dataset: Iterable[Any]) -> None:
        if ctx.builder is not None:
            raise RuntimeError(
                "as_numpy_iterator() gives values, which there are none of while a function is traced: loop over the "
                "dataset itself, or make the iterator outside of the function"
            )
        self._elements = iter(dataset)

    def __iter__(self) -> NumpyIterator:
        return self

    def __next__(self) -> Any:
        element = next(self._elements)
        return composites.map_structure(lambda leaf: None if leaf is None else leaf.numpy(), element)

    def next(self) -> Any:
        """The next element. Raises StopIteration at the end."""
        return next(self)
