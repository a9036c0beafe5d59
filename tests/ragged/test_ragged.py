"""Ragged tensors against nested Python lists: what an operation gives is what plain Python gives row by row."""

import itertools

import numpy as np
import pytest

import autograph as ag

ROWS = [[3, 1, 4, 1], [], [5, 9, 2], [6], []]
NESTED = [[[1, 2], [3]], [], [[4, 5, 6], [], [7]]]
MODES = pytest.mark.parametrize("mode", ["eager", "traced"])


def run(mode, function, *args):
    return function(*args) if mode == "eager" else ag.function(function, jit_compile=False)(*args)


class TestMaking:
    def test_partitions_say_the_same(self):
        values = [3, 1, 4, 1, 5, 9, 2, 6]
        make = ag.RaggedTensor
        for made in [
            ag.ragged.constant(ROWS),
            make.from_row_splits(values, [0, 4, 4, 7, 8, 8]),
            make.from_row_lengths(values, [4, 0, 3, 1, 0]),
            make.from_row_starts(values, [0, 4, 4, 7, 8]),
            make.from_row_limits(values, [4, 4, 7, 8, 8]),
            make.from_value_rowids(values, [0, 0, 0, 0, 2, 2, 2, 3], nrows=5),
            make.from_tensor([[3, 1, 4, 1], [0] * 4, [5, 9, 2, 0], [6, 0, 0, 0], [0] * 4], padding=0),
            make.from_tensor([[3, 1, 4, 1], [0] * 4, [5, 9, 2, 0], [6, 0, 0, 0], [0] * 4], lengths=[4, 0, 3, 1, 0]),
            make.from_sparse(ag.ragged.constant(ROWS)[:4].to_sparse()),
        ]:
            assert made.to_list() == ROWS[: len(made)]
            assert made.dtype is ag.int32 and made.shape.as_list() == [len(made), None]
        rt = ag.ragged.constant(ROWS)
        assert rt.row_starts().numpy().tolist() == [0, 4, 4, 7, 8]
        assert rt.row_limits().numpy().tolist() == [4, 4, 7, 8, 8]
        assert rt.value_rowids().numpy().tolist() == [0, 0, 0, 0, 2, 2, 2, 3]
        assert (int(rt.nrows()), rt.bounding_shape().numpy().tolist(), rt.ragged_rank) == (5, [5, 4], 1)

    def test_nested(self):
        rt = ag.ragged.constant(NESTED)
        assert rt.to_list() == NESTED
        assert rt.shape.as_list() == [3, None, None] and rt.ragged_rank == 2
        assert [s.numpy().tolist() for s in rt.nested_row_splits] == [[0, 2, 2, 5], [0, 2, 3, 6, 6, 7]]
        again = ag.RaggedTensor.from_nested_row_splits(rt.flat_values, rt.nested_row_splits)
        assert again.to_list() == NESTED
        assert rt.merge_dims(0, 1).to_list() == list(itertools.chain(*NESTED))
        assert rt.merge_dims(1, 2).to_list() == [list(itertools.chain(*row)) for row in NESTED]

    def test_uniform_dimensions(self):
        pairs = ag.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1)
        assert pairs.shape.as_list() == [2, None, 2] and pairs.flat_values.shape == (3, 2)
        outer = ag.RaggedTensor.from_uniform_row_length(ag.ragged.constant([[1], [2, 3], [], [4]]), 2)
        assert outer.shape.as_list() == [2, 2, None] and outer.to_list() == [[[1], [2, 3]], [[], [4]]]

    @pytest.mark.parametrize("splits", [[1, 3], [0, 2, 1, 3], [0, 4], [0, 2]])
    @MODES
    def test_bad_splits_are_refused(self, mode, splits):
        def make(values, splits):
            return ag.RaggedTensor.from_row_splits(values, splits).row_lengths()

        with pytest.raises(ag.errors.InvalidArgumentError, match="do not form a valid RaggedTensor"):
            run(mode, make, ag.constant([1, 2, 3]), ag.constant(splits, ag.int64))

    def test_bad_lists_are_refused(self):
        with pytest.raises(ValueError, match="same nesting depth"):
            ag.ragged.constant(["A", ["B", "C"]])
        with pytest.raises(ValueError, match="mixed types"):
            ag.ragged.constant([["one", "two"], [3, 4]])


class TestIndexing:
    KEYS = [1, -1, slice(1, 3), slice(None, None, -1), slice(None, None, 2), (2, 1), (2, slice(None, None, -1))]
    COLUMNS = [
        slice(None, 2),
        slice(-2, None),
        slice(1, 3),
        slice(None, None, -1),
        slice(None, None, 2),
        slice(3, 0, -2),
    ]

    @MODES
    @pytest.mark.parametrize("columns", COLUMNS, ids=str)
    def test_columns(self, mode, columns):
        found = run(mode, lambda rt: rt[1:, columns], ag.ragged.constant(ROWS))
        assert found.to_list() == [row[columns] for row in ROWS[1:]]

    @MODES
    def test_rows(self, mode):
        rt = ag.ragged.constant(ROWS)
        assert run(mode, lambda r: r[2], rt).numpy().tolist() == ROWS[2]
        assert run(mode, lambda r: r[-2], rt).numpy().tolist() == ROWS[-2]
        assert run(mode, lambda r: r[2, 1], rt).numpy() == 9
        assert run(mode, lambda r, i: r[i], rt, ag.constant(0)).numpy().tolist() == ROWS[0]
        assert run(mode, lambda r: r[::-1], rt).to_list() == ROWS[::-1]
        nested = ag.ragged.constant(NESTED)
        assert run(mode, lambda r: r[2], nested).to_list() == NESTED[2]
        assert run(mode, lambda r: r[2, 0], nested).numpy().tolist() == [4, 5, 6]
        assert run(mode, lambda r: r[:, 1:], nested).to_list() == [row[1:] for row in NESTED]
        assert run(mode, lambda r: r[..., :1], nested).to_list() == [[part[:1] for part in row] for row in NESTED]

    def test_what_is_not_there(self):
        rt = ag.ragged.constant(ROWS)
        with pytest.raises(ag.errors.InvalidArgumentError, match="slice index 5 of dimension 0 out of bounds"):
            rt[5]
        with pytest.raises(ValueError, match="inner ragged dimension"):
            rt[:, 1]

    def test_iteration(self):
        assert [row.numpy().tolist() for row in ag.ragged.constant(ROWS)] == ROWS


class TestElementwise:
    @MODES
    def test_operators(self, mode):
        x, y = ag.ragged.constant([[1, 2], [], [3]]), ag.ragged.constant([[4, 3], [], [2]])
        for symbol in ["x + y", "x - y", "x * y", "y // x", "y % x", "x ** y", "x < y", "x == y", "x & y"]:
            pairs = [list(zip(a, b)) for a, b in zip(x.to_list(), y.to_list())]
            expected = [[eval(symbol, {"x": a, "y": b}) for a, b in row] for row in pairs]
            found = run(mode, eval(f"lambda x, y: {symbol}"), x, y)
            assert found.to_list() == expected, symbol
        assert run(mode, lambda x: 10 - x, x).to_list() == [[9, 8], [], [7]]
        assert run(mode, lambda x: -abs(x) + ag.constant(1), x).to_list() == [[0, -1], [], [-2]]
        assert run(mode, lambda x: ag.maximum(x, 2), x).to_list() == [[2, 2], [], [3]]
        assert run(mode, lambda x: ag.square(x), x).to_list() == [[1, 4], [], [9]]
        assert run(mode, lambda x: ag.where(x > 1, x, 0), x).to_list() == [[0, 2], [], [3]]
        assert run(mode, lambda x: ag.cast(x, ag.float32), x).dtype is ag.float32

    @MODES
    def test_broadcasting_of_tensors(self, mode):
        x = ag.ragged.constant([[10, 87, 12], [19, 53]])
        assert run(mode, lambda x: x + [[1000], [2000]], x).to_list() == [[1010, 1087, 1012], [2019, 2053]]
        pairs = ag.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1)
        assert run(mode, lambda x: x + ag.constant([10, 20]), pairs).to_list() == [[[11, 22], [13, 24]], [[15, 26]]]
        same = ag.ragged.constant([[1, 2], [3, 4]])
        assert run(mode, lambda x: ag.constant([[10, 20]]) + x, same).to_list() == [[11, 22], [13, 24]]

    @MODES
    def test_what_does_not_broadcast(self, mode):
        x = ag.ragged.constant([[1, 2], [3, 4, 5], [6]])
        for other in [ag.ones([3, 2], ag.int32), ag.ones([2, 1], ag.int32), ag.ragged.constant([[1], [2], [3, 4]])]:
            with pytest.raises(ag.errors.InvalidArgumentError, match="broadcast|same rows"):
                run(mode, lambda x, y: (x + y).flat_values, x, other)

    def test_functions_without_ragged_form_say_so(self):
        with pytest.raises(TypeError, match="doesn't accept ragged tensors.*to_tensor"):
            ag.matmul(ag.ragged.constant([[1.0]]), ag.ones([1, 1]))

    def test_map_flat_values(self):
        x = ag.ragged.constant(ROWS)
        doubled = ag.ragged.map_flat_values(lambda v, other: v * 2 + other, x, x)
        assert doubled.to_list() == [[3 * v for v in row] for row in ROWS]
        assert ag.map_fn(ag.square, x).to_list() == [[v * v for v in row] for row in ROWS]
        totals = ag.map_fn(ag.reduce_sum, x, fn_output_signature=ag.int32)
        assert totals.numpy().tolist() == [sum(row) for row in ROWS]


class TestReductions:
    @MODES
    def test_over_rows_and_places(self, mode):
        x = ag.ragged.constant(ROWS)
        assert run(mode, lambda x: ag.reduce_sum(x), x).numpy() == 31
        assert run(mode, lambda x: ag.reduce_sum(x, axis=1), x).numpy().tolist() == [sum(row) for row in ROWS]
        assert run(mode, lambda x: ag.reduce_sum(x, axis=0), x).numpy().tolist() == [14, 10, 6, 1]
        assert run(mode, lambda x: ag.reduce_sum(x, axis=-1, keepdims=True), x).shape[1:] == [1]
        assert run(mode, lambda x: ag.reduce_prod(x, axis=1), x).numpy().tolist() == [12, 1, 90, 6, 1]
        kept = ag.ragged.constant([row for row in ROWS if row])
        assert run(mode, lambda x: ag.reduce_max(x, axis=1), kept).numpy().tolist() == [4, 9, 6]
        assert run(mode, lambda x: ag.reduce_min(x, axis=1), kept).numpy().tolist() == [1, 2, 6]
        assert run(mode, lambda x: ag.reduce_any(x > 4, axis=1), x).numpy().tolist() == [
            False,
            False,
            True,
            True,
            False,
        ]
        assert run(mode, lambda x: ag.reduce_all(x > 2, axis=1), x).numpy().tolist() == [False, True, False, True, True]
        mean = run(mode, lambda x: ag.reduce_mean(x, axis=1), ag.cast(x, ag.float32)).numpy()
        np.testing.assert_allclose(mean, [2.25, np.nan, 16 / 3, 6, np.nan], 1e-6)
        variance = ag.math.reduce_variance(ag.cast(kept, ag.float64), axis=1).numpy()
        np.testing.assert_allclose(variance, [np.var(row) for row in ROWS if row], 1e-12)

    @MODES
    def test_of_nested_rows(self, mode):
        x = ag.ragged.constant(NESTED)
        assert run(mode, lambda x: ag.reduce_sum(x, axis=2), x).to_list() == [[3, 3], [], [15, 0, 7]]
        assert run(mode, lambda x: ag.reduce_sum(x, axis=1), x).to_list() == [[4, 2], [], [11, 5, 6]]
        assert run(mode, lambda x: ag.reduce_sum(x, axis=0), x).to_list() == [[5, 7, 6], [3], [7]]
        assert run(mode, lambda x: ag.reduce_sum(x, axis=[1, 2]), x).numpy().tolist() == [6, 0, 22]


class TestArrays:
    @MODES
    def test_concat_stack_tile_reverse(self, mode):
        x, y = ag.ragged.constant([[1, 2], [], [3]]), ag.ragged.constant([[4], [5, 6], []])
        both = [x.to_list(), y.to_list()]
        assert run(mode, lambda x, y: ag.concat([x, y], 0), x, y).to_list() == both[0] + both[1]
        assert run(mode, lambda x, y: ag.concat([x, y], 1), x, y).to_list() == [a + b for a, b in zip(*both)]
        assert run(mode, lambda x, y: ag.stack([x, y]), x, y).to_list() == both
        assert run(mode, lambda x, y: ag.stack([x, y], 1), x, y).to_list() == [[a, b] for a, b in zip(*both)]
        assert run(mode, lambda x: ag.tile(x, [2, 3]), x).to_list() == [row * 3 for row in both[0]] * 2
        assert run(mode, lambda x: ag.reverse(x, [1]), x).to_list() == [row[::-1] for row in both[0]]
        assert run(mode, lambda x: ag.reverse(x, [0]), x).to_list() == both[0][::-1]
        assert run(mode, lambda x: ag.concat([x, [[7, 8]]], 0), x).to_list() == [*both[0], [7, 8]]
        assert run(mode, lambda x: ag.expand_dims(x, 1), x).to_list() == [[row] for row in both[0]]
        assert run(mode, lambda x: ag.expand_dims(x, -1), x).to_list() == [[[v] for v in row] for row in both[0]]

    @MODES
    def test_gather_and_mask(self, mode):
        x = ag.ragged.constant(ROWS)
        assert run(mode, lambda x: ag.gather(x, [2, 0]), x).to_list() == [ROWS[2], ROWS[0]]
        found = run(mode, lambda i: ag.gather(ag.constant([10, 11, 12]), i), ag.ragged.constant([[2], [0, 1]]))
        assert found.to_list() == [[12], [10, 11]]
        masked = run(mode, lambda x: ag.ragged.boolean_mask(x, x > 2), x)
        assert masked.to_list() == [[v for v in row if v > 2] for row in ROWS]
        picked = run(mode, lambda x: ag.boolean_mask(x, [True, False, True, False, False]), x)
        assert picked.to_list() == [ROWS[0], ROWS[2]]

    def test_to_tensor_and_sparse(self):
        x = ag.ragged.constant(ROWS)
        filled = [row + [-1] * (4 - len(row)) for row in ROWS]
        assert x.to_tensor(-1).numpy().tolist() == filled
        assert x.to_tensor(-1, shape=[None, 2]).numpy().tolist() == [row[:2] for row in filled]
        assert x.to_tensor(shape=[6, 5]).shape == (6, 5)
        assert ag.ragged.constant(NESTED).to_tensor().shape == (3, 3, 3)
        assert ag.sparse.to_dense(x.to_sparse(), -1).numpy().tolist() == filled
        gap = ag.SparseTensor([[0, 1]], [1], [1, 2])
        with pytest.raises(ag.errors.InvalidArgumentError, match="not right-padded"):
            ag.RaggedTensor.from_sparse(gap)

    def test_ranges_and_stacks(self):
        assert ag.ragged.range([3, 0, 2]).to_list() == [[0, 1, 2], [], [0, 1]]
        wide = ag.ragged.range([0, 5], ag.constant([3, 9], ag.int64), 2)
        assert (wide.dtype, wide.to_list()) == (ag.int64, [[0, 2], [5, 7]]), "the widest of the dtypes"
        assert ag.ragged.range([1, 5], [4, 1], [1, -2]).to_list() == [[1, 2, 3], [5, 3]]
        assert ag.ragged.stack([[1, 2], [3]]).to_list() == [[1, 2], [3]]
        splits = ag.ragged.segment_ids_to_row_splits([0, 0, 2])
        assert splits.numpy().tolist() == [0, 2, 2, 3]
        assert ag.ragged.row_splits_to_segment_ids(splits).numpy().tolist() == [0, 0, 2]


class TestStrings:
    @MODES
    def test_split_gives_rows(self, mode):
        words = ag.constant(["a b", "", "c"])
        assert run(mode, ag.strings.split, words).to_list() == [[b"a", b"b"], [], [b"c"]]
        assert run(mode, ag.strings.bytes_split, words).to_list() == [[b"a", b" ", b"b"], [], [b"c"]]
        codes = run(mode, lambda x: ag.strings.unicode_decode(x, "UTF-8"), ag.constant(["é!", "日"]))
        assert codes.to_list() == [[233, 33], [26085]]
        nested = run(mode, ag.strings.split, ag.constant([["a b", "c"], ["d", "e f"]]))
        assert nested.to_list() == [[[b"a", b"b"], [b"c"]], [[b"d"], [b"e", b"f"]]]
        again = run(mode, ag.strings.split, ag.ragged.constant([["a b"], [], ["c", "d e"]]))
        assert again.to_list() == [[[b"a", b"b"]], [], [[b"c"], [b"d", b"e"]]]

    def test_functions_of_ragged_strings(self):
        words = ag.ragged.constant([["So", "long"], ["thanks"]])
        assert ag.strings.substr(words, 0, 2).to_list() == [[b"So", b"lo"], [b"th"]]
        assert ag.strings.join([words, words], "+").to_list() == [[b"So+So", b"long+long"], [b"thanks+thanks"]]
        assert ag.strings.length(words).to_list() == [[2, 4], [6]]
        assert ag.strings.reduce_join(words, axis=-1, separator=" ").numpy().tolist() == [b"So long", b"thanks"]
        assert ag.strings.unicode_split("aé", "UTF-8").numpy().tolist() == [b"a", "é".encode()]
        codes = ag.ragged.constant([[72, 105], [233]])
        assert ag.strings.unicode_encode(codes, "UTF-8").numpy().tolist() == [b"Hi", "é".encode()]


class TestInFunctions:
    def test_argument_and_result(self):
        @ag.function
        def f(x):
            return x + 1, {"lengths": x.row_lengths()}

        result, lengths = f(ag.ragged.constant(ROWS))
        assert result.to_list() == [[v + 1 for v in row] for row in ROWS]
        assert lengths["lengths"].numpy().tolist() == [4, 0, 3, 1, 0]
        concrete = f.get_concrete_function(ag.ragged.constant(ROWS))
        assert concrete(ag.ragged.constant(ROWS))[0].to_list() == result.to_list()
        assert "RaggedTensorSpec(TensorShape([5, None]), tf.int32, 1, tf.int64)" in str(concrete)

    def test_input_signature(self):
        @ag.function(input_signature=[ag.RaggedTensorSpec([None, None], ag.int32)])
        def f(x):
            return ag.reduce_max(x, axis=-1), ag.concat([x, x], 1)

        for rows in ([[1, 2], [3]], [[4, 9, 5]], [[1], [2], [7, 3]]):
            largest, twice = f(ag.ragged.constant(rows))
            assert largest.numpy().tolist() == [max(r) for r in rows] and twice.to_list() == [r * 2 for r in rows]
        assert f.experimental_get_tracing_count() == 1
        with pytest.raises(TypeError, match="incompatible with input_signature"):
            f(ag.ragged.constant([[1.0]]))

    def test_a_trace_from_a_spec_serves_all_that_fit(self):
        f = ag.function(lambda x: ag.reduce_sum(x, axis=1))
        concrete = f.get_concrete_function(ag.RaggedTensorSpec([None, None], ag.int32))
        for rows in ([[1, 2], []], [[3]]):
            x = ag.ragged.constant(rows)
            assert f(x).numpy().tolist() == concrete(x).numpy().tolist() == [sum(row) for row in rows]
        assert f.experimental_get_tracing_count() == 1
        f(ag.ragged.constant([[1.0]]))
        assert "argument 'x' (element 0): dtype int32 → float32" in f.explain_retraces()
        with pytest.raises(TypeError, match="structure"):
            concrete(ag.sparse.eye(2))

    def test_gradients_flow_to_the_values(self):
        weights = ag.Variable([1.0, 2.0, 3.0])

        def loss():
            rows = ag.ragged.map_flat_values(lambda i: ag.gather(weights, i), ag.ragged.constant([[0, 2], [], [1]]))
            return ag.reduce_sum(ag.square(ag.reduce_sum(rows, axis=1)))

        for function in (loss, ag.function(loss)):
            with ag.GradientTape() as tape:
                value = function()
            assert float(value) == 20
            assert ag.convert_to_tensor(tape.gradient(value, weights)).numpy().tolist() == [8, 4, 8]


def test_printing():
    assert str(ag.ragged.constant(ROWS)) == "<tf.RaggedTensor [[3, 1, 4, 1], [], [5, 9, 2], [6], []]>"
    assert repr(ag.ragged.constant([["a"], []])) == "<tf.RaggedTensor [[b'a'], []]>"
    array = ag.ragged.constant([[1, 2], [3]]).numpy()
    assert array.dtype == object and [a.tolist() for a in array] == [[1, 2], [3]]
    # Rows of one length are one array, of strings and of rows too: no padding behind the last line.
    assert ag.ragged.constant([["a", "b"], ["c", "d"]]).numpy().shape == (2, 2)
    pages = [[["one", "two"], ["three"]], [["four" * 9, "five" * 9], ["six" * 9, "seven"]]]
    assert str(ag.ragged.constant(pages)) == (
        "<tf.RaggedTensor [[[b'one', b'two'], [b'three']],\n [["
        f"b'{'four' * 9}',\n   b'{'five' * 9}'],\n  [b'{'six' * 9}', b'seven']]]>"
    )


def test_nest_takes_ragged_and_sparse_tensors_as_leaves():
    rt, st = ag.ragged.constant([[1, 2], [3]]), ag.sparse.eye(2)
    structure = {"b": rt, "a": [1, st]}
    assert [type(leaf).__name__ for leaf in ag.nest.flatten(structure)] == ["int", "SparseTensor", "RaggedTensor"]
    assert ag.nest.flatten(structure)[2] is rt and not ag.nest.is_nested(rt)
    assert len(ag.nest.flatten(structure, expand_composites=True)) == 1 + 3 + 2
    doubled = ag.nest.map_structure(lambda x: x * 2, structure)
    assert doubled["b"].to_list() == [[2, 4], [6]] and doubled["a"][0] == 2
    components = ag.nest.map_structure(lambda x: x + 0, rt, expand_composites=True)
    assert components.to_list() == rt.to_list()
    assert ag.nest.pack_sequence_as(structure, [7, 8, 9]) == {"b": 9, "a": [7, 8]}
    ag.nest.assert_same_structure([rt], [st])
    with pytest.raises((TypeError, ValueError)):
        ag.nest.assert_same_structure([rt], [st], expand_composites=True)


@pytest.mark.parametrize(
    "shape, strings",
    [
        (None, ["a b", "c"]), ([None, None], [["a b", "c"], ["", "d e f"]]), ([None, 2], [["a b", "c"], ["", "d e f"]]),
        ([None, None, 2], [[["a b", "c"], ["", "d e f"]]]),
    ],
)  # fmt: skip
def test_splitting_strings_of_unknown_shape(shape, strings):
    split = ag.function(ag.strings.split, input_signature=[ag.TensorSpec(shape, ag.string)])
    assert split(ag.constant(strings)).to_list() == ag.strings.split(strings).to_list()


def test_strings_of_unknown_rank_count_as_a_vector():
    split = ag.function(ag.strings.split, input_signature=[ag.TensorSpec(None, ag.string)])
    with pytest.raises(ag.errors.InvalidArgumentError, match="not compatible"):
        split(ag.constant([["a b"]]))


def test_gathering_from_a_tensor_along_another_axis():
    params = np.arange(2 * 5 * 3).reshape(2, 5, 3)
    indices = ag.ragged.constant([[4, 0], [1], []], dtype=ag.int32)
    for way in (ag.gather, ag.function(lambda p, i, axis: ag.gather(p, i, axis=axis))):
        found = way(params, indices, axis=1)
        expected = [[params[k][row].tolist() for row in indices.to_list()] for k in range(2)]
        expected[0][2] = expected[1][2] = []
        assert found.to_list() == expected
    last = ag.gather(params, ag.ragged.constant([[0], [2, 2]], dtype=ag.int32), axis=-1)
    assert last.to_list() == [[[line[[0]].tolist(), line[[2, 2]].tolist()] for line in each] for each in params]


def test_bincount_of_ragged_and_sparse_tensors():
    ragged = ag.ragged.constant([[1, 2, 2], [], [4]])
    assert ag.math.bincount(ragged).numpy().tolist() == [0, 1, 2, 0, 1]
    assert ag.math.bincount(ragged, axis=-1, minlength=6).numpy().tolist() == [
        [0, 1, 2, 0, 0, 0], [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0],
    ]  # fmt: skip
    assert ag.math.bincount(ragged, axis=-1, maxlength=3, binary_output=True).numpy().tolist() == [
        [0, 1, 1], [0, 0, 0], [0, 0, 0],
    ]  # fmt: skip
    assert ag.math.bincount(ag.sparse.from_dense([[0, 3], [3, 1]])).numpy().tolist() == [0, 1, 0, 2]
    assert ag.math.bincount([0, 3, 3, 1]).numpy().tolist() == [1, 1, 0, 2]
    assert ag.math.bincount([[1.0, 2.7]], axis=-1, minlength=4).numpy().tolist() == [[0, 1, 1, 0]]


def test_row_partitions():
    make = ag.experimental.RowPartition
    for made in (
        make.from_row_splits([0, 2, 2, 5]), make.from_row_lengths([2, 0, 3]),
        make.from_value_rowids([0, 0, 2, 2, 2], nrows=3),
    ):  # fmt: skip
        assert made.row_splits().numpy().tolist() == [0, 2, 2, 5]
        assert made.row_lengths().numpy().tolist() == [2, 0, 3]
        assert made.row_starts().numpy().tolist() == [0, 2, 2]
        assert made.row_limits().numpy().tolist() == [2, 2, 5]
        assert made.value_rowids().numpy().tolist() == [0, 0, 2, 2, 2]
        assert (int(made.nrows()), int(made.nvals())) == (3, 5)
    assert make.from_uniform_row_length(2, nvals=6).row_splits().numpy().tolist() == [0, 2, 4, 6]
