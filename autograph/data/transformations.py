"""`ag.data.experimental`: what datasets do, as functions; most make transformations for `Dataset.apply`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograph.data import mixing
from autograph.data.arguments import static_int
from autograph.data.dataset import Dataset
from runtime import dtypes, nest
from runtime.errors import OutOfRangeError
from runtime.ops.convert import convert_to_tensor

Transformation = Callable[[Dataset], Dataset]


def assert_cardinality(expected_cardinality: Any) -> Transformation:
    """Declares the number of a dataset's elements; a loop that finds another number raises FailedPreconditionError."""
    count = static_int(expected_cardinality, "assert_cardinality")
    return lambda dataset: Dataset(mixing.Asserted(dataset._plan, count))


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any], bucket_boundaries: Any, bucket_batch_sizes: Any,
    padded_shapes: Any = None, padding_values: Any = None, pad_to_bucket_boundary: bool = False,
    no_padding: bool = False, drop_remainder: bool = False,
) -> Transformation:  # fmt: skip
    """`Dataset.bucket_by_sequence_length`."""
    return lambda dataset: dataset.bucket_by_sequence_length(
        element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values,
        pad_to_bucket_boundary, no_padding, drop_remainder,
    )  # fmt: skip


def _a_dataset(value: Any) -> Dataset:
    if not isinstance(value, Dataset):
        raise TypeError(
            f"expected a dataset, got {type(value).__name__}; ag.data.Dataset.from_tensor_slices creates one"
        )
    return value


def cardinality(dataset: Dataset) -> Any:
    """`Dataset.cardinality`."""
    return _a_dataset(dataset).cardinality()


def choose_from_datasets(datasets: Any, choice_dataset: Dataset, stop_on_empty_dataset: bool = False) -> Dataset:
    """`Dataset.choose_from_datasets`; by default it ends when an exhausted dataset is chosen."""
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def copy_to_device(target_device: Any, source_device: Any = "/cpu:0") -> Transformation:
    """A transformation that leaves elements on the CPU: functions that run on a GPU copy them there."""
    return lambda dataset: dataset


def dense_to_ragged_batch(
    batch_size: Any, drop_remainder: bool = False, row_splits_dtype: Any = dtypes.int64
) -> Transformation:
    """`Dataset.ragged_batch`."""
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def dense_to_sparse_batch(batch_size: Any, row_shape: Any) -> Transformation:
    """`Dataset.sparse_batch`."""
    return lambda dataset: dataset.sparse_batch(batch_size, row_shape)


def enumerate_dataset(start: Any = 0) -> Transformation:
    """`Dataset.enumerate`."""
    return lambda dataset: dataset.enumerate(start)


def from_list(elements: Any, name: str | None = None) -> Dataset:
    """The elements of a list, all with the same structure, dtypes and shapes. Raises ValueError for an empty list."""
    if not isinstance(elements, list):
        raise ValueError(f"elements must be a list, got {type(elements).__name__}")
    if not elements:
        raise ValueError("from_list needs at least one element")
    columns = zip(*map(nest.flatten, elements))
    for each in elements:
        nest.assert_same_structure(elements[0], each)
    return Dataset.from_tensor_slices(nest.pack_sequence_as(elements[0], [convert_to_tensor(list(c)) for c in columns]))


def get_single_element(dataset: Dataset) -> Any:
    """`Dataset.get_single_element`."""
    return _a_dataset(dataset).get_single_element()


def get_structure(dataset_or_iterator: Any) -> Any:
    """The `element_spec` of a dataset or iterator. Raises TypeError for another object."""
    spec = getattr(dataset_or_iterator, "element_spec", None)
    if spec is None:
        raise TypeError(f"expected a dataset or an iterator over one, got {type(dataset_or_iterator).__name__}")
    return spec


def group_by_window(
    key_func: Callable[..., Any], reduce_func: Callable[[Any, Dataset], Dataset], window_size: Any = None,
    window_size_func: Callable[[Any], Any] | None = None,
) -> Transformation:  # fmt: skip
    """`Dataset.group_by_window`."""
    return lambda dataset: dataset.group_by_window(key_func, reduce_func, window_size, window_size_func)


class Reducer:
    """How `group_by_reducer` reduces the elements of a key.

    init_func: the key → the first state. reduce_func: a state and an element → the next state. finalize_func: the last
    state → the result.
    """

    def __init__(
        self, init_func: Callable[[Any], Any], reduce_func: Callable[[Any, Any], Any], finalize_func: Callable[..., Any]
    ) -> None:
        self.init_func, self.reduce_func, self.finalize_func = init_func, reduce_func, finalize_func


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Transformation:
    """Reduces the elements with the same key (`key_func`) to one, in the order of the keys; see `Reducer`."""

    def reduced(key: Any, group: Dataset) -> Dataset:
        finalize, last = reducer.finalize_func, group.reduce(reducer.init_func(key), reducer.reduce_func)
        return Dataset.from_tensors(finalize(*last) if type(last) is tuple else finalize(last))

    return lambda dataset: dataset.group_by_window(key_func, reduced, window_size=2**62)


def ignore_errors(log_warning: bool = False) -> Transformation:
    """`Dataset.ignore_errors`."""
    return lambda dataset: dataset.ignore_errors(log_warning)


def load(path: Any, element_spec: Any = None, compression: str | None = None, reader_func: Any = None) -> Dataset:
    """`Dataset.load`."""
    return Dataset.load(path, element_spec, compression, reader_func)


def map_and_batch(
    map_func: Callable[..., Any], batch_size: Any, num_parallel_batches: Any = None, drop_remainder: bool = False,
    num_parallel_calls: Any = None,
) -> Transformation:  # fmt: skip
    """`Dataset.map`, then `Dataset.batch`."""
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


def parallel_interleave(
    map_func: Callable[..., Dataset], cycle_length: Any, block_length: Any = 1, sloppy: bool = False,
    buffer_output_elements: Any = None, prefetch_input_elements: Any = None,
) -> Transformation:  # fmt: skip
    """`Dataset.interleave` with a thread for each dataset that takes turns."""
    return lambda dataset: dataset.interleave(
        map_func, cycle_length, block_length, num_parallel_calls=cycle_length, deterministic=not sloppy
    )


def prefetch_to_device(device: Any, buffer_size: Any = None) -> Transformation:
    """`Dataset.prefetch`; elements stay on the CPU until a GPU uses them."""
    return lambda dataset: dataset.prefetch(-1 if buffer_size is None else buffer_size)


def rejection_resample(
    class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None, seed: int | None = None
) -> Transformation:
    """`Dataset.rejection_resample`."""
    return lambda dataset: dataset.rejection_resample(class_func, target_dist, initial_dist, seed)


def sample_from_datasets(
    datasets: Any, weights: Any = None, seed: int | None = None, stop_on_empty_dataset: bool = False
) -> Dataset:
    """`Dataset.sample_from_datasets`."""
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)


def save(
    dataset: Dataset, path: Any, compression: str | None = None, shard_func: Any = None, checkpoint_args: Any = None
) -> None:
    """`Dataset.save`."""
    _a_dataset(dataset).save(path, compression, shard_func, checkpoint_args)


def scan(initial_state: Any, scan_func: Callable[..., Any]) -> Transformation:
    """`Dataset.scan`."""
    return lambda dataset: dataset.scan(initial_state, scan_func)


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: int | None = None) -> Transformation:
    """`Dataset.shuffle`, then `Dataset.repeat`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def snapshot(
    path: Any, compression: str | None = "AUTO", reader_func: Any = None, shard_func: Any = None
) -> Transformation:
    """`Dataset.snapshot`."""
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """`Dataset.take_while`."""
    return lambda dataset: dataset.take_while(predicate)


def unbatch() -> Transformation:
    """`Dataset.unbatch`."""
    return lambda dataset: dataset.unbatch()


def unique() -> Transformation:
    """`Dataset.unique`."""
    return lambda dataset: dataset.unique()


def counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64) -> Dataset:
    """`Dataset.counter`."""
    return Dataset.counter(start, step, dtype)


def random_dataset(
    seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
) -> Dataset:
    """`Dataset.random`."""
    return Dataset.random(seed, rerandomize_each_iteration)


def at(dataset: Dataset, index: Any) -> Any:
    """The element at an index, an int64 scalar. Raises OutOfRangeError if there are fewer."""
    number = static_int(index, "at")
    if number < 0:
        raise _out_of_range(number)
    for element in dataset.skip(number).take(1):
        return element
    raise _out_of_range(number)


def _out_of_range(number: int) -> Exception:
    return OutOfRangeError(f"index out of range: the dataset has no element {number}")
