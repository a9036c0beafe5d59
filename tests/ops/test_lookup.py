"""`ag.lookup`: tables, eager and staged. The expected values, classes of errors and buckets are TensorFlow 2.21's."""

import gc
import threading

import numpy as np
import pytest

import autograph as ag
from runtime.ops import hash_tables

E = ag.errors.InvalidArgumentError
Mutable = ag.lookup.experimental.MutableHashTable
I = ag.lookup.KeyValueTensorInitializer
F, X = ag.lookup.TextFileInitializer, ag.lookup.TextFileIndex
NUMBERS = ag.constant([0, 1], ag.int64)


def words(*keys):
    return ag.constant(list(keys))


@pytest.fixture
def table():
    return ag.lookup.StaticHashTable(I(["a", "b"], ag.constant([1, 2], ag.int64)), -1)


def test_a_static_table(table):
    assert table.lookup(ag.constant([["a", "z"], ["b", "a"]])).numpy().tolist() == [[1, -1], [2, 1]]
    assert int(table[ag.constant("b")]) == 2
    assert int(table.size()) == 2
    keys, values = table.export()
    assert (keys.numpy().tolist(), values.numpy().tolist()) == ([b"a", b"b"], [1, 2])
    assert (table.key_dtype, table.value_dtype, int(table.default_value)) == (ag.string, ag.int64, -1)


def test_keys_in_ragged_and_sparse_tensors(table):
    assert table.lookup(ag.ragged.constant([["a"], ["b", "c"]])).to_list() == [[1], [2, -1]]
    found = table.lookup(ag.SparseTensor([[0, 1]], ["b"], [2, 2]))
    assert (found.values.numpy().tolist(), found.shape.as_list()) == ([2], [2, 2])


@pytest.mark.parametrize(
    "keys, values, default, wanted, expected",
    [
        ([5, 7], ["x", "y"], "?", [7, 1], [b"y", b"?"]),
        ([5, 7], [0.5, 1.5], -1.0, [7, 1], [1.5, -1.0]),
        (["p", "q"], [True, False], True, ["q", "r"], [False, True]),
        ([], [], 0, [], []),
    ],
)
def test_keys_and_values_of_other_dtypes(keys, values, default, wanted, expected):
    made = ag.lookup.StaticHashTable(
        I(keys, values) if keys else I(keys, values, ag.string, ag.int32), ag.constant(default) if values else default
    )
    key_dtype = made.key_dtype
    assert made.lookup(ag.constant(wanted, key_dtype)).numpy().tolist() == expected
    staged = ag.function(made.lookup, input_signature=[ag.TensorSpec([None], key_dtype)])
    assert staged(ag.constant(wanted, key_dtype)).numpy().tolist() == expected


@pytest.mark.parametrize("spec", [ag.TensorSpec([None, 2], ag.string), ag.TensorSpec(None, ag.string)])
def test_staged_lookups(table, spec):
    shapes = []

    @ag.function(input_signature=[spec])
    def f(keys):
        found = table.lookup(keys)
        shapes.append(found.shape)
        return ag.reduce_sum(found * 10) + table.size()

    assert int(f(ag.constant([["a", "b"], ["a", "?"]]))) == 32
    assert shapes[0].rank == spec.shape.rank


def test_a_table_that_is_made_while_tracing():
    @ag.function
    def f(keys):
        return ag.lookup.StaticHashTable(I(["a"], [5]), 0).lookup(keys)

    assert f(words("a", "b")).numpy().tolist() == [5, 0]


def test_embeddings_by_words_have_gradients(table):
    weights = ag.Variable(np.arange(6.0).reshape(3, 2))

    @ag.function
    def step(keys):
        with ag.GradientTape() as tape:
            rows = ag.gather(weights, table.lookup(keys) + 1)
            loss = ag.reduce_sum(rows * rows)
        return tape.gradient(loss, weights)

    slope = ag.convert_to_tensor(step(words("a", "?", "a")))
    assert slope.numpy().tolist() == [[0, 2], [0, 0], [16, 20]]


def test_the_index_of_a_table_goes_with_it():
    gc.collect()
    before = {*hash_tables._places}
    made = ag.lookup.StaticHashTable(I(["a"], [5]), 0)
    made.lookup(words("a"))
    (own,) = {*hash_tables._places} - before  # tables of other tests may go at any time
    del made
    gc.collect()
    assert own not in hash_tables._places


def test_a_vocabulary():
    made = ag.lookup.StaticVocabularyTable(I(["a", "b"], NUMBERS), 3)
    wanted = words("a", "x", "y", "zebra", "b")
    assert made.lookup(wanted).numpy().tolist() == [0, 4, 4, 4, 1]
    assert ag.function(made.lookup)(wanted).numpy().tolist() == [0, 4, 4, 4, 1]
    assert int(made.size()) == 5
    numbers = I(ag.constant([10, 20], ag.int64), NUMBERS)
    made = ag.lookup.StaticVocabularyTable(numbers, 5, lookup_key_dtype=ag.int32)
    assert made.lookup(ag.constant([10, 30, 40])).numpy().tolist() == [0, 5, 5]
    assert ag.lookup.StaticVocabularyTable(None, 5).lookup(words("a", "b")).numpy().tolist() == [4, 2]


def test_a_table_that_changes():
    made = ag.lookup.experimental.MutableHashTable(ag.string, ag.int64, -1)
    made.insert(words("a", "b", "a"), [1, 2, 3])
    assert made.lookup(words("a", "b", "c")).numpy().tolist() == [3, 2, -1]
    assert made.lookup(words("a", "b", "c"), [7, 8, 9]).numpy().tolist() == [3, 2, 9]
    assert made[ag.constant("b")].numpy() == 2
    made.remove(words("a", "zz"))
    made.insert("q", 4)
    assert int(made.size()) == 2
    keys, values = made.export()
    assert (keys.numpy().tolist(), values.numpy().tolist()) == ([b"b", b"q"], [2, 4])


def test_values_that_are_vectors():
    made = ag.lookup.experimental.MutableHashTable(ag.int64, ag.float32, [0.0, -1.0])
    made.insert([1, 2], [[1.0, 2.0], [3.0, 4.0]])
    found = made.lookup(ag.constant([[1, 5]], ag.int64))
    assert found.numpy().tolist() == [[[1.0, 2.0], [0.0, -1.0]]]
    assert made.export()[1].shape == [2, 2]


def test_changes_in_staged_code_keep_their_order():
    counts = ag.lookup.experimental.MutableHashTable(ag.string, ag.int64, 0)

    @ag.function
    def count(keys):
        for key in keys:
            counts.insert(key, counts.lookup(key) + 1)
            if counts.lookup(key) > 2:
                counts.remove(key)
        return counts.size(), counts.lookup(words("a", "b", "c"))

    size, found = count(words("a", "b", "a", "c", "c", "c"))
    assert (int(size), found.numpy().tolist()) == (2, [2, 1, 0])
    assert count(words("a"))[1].numpy().tolist() == [0, 1, 0]


def test_a_staged_export_sees_what_was_inserted():
    made = ag.lookup.experimental.MutableHashTable(ag.int64, ag.string, "")

    @ag.function
    def f(x):
        made.insert(x, ag.as_string(x))
        return made.export()

    keys, values = f(ag.constant([3, 1], ag.int64))
    assert (keys.numpy().tolist(), values.numpy().tolist()) == ([3, 1], [b"3", b"1"])


def test_threads_share_a_table():
    made = ag.lookup.experimental.MutableHashTable(ag.int64, ag.int64, 0)

    def fill(start):
        for i in range(200):
            made.insert(start + i, i)

    threads = [threading.Thread(target=fill, args=(1000 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int(made.size()) == 800


def test_a_dense_table():
    made = ag.lookup.experimental.DenseHashTable(ag.int64, ag.int64, -1, empty_key=0, deleted_key=-1)
    made.insert([1, 2], [10, 20])
    made.insert_or_assign([2], [21])
    made.erase([9])
    made.remove([1])
    assert made.lookup(ag.constant([1, 2, 3], ag.int64)).numpy().tolist() == [-1, 21, -1]
    assert int(made.size()) == 1
    for key, what in ((0, "empty_key"), (-1, "deleted_key")):
        with pytest.raises(E, match=what):
            made.lookup(ag.constant([5, key], ag.int64))
        with pytest.raises(E, match=what):
            made.insert([key], [1])


@pytest.fixture
def files(tmp_path):
    for name, text in {"words": "apple\nbanana\ncherry\n", "pairs": "a\t1\r\nb\t2", "commas": "a,1\nb\n",
                       "twice": "a\nb\na\n", "gap": "a\n\nb"}.items():  # fmt: skip
        (tmp_path / name).write_bytes(text.encode())
    return tmp_path


def test_tables_from_files(files):
    def made(*arguments, default=-1, **options):
        return ag.lookup.StaticHashTable(F(files / arguments[0], *arguments[1:], **options), default)

    numbered = ag.string, X.WHOLE_LINE, ag.int64, X.LINE_NUMBER
    assert made("words", *numbered).lookup(words("apple", "cherry", "x")).numpy().tolist() == [0, 2, -1]
    assert int(made("words", *numbered, vocab_size=2).size()) == 2
    moved = made("words", *numbered, value_index_offset=5)
    assert moved.lookup(words("banana")).numpy().tolist() == [6]
    back = made("words", ag.int64, X.LINE_NUMBER, ag.string, X.WHOLE_LINE, default="?")
    assert back.lookup(ag.constant([0, 7], ag.int64)).numpy().tolist() == [b"apple", b"?"]
    assert made("pairs", ag.string, 0, ag.int64, 1).lookup(words("a", "b")).numpy().tolist() == [1, 2]
    for name, error, message, options in [
        ("commas", E, "number of columns", {"delimiter": ","}),
        ("twice", ag.errors.FailedPreconditionError, "same key", {}),
        ("gap", E, "empty line", {}), ("none", ag.errors.NotFoundError, "No such file", {}),
    ]:  # fmt: skip
        way = (ag.string, 0, ag.int64, 1) if options else numbered
        with pytest.raises(error, match=message):
            made(name, *way, **options)
    with pytest.raises(E, match="vocab_size"):
        made("words", *numbered, vocab_size=9)
    with pytest.raises(E, match="not a valid int64"):
        made("pairs", ag.int64, 0, ag.string, 0, default="")


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: ag.lookup.StaticHashTable(I(["a", "a"], [1, 2]), -1), ag.errors.FailedPreconditionError, "different"),
        (lambda: ag.lookup.StaticHashTable(I(["a", "b"], [1]), -1), E, r"Expected shape \[2\]"),
        (lambda: ag.lookup.StaticHashTable(I(["a"], [1]), "x"), TypeError, "x"),
        (lambda: ag.lookup.StaticHashTable(I(["a"], [1]), [1, 2]), ValueError, "scalar"),
        (lambda: ag.lookup.StaticHashTable(I(["a"], [1]), 0).lookup(ag.constant([1])), TypeError, "Dtype of argument"),
        (lambda: ag.lookup.StaticVocabularyTable(I(["a"], NUMBERS[:1]), 0), ValueError, "num_oov_buckets"),
        (lambda: ag.lookup.StaticVocabularyTable(I(["a"], [0]), 1), TypeError, "value_dtype"),
        (lambda: ag.lookup.StaticVocabularyTable(I([1.0], NUMBERS[:1]), 1), TypeError, "key_dtype"),
        (lambda: ag.lookup.experimental.DenseHashTable(ag.int64, ag.int64, -1, 0, 0), E, "cannot be equal"),
        (lambda: ag.lookup.experimental.DenseHashTable(ag.int64, ag.int64, -1, 0, -1, 3), E, "power of 2"),
        (lambda: Mutable(ag.string, ag.int64, 0).insert(words("q"), [1, 2]), E, "shape"),
        (lambda: Mutable(ag.string, ag.int64, 0).insert(words("q"), ag.constant([1.0])),
         ValueError, "dtype"),
        (lambda: Mutable(ag.string, ag.int64, 0).remove(ag.constant([1])), TypeError,
         "Dtype of argument"),
        (lambda: Mutable(ag.string, ag.int64, 0).lookup(words("a", "b", "c"), [1, 2]), E, "default value"),
        (lambda: F("f", ag.string, X.LINE_NUMBER, ag.int64, X.LINE_NUMBER), ValueError, "must be int64"),
        (lambda: F("f", ag.string, -3, ag.int64, X.LINE_NUMBER), ValueError, ">= -2"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_an_initializer_of_ones_own():
    """Keras has one that fills nothing, and names its dtypes."""

    class Nothing:
        key_dtype, value_dtype = "string", "int64"

        def initialize(self, table):
            pass

    made = ag.lookup.StaticHashTable(Nothing(), -1)
    assert (made.lookup(words("a")).numpy().tolist(), int(made.size())) == ([-1], 0)
