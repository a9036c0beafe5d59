"""Datasets as elements of datasets, eagerly and in traced functions."""

import numpy as np
import pytest

import autograph as ag

Dataset = ag.data.Dataset


def test_a_window_is_a_dataset():
    (first, *_) = Dataset.range(5).window(3)
    assert isinstance(first, Dataset)
    assert [int(x) for x in first] == [0, 1, 2]
    assert len(first) == 3
    spec = Dataset.range(5).window(3).element_spec
    assert spec == ag.data.DatasetSpec(ag.TensorSpec([], ag.int64))
    assert spec.is_compatible_with(first) and "int64" in repr(spec)


def test_windows_in_a_staged_loop():
    @ag.function
    def sums(ds):
        total = ag.constant(0, ag.int64)
        for window in ds:
            product = ag.constant(1, ag.int64)
            for x in window:
                product *= x
            total = total * 1000 + product
        return total

    dataset = Dataset.range(1, 7).window(2)
    assert int(sums(dataset)) == 2012030
    assert int(sums.python_function(dataset)) == 2012030


def test_what_is_made_of_a_window_in_a_staged_loop():
    @ag.function
    def sums(ds):
        total = ag.constant(0, ag.int64)
        for window in ds:
            for batch in window.map(lambda x: x * x).batch(2):
                total = total * 100 + ag.reduce_sum(batch)
            total += window.reduce(np.int64(0), lambda s, x: s + x)
        return total

    dataset = Dataset.range(6).window(3)
    assert int(sums(dataset)) == int(sums.python_function(dataset))


def test_structures_of_windows():
    pairs = Dataset.from_tensor_slices({"a": np.arange(4), "b": np.arange(4.0)}).window(3)
    first = next(iter(pairs))
    assert [int(x) for x in first["a"]] == [0, 1, 2]
    assert [float(x) for x in first["b"]] == [0, 1, 2]


def test_datasets_do_not_go_into_batches():
    with pytest.raises(TypeError, match="flat_map"):
        Dataset.range(5).window(2).batch(2)


def test_iterators_over_windows_as_arguments():
    @ag.function
    def first_of_next(iterator):
        return next(iterator).get_single_element()

    iterator = iter(Dataset.range(3).window(1))
    assert [int(first_of_next(iterator)) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ag.errors.InvalidArgumentError, match="more than one"):
        first_of_next(iter(Dataset.range(3).window(2)))


def test_a_window_has_elements_only_when_the_program_runs():
    @ag.function
    def as_list(ds):
        for window in ds:
            list(window)

    with pytest.raises(ag.errors.OperatorNotAllowedInGraphError):
        as_list(Dataset.range(3).window(2))


@pytest.mark.parametrize("numbers", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_bad_windows(numbers):
    size, shift, stride = numbers
    with pytest.raises(ag.errors.InvalidArgumentError, match="greater than zero"):
        Dataset.range(5).window(size, shift, stride)


class TestGroups:
    def test_reduce_func_sees_the_key(self):
        def reduce(key, group):
            return group.map(lambda x: (key, x)).batch(4)

        groups = Dataset.range(6).group_by_window(lambda x: x % 2, reduce, 4)
        assert [(k.numpy().tolist(), x.numpy().tolist()) for k, x in groups] == [
            ([0, 0, 0], [0, 2, 4]), ([1, 1, 1], [1, 3, 5]),
        ]  # fmt: skip

    def test_one_of_two_sizes(self):
        for sizes in ({}, {"window_size": 2, "window_size_func": lambda key: 2}):
            with pytest.raises(ValueError, match="window_size"):
                Dataset.range(3).group_by_window(lambda x: x, lambda k, d: d, **sizes)
        with pytest.raises(ag.errors.InvalidArgumentError, match="greater than zero"):
            list(Dataset.range(3).group_by_window(lambda x: x, lambda k, d: d, 0))

    def test_reduce_func_gives_a_dataset(self):
        with pytest.raises(TypeError, match="Dataset"):
            Dataset.range(3).group_by_window(lambda x: x, lambda k, d: k, 1)

    def test_group_by_reducer(self):
        reducer = ag.data.experimental.Reducer(
            lambda key: (np.int64(0), np.int64(0)), lambda state, x: (state[0] + x, state[1] + 1), lambda s, n: (s, n)
        )
        found = Dataset.range(7).apply(ag.data.experimental.group_by_reducer(lambda x: x % 3, reducer))
        assert [(int(s), int(n)) for s, n in found] == [(9, 3), (5, 2), (7, 2)]

    def test_in_a_staged_loop(self):
        @ag.function
        def digits(ds):
            s = ag.constant(0, ag.int64)
            for batch in ds:
                s = s * 100 + ag.reduce_sum(batch)
            return s

        assert int(digits(Dataset.range(8).group_by_window(lambda x: x % 2, lambda k, d: d.batch(2), 2))) == 2041012


class TestBuckets:
    def test_counts(self):
        with pytest.raises(ValueError, match="bucket_batch_sizes"):
            Dataset.range(3).bucket_by_sequence_length(lambda x: x, [1], [1])
        with pytest.raises(ValueError, match="strictly increasing"):
            Dataset.range(3).bucket_by_sequence_length(lambda x: x, [2, 1], [1, 1, 1])

    def test_too_long(self):
        rows = Dataset.range(4).map(lambda x: ag.fill([ag.cast(x, ag.int32)], x))
        buckets = rows.bucket_by_sequence_length(lambda x: ag.shape(x)[0], [2], [2, 2], pad_to_bucket_boundary=True)
        with pytest.raises(ag.errors.InvalidArgumentError, match="max"):
            list(buckets)

    def test_without_padding(self):
        buckets = Dataset.range(6).bucket_by_sequence_length(lambda x: x, [3], [2, 3], no_padding=True)
        assert [b.numpy().tolist() for b in buckets] == [[0, 1], [3, 4, 5], [2]]


class TestResampling:
    def test_classes_become_as_frequent_as_asked_for(self):
        rare = Dataset.range(4000).map(lambda x: ag.cast(x % 10 == 0, ag.int32))
        for initial in ([0.9, 0.1], None):
            pairs = list(rare.repeat().rejection_resample(lambda x: x, [0.5, 0.5], initial, seed=3).take(2000))
            assert all(int(c) == int(x) for c, x in pairs)
            assert abs(np.mean([int(c) for c, _ in pairs]) - 0.5) < 0.05

    def test_weights(self):
        with pytest.raises(ValueError, match="weights"):
            Dataset.sample_from_datasets([Dataset.range(3)], [0.5, 0.5])
        with pytest.raises(ValueError, match="empty"):
            Dataset.sample_from_datasets([])

    def test_weights_from_a_dataset(self):
        weights = Dataset.from_tensor_slices([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
        found = Dataset.sample_from_datasets([Dataset.range(5), Dataset.range(10, 15)], weights, seed=1)
        assert [int(x) for x in found] == [0, 10, 11]

    def test_choices(self):
        with pytest.raises(TypeError, match="int64"):
            Dataset.choose_from_datasets([Dataset.range(3)], Dataset.from_tensors(0.0))
        with pytest.raises(ag.errors.InvalidArgumentError, match="out of range"):
            list(Dataset.choose_from_datasets([Dataset.range(3)], Dataset.range(5)))
        with pytest.raises(TypeError, match="One dataset can't hold elements of both"):
            Dataset.choose_from_datasets([Dataset.range(3), Dataset.from_tensors(0.0)], Dataset.range(2))


def test_a_spec_stands_for_datasets_in_signatures():
    traces = []

    @ag.function(input_signature=[ag.data.DatasetSpec(ag.TensorSpec([None], ag.int64))])
    def total(rows):
        traces.append(rows)
        found = ag.constant(0, ag.int64)
        for row in rows:
            found += ag.reduce_sum(row)
        return found

    numbers = ag.data.Dataset.range(6)
    assert int(total(numbers.batch(4))) == 15
    assert int(total(numbers.batch(3, drop_remainder=True))) == 15  # a shape that says more
    concrete = total.get_concrete_function()
    assert int(concrete(numbers.map(lambda x: ag.stack([x, x])))) == 30
    assert len(traces) == 1
    with pytest.raises(TypeError, match="a dataset with elements of .* is wanted"):
        total(numbers)
    with pytest.raises(TypeError, match="incompatible with input_signature"):
        total(ag.data.Dataset.zip(numbers, numbers))
    with pytest.raises(TypeError, match="doesn't have the structure"):
        concrete(numbers)
