"""Sparse tensors, labellings, embeddings, fake quantization and binomial numbers: TensorFlow's results and gradients,
eager, traced and compiled; static shapes, errors, derivatives."""

import json

import numpy as np
import pytest

import autograph as ag
from tests.ops.function_values import ANSWERS, FRAMES, IDS, LABELS, LENGTHS, LOGITS, ROWS, TABLE, A, B, X, Y, cases
from tests.ops.image_values import answer, weighted
from tests.ops.test_images import agree

TENSORFLOW = json.loads(ANSWERS.read_text(encoding="utf-8"))
CASES = cases(ag)
E = ag.errors.InvalidArgumentError


def test_every_case_has_an_answer():
    assert set(CASES) == set(TENSORFLOW)


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_tensorflows(name):
    agree(answer(ag, *CASES[name]), TENSORFLOW[name])


@pytest.mark.parametrize("name", [n for n in CASES if n != "Generator.binomial"])
def test_what_is_unknown_while_tracing_changes_nothing(name):
    f, arguments, gradient = CASES[name]
    # How many rows there are decides how many results: nothing can be traced without.
    shapes = [x.shape if name in ("ctc_unique_labels",) else [None] * x.ndim for x in arguments]
    if "batch first" in name or "blank last" in name or "blank_index" in name or "sparse" in name:
        shapes = [[*[None] * (x.ndim - 1), x.shape[-1]] if x.ndim == 3 else s for x, s in zip(arguments, shapes)]
    specs = [
        ag.TensorSpec(s, ag.string if x.dtype == object else ag.as_dtype(x.dtype)) for s, x in zip(shapes, arguments)
    ]
    traced = ag.function(f, input_signature=specs, autograph=False)
    agree(answer(ag, traced, arguments, gradient), TENSORFLOW[name])


def loss(x):
    with ag.GradientTape() as tape:
        tape.watch(x)
        total = weighted(ag, [ag.nn.ctc_loss(LABELS, x, LENGTHS, FRAMES)])
    return total, tape.gradient(total, x)


def test_the_loss_is_one_kernel():
    total, slope = ag.function(loss, jit_compile=True)(ag.constant(LOGITS))
    expected = loss(ag.constant(LOGITS))
    np.testing.assert_allclose(total, expected[0], rtol=1e-5)
    np.testing.assert_allclose(slope, expected[1], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(slope, TENSORFLOW["ctc_loss"][1][0], rtol=1e-4, atol=1e-5)


def test_the_loss_counts_all_paths():
    """Against the sum over all labellings of frames that collapse to the labels."""
    x = LOGITS[:4, :1, :3].astype(np.float64)
    logs = x[:, 0] - np.log(np.exp(x[:, 0]).sum(1, keepdims=True))
    total = 0.0
    for path in np.ndindex(3, 3, 3, 3):
        collapsed = [c for i, c in enumerate(path) if c and (i == 0 or path[i - 1] != c)]
        if collapsed == [1, 2]:
            total += np.exp(sum(logs[t, c] for t, c in enumerate(path)))
    found = ag.nn.ctc_loss([[1, 2]], x, [2], [4])
    assert found.dtype is ag.float64
    np.testing.assert_allclose(found, [-np.log(total)], rtol=1e-12)


def test_second_derivatives_of_the_loss():
    x = ag.constant(LOGITS.astype(np.float64))
    direction = np.sin(np.arange(LOGITS.size)).reshape(LOGITS.shape)

    def slope(values):
        with ag.GradientTape() as tape:
            tape.watch(values)
            total = ag.reduce_sum(ag.nn.ctc_loss(LABELS, values, LENGTHS, FRAMES))
        return tape.gradient(total, values)

    with ag.GradientTape() as outer:
        outer.watch(x)
        along = ag.reduce_sum(slope(x) * direction)
    second = outer.gradient(along, x)
    ahead, behind = (slope(ag.constant(x.numpy() + step * direction)) for step in (1e-5, -1e-5))
    np.testing.assert_allclose(second, (ahead - behind) / 2e-5, rtol=1e-5, atol=1e-8)


def test_padding_behind_the_labels_has_no_part():
    wide = np.concatenate([LABELS, np.full((3, 2), 2, np.int32)], 1)
    np.testing.assert_allclose(
        ag.nn.ctc_loss(wide, LOGITS, LENGTHS, FRAMES), ag.nn.ctc_loss(LABELS, LOGITS, LENGTHS, FRAMES), rtol=1e-6
    )


@pytest.mark.parametrize("trials, odds", [(7.0, 0.2), (40.0, 0.5), (300.0, 0.97)])
def test_binomial_numbers_have_their_mean_and_variance(trials, odds):
    drawn = ag.random.stateless_binomial([20000], [1, 2], trials, odds, ag.float64).numpy()
    assert drawn.min() >= 0
    assert drawn.max() <= trials
    assert drawn.mean() == pytest.approx(trials * odds, rel=0.02)
    assert drawn.var() == pytest.approx(trials * odds * (1 - odds), rel=0.05)


def test_what_set_shape_says():
    sparse = ag.SparseTensor(A, X, [4, 4])
    sparse.set_shape([4, None])
    with pytest.raises(ValueError, match=r"\(4, 4\) is not compatible"):
        sparse.set_shape([4, 3])
    shapes = []

    @ag.function(input_signature=[ag.SparseTensorSpec([None, None])], autograph=False)
    def f(x):
        shapes.append(x.shape.as_list())
        x.set_shape([None, 7])
        shapes.append(x.shape.as_list())
        shapes.append(ag.sparse.reshape(x, ag.stack([3, ag.shape(x.values)[0]])).shape.as_list())
        return x.values

    f.get_concrete_function()
    assert shapes == [[None, None], [None, 7], [3, None]]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: ag.sparse.maximum(ag.SparseTensor(A, X, [4, 4]), ag.SparseTensor(B, Y, [5, 4])), E, "shapes"),
        (lambda: ag.sparse.maximum(X, ag.SparseTensor(B, Y, [5, 4])), TypeError, "SparseTensor"),
        (lambda: ag.sparse.reshape(ag.SparseTensor(A, X, [4, 4]), [3, 5]), E, "16 elements"),
        (lambda: ag.sparse.reshape(ag.SparseTensor(A, X, [4, 4]), [-1, -1]), E, "At most one"),
        (lambda: ag.sparse.bincount([1, -2]), E, "non-negative"),
        (lambda: ag.sparse.bincount([1, 2], axis=1), ValueError, "axis=1"),
        (lambda: ag.sparse.bincount([1, 2], [1, 2], binary_output=True), ValueError, "mutually exclusive"),
        (lambda: ag.sparse.to_indicator(ag.SparseTensor(A, IDS, [4, 4]), 3), E, "indices"),
        (lambda: ag.sparse.reset_shape(ag.SparseTensor(A, X, [4, 4]), [3, 9]), ValueError, "new_shape"),
        (lambda: ag.sparse.split(sp_input=ag.SparseTensor(A, X, [4, 4]), num_split=5, axis=0), ValueError, "num_split"),
        (lambda: ag.sparse.softmax(ag.SparseTensor(A[:, :1], X, [4])), ValueError, "rank 2"),
        (lambda: ag.sparse.cross([ag.constant([[1], [2]]), ag.constant([["a"]])]), E, "batch sizes"),
        (lambda: ag.sparse.cross_hashed([[1]]), TypeError, "Tensor or SparseTensor"),
        (lambda: ag.nn.ctc_loss(ag.SparseTensor(A, IDS, [4, 4]), LOGITS, None, FRAMES), ValueError, "blank_index"),
        (lambda: ag.nn.ctc_loss(ag.cast(LABELS, ag.float32), LOGITS, LENGTHS, FRAMES), TypeError, "must be integers"),
        (lambda: ag.nn.ctc_loss(LABELS + 5, LOGITS, LENGTHS, FRAMES), E, "not in"),
        (lambda: ag.nn.ctc_loss(ag.SparseTensor(ROWS[:2], [1, 1], [3, 4]), LOGITS, None, [2] * 3, blank_index=0), E,
         "Not enough time"),
        (lambda: ag.nn.ctc_beam_search_decoder(LOGITS, FRAMES, 1, 2), E, "more paths"),
        (lambda: ag.nn.ctc_beam_search_decoder(LOGITS, [9] * 3), ag.errors.FailedPreconditionError, "sequence_length"),
        (lambda: ag.nn.embedding_lookup_sparse(TABLE, [1], None), TypeError, "SparseTensor"),
        (lambda: ag.nn.embedding_lookup_sparse(TABLE, ag.SparseTensor(A, IDS, [4, 4]), None, "max"), ValueError,
         "combiner"),
        (lambda: ag.nn.embedding_lookup_sparse(TABLE, ag.SparseTensor(A, IDS + 9, [4, 4]), None), E, "not in"),
        (lambda: ag.nn.atrous_conv2d_transpose(np.ones((1, 4, 4, 2), "f"), np.ones((2, 2, 3, 2), "f"), [1, 4, 4, 3], 0,
                                               "SAME"), ValueError, "rate"),
        (lambda: ag.quantization.fake_quant_with_min_max_args(X, 3, 2), E, "smaller"),
        (lambda: ag.quantization.fake_quant_with_min_max_args(X, num_bits=17), E, "between 2 and 16"),
        (lambda: ag.quantization.fake_quant_with_min_max_vars(X, [1.0], [2.0]), E, "rank 0"),
        (lambda: ag.quantization.fake_quant_with_min_max_vars_per_channel(X, [1.0], [2.0]), E, "last dimension"),
        (lambda: ag.required_space_to_batch_paddings([1, 2], [3]), ValueError, "input_shape"),
        (lambda: ag.nn.experimental.stateless_dropout(X, 1.0, [1, 2]), ValueError, "rate"),
        (lambda: ag.nn.experimental.stateless_dropout(IDS, 0.5, [1, 2]), ValueError, "floating"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
