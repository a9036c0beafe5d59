"""An empty list of indices holds integers, although an empty list is of float32 elsewhere."""

import numpy as np
import pytest

import autograph as ag

X = ag.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
NONE = X[:0]
CASES = {
    "gather": (lambda empty: ag.gather(X, empty), np.zeros((0, 2))),
    "gather a row": (lambda empty: ag.gather(X, [empty], axis=1), np.zeros((3, 1, 0))),
    "gather_nd": (lambda empty: ag.gather_nd(X, [empty, empty]), np.broadcast_to(X, (2, 3, 2))),
    "one_hot": (lambda empty: ag.one_hot(empty, 3), np.zeros((0, 3))),
    "segment_sum": (lambda empty: ag.math.segment_sum(NONE, empty), np.zeros((0, 2))),
    "segment_mean": (lambda empty: ag.math.segment_mean(NONE, empty), np.zeros((0, 2))),
    "unsorted_segment_sum": (lambda empty: ag.math.unsorted_segment_sum(NONE, empty, 2), np.zeros((2, 2))),
    "unsorted_segment_max": (lambda empty: ag.math.unsorted_segment_max(NONE, empty, 0), np.zeros((0, 2))),
    "scatter_nd": (lambda empty: ag.scatter_nd([empty], [1.0], []), np.array(1.0)),
    "losses": (
        lambda empty: ag.nn.sparse_softmax_cross_entropy_with_logits(labels=empty, logits=NONE), np.zeros(0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("staged", [False, True], ids=["eager", "staged"])
@pytest.mark.parametrize("empty", [[], ()], ids=["list", "tuple"])
@pytest.mark.parametrize("name", CASES)
def test_empty_indices(name, empty, staged):
    of, expected = CASES[name]
    found = ag.function(of, autograph=False)(empty) if staged else of(empty)
    np.testing.assert_array_equal(found.numpy(), expected, strict=False)
    assert found.shape == expected.shape


def test_other_empty_things_are_no_indices():
    for wrong in (np.zeros(0), ag.zeros([0])):
        with pytest.raises(ag.errors.DTypeError, match="indices must be integers"):
            ag.gather(X, wrong)
