"""`ag.debugging.assert_*`: what they let pass, what they refuse and when, eager and traced."""

import pickle

import numpy as np
import pytest

import autograph as ag

D = ag.debugging
PASS = {
    "positive": lambda x: D.assert_positive(x + 1), "negative": lambda x: D.assert_negative(-x - 1),
    "non_negative": lambda x: D.assert_non_negative(x), "non_positive": lambda x: D.assert_non_positive(-x),
    "near": lambda x: D.assert_near(x, x + 1e-7), "near given": lambda x: D.assert_near(x, x + 0.1, atol=0.2),
    "rank": lambda x: D.assert_rank(x, 2), "rank_at_least": lambda x: D.assert_rank_at_least(x, 1),
    "rank_in": lambda x: D.assert_rank_in(x, (1, 2)), "scalar": lambda x: D.assert_scalar(x[0, 0]),
    "type": lambda x: D.assert_type(x, ag.float32), "integer": lambda x: D.assert_integer(ag.shape(x)),
    "finite": lambda x: D.assert_all_finite(x, "no"), "less": lambda x: D.assert_less(x, 10.0),
    "shapes": lambda x: D.assert_shapes([(x, ("n", 3)), (x[:, 0], ("n",)), (x, ("*", 3)), (x, (None, "."))]),
}  # fmt: skip
FAIL = {
    "positive": (lambda x: D.assert_positive(x, "too low"), r"too low\nCondition x > 0 did not hold"),
    "negative": (lambda x: D.assert_negative(x), "x < 0"), "non_negative": (
        lambda x: D.assert_non_negative(x - 2), "x >= 0"),
    "near": (lambda x: D.assert_near(x, x + 0.1), "not equal to tolerance"),
    "rank": (lambda x: D.assert_rank(x, 1, "here"), r"here\nTensor must have rank 1. Received rank"),
    "rank_at_least": (lambda x: D.assert_rank_at_least(x, 3), "rank at least 3"),
    "rank_in": (lambda x: D.assert_rank_in(x, (0, 3)), r"rank in \(0, 3\)"),
    "type": (lambda x: D.assert_type(x, ag.int32), "must be of type tf.int32; got tf.float32"),
    "integer": (lambda x: D.assert_integer(x), "integer type"),
    "finite": (lambda x: D.assert_all_finite(x / 0, "not finite"), "not finite"),
    "shapes": (lambda x: D.assert_shapes([(x, ("n", 4))]), "4"),
    "shapes by name": (lambda x: D.assert_shapes([(x, ("n", "n"))]), "'n'"),
}  # fmt: skip
X = np.arange(6, dtype=np.float32).reshape(2, 3)
SPECS = {"eager": None, "known": ag.TensorSpec([2, 3]), "unknown sizes": ag.TensorSpec([None, None])}


def run(function, spec):
    def checked(x):
        function(x)
        return x

    return (ag.function(checked, input_signature=[spec]) if spec is not None else checked)(ag.constant(X))


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("name", PASS)
def test_pass(name, spec):
    np.testing.assert_array_equal(run(PASS[name], SPECS[spec]), X)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("name", FAIL)
def test_fail(name, spec):
    function, message = FAIL[name]
    with pytest.raises((ag.errors.InvalidArgumentError, ValueError, TypeError), match=message):
        run(function, SPECS[spec])


def test_unknown_rank_is_checked_at_run_time():
    for check, good in ((D.assert_rank, 2), (D.assert_rank_at_least, 1)):
        run(lambda x: check(x, good), ag.TensorSpec(None))
        with pytest.raises(ag.errors.InvalidArgumentError, match="rank"):
            run(lambda x: check(x, 5), ag.TensorSpec(None))
    with pytest.raises(ag.errors.InvalidArgumentError, match="rank in"):
        run(lambda x: D.assert_rank_in(x, (0, 1)), ag.TensorSpec(None))


def test_dtypes_and_iterables():
    assert D.assert_same_float_dtype([ag.constant(1.0)]) is ag.float32 is D.assert_same_float_dtype()
    assert D.assert_same_float_dtype(dtype=ag.float64) is ag.float64
    for arguments in ([ag.constant(1)], [ag.constant(1.0), ag.constant(1.0, ag.float64)]):
        with pytest.raises(ValueError):
            D.assert_same_float_dtype(arguments)
    D.assert_proper_iterable([1])
    for value in (ag.constant([1]), "text", 3, np.ones(2)):
        with pytest.raises(TypeError, match="iterable"):
            D.assert_proper_iterable(value)
    assert D.is_numeric_tensor(ag.constant(1)) and not D.is_numeric_tensor(ag.constant("a"))
    assert not D.is_numeric_tensor(1)


def test_codes_of_errors():
    with pytest.raises(ag.errors.InvalidArgumentError) as caught:
        D.assert_positive(-1)
    assert caught.value.error_code == ag.errors.INVALID_ARGUMENT == 3
    assert ag.errors.AbortedError("x").error_code == ag.errors.ABORTED == 10
    assert issubclass(ag.errors.ResourceExhaustedError, ag.errors.OpError) and ag.errors.OK == 0
    assert ag.errors.OpError("x").error_code == ag.errors.UNKNOWN


def test_errors_are_made_as_in_tensorflow():
    error = ag.errors.InvalidArgumentError(None, None, "no such row", ag.errors.UNKNOWN)
    assert (str(error), error.message, error.node_def, error.op) == ("no such row", "no such row", None, None)
    assert error.error_code == ag.errors.INVALID_ARGUMENT
    assert ag.errors.NotFoundError(node_def=None, op=None, message="gone").message == "gone"
    assert ag.errors.OpError(None, None, "lost", ag.errors.DATA_LOSS).error_code == ag.errors.DATA_LOSS
    copy = pickle.loads(pickle.dumps(ag.errors.OpError(None, "Gather", "lost", ag.errors.DATA_LOSS)))
    assert (copy.message, copy.op, copy.error_code) == ("lost", "Gather", ag.errors.DATA_LOSS)
