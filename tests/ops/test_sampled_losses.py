"""Samplers of classes and losses over sampled ones: TensorFlow's numbers for the same seeds; unknown shapes; errors."""

import numpy as np
import pytest

import autograph as ag

E = ag.errors.InvalidArgumentError
RANDOM = np.random.default_rng(0)
WEIGHTS = RANDOM.normal(size=(10, 4)).astype(np.float32)
BIASES = RANDOM.normal(size=10).astype(np.float32)
INPUTS = RANDOM.normal(size=(3, 4)).astype(np.float32)
LABELS = np.array([[1, 2], [3, 1], [9, 9]])
SAMPLED = (
    np.array([3, 1, 7]),
    np.array([[0.1, 0.2], [0.3, 0.1], [0.05, 0.05]], np.float32),
    np.array([0.3, 0.1, 0.07], np.float32),
)
# What TensorFlow 2.21 draws in two calls after set_seed(7): sampler, unique, seed → classes.
DRAWN = {
    ("log_uniform", True, 3): ([0, 2, 9, 1, 5, 3], [8, 2, 0, 1, 5, 7]),
    ("log_uniform", True, None): ([4, 0, 1, 7, 5, 8], [0, 2, 4, 3, 6, 7]),
    ("log_uniform", False, 3): ([0, 2, 9, 0, 1, 5], [8, 2, 0, 1, 8, 5]),
    ("log_uniform", False, None): ([4, 0, 1, 7, 0, 1], [0, 2, 4, 3, 0, 6]),
    ("uniform", True, 3): ([1, 8, 2, 0, 6, 9], [1, 4, 9, 8, 7, 6]),
    ("uniform", True, None): ([4, 5, 6, 9, 0, 8], [4, 9, 7, 5, 3, 8]),
    ("uniform", False, 3): ([1, 8, 2, 2, 8, 0], [1, 4, 9, 8, 1, 7]),
    ("uniform", False, None): ([4, 5, 6, 6, 9, 0], [4, 9, 4, 7, 5, 3]),
}
# Its expected counts of the true classes [[0, 5], [2, 9]], in the first of these calls.
EXPECTED = {
    ("log_uniform", True, 3): [[0.90820688, 0.37193811], [0.59123582, 0.24716753]],
    ("log_uniform", False, 3): [[1.73438895, 0.38571498], [0.71983647, 0.23848459]],
    ("uniform", True, 3): [[0.61257952, 0.61257952], [0.61257952, 0.61257952]],
    ("uniform", False, 3): [[0.6, 0.6], [0.6, 0.6]],
}


@pytest.fixture
def seeded():
    ag.random.set_seed(7)
    yield
    ag.random.set_seed(None)


@pytest.mark.parametrize("case", DRAWN)
def test_samplers_draw_tensorflows_classes(case, seeded):
    kind, unique, seed = case
    sampler = getattr(ag.random, f"{kind}_candidate_sampler")
    calls = [sampler([[0, 5], [2, 9]], 2, 6, unique, 10, seed=seed) for _ in range(2)]
    for found, classes in zip(calls, DRAWN[case], strict=True):
        np.testing.assert_array_equal(found.sampled_candidates, classes)
        assert found.sampled_candidates.dtype == ag.int64
    if case in EXPECTED:
        np.testing.assert_allclose(calls[0].true_expected_count, EXPECTED[case], rtol=1e-5)
    own = sampler(np.array(DRAWN[case][0])[:, None], 1, 6, unique, 10, seed=seed)
    assert own.true_expected_count.shape == [6, 1]


def test_samplers_in_functions(seeded):
    """As TensorFlow's: classes of a large range too."""

    @ag.function
    def drawn():
        far = ag.random.uniform_candidate_sampler([[0]], 1, 3, False, 2**40).sampled_candidates
        return far, ag.random.log_uniform_candidate_sampler([[0]], 1, 3, True, 1000).sampled_candidates

    expected = [
        ([948992768557, 558836136514, 83352260251], [111, 195, 50]),
        ([294827319179, 436960947098, 407162607627], [15, 254, 35]),
    ]
    for classes in expected:
        for found, wanted in zip(drawn(), classes, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_all_classes():
    found = ag.random.all_candidate_sampler([[0, 1]], 2, 4, True)
    np.testing.assert_array_equal(found.sampled_candidates, [0, 1, 2, 3])
    np.testing.assert_array_equal(found.true_expected_count, [[1, 1]])
    np.testing.assert_array_equal(found.sampled_expected_count, [1] * 4)


def test_accidental_hits():
    hits = ag.nn.compute_accidental_hits([[1, 2], [3, 1]], [3, 5, 7, 1], 2)
    np.testing.assert_array_equal(hits.indices, [0, 1, 1])
    np.testing.assert_array_equal(hits.ids, [3, 0, 3])
    np.testing.assert_array_equal(hits.weights, [np.finfo(np.float32).min] * 3)
    assert (hits.indices.dtype, hits.ids.dtype) == (ag.int32, ag.int64)


# TensorFlow's losses, and its gradients, summed with weights.
LOSSES = [
    ("sampled_softmax_loss", True, [1.13855481, 1.3805908, 3.71080446], [2.21321044, 1.34448548, 2.63615346]),
    ("sampled_softmax_loss", False, [1.36540604, 1.95830846, 3.71080446], [2.02931041, 1.37541373, 2.7149735]),
    ("nce_loss", False, [13.24206734, 19.35083008, 17.77208519], [1.38436935, 0.15666874, -0.72360866]),
    ("nce_loss", True, [9.4159565, 9.60861015, 17.77208519], [0.75547678, 0.05870718, -1.07008765]),
]


@pytest.mark.parametrize(("name", "remove", "losses", "slopes"), LOSSES)
@pytest.mark.parametrize("how", ["eager", "unknown sizes", "compiled"])
def test_losses_and_gradients_are_tensorflows(name, remove, losses, slopes, how):
    def loss(weights, biases, inputs):
        return getattr(ag.nn, name)(
            weights, biases, LABELS, inputs, 3, 10, 2, sampled_values=SAMPLED, remove_accidental_hits=remove
        )

    if how != "eager":
        specs = [ag.TensorSpec(s) for s in ([None, 4], [None], [None, None])]
        loss = ag.function(loss, input_signature=specs, jit_compile=how == "compiled", autograph=False)
    operands = [ag.constant(each) for each in (WEIGHTS, BIASES, INPUTS)]
    with ag.GradientTape() as tape:
        for each in operands:
            tape.watch(each)
        found = loss(*operands)
    np.testing.assert_allclose(found, losses, rtol=1e-5)
    for slope, expected in zip(tape.gradient(found, operands), slopes, strict=True):
        numbers = ag.convert_to_tensor(slope).numpy()
        assert (numbers * np.cos(np.arange(numbers.size).reshape(numbers.shape))).sum() == pytest.approx(expected, 1e-4)


def test_losses_sample_by_themselves(seeded):
    ag.random.set_seed(1)
    parts = [WEIGHTS[:5], WEIGHTS[5:]]
    found = ag.nn.sampled_softmax_loss(parts, BIASES, LABELS[:, :1], INPUTS, 4, 10, seed=2)
    np.testing.assert_allclose(found, [1.59562397, 1.49392045, 2.05796432], rtol=1e-5)
    assert ag.nn.nce_loss(WEIGHTS, BIASES, LABELS[:, :1], INPUTS, 4, 10).shape == [3]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ag.random.uniform_candidate_sampler([[0]], 1, 3, True, 2), "range is too small"),
        (lambda: ag.random.uniform_candidate_sampler([[0]], 2, 3, True, 5), "num_true columns, expected: 2 was: 1"),
        (lambda: ag.random.uniform_candidate_sampler([0], 1, 3, True, 5), "must be a matrix"),
        (lambda: ag.random.log_uniform_candidate_sampler([[11]], 1, 3, True, 5), r"out of range \[0, 5\)"),
        (lambda: ag.random.log_uniform_candidate_sampler([[1]], 1, 0, True, 5), "at least 1"),
        (lambda: ag.nn.sampled_softmax_loss(WEIGHTS, BIASES, LABELS[:, 0], INPUTS, 4, 10), "labels must have shape"),
    ],
)
def test_errors(call, message):
    with pytest.raises(E, match=message):
        call()


def test_other_classes_may_be_impossible():
    """Their logits are -inf, as `log(0)` is: the loss and its gradient are those without them, as in TensorFlow."""
    logits = ag.constant([[0.0, -np.inf, 1.0]])
    with ag.GradientTape() as tape:
        tape.watch(logits)
        loss = ag.nn.sparse_softmax_cross_entropy_with_logits([2], logits)
    expected = np.log(1 + np.exp(-1.0))
    np.testing.assert_allclose(loss, [expected], rtol=1e-6)
    slope = np.exp(-expected) - 1
    np.testing.assert_allclose(tape.gradient(loss, logits), [[-slope, 0.0, slope]], rtol=1e-6)
    assert ag.nn.sparse_softmax_cross_entropy_with_logits([1], logits).numpy() == np.inf
