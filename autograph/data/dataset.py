"""`ag.data.Dataset`: a sequence of elements, described by a plan and made anew for each loop over it."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from autograph.data import plans, streams
from autograph.data.elements import arguments_of, as_element, call
from autograph.data.iterators import DatasetIterator
from autograph.data.options import Options
from autograph.data.plans import INFINITE, UNKNOWN, Plan
from autograph.function.polymorphic import function
from autograph.operators.calls import CONVERTING, converted_argument
from autograph.operators.iterables import Staged
from autograph.operators.loops import for_stmt
from autograph.operators.streams import Stream
from runtime import composites, dtypes, nest
from runtime.errors import InvalidArgumentError
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.elementary import cast
from runtime.shapes import TensorShape, as_shape
from runtime.spec import TensorSpec
from runtime.tensor import SymbolicTensor, Tensor

AUTOTUNE = -1


class _Items(Staged):
    """The elements of an indexed plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def count(self) -> Any:
        return self.plan.cardinality()

    def first_index(self) -> Any:
        return convert_to_tensor(0, dtypes.int64)

    def item(self, index: Any) -> Any:
        return self.plan.at(index)


class Dataset:
    """Elements to loop over: tensors, or structures (tuples, dictionaries) of tensors.

    Each loop makes the elements anew. In a traced function a loop over a dataset is one loop of the program. Where the
    elements follow from their index alone (`range`, `from_tensors`, `from_tensor_slices`, and `map`, `zip`,
    `enumerate`, `take`, `skip`, `repeat(n)` and `batch` of such) they are made by the program itself; otherwise it
    calls Python for each.

    >>> [int(x) for x in Dataset.range(4).map(lambda x: x * x)]
    [0, 1, 4, 9]
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    # --- sources -------------------------------------------------------------------------------------------------

    @staticmethod
    def range(*args: Any, output_type: Any = dtypes.int64, name: str | None = None) -> Dataset:
        """The numbers of ``range(stop)``, ``range(start, stop)`` or ``range(start, stop, step)``, int64 scalars."""
        if not 1 <= len(args) <= 3:
            raise ValueError(f"Dataset.range takes 1 to 3 arguments, got {len(args)}")
        start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
        return Dataset(plans.Range(start, stop, step, dtypes.as_dtype(output_type)))

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """One element: the tensors."""
        return Dataset(plans.Single(tensors))

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """The rows of the tensors. Raises ValueError for scalars and for tensors of different lengths."""
        return Dataset(plans.Slices(tensors))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any], output_types: Any = None, output_shapes: Any = None, args: Any = None,
        output_signature: Any = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """What ``generator(*args)`` yields; it is called for each loop.

        output_signature: a structure of TensorSpecs. output_types, output_shapes: the older way to say the same.
        Raises TypeError, when the element comes, if one doesn't fit.
        """
        if not callable(generator):
            raise TypeError(f"generator must be callable, got {generator!r}")
        if output_signature is None:
            if output_types is None:
                raise TypeError("from_generator needs output_signature")
            if output_shapes is None:
                output_signature = nest.map_structure(lambda kind: TensorSpec(None, kind), output_types)
            else:
                flat = [
                    TensorSpec(shape, kind)
                    for kind, shape in zip(nest.flatten(output_types), _flat_shapes(output_types, output_shapes))
                ]
                output_signature = nest.pack_sequence_as(output_types, flat)
        arguments = tuple(as_element(value).numpy() for value in args or ())
        return Dataset(plans.Generated(generator, arguments, output_signature))

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Elements of several datasets (or of a structure of them) side by side, as long as all have one."""
        structure = datasets if datasets is not None else args[0] if len(args) == 1 else args
        return Dataset(plans.Zipped(nest.map_structure(lambda each: each._plan, structure)))

    # --- transformations -----------------------------------------------------------------------------------------

    def map(
        self, map_func: Callable[..., Any], num_parallel_calls: Any = None, deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """``map_func`` of each element, in order. The function is traced; a tuple's parts are its arguments."""
        traced = _traced(map_func)
        spec = _result_spec(traced, *arguments_of(self.element_spec))
        return Dataset(plans.Mapped(self._plan, traced, spec))

    def flat_map(self, map_func: Callable[..., Dataset], name: str | None = None) -> Dataset:
        """The elements of the datasets that ``map_func`` makes of the elements, one dataset after the other.

        Raises TypeError for a function that gives something else.
        """
        return self._interleaved(map_func, 1, 1)

    def interleave(
        self, map_func: Callable[..., Dataset], cycle_length: Any = None, block_length: Any = None,
        num_parallel_calls: Any = None, deterministic: bool | None = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """The elements of the datasets that ``map_func`` makes of the elements, ``block_length`` (1) of each in turns.

        cycle_length: how many datasets are read in turns; default: the number of processors. Raises TypeError for a
        function that gives something else than a dataset, ValueError for numbers below 1.
        """
        cycle = None if cycle_length is None else _static_int(cycle_length, "cycle_length")
        if cycle is None or cycle == AUTOTUNE:
            cycle = os.cpu_count() or 1
        block = 1 if block_length is None else _static_int(block_length, "block_length")
        for what, number in (("cycle_length", cycle), ("block_length", block)):
            if number < 1:
                raise ValueError(f"{what} must be at least 1, got {number}")
        return self._interleaved(map_func, cycle, block)

    def _interleaved(self, map_func: Callable[..., Dataset], cycle: int, block: int) -> Dataset:
        made: list[Any] = []

        def probe(*element: Any) -> Any:
            made.append(_dataset_plan(converted_argument(map_func)(*element)).spec)
            return convert_to_tensor(0)

        _result_spec(function(probe, autograph=False), *arguments_of(self.element_spec))
        make = functools.partial(_plan_for, map_func)
        return Dataset(streams.Interleaved(self._plan, make, made[-1], cycle, block))

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements for which the predicate, a traced function with a scalar boolean result, holds."""
        return Dataset(streams.Filtered(self._plan, _traced(predicate)))

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements before the first for which the predicate doesn't hold."""
        return Dataset(streams.Filtered(self._plan, _traced(predicate), stop=True))

    def enumerate(self, start: Any = 0, name: str | None = None) -> Dataset:
        """Pairs of a number, counted from ``start``, and an element."""
        return Dataset(plans.Enumerated(self._plan, start))

    def take(self, count: Any, name: str | None = None) -> Dataset:
        """The first ``count`` elements; all of them for -1."""
        number = _static_int(count, "take")
        return Dataset(plans.Part(self._plan, take=None if number < 0 else number))

    def skip(self, count: Any, name: str | None = None) -> Dataset:
        """The elements after the first ``count``; none for -1."""
        number = _static_int(count, "skip")
        return Dataset(plans.Part(self._plan, take=0) if number < 0 else plans.Part(self._plan, skip=number))

    def repeat(self, count: Any = None, name: str | None = None) -> Dataset:
        """The elements ``count`` times over; without end for None and -1."""
        number = None if count is None else _static_int(count, "repeat")
        return Dataset(plans.Repeated(self._plan, None if number is not None and number < 0 else number))

    def batch(
        self, batch_size: Any, drop_remainder: bool = False, num_parallel_calls: Any = None,
        deterministic: bool | None = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """``batch_size`` elements at a time, stacked along a new first axis; the last batch may be shorter.

        In a traced function ``batch_size`` may be a symbolic integer, if the rows of the elements are there as a whole
        (`range`, `from_tensor_slices`, and parts of these).
        """
        size: Any = batch_size
        if isinstance(size, SymbolicTensor) and self._plan.indexed and self._plan.span(0, 1) is not None:
            size = cast(size, dtypes.int64)
            assert_op(size >= 1, "batch_size must be at least 1", "ValueError")
        else:
            size = _static_int(batch_size, "batch")
        return Dataset(plans.Batched(self._plan, size, drop_remainder))

    def ragged_batch(
        self, batch_size: Any, drop_remainder: bool = False, row_splits_dtype: Any = dtypes.int64,
        num_parallel_calls: Any = None, deterministic: bool | None = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """`batch`, for elements of different sizes: where the spec has unknown dimensions, the batch is ragged."""
        return Dataset(plans.Batched(self._plan, _static_int(batch_size, "ragged_batch"), drop_remainder, ragged=True))

    def unbatch(self, name: str | None = None) -> Dataset:
        """The rows of each element."""
        return Dataset(streams.Unbatched(self._plan))

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any = None, padding_values: Any = None, drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """``batch_size`` elements at a time, each filled up to the size of the largest.

        padded_shapes: a shape, or a structure of shapes as the elements', to fill up to; None (or -1) in it is the
        largest of the batch. padding_values: scalars to fill up with; by default 0 and the empty string.
        Raises ValueError where a shape's rank isn't the elements', DataLossError for an element that is too large.
        """
        leaves = nest.flatten(self.element_spec)
        given = [None] * len(leaves) if padded_shapes is None else _flat_shapes(self.element_spec, padded_shapes)
        shapes = []
        for leaf, shape in zip(leaves, given):
            wanted = as_shape(leaf._shape if shape is None else _without_minus_one(shape))
            if wanted is None or (leaf._shape is not None and len(wanted) != len(leaf._shape)):
                raise ValueError(f"The padded shape {shape} is not compatible with the shape {leaf.shape} of elements")
            shapes.append(wanted)
        fill = [None] * len(leaves) if padding_values is None else nest.flatten(padding_values)
        if len(fill) == 1:
            fill = fill * len(leaves)
        blank: dict[Any, Any] = {dtypes.string: b""}
        values = [
            blank.get(leaf.dtype, 0) if value is None else np.asarray(convert_to_tensor(value, leaf.dtype))
            for leaf, value in zip(leaves, fill)
        ]
        size = _static_int(batch_size, "padded_batch")
        return Dataset(streams.PaddedBatched(self._plan, size, shapes, values, drop_remainder))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Dataset:
        """Every ``num_shards``-th element, beginning with number ``index``. Raises InvalidArgumentError for an index
        that isn't below the number of shards."""
        count, first = _static_int(num_shards, "shard"), _static_int(index, "shard")
        if count < 1 or not 0 <= first < count:
            raise InvalidArgumentError(f"index must be between 0 and {count - 1} (currently index = {first}).")
        return Dataset(streams.Sharded(self._plan, count, first))

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: str | None = None) -> Dataset:
        """Batches of ``batch_size`` rows in place of those that there are; the last one may be shorter."""
        return self.unbatch().batch(batch_size, drop_remainder)

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """These elements, then those of another dataset of the same structure and dtypes."""
        return Dataset(streams.Concatenated(self._plan, dataset._plan))

    def shuffle(
        self, buffer_size: Any, seed: int | None = None, reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """The elements in a random order, each drawn from the ``buffer_size`` that are next in line."""
        size = _static_int(buffer_size, "shuffle")
        return Dataset(streams.Shuffled(self._plan, size, seed, reshuffle_each_iteration is not False))

    def scan(self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None) -> Dataset:
        """``state, output = scan_func(state, element)`` for each element: the outputs."""
        traced = _traced(scan_func)
        state = as_element(initial_state)
        described = nest.map_structure(lambda leaf: TensorSpec(leaf.shape, leaf.dtype), state)
        result = _result_spec(traced, described, self.element_spec)
        if not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(f"scan_func must return (state, output), got {result}")
        return Dataset(streams.Scanned(self._plan, state, traced, result[1]))

    def prefetch(self, buffer_size: Any = AUTOTUNE, name: str | None = None) -> Dataset:
        """These elements. They are made as the loop asks for them; here so that TensorFlow programs run."""
        return self

    def cache(self, filename: str = "", name: str | None = None) -> Dataset:
        """These elements, kept in memory after the first complete run. Raises ValueError for a file name."""
        if filename:
            raise ValueError("cache keeps elements in memory only; leave out the file name")
        return Dataset(streams.Cached(self._plan))

    def apply(self, transformation_func: Callable[[Dataset], Any]) -> Any:
        """``transformation_func`` of this dataset."""
        return transformation_func(self)

    def with_options(self, options: Any, name: str | None = None) -> Dataset:
        """These elements, with options (`ag.data.Options`) that `options` gives. They are without effect."""
        if not isinstance(options, Options):
            raise TypeError(f"with_options takes ag.data.Options, got {options!r}")
        return Dataset(plans.WithOptions(self._plan, options))

    def options(self) -> Options:
        """The options of this dataset and of those that it is made of, later ones before earlier ones."""
        return _options_of(self._plan)

    # --- results -------------------------------------------------------------------------------------------------

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None) -> Any:
        """``state = reduce_func(state, element)`` for each element: the last state."""
        step = converted_argument(reduce_func)
        state = as_element(initial_state)
        kinds = [leaf.dtype for leaf in nest.flatten(state)]

        def body(element: Any) -> None:
            nonlocal state
            result = nest.flatten(step(state, element))
            state = nest.pack_sequence_as(state, [convert_to_tensor(leaf, kind) for leaf, kind in zip(result, kinds)])

        for_stmt(self, body, None, ("state",))
        return state

    def cardinality(self, name: str | None = None) -> Any:
        """The number of elements, an int64 scalar; INFINITE_CARDINALITY or UNKNOWN_CARDINALITY where there is none."""
        count = self._plan.cardinality()
        return cast(count, dtypes.int64) if isinstance(count, Tensor) else convert_to_tensor(count, dtypes.int64)

    @property
    def element_spec(self) -> Any:
        """The structure of an element, with a TensorSpec for each tensor."""
        return self._plan.spec

    def as_numpy_iterator(self) -> Iterator[Any]:
        """The elements with NumPy arrays and scalars for tensors. Only outside traced functions."""
        for element in self:
            yield composites.map_structure(lambda leaf: leaf.numpy(), element)

    def get_single_element(self, name: str | None = None) -> Any:
        """The only element. Raises InvalidArgumentError if there isn't exactly one."""
        found = list(self)
        if len(found) != 1:
            raise InvalidArgumentError(f"The dataset has {'no' if not found else 'more than one'} element.")
        return found[0]

    def __iter__(self) -> DatasetIterator:
        return DatasetIterator(self._plan)

    def __staged_items__(self) -> Staged | None:
        return _Items(self._plan) if self._plan.indexed else None

    def __staged_stream__(self) -> Stream:
        return DatasetIterator(self._plan)

    def __len__(self) -> int:
        count = int(self._plan.cardinality())
        if count == INFINITE:
            raise TypeError("The dataset is infinite.")
        if count == UNKNOWN:
            raise TypeError("The dataset length is unknown.")
        return count

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<Dataset element_spec={self.element_spec!r}>"


def _plan_for(function: Callable[..., Any], element: Any) -> Plan:
    """The plan of the dataset that a function makes of an element."""
    return _dataset_plan(call(function, element))


def dense_to_ragged_batch(
    batch_size: Any, drop_remainder: bool = False, row_splits_dtype: Any = dtypes.int64
) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: `Dataset.ragged_batch`, which says the same."""
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def _traced(user_function: Callable[..., Any]) -> Any:
    """A function of elements as an `ag.function`; it is converted, unless `do_not_convert` keeps the caller from it."""
    traced = function(user_function, autograph=CONVERTING.get() is not False)
    traced.may_change_arguments = True
    return traced


def _without_minus_one(shape: Any) -> Any:
    return shape if isinstance(shape, TensorShape) else [None if size in (-1, None) else int(size) for size in shape]


def _dataset_plan(dataset: Any) -> Plan:
    if not isinstance(dataset, Dataset):
        raise TypeError(f"The `map_func` argument must return a `Dataset` object. Got {dataset!r}.")
    return dataset._plan


def _options_of(plan: Plan) -> Options:
    merged = Options()
    for source in plan.sources:
        merged = merged.merge(_options_of(source))
    return merged.merge(plan.options) if isinstance(plan, plans.WithOptions) else merged


def _result_spec(traced: Any, *specs: Any) -> Any:
    """What a traced function returns for arguments of these specs."""
    return traced.get_concrete_function(*specs).structured_outputs


def _flat_shapes(types: Any, shapes: Any) -> list[Any]:
    """The shapes that belong to the leaves of ``types``; a shape may itself be a list."""
    if not nest.is_nested(types):
        return [shapes]
    return [
        shape for kind, part in zip(nest.children(types), nest.children(shapes)) for shape in _flat_shapes(kind, part)
    ]


def _static_int(value: Any, what: str) -> int:
    """A count that must be known when the dataset is made."""
    try:
        return operator.index(value)
    except TypeError as error:
        raise TypeError(f"{what} needs an integer that is known when the dataset is made, got {value!r}") from error
