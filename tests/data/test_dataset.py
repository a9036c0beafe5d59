"""Datasets run through in Python: what each transformation gives, its spec and its length."""

import numpy as np
import pytest

import autograph as ag

Dataset = ag.data.Dataset


def values(dataset):
    return [np.asarray(x).tolist() if not isinstance(x, (tuple, dict)) else x for x in dataset.as_numpy_iterator()]


NUMBERS = {
    "range": (lambda: Dataset.range(3), [0, 1, 2]),
    "range of three bounds": (lambda: Dataset.range(7, 1, -2), [7, 5, 3]),
    "one element": (lambda: Dataset.from_tensors([1, 2]), [[1, 2]]),
    "slices": (lambda: Dataset.from_tensor_slices([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    "map": (lambda: Dataset.range(3).map(lambda x: x * x), [0, 1, 4]),
    "filter": (lambda: Dataset.range(6).filter(lambda x: x % 3 == 0), [0, 3]),
    "take_while": (lambda: Dataset.range(9).take_while(lambda x: x < 3), [0, 1, 2]),
    "take": (lambda: Dataset.range(9).take(2), [0, 1]),
    "take more than there is": (lambda: Dataset.range(2).take(5), [0, 1]),
    "take all": (lambda: Dataset.range(3).take(-1), [0, 1, 2]),
    "skip": (lambda: Dataset.range(4).skip(2), [2, 3]),
    "skip all": (lambda: Dataset.range(4).skip(-1), []),
    "skip then take": (lambda: Dataset.range(9).skip(2).take(3).skip(1), [3, 4]),
    "repeat": (lambda: Dataset.range(2).repeat(3), [0, 1, 0, 1, 0, 1]),
    "repeat without end": (lambda: Dataset.range(2).repeat().take(5), [0, 1, 0, 1, 0]),
    "repeat nothing": (lambda: Dataset.range(0).repeat(), []),
    "batch": (lambda: Dataset.range(5).batch(2), [[0, 1], [2, 3], [4]]),
    "batch of whole ones": (lambda: Dataset.range(5).batch(2, drop_remainder=True), [[0, 1], [2, 3]]),
    "unbatch": (lambda: Dataset.range(5).batch(2).unbatch(), [0, 1, 2, 3, 4]),
    "concatenate": (lambda: Dataset.range(2).concatenate(Dataset.range(5, 7)), [0, 1, 5, 6]),
    "scan": (lambda: Dataset.range(4).scan(np.int64(10), lambda s, x: (s + x, s * 2)), [20, 20, 22, 26]),
    "cache and prefetch": (lambda: Dataset.range(3).cache().prefetch(2), [0, 1, 2]),
    "apply": (lambda: Dataset.range(3).apply(lambda each: each.take(1)), [0]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_elements(name):
    make, expected = NUMBERS[name]
    dataset = make()
    assert values(dataset) == expected
    assert values(dataset) == expected  # each loop makes them anew
    count = int(dataset.cardinality())
    assert count in (len(expected), ag.data.UNKNOWN_CARDINALITY)
    for element in dataset:
        assert dataset.element_spec.is_compatible_with(element)


def test_structures():
    dataset = Dataset.from_tensor_slices({"x": [[1.0, 2.0], [3.0, 4.0]], "y": ([1, 2], np.array([5, 6], np.int8))})
    assert dataset.element_spec == {
        "x": ag.TensorSpec([2], ag.float32),
        "y": (ag.TensorSpec([], ag.int32), ag.TensorSpec([], ag.int8)),
    }
    first = next(iter(dataset))
    assert first["x"].numpy().tolist() == [1.0, 2.0]
    assert [int(part) for part in first["y"]] == [1, 5]


def test_parts_of_a_tuple_are_the_arguments_of_functions():
    pairs = Dataset.zip(Dataset.range(3), Dataset.range(10, 20))
    assert [(int(i), int(x)) for i, x in pairs] == [(0, 10), (1, 11), (2, 12)]
    assert values(pairs.map(lambda i, x: i * x)) == [0, 11, 24]
    assert [(int(i), int(x)) for i, x in pairs.filter(lambda i, x: i > 1)] == [(2, 12)]
    named = Dataset.zip({"i": Dataset.range(2), "x": Dataset.range(5, 9)})
    assert values(named.map(lambda each: each["x"] - each["i"])) == [5, 5]


def test_enumerate_and_batches_of_structures():
    dataset = Dataset.from_tensor_slices([2.0, 4.0, 6.0]).enumerate(start=5)
    assert [(int(i), float(x)) for i, x in dataset] == [(5, 2.0), (6, 4.0), (7, 6.0)]
    numbers, items = next(iter(dataset.batch(2)))
    assert (numbers.numpy().tolist(), items.numpy().tolist()) == ([5, 6], [2.0, 4.0])
    assert dataset.batch(2).element_spec == (ag.TensorSpec([None], ag.int64), ag.TensorSpec([None], ag.float32))


def test_reduce():
    assert int(Dataset.range(5).reduce(np.int64(0), lambda total, x: total + x)) == 10
    total, count = Dataset.range(5).reduce((np.int64(0), 0), lambda state, x: (state[0] + x, state[1] + 1))
    assert (int(total), int(count)) == (10, 5)
    assert total.dtype is ag.int64 and count.dtype is ag.int32


def test_from_generator():
    def count(stop):
        for i in range(stop):
            yield i, [float(i)] * i

    signature = (ag.TensorSpec([], ag.int32), ag.TensorSpec([None], ag.float32))
    dataset = Dataset.from_generator(count, args=[3], output_signature=signature)
    assert [(int(i), x.numpy().tolist()) for i, x in dataset] == [(0, []), (1, [1.0]), (2, [2.0, 2.0])]
    assert dataset.element_spec == signature
    older = Dataset.from_generator(lambda: iter([[1, 2]]), output_types=ag.int64, output_shapes=[2])
    assert older.element_spec == ag.TensorSpec([2], ag.int64)
    assert values(older) == [[1, 2]]


def test_a_generator_that_breaks_its_promise():
    signature = ag.TensorSpec([2], ag.int32)
    with pytest.raises(TypeError, match="doesn't fit"):
        list(Dataset.from_generator(lambda: iter([[1, 2, 3]]), output_signature=signature))
    with pytest.raises(TypeError, match="structure"):
        list(Dataset.from_generator(lambda: iter([1]), output_signature=(signature, signature)))
    with pytest.raises(TypeError, match="output_signature"):
        Dataset.from_generator(lambda: iter([1]))


class TestShuffle:
    def test_is_a_permutation_within_the_buffer(self):
        got = values(Dataset.range(50).shuffle(7))
        assert sorted(got) == list(range(50))
        assert all(number < place + 7 for place, number in enumerate(got))

    def test_a_seed_gives_the_same_runs_again(self):
        def runs():
            dataset = Dataset.range(20).shuffle(20, seed=3)
            return values(dataset), values(dataset)

        first, second = runs()
        assert (first, second) == runs()
        assert first != second

    def test_the_order_may_stay(self):
        dataset = Dataset.range(20).shuffle(20, reshuffle_each_iteration=False)
        assert values(dataset) == values(dataset)
        assert values(dataset) != list(range(20))


def test_cache_runs_its_source_once():
    runs = []

    def source():
        runs.append(1)
        yield from (1, 2, 3)

    dataset = Dataset.from_generator(source, output_signature=ag.TensorSpec([], ag.int32)).cache()
    assert values(dataset.take(2)) == [1, 2]  # not complete: nothing is kept
    assert values(dataset) == values(dataset) == [1, 2, 3]
    assert len(runs) == 2


def test_lengths():
    assert len(Dataset.range(10).batch(4)) == 3
    assert int(Dataset.range(3).repeat().cardinality()) == ag.data.INFINITE_CARDINALITY
    with pytest.raises(TypeError, match="infinite"):
        len(Dataset.range(3).repeat())
    with pytest.raises(TypeError, match="unknown"):
        len(Dataset.range(3).filter(lambda x: x > 1))
    assert Dataset.range(0)  # true however many elements there are, as in TensorFlow


def test_iterators():
    iterator = iter(Dataset.range(3))
    assert iterator.element_spec == ag.TensorSpec([], ag.int64)
    assert int(next(iterator)) == 0
    assert int(iterator.get_next()) == 1
    optional = iterator.get_next_as_optional()
    assert bool(optional.has_value()) and int(optional.get_value()) == 2
    assert not bool(iterator.get_next_as_optional().has_value())
    with pytest.raises(ag.errors.InvalidArgumentError, match="no value"):
        iterator.get_next_as_optional().get_value()
    with pytest.raises(ag.errors.OutOfRangeError, match="End of sequence"):
        iterator.get_next()
    with pytest.raises(StopIteration):
        next(iterator)


def test_what_is_refused():
    with pytest.raises(ValueError, match="scalar"):
        Dataset.from_tensor_slices(3)
    with pytest.raises(ValueError, match="rows"):
        Dataset.from_tensor_slices(([1, 2], [1, 2, 3]))
    with pytest.raises(ValueError, match="batch_size"):
        Dataset.range(3).batch(0)
    with pytest.raises(TypeError, match="don't go into one"):
        Dataset.range(3).concatenate(Dataset.from_tensor_slices([1.0]))
    with pytest.raises(ag.errors.InvalidArgumentError, match="more than one"):
        Dataset.range(3).get_single_element()
    assert int(Dataset.range(4, 5).get_single_element()) == 4
