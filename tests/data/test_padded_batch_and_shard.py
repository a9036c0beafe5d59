"""`padded_batch` and `shard`: elements of different sizes in one batch, every n-th element. Strings as elements."""

import numpy as np
import pytest

import autograph as ag


def lists(dataset):
    return [ag.nest.map_structure(lambda each: each.numpy().tolist(), element) for element in dataset]


def growing(count):
    return ag.data.Dataset.range(1, count + 1).map(lambda x: ag.fill([x], x))


def test_batches_are_as_wide_as_their_widest_element():
    batches = growing(5).padded_batch(2)
    assert lists(batches) == [[[1, 0], [2, 2]], [[3, 3, 3, 0], [4, 4, 4, 4]], [[5, 5, 5, 5, 5]]]
    assert batches.element_spec == ag.TensorSpec([None, None], ag.int64)
    assert int(batches.cardinality()) == 3
    assert len(lists(growing(5).padded_batch(2, drop_remainder=True))) == 2


def test_given_shapes_and_values():
    assert lists(growing(2).padded_batch(2, padded_shapes=[4], padding_values=-1)) == [
        [[1, -1, -1, -1], [2, 2, -1, -1]]
    ]
    both = growing(3).map(lambda x: {"a": x, "b": (ag.size(x), ag.as_string(x))})
    found = lists(both.padded_batch(3, padded_shapes={"a": [-1], "b": ([], [None])}))[0]
    assert found["a"] == [[1, 0, 0], [2, 2, 0], [3, 3, 3]]
    assert found["b"][0] == [1, 2, 3]
    assert found["b"][1] == [[b"1", b"", b""], [b"2", b"2", b""], [b"3", b"3", b"3"]]


def test_scalar_strings_are_padded():
    words = ag.data.Dataset.from_tensor_slices(["a", "bc", "d"]).padded_batch(2)
    assert lists(words) == [[b"a", b"bc"], [b"d"]]


def test_what_does_not_fit_is_an_error():
    with pytest.raises(ag.errors.DataLossError, match="smaller size"):
        lists(growing(3).padded_batch(3, padded_shapes=[2]))
    with pytest.raises(ValueError, match="not compatible"):
        growing(3).padded_batch(3, padded_shapes=[2, 2])


def test_padded_batches_in_a_function():
    @ag.function
    def total(dataset):
        found = ag.constant(0, ag.int64)
        for batch in dataset:
            found += ag.reduce_sum(batch) * ag.shape(batch, ag.int64)[1]
        return found

    assert int(total(growing(5).padded_batch(2))) == 5 * 2 + 25 * 4 + 25 * 5


def test_shards_divide_the_elements():
    whole = ag.data.Dataset.range(7)
    shards = [whole.shard(3, index) for index in range(3)]
    assert [lists(each) for each in shards] == [[0, 3, 6], [1, 4], [2, 5]]
    assert [int(each.cardinality()) for each in shards] == [3, 2, 2]
    assert int(whole.repeat().shard(2, 0).cardinality()) == ag.data.INFINITE_CARDINALITY
    for wrong in (3, -1):
        with pytest.raises(ag.errors.InvalidArgumentError, match="index must be between 0 and 2"):
            whole.shard(3, wrong)


def test_strings_are_elements_like_others():
    dataset = ag.data.Dataset.from_tensor_slices({"text": ["a", "bb"], "number": [1, 2]})

    @ag.function
    def length(element):
        return ag.strings.length(element["text"]) * element["number"]

    for way in (dataset, dataset.shuffle(1), dataset.batch(1).unbatch(), dataset.repeat(1), dataset.cache()):
        assert [int(length(element)) for element in way] == [1, 4]
        assert [element["text"].shape for element in way] == [(), ()]
        assert "shape=()" in repr(next(iter(way))["text"])
    only = ag.data.Dataset.from_tensor_slices(["x", "yy"])
    assert [each.numpy() for each in only.map(ag.strings.upper)] == [b"X", b"YY"]
    assert np.array_equal(next(iter(only.batch(2))).numpy(), [b"x", b"yy"])
