"""Datasets run through in Python: what each transformation gives, its spec and its length."""

import linecache

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


def test_functions_of_libraries_are_not_converted():
    """As in TensorFlow, where Keras' own functions run as they are."""
    source = "def absolute(x):\n    return x if x > 0 else -x\n"
    user, library = {"__name__": "__main__"}, {"__name__": "keras.src.somewhere"}
    for namespace in (user, library):
        linecache.cache[f"<{namespace['__name__']}>"] = (len(source), None, source.splitlines(True), "")
        exec(compile(source, f"<{namespace['__name__']}>", "exec"), namespace)
    numbers = Dataset.from_tensor_slices([-1, 2])
    assert [int(x) for x in numbers.map(user["absolute"])] == [1, 2]
    with pytest.raises(ag.errors.OperatorNotAllowedInGraphError):
        numbers.map(library["absolute"])


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
    with pytest.raises(TypeError, match="doesn't match"):
        list(Dataset.from_generator(lambda: iter([[1, 2, 3]]), output_signature=signature))
    with pytest.raises(TypeError, match="structure"):
        list(Dataset.from_generator(lambda: iter([1]), output_signature=(signature, signature)))
    with pytest.raises(TypeError, match="output_signature"):
        Dataset.from_generator(lambda: iter([1]))


@pytest.mark.parametrize("error", [TypeError, ValueError])
def test_errors_of_generators_are_pythons_and_tensorflows(error):
    def numbers():
        yield 1
        raise error("three")

    elements = iter(Dataset.from_generator(numbers, output_signature=ag.TensorSpec([], ag.int32)).prefetch(2))
    assert int(next(elements)) == 1
    with pytest.raises(error, match=f"^{error.__name__}: three") as caught:
        next(elements)
    assert isinstance(caught.value, ag.errors.InvalidArgumentError) and caught.value.error_code == 3


def test_other_errors_of_generators_stay_what_they_are():
    def numbers(error):
        yield 1
        raise error

    for error in (KeyError("three"), ag.errors.DataLossError(None, None, "three")):
        with pytest.raises(type(error), match="three") as caught:
            list(
                Dataset.from_generator(lambda error=error: numbers(error), output_signature=ag.TensorSpec([], ag.int32))
            )
        assert caught.value is error


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

    def test_the_order_is_tensorflows(self):
        """Orders that TensorFlow 2.21 gave."""
        ag.random.set_seed(None)  # which others may have set
        whole = Dataset.range(12).shuffle(12, seed=5)
        assert values(whole) == [1, 0, 7, 11, 9, 10, 3, 5, 4, 8, 6, 2]
        assert values(whole) == [8, 1, 3, 4, 7, 6, 10, 11, 0, 9, 2, 5], "the second iteration goes on with the seeds"
        small = Dataset.range(12).shuffle(3, seed=5)
        assert values(small) == [1, 3, 4, 5, 2, 7, 8, 0, 6, 9, 11, 10]
        same = Dataset.range(12).shuffle(12, seed=5, reshuffle_each_iteration=False).repeat(2)
        assert values(same) == [7, 3, 6, 11, 4, 1, 0, 9, 8, 2, 5, 10] * 2
        try:
            ag.random.set_seed(9)
            seeded = Dataset.range(12).shuffle(12)
            assert values(seeded) == [7, 5, 9, 4, 10, 8, 2, 11, 0, 1, 6, 3]
            assert values(Dataset.range(12).shuffle(12)) == [3, 8, 1, 2, 0, 11, 6, 10, 9, 7, 5, 4]
            ag.random.set_seed(5)
            epochs = Dataset.range(8).shuffle(8)
            assert values(epochs) == [1, 5, 2, 0, 3, 6, 4, 7], "each iteration has an order of its own"
            assert values(epochs) == [7, 2, 4, 5, 6, 1, 0, 3]
            assert values(epochs) == [7, 0, 6, 5, 3, 4, 2, 1]
            ag.random.set_seed(5)
            repeated = Dataset.range(5).shuffle(5).repeat(3)
            assert values(repeated) == [2, 1, 0, 4, 3, 4, 2, 0, 3, 1, 1, 2, 3, 4, 0]
            assert values(repeated) == [2, 3, 0, 1, 4, 3, 0, 4, 2, 1, 4, 3, 1, 0, 2]
            ag.random.set_seed(5)
            same = Dataset.range(8).shuffle(8, reshuffle_each_iteration=False)
            assert values(same) == values(same) == [6, 2, 4, 1, 7, 5, 3, 0]
        finally:
            ag.random.set_seed(None)

    def test_mapped_functions_draw_the_same_numbers_in_each_iteration(self):
        """Numbers that TensorFlow 2.21 gave."""
        try:
            ag.random.set_seed(8)
            drawn = Dataset.range(3).map(lambda x: ag.random.uniform([]))
            for _ in range(2):
                np.testing.assert_allclose(values(drawn), [0.37862217, 0.1737808, 0.26966965], rtol=1e-6)
            ag.random.set_seed(8)
            orders = Dataset.range(2).map(lambda x: ag.random.shuffle(ag.range(5))).repeat(2)
            for _ in range(2):
                assert [order.numpy().tolist() for order in orders] == [
                    [1, 3, 0, 4, 2], [2, 1, 3, 4, 0], [4, 1, 3, 2, 0], [3, 2, 1, 0, 4]
                ]  # fmt: skip
        finally:
            ag.random.set_seed(None)
        assert values(drawn) != values(drawn), "without a seed"

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
    with pytest.raises(ag.errors.InvalidArgumentError, match="does not have a value"):
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
    with pytest.raises(TypeError, match="One dataset can't hold elements of both"):
        Dataset.range(3).concatenate(Dataset.from_tensor_slices([1.0]))
    with pytest.raises(ag.errors.InvalidArgumentError, match="more than one"):
        Dataset.range(3).get_single_element()
    assert int(Dataset.range(4, 5).get_single_element()) == 4


# --- ragged and sparse tensors ---------------------------------------------------------------------------------------


def test_rows_of_ragged_tensors_batch_to_ragged_tensors():
    dataset = Dataset.from_tensor_slices(
        {"names": ag.ragged.constant([["a", "b"], [], ["c"]]), "sizes": ag.ragged.constant([[1, 2], [], [3]])}
    )
    assert [element["sizes"].numpy().tolist() for element in dataset] == [[1, 2], [], [3]]
    assert dataset.element_spec["sizes"] == ag.RaggedTensorSpec([None], ag.int32, 0)
    batches = dataset.batch(2)
    assert [batch["names"].to_list() for batch in batches] == [[[b"a", b"b"], []], [[b"c"]]]
    assert batches.element_spec["sizes"] == ag.RaggedTensorSpec([None, None], ag.int32, 1)
    assert [element["names"].numpy().tolist() for element in batches.unbatch()] == [[b"a", b"b"], [], [b"c"]]
    assert [batch["sizes"].to_list() for batch in batches.batch(2)] == [[[[1, 2], []], [[3]]]]
    doubled = dataset.map(lambda element: {"twice": element["sizes"] * 2, "ranges": ag.ragged.range(element["sizes"])})
    assert [element["twice"].numpy().tolist() for element in doubled] == [[2, 4], [], [6]]
    assert [element["ranges"].to_list() for element in doubled] == [[[0], [0, 1]], [], [[0, 1, 2]]]
    with pytest.raises(ValueError, match="needs tensors with equal numbers of rows"):
        Dataset.from_tensor_slices((ag.ragged.constant([[1], [2]]), [1, 2, 3]))


def test_elements_of_different_sizes_batch_to_ragged_tensors():
    ranges = Dataset.from_tensor_slices([1, 3, 0]).map(ag.range)
    assert [batch.to_list() for batch in ranges.ragged_batch(2)] == [[[0], [0, 1, 2]], [[]]]
    assert [batch.to_list() for batch in ranges.ragged_batch(2, drop_remainder=True)] == [[[0], [0, 1, 2]]]
    applied = ranges.apply(ag.data.experimental.dense_to_ragged_batch(3))
    assert [batch.to_list() for batch in applied] == [[[0], [0, 1, 2], []]]
    wide = Dataset.from_tensor_slices([1, 2]).map(lambda n: ag.ones([n, 3]))
    (batch,) = wide.ragged_batch(2)
    assert batch.ragged_rank == 1 and batch.shape.as_list() == [2, None, 3]
    squares = Dataset.from_tensor_slices([1, 2]).map(lambda n: ag.ones([n, n], ag.int32))
    (batch,) = squares.ragged_batch(2)
    assert batch.to_list() == [[[1]], [[1, 1], [1, 1]]]
    (plain,) = Dataset.range(3).ragged_batch(3)
    assert plain.numpy().tolist() == [0, 1, 2]


def test_rows_of_sparse_tensors():
    table = np.array([[0, 5, 0], [0, 0, 0], [7, 0, 8]])
    dataset = Dataset.from_tensor_slices(ag.sparse.from_dense(table))
    assert dataset.element_spec == ag.SparseTensorSpec([3], ag.int64) and len(dataset) == 3
    dense = ag.sparse.to_dense
    assert [dense(element).numpy().tolist() for element in dataset] == table.tolist()
    assert [dense(batch).numpy().tolist() for batch in dataset.batch(2)] == [table[:2].tolist(), table[2:].tolist()]
    assert [dense(element).numpy().tolist() for element in dataset.batch(2).unbatch()] == table.tolist()
    assert [dense(element).numpy().tolist() for element in dataset.map(lambda x: x * 2)] == (2 * table).tolist()


def test_loops_over_rows_of_ragged_and_sparse_tensors_in_functions():
    rows = ag.ragged.constant([[1.0, 2.0], [], [3.0]])

    @ag.function
    def total(ragged, sparse):
        result = 0.0
        for row in Dataset.from_tensor_slices(ragged):
            result += ag.reduce_sum(row) ** 2
        for row in Dataset.from_tensor_slices(sparse):
            result += ag.reduce_sum(row.values)
        for batch in Dataset.from_tensor_slices(ragged).batch(2):
            result += ag.reduce_sum(batch)
        return result

    table = ag.sparse.from_dense([[0.0, 5.0], [7.0, 0.0]])
    with ag.GradientTape() as tape:
        tape.watch(rows.flat_values)
        value = total(rows, table)
    assert float(value) == 9 + 9 + 12 + 6
    assert tape.gradient(value, rows.flat_values).numpy().tolist() == [7.0, 7.0, 7.0]


@pytest.mark.parametrize("wrong", [2.5, "3", ag.constant(2.0)])
def test_counts_are_integers(wrong):
    for method in ("batch", "take", "skip", "repeat", "shuffle"):
        with pytest.raises(TypeError, match="must be an integer that is known when the dataset is made"):
            getattr(ag.data.Dataset.range(5), method)(wrong)
    assert len(list(ag.data.Dataset.range(5).batch(np.int32(2)))) == len(list(ag.data.Dataset.range(5).batch(2)))


class TestListsThatFunctionsGive:
    """A list is a tuple, and a tensor deeper in an element. Values and specs are TensorFlow 2.21's."""

    number = ag.TensorSpec([], ag.int64)

    def test_a_list_is_a_tuple(self):
        mapped = Dataset.range(2).map(lambda x: [x, "a"])
        assert mapped.element_spec == (self.number, ag.TensorSpec([], ag.string))
        assert list(mapped.as_numpy_iterator()) == [(0, b"a"), (1, b"a")]
        assert values(Dataset.range(2).map(lambda x: [x, x + 1]).map(lambda a, b: a * 10 + b)) == [1, 12]
        of_python = Dataset.range(2).map(lambda x: ag.py_function(lambda v: [v, "s"], [x], [ag.int64, ag.string]))
        assert values(of_python.map(lambda a, b: b)) == [b"s", b"s"]

    def test_a_list_deeper_is_a_tensor(self):
        mapped = Dataset.range(2).map(lambda x: (x, {"a": [x, x + 1]}))
        assert mapped.element_spec == (self.number, {"a": ag.TensorSpec([2], ag.int64)})
        first, second = mapped.as_numpy_iterator()
        assert (first[0], first[1]["a"].tolist(), second[1]["a"].tolist()) == (0, [0, 1], [1, 2])
        scanned = Dataset.range(2).scan(np.int64(0), lambda state, x: (state + x, [x, x]))
        assert scanned.element_spec == ag.TensorSpec([2], ag.int64)

    def test_beside_datasets(self):
        windows = Dataset.range(4).window(2).map(lambda window: [window.batch(2), 1])
        assert [(values(rows), int(one)) for rows, one in windows] == [([[0, 1]], 1), ([[2, 3]], 1)]
