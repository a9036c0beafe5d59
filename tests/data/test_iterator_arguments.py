"""Iterators over datasets as arguments of functions: one trace for all that have the same kind of elements."""

import gc
import weakref

import pytest

import autograph as ag


def test_iterators_share_a_trace_and_go_on_where_they_stand():
    @ag.function
    def two(iterator):
        return iterator.get_next() + next(iterator)

    @ag.function
    def rest(iterator):
        total = ag.constant(0, ag.int64)
        for x in iterator:
            total += x
        return total

    for size in range(4, 8):
        iterator = iter(ag.data.Dataset.range(size))
        assert int(two(iterator)) == 1
        assert int(rest(iterator)) == sum(range(2, size))
        assert list(iterator) == []
    assert two.experimental_get_tracing_count() == rest.experimental_get_tracing_count() == 1


def test_other_elements_are_another_trace():
    @ag.function
    def first(iterator):
        return iterator.get_next()

    assert int(first(iter(ag.data.Dataset.range(3)))) == 0
    assert first(iter(ag.data.Dataset.from_tensors({"a": 1.0})))["a"].numpy() == 1
    assert first.experimental_get_tracing_count() == 2


def test_an_iterator_comes_out_as_it_went_in():
    @ag.function
    def same(iterator):
        return iterator

    iterator = iter(ag.data.Dataset.range(3))
    assert same(iterator) is iterator


def test_a_function_keeps_no_iterator():
    @ag.function
    def first(iterator):
        return iterator.get_next()

    iterator = iter(ag.data.Dataset.range(3))
    first(iterator)
    gone = weakref.ref(iterator)
    del iterator
    gc.collect()
    assert gone() is None


def test_the_end_in_a_function():
    @ag.function
    def first(iterator):
        return iterator.get_next()

    iterator = iter(ag.data.Dataset.range(1))
    first(iterator)
    with pytest.raises(ag.errors.OutOfRangeError, match="End of sequence"):
        first(iterator)


def test_the_spec_in_a_signature():
    spec = ag.data.IteratorSpec(ag.TensorSpec([], ag.int64))

    @ag.function(input_signature=[spec])
    def first(iterator):
        return iterator.get_next()

    assert int(first(iter(ag.data.Dataset.range(3)))) == 0
    assert spec == ag.data.IteratorSpec.from_value(iter(ag.data.Dataset.range(5)))
    assert "int64" in repr(spec)


def test_optionals_of_other_structures_are_other_traces():
    @ag.function
    def value(optional):
        return optional.get_value()

    for name in "ab":
        assert value(ag.data.Optional.from_value({name: 1.0})).keys() == {name}
    assert value.experimental_get_tracing_count() == 2


def test_a_mapped_function_may_change_its_element():
    def with_more(element):
        element["b"] = element["a"] * 2
        del element["a"]
        return element

    found = list(ag.data.Dataset.from_tensor_slices({"a": [1, 2]}).map(with_more))
    assert [{key: int(value) for key, value in each.items()} for each in found] == [{"b": 2}, {"b": 4}]


def test_rebatching():
    batches = ag.data.Dataset.range(7).batch(3).rebatch(2)
    assert [each.numpy().tolist() for each in batches] == [[0, 1], [2, 3], [4, 5], [6]]
    assert [each.numpy().tolist() for each in ag.data.Dataset.range(7).batch(3).rebatch(2, True)][-1] == [4, 5]


def test_sizes_of_batches_that_can_not_take_turns_are_refused():
    batches = ag.data.Dataset.range(7).batch(3)
    for sizes in ([], [0, 0], [2, -1]):
        with pytest.raises(ValueError, match="batch_size must hold sizes of at least 0"):
            batches.rebatch(sizes)
    with pytest.raises(ValueError, match="got an array of rank 2"):
        batches.rebatch([[1, 2]])
    with pytest.raises(TypeError, match="must be an integer"):
        batches.rebatch([1.5])


def test_an_iterator_over_arrays():
    iterator = ag.data.Dataset.from_tensor_slices({"a": [[1, 2], [3, 4]]}).as_numpy_iterator()
    assert isinstance(iterator, ag.data.NumpyIterator)
    assert iterator.next()["a"].tolist() == [1, 2]
    assert next(iterator)["a"].tolist() == [3, 4]
    with pytest.raises(StopIteration):
        iterator.next()
    with pytest.raises(RuntimeError, match="gives values, which there are none of while a function is traced"):
        ag.function(lambda: ag.data.Dataset.range(2).as_numpy_iterator())()
