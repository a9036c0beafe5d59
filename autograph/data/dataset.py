"""`ag.data.Dataset`: a sequence of elements, described by a plan and made anew for each loop over it."""

from __future__ import annotations

import copyreg
import functools
import logging
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from autograph.data import (
    arguments,
    bucketing,
    grouping,
    mixing,
    nested,
    plans,
    prefetching,
    resampling,
    stored,
    streams,
)
from autograph.data.arguments import (
    generated_spec,
    has_datasets,
    mapped_spec,
    positive_int,
    probed,
    result_spec,
    static_int,
    traced_for,
    traced_function,
)
from autograph.data.elements import arguments_of, as_element, call
from autograph.data.iterators import DatasetIterator, NumpyIterator
from autograph.data.none_values import holds_none, shown
from autograph.data.options import Options
from autograph.data.plans import INFINITE, UNKNOWN, Plan
from autograph.data.record_files import path_of
from autograph.operators.calls import converted_argument
from autograph.operators.iterables import Staged
from autograph.operators.loops import for_stmt
from autograph.operators.streams import Stream
from runtime import composites, dtypes, nest
from runtime.context import ctx
from runtime.errors import InvalidArgumentError
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.compare import logical_not
from runtime.ops.elementwise.elementary import cast
from runtime.ops.strings.files import matching_files
from runtime.spec import TensorSpec
from runtime.storage.records import checked_compression
from runtime.tensor import SymbolicTensor, Tensor

AUTOTUNE = -1


class _Items(Staged):
    """The elements of an indexed plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.holds_none = holds_none(plan.spec)

    def count(self) -> Any:
        return self.plan.cardinality()

    def first_index(self) -> Any:
        return convert_to_tensor(0, dtypes.int64)

    def item(self, index: Any) -> Any:
        element = self.plan.at(index)
        return shown(element) if self.holds_none else element


class Dataset:
    """Elements to loop over: tensors, or structures (tuples, dictionaries) of tensors.

    Each loop produces the elements again. In a traced function, a loop over a dataset is one loop of the program. If
    the elements follow from their index alone (`range`, `from_tensors`, `from_tensor_slices`, and `map`, `zip`,
    `enumerate`, `take`, `skip`, `repeat(n)` and `batch` of such) the program computes them itself; otherwise it calls
    Python for each.

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
        """The values that ``generator(*args)`` yields; it is called anew for each loop.

        output_signature: a structure of TensorSpecs. output_types, output_shapes: its older form. Raises
        TypeError when an element doesn't match.
        """
        if not callable(generator):
            raise TypeError(f"generator must be callable, got {generator!r}")
        if output_signature is None:
            output_signature = generated_spec(output_types, output_shapes)
        given = tuple(arguments.known_value(value, "from_generator") for value in args or ())
        return Dataset(plans.Generated(generator, given, output_signature))

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Combines the elements of several datasets (or of a structure of datasets), until the shortest ends."""
        structure = datasets if datasets is not None else args[0] if len(args) == 1 else args
        return Dataset(plans.Zipped(nest.map_structure(lambda each: each._plan, structure)))

    @staticmethod
    def counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64, name: str | None = None) -> Dataset:
        """An infinite sequence of numbers from ``start``, ``step`` apart."""
        return Dataset(mixing.Counted(start, step, dtypes.as_dtype(dtype)))

    @staticmethod
    def random(
        seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> Dataset:
        """An infinite sequence of random int64 scalars below 2**32; with a seed, TensorFlow's numbers. Each loop gets
        the same ones, unless ``rerandomize_each_iteration`` is set."""
        return Dataset(mixing.RandomWords(seed, bool(rerandomize_each_iteration)))

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: int | None = None, name: str | None = None
    ) -> Dataset:
        """The names of the files that match a pattern, or one of several, in random order unless ``shuffle`` is False.
        Raises InvalidArgumentError if there are none."""
        found = matching_files(file_pattern)
        count = len(np.asarray(found))
        if not count:
            raise InvalidArgumentError(f"No files matched pattern: {file_pattern}")
        files = Dataset.from_tensor_slices(found)
        return files if shuffle is False else files.shuffle(count, seed)

    # --- transformations -----------------------------------------------------------------------------------------

    def map(
        self, map_func: Callable[..., Any], num_parallel_calls: Any = None, deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """Calls ``map_func`` on each element. The function is traced; the parts of a tuple become its arguments.

        num_parallel_calls: for how many elements at a time; AUTOTUNE: the number of processors. Only functions that
        call Python or read files get threads for this; others use several threads anyway. deterministic: if False,
        elements may come in the order in which they are finished.
        """
        spec, called = mapped_spec(map_func, self.element_spec)
        if has_datasets((self.element_spec, spec)):
            return Dataset(nested.MappedDatasets(self._plan, called, spec))
        mapped = plans.Mapped(self._plan, called, spec)
        count = positive_int(num_parallel_calls, "num_parallel_calls", 1, os.cpu_count() or 1)
        if count > 1 and mapped.batching.has_effects:
            return Dataset(prefetching.MappedInParallel(mapped, count, deterministic is not False))
        return Dataset(mapped)

    def flat_map(self, map_func: Callable[..., Dataset], name: str | None = None) -> Dataset:
        """Calls ``map_func``, which returns a dataset, on each element, and concatenates these datasets.

        Raises TypeError if the function returns something else.
        """
        return self._interleaved(map_func, 1, 1)

    def interleave(
        self, map_func: Callable[..., Dataset], cycle_length: Any = None, block_length: Any = None,
        num_parallel_calls: Any = None, deterministic: bool | None = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """Calls ``map_func``, which returns a dataset, on each element, and takes ``block_length`` (1) elements from
        these datasets in turn.

        cycle_length: how many datasets take turns; default: the number of processors. num_parallel_calls: how many of
        them are read at a time, each by a thread, ahead of the loop. deterministic: if False, datasets with elements
        ready come first. Raises TypeError if the function returns something else, ValueError for numbers below 1.
        """
        processors = os.cpu_count() or 1
        cycle = positive_int(cycle_length, "cycle_length", processors, processors)
        block = positive_int(block_length, "block_length", 1, 1)
        if num_parallel_calls is None:
            return self._interleaved(map_func, cycle, block)
        threads = positive_int(num_parallel_calls, "num_parallel_calls", 1, cycle)
        if threads > cycle and cycle_length is not None:
            raise InvalidArgumentError(f"num_parallel_calls must be at most cycle_length ({cycle}), got {threads}")
        make, spec = self._maker(map_func)
        plan = prefetching.InterleavedInParallel(
            self._plan, make, spec, cycle, block, threads, deterministic is not False
        )
        return Dataset(plan)

    def _interleaved(self, map_func: Callable[..., Dataset], cycle: int, block: int) -> Dataset:
        make, spec = self._maker(map_func)
        return Dataset(streams.Interleaved(self._plan, make, spec, cycle, block))

    def _maker(self, map_func: Callable[..., Dataset]) -> tuple[Callable[[Any], Plan], Any]:
        """What makes a plan of an element by a function that gives a dataset, and the spec of its elements."""
        spec = probed(lambda *element: _as_dataset(map_func, element), *arguments_of(self.element_spec))
        return functools.partial(_plan_for, map_func), spec.element_spec

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements for which the predicate holds. It is a traced function with a scalar boolean result."""
        return Dataset(streams.Filtered(self._plan, self._predicate(predicate)))

    def unique(self, name: str | None = None) -> Dataset:
        """Each distinct element, once. Raises TypeError unless they are integers or strings."""
        return Dataset(mixing.Unique(self._plan))

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset:
        """Skips elements that raise an error; with ``log_warning`` the error is logged."""
        return Dataset(
            mixing.WithoutErrors(self._plan, logging.getLogger("autograph").warning if log_warning else None)
        )

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements before the first for which the predicate doesn't hold."""
        return Dataset(streams.Filtered(self._plan, self._predicate(predicate), stop=True))

    def _predicate(self, function: Callable[..., Any]) -> Any:
        return traced_function(function, holds_none(self.element_spec))

    def enumerate(self, start: Any = 0, name: str | None = None) -> Dataset:
        """Pairs of a number, counted from ``start``, and an element."""
        return Dataset(plans.Enumerated(self._plan, start))

    def take(self, count: Any, name: str | None = None) -> Dataset:
        """The first ``count`` elements; all of them for -1."""
        number = static_int(count, "take")
        return Dataset(plans.Part(self._plan, take=None if number < 0 else number))

    def skip(self, count: Any, name: str | None = None) -> Dataset:
        """Skips the first ``count`` elements; all of them for -1."""
        number = static_int(count, "skip")
        return Dataset(plans.Part(self._plan, take=0) if number < 0 else plans.Part(self._plan, skip=number))

    def repeat(self, count: Any = None, name: str | None = None) -> Dataset:
        """Repeats the elements ``count`` times, or forever for None and -1."""
        number = None if count is None else static_int(count, "repeat")
        return Dataset(plans.Repeated(self._plan, None if number is not None and number < 0 else number))

    def batch(
        self, batch_size: Any, drop_remainder: bool = False, num_parallel_calls: Any = None,
        deterministic: bool | None = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """Stacks ``batch_size`` elements at a time along a new first axis; the last batch may be shorter.

        In a traced function ``batch_size`` may be a symbolic integer, if all rows are available at once (`range`,
        `from_tensor_slices`, and parts of these).
        """
        size: Any = batch_size
        if isinstance(size, SymbolicTensor) and self._plan.indexed and self._plan.span(0, 1) is not None:
            size = cast(size, dtypes.int64)
            assert_op(size >= 1, "batch_size must be at least 1", "ValueError")
        else:
            size = static_int(batch_size, "batch")
        return Dataset(plans.Batched(self._plan, size, drop_remainder))

    def ragged_batch(
        self, batch_size: Any, drop_remainder: bool = False, row_splits_dtype: Any = dtypes.int64,
        num_parallel_calls: Any = None, deterministic: bool | None = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """`batch` for elements of different sizes: dimensions that are unknown in the spec become ragged."""
        return Dataset(plans.Batched(self._plan, static_int(batch_size, "ragged_batch"), drop_remainder, ragged=True))

    def sparse_batch(self, batch_size: Any, row_shape: Any, name: str | None = None) -> Dataset:
        """Makes ``batch_size`` elements at a time a sparse tensor whose rows have the shape ``row_shape``; None (or -1)
        in it stands for the largest size in the batch. Raises DataLossError for an element that is too large."""
        (shape,) = arguments.padded_shapes(TensorSpec(None), row_shape)
        return Dataset(grouping.SparseBatched(self._plan, static_int(batch_size, "sparse_batch"), shape))

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: bool = False, name: str | None = None
    ) -> Dataset:
        """Datasets of ``size`` elements each, ``stride`` apart; each begins ``shift`` (``size``) after the one before.

        Elements that are structures give structures of datasets. The last windows may be shorter, unless
        ``drop_remainder`` is set. Raises InvalidArgumentError for numbers below 1.
        """
        length = static_int(size, "window")
        step = length if shift is None else static_int(shift, "window")
        return Dataset(grouping.Windowed(self._plan, length, step, static_int(stride, "window"), drop_remainder))

    def group_by_window(
        self, key_func: Callable[..., Any], reduce_func: Callable[[Any, Dataset], Dataset], window_size: Any = None,
        window_size_func: Callable[[Any], Any] | None = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """The elements of ``reduce_func(key, dataset)`` for groups of elements with the same ``key_func``, an int64.

        A group is complete when it has ``window_size`` elements, or ``window_size_func(key)``. Incomplete ones come at
        the end, in the order of their keys. Raises ValueError unless exactly one of the two is given.
        """
        if (window_size is None) == (window_size_func is None):
            raise ValueError("Either the `window_size` argument or the `window_size_func` argument must be specified.")
        size = window_size_func or (lambda key: window_size)
        key = self._predicate(key_func)
        result_spec(key, *arguments_of(self.element_spec))
        spec = probed(
            lambda key, group: _as_dataset(reduce_func, (key, group)), TensorSpec((), dtypes.int64),
            nested.DatasetSpec(self.element_spec),
        )  # fmt: skip
        reduce = lambda key, plan: _dataset_plan(reduce_func(key, ElementDataset(plan)))  # noqa: E731
        return Dataset(grouping.Grouped(self._plan, key, reduce, size, spec.element_spec))

    def bucket_by_sequence_length(
        self, element_length_func: Callable[..., Any], bucket_boundaries: Any, bucket_batch_sizes: Any,
        padded_shapes: Any = None, padding_values: Any = None, pad_to_bucket_boundary: bool = False,
        no_padding: bool = False, drop_remainder: bool = False, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """Padded batches of elements of similar length: a batch holds lengths between two neighbouring
        ``bucket_boundaries``.

        bucket_batch_sizes: the size of each bucket's batches; there is one more bucket than boundaries.
        pad_to_bucket_boundary: pad to the boundary minus 1, rather than to the longest element of the batch; elements
        as long as the last boundary, or longer, then raise InvalidArgumentError. no_padding: don't pad, for
        elements of equal length and sparse ones. Raises ValueError if the numbers of boundaries and sizes don't match.
        """
        return bucketing.bucketed(
            self, element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values,
            pad_to_bucket_boundary, no_padding, drop_remainder,
        )  # fmt: skip

    def unbatch(self, name: str | None = None) -> Dataset:
        """The rows of each element."""
        return Dataset(streams.Unbatched(self._plan))

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any = None, padding_values: Any = None, drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """Stacks ``batch_size`` elements at a time, each padded to the size of the largest.

        padded_shapes: the shape to pad to, or a structure of shapes like the elements'; None (or -1) in a shape stands
        for the largest size in the batch. padding_values: scalars to pad with; by default 0 and the empty string.
        Raises ValueError if a shape's rank isn't the elements', DataLossError for an element that is too large.
        """
        leaves = nest.flatten(self.element_spec)
        shapes = arguments.padded_shapes(self.element_spec, padded_shapes)
        values = arguments.padding(leaves, padding_values)
        size = static_int(batch_size, "padded_batch")
        return Dataset(streams.PaddedBatched(self._plan, size, shapes, values, drop_remainder))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Dataset:
        """Every ``num_shards``-th element, starting with element ``index``. Raises InvalidArgumentError unless the
        index is below the number of shards."""
        return Dataset(streams.Sharded(self._plan, *arguments.shard_numbers(num_shards, index)))

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: str | None = None) -> Dataset:
        """Regroups batches into batches of ``batch_size`` rows; the last one may be shorter.

        batch_size: an int, or a list or vector of sizes that take turns; a size of 0 gives a batch without rows. Raises
        ValueError for an empty list, negative sizes, and only zeros.
        """
        sizes = arguments.sizes(batch_size, "rebatch")
        if isinstance(sizes, list):
            return Dataset(streams.BatchedInTurns(self.unbatch()._plan, sizes, drop_remainder))
        return self.unbatch().batch(sizes, drop_remainder)

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """The elements of this dataset, then those of another one with the same structure and dtypes."""
        return Dataset(streams.Concatenated(self._plan, dataset._plan))

    def shuffle(
        self, buffer_size: Any, seed: int | None = None, reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """The elements in random order: each is drawn from a buffer of the next ``buffer_size`` elements."""
        size = static_int(buffer_size, "shuffle")
        return Dataset(streams.Shuffled(self._plan, size, seed, reshuffle_each_iteration is not False))

    def scan(self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None) -> Dataset:
        """Computes ``state, output = scan_func(state, element)`` for each element; the outputs are the new elements."""
        state = as_element(initial_state)
        described = nest.map_structure(lambda leaf: TensorSpec(leaf.shape, leaf.dtype), state)
        result, traced = traced_for(scan_func, described, self.element_spec)
        if not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(f"scan_func must return (state, output), got {result}")
        return Dataset(streams.Scanned(self._plan, state, traced, result[1]))

    def prefetch(self, buffer_size: Any = AUTOTUNE, name: str | None = None) -> Dataset:
        """Prepares up to ``buffer_size`` elements ahead of the loop, in a thread.

        With AUTOTUNE or 0, the number is chosen automatically.
        """
        return Dataset(prefetching.Prefetched(self._plan, static_int(buffer_size, "prefetch")))

    def cache(self, filename: str = "", name: str | None = None) -> Dataset:
        """Keeps the elements after the first complete run: in memory or, with a name, in a file.

        An existing file is read instead of the source. Raises InvalidArgumentError if its elements are of another kind.
        """
        path = path_of(filename)
        return Dataset(
            stored.KeptInFile(self._plan, f"{path}.data-00000-of-00001", "") if path else streams.Cached(self._plan)
        )

    def snapshot(
        self, path: Any, compression: str | None = "AUTO", reader_func: Any = None, shard_func: Any = None,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """Keeps the elements in the folder ``path`` after the first complete run, for later processes (see `cache`).

        compression: "AUTO", "GZIP" or None. reader_func: as for `load`. shard_func: without effect.
        """
        kind = _compression("GZIP" if compression == "AUTO" else compression)
        kept = Dataset(stored.KeptInFile(self._plan, os.path.join(path_of(path), stored.FILE), kind))
        return kept if reader_func is None else reader_func(Dataset.from_tensors(0).map(lambda _: kept))

    def save(
        self, path: Any, compression: str | None = None, shard_func: Any = None, checkpoint_args: Any = None
    ) -> None:
        """Writes the elements to the folder ``path``, for `load`. Not possible while a function is traced.

        compression: "GZIP" or None. shard_func and checkpoint_args have no effect: there is one file.
        Raises TypeError for elements in structures other than tuples, lists and dictionaries with string keys.
        """
        stored.save(self._plan, path_of(path), _compression(compression))

    @staticmethod
    def load(
        path: Any, element_spec: Any = None, compression: str | None = None, reader_func: Any = None, wait: bool = False
    ) -> Dataset:
        """Reads the elements that `save` wrote to a folder.

        reader_func: makes the dataset from a dataset of datasets; by default files are read one after the other. Raises
        NotFoundError if there is nothing, DataLossError for a damaged file, InvalidArgumentError if the elements don't
        match ``element_spec``.
        """
        loaded = Dataset(stored.load(path_of(path), element_spec, _compression(compression)))
        return loaded if reader_func is None else reader_func(Dataset.from_tensors(0).map(lambda _: loaded))

    # --- several datasets ----------------------------------------------------------------------------------------

    @staticmethod
    def choose_from_datasets(datasets: Any, choice_dataset: Dataset, stop_on_empty_dataset: bool = True) -> Dataset:
        """Elements of several datasets; the int64 scalars of ``choice_dataset`` choose the dataset of each.

        If the chosen one is exhausted, the dataset ends or, with ``stop_on_empty_dataset=False``, takes the next
        choice. Raises ValueError for no datasets, TypeError if dtypes differ or choices aren't such scalars.
        """
        if not datasets:
            raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
        if not isinstance(choice_dataset, Dataset) or choice_dataset.element_spec != TensorSpec((), dtypes.int64):
            raise TypeError(f"The elements of `choice_dataset` must be int64 scalars, got {choice_dataset!r}")
        plan = mixing.Directed(choice_dataset._plan, [each._plan for each in datasets], stop_on_empty_dataset)
        return Dataset(plan)

    @staticmethod
    def sample_from_datasets(
        datasets: Any, weights: Any = None, seed: int | None = None, stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Dataset:  # fmt: skip
        """Takes each element from one of several datasets, chosen at random: in TensorFlow's order, for the same seeds.

        weights: the probability of each dataset, by default equal; or a dataset of weights. Raises ValueError if their
        number is wrong.
        """
        if not datasets:
            raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
        return resampling.sampled(
            Dataset, list(datasets), weights, seed, stop_on_empty_dataset, rerandomize_each_iteration
        )

    def rejection_resample(
        self, class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None, seed: int | None = None,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """Pairs of a class and an element; some elements are dropped at random, so that classes have the target
        frequencies.

        class_func: the class of an element, an int32 or int64 scalar. target_dist, initial_dist: the target and the
        present frequency of each class; the latter is estimated if it isn't given.
        """
        return resampling.resampled(Dataset, self, class_func, target_dist, initial_dist, seed)

    def apply(self, transformation_func: Callable[[Dataset], Any]) -> Any:
        """Calls ``transformation_func`` on this dataset."""
        return transformation_func(self)

    def with_options(self, options: Any, name: str | None = None) -> Dataset:
        """Attaches options (`ag.data.Options`), which `options` returns. They have no other effect."""
        if not isinstance(options, Options):
            raise TypeError(f"with_options takes ag.data.Options, got {options!r}")
        return Dataset(plans.WithOptions(self._plan, options))

    def options(self) -> Options:
        """The options of this dataset and of the ones it is made of; later options override earlier ones."""
        return _options_of(self._plan)

    # --- results -------------------------------------------------------------------------------------------------

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None) -> Any:
        """Computes ``state = reduce_func(state, element)`` for each element, and returns the last state."""
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
        """The number of elements, an int64 scalar; INFINITE_CARDINALITY or UNKNOWN_CARDINALITY if there is no
        number."""
        count = self._plan.cardinality()
        return cast(count, dtypes.int64) if isinstance(count, Tensor) else convert_to_tensor(count, dtypes.int64)

    @property
    def element_spec(self) -> Any:
        """The structure of an element, with a TensorSpec for each tensor."""
        return self._plan.spec

    def as_numpy_iterator(self) -> NumpyIterator:
        """The elements as NumPy arrays and scalars, outside of traced functions only: a RuntimeError there."""
        return NumpyIterator(self)

    def get_single_element(self, name: str | None = None) -> Any:
        """The only element. Raises InvalidArgumentError if there isn't exactly one."""
        if ctx.builder is not None:
            iterator = DatasetIterator(self._plan)
            there, element = iterator.fetch(convert_to_tensor(True))
            assert_op(there, "Dataset was empty.", "InvalidArgumentError")
            more, _ = iterator.fetch(convert_to_tensor(True))
            assert_op(logical_not(more), "Dataset had more than one element.", "InvalidArgumentError")
            return element
        found = list(self.take(2))
        if len(found) != 1:
            raise InvalidArgumentError(f"Dataset {'was empty' if not found else 'had more than one element'}.")
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

    def _as_element(self) -> Dataset:
        """This dataset as an element of another one."""
        return ElementDataset(self._plan)

    def __ag_as_composite__(self, spec: Any) -> Dataset:
        """This dataset for a function that has been told the spec of its elements, which may be a wider one."""
        wanted = spec.element_spec
        if self.element_spec == wanted:
            return self._as_element()
        composites.assert_same_structure(wanted, self.element_spec)
        leaves = zip(composites.flatten(wanted), composites.flatten(self.element_spec))
        if not all(one.is_compatible_with(other) for one, other in leaves):
            raise ValueError(f"a dataset with elements of {wanted} is wanted, got one with {self.element_spec}")
        return ElementDataset(plans.Described(self._plan, wanted))


class ElementDataset(Dataset):
    """A dataset that is an element of another one, or is handed to a function as one."""

    __ag_composite__ = "dataset"
    __ag_exact__ = True

    @property
    def _type_spec(self) -> nested.DatasetSpec:
        return nested.DatasetSpec(self._plan.spec)

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return self._type_spec, (nested.component(self._plan),)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Any) -> Any:
        return nested.unflattened(metadata, components[0])


nested.DatasetSpec.make = ElementDataset


def _restored_spec(element_spec: Any) -> nested.DatasetSpec:
    return nested.DatasetSpec(element_spec)


# A spec is read by this module, so that it has been imported before the spec makes datasets.
copyreg.pickle(nested.DatasetSpec, lambda spec: (_restored_spec, (spec.element_spec,)))


def _dataset_plan(dataset: Any) -> Plan:
    if not isinstance(dataset, Dataset):
        raise TypeError(f"The function must return a `Dataset` object. Got {dataset!r}.")
    return dataset._plan


def _plan_for(function: Callable[..., Any], element: Any) -> Plan:
    """The plan of the dataset that a function makes of an element."""
    return _dataset_plan(call(function, shown(element)))


def _as_dataset(function: Callable[..., Any], arguments: Any) -> Dataset:
    """The dataset that a function, converted, makes of arguments."""
    made = converted_argument(function)(*map(shown, arguments))
    _dataset_plan(made)
    return made


def _compression(kind: Any) -> str:
    found = checked_compression(None if kind == "NONE" else kind)
    if found == "ZLIB":
        raise InvalidArgumentError('compression must be "GZIP" or None')
    return found


def _options_of(plan: Plan) -> Options:
    merged = Options()
    for source in plan.sources:
        merged = merged.merge(_options_of(source))
    return merged.merge(plan.options) if isinstance(plan, plans.WithOptions) else merged
