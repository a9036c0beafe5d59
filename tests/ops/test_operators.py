"""Python's operators on tensors, against NumPy; indexing, against NumPy, over generated keys."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import autograph as ag

A = np.array([[1.0, -2.0, 3.0], [4.0, 0.5, -6.0]], np.float32)
B = np.array([2.0, 3.0, -1.5], np.float32)
I = np.array([7, -7, 12], np.int32)  # noqa: E741
J = np.array([2, 3, -5], np.int32)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"])
@pytest.mark.parametrize("pair", [(A, B), (np.abs(A), B), (I, np.abs(J))], ids=["mixed", "positive", "int"])
def test_arithmetic(name, pair):
    x, y = pair
    if name == "pow" and (x < 0).any() and x.dtype.kind == "f":
        pytest.skip("NaN in both")
    expected = getattr(x, f"__{name}__")(y)
    if name in ("floordiv", "mod") and x.dtype.kind == "f":
        expected = np.floor(x / y) if name == "floordiv" else np.mod(x, y)
    assert_close(getattr(ag.constant(x), f"__{name}__")(ag.constant(y)), expected)
    assert_close(getattr(ag.constant(x), f"__{name}__")(y), expected)
    assert_close(getattr(ag.constant(y), f"__r{name}__")(x), expected)


def assert_close(tensor, expected):
    np.testing.assert_allclose(tensor.numpy(), expected, 1e-6)
    assert tensor.shape == expected.shape


@pytest.mark.parametrize(
    "dtype, wide",
    [(ag.int8, ag.float32), (ag.uint16, ag.float32), (ag.int32, ag.float64), (ag.int64, ag.float64)],
)
def test_true_division_of_integers(dtype, wide):
    result = ag.constant(1, dtype) / ag.constant(2, dtype)
    assert result.dtype is wide
    assert float(result) == 0.5
    assert np.isinf(float(ag.constant(1, dtype) / 0))


@pytest.mark.parametrize(
    "compute", [lambda: ag.constant(1) // 0, lambda: ag.constant([1, 2]) % [1, 0], lambda: ag.truncatediv(5, 0)]
)
def test_integer_division_by_zero(compute):
    with pytest.raises(ag.errors.InvalidArgumentError, match="Integer division by zero"):
        compute()


def test_float_division_by_zero_is_silent(recwarn):
    assert np.isinf(float(ag.constant(1.0) // 0.0))
    assert np.isnan(float(ag.constant(0.0) / 0.0))
    assert np.isinf(float(ag.exp(ag.constant(1000.0))))
    assert int(ag.constant(2**31 - 1) + 1) == -(2**31)
    assert not recwarn.list


def test_the_users_numpy_still_warns():
    ag.constant(1.0) / ag.constant(0.0)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.array([1.0]) / np.array([0.0])


def test_negative_integer_powers():
    with pytest.raises(ag.errors.InvalidArgumentError, match="Integers to negative integer powers are not allowed"):
        ag.constant(2) ** -1
    assert float(ag.constant(2.0) ** -1) == 0.5


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons(name):
    result = getattr(ag.constant(A), f"__{name}__")(ag.constant(B))
    assert result.dtype is ag.bool
    np.testing.assert_array_equal(result.numpy(), getattr(A, f"__{name}__")(B))


def test_equality_of_what_cannot_be_compared():
    x = ag.constant([1.0, 2.0])
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711
    assert not (x == ag.constant([1.0, 2.0, 3.0])).numpy()
    assert (x != ag.constant([1.0, 2.0, 3.0])).numpy()
    assert (x == object()) is False
    with pytest.raises(TypeError):
        x == ag.constant([1, 2])


def test_logic_and_bits():
    t, f = ag.constant(True), ag.constant(False)
    assert [bool(v) for v in (t & f, t | f, t ^ t, ~t, True & t)] == [False, True, False, False, True]
    x = ag.constant([6, 3])
    assert (x & 3).numpy().tolist() == [2, 3]
    assert (1 | x).numpy().tolist() == [7, 3]
    assert (x ^ x).numpy().tolist() == [0, 0]
    assert (~x).numpy().tolist() == [-7, -4]
    with pytest.raises(TypeError, match="BitwiseAnd"):
        ag.constant(1.0) & ag.constant(1.0)


def test_unary_and_divmod():
    x = ag.constant([-1.5, 2.0])
    assert (-x).numpy().tolist() == [1.5, -2.0]
    assert (+x).numpy().tolist() == [-1.5, 2.0]
    assert abs(x).numpy().tolist() == [1.5, 2.0]
    quotient, rest = divmod(ag.constant(7), 2)
    assert (int(quotient), int(rest)) == (3, 1)


def test_matrix_product():
    m = ag.constant([[1.0, 2.0], [3.0, 4.0]])
    assert (m @ m).numpy().tolist() == [[7, 10], [15, 22]]
    assert ([[1.0, 0.0]] @ m).numpy().tolist() == [[1, 2]]
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"In\[0\] ndims must be >= 2"):
        ag.constant([1.0]) @ ag.constant([1.0])


def test_numpy_on_the_left_gives_a_tensor():
    result = np.array([1.0, 2.0, 3.0]) * ag.constant(B)
    assert isinstance(result, ag.Tensor)
    np.testing.assert_allclose(result.numpy(), B * [1, 2, 3])


# --- indexing ------------------------------------------------------------------------------------------------------

SIZES = (3, 4, 2)
CUBE = np.arange(24).reshape(SIZES).astype(np.float32)

bound = st.one_of(st.none(), st.integers(-6, 6))
steps = st.one_of(st.none(), st.integers(-3, 3).filter(bool))
item = st.one_of(
    st.integers(-2, 1), st.builds(slice, bound, bound, steps), st.just(None), st.sampled_from([...]),
)  # fmt: skip


def fits(key):
    return sum(k is ... for k in key) <= 1 and sum(isinstance(k, (int, slice)) for k in key) <= 3


@given(st.lists(item, max_size=5))
@settings(max_examples=300, deadline=None)
def test_indexing_is_numpys(key):
    key = tuple(key)
    if not fits(key):
        with pytest.raises(ag.errors.InvalidArgumentError):
            ag.constant(CUBE)[key]
        return
    expected = CUBE[key]
    for variant in (key, tuple(ag.constant(k) if isinstance(k, int) else k for k in key)):
        result = ag.constant(CUBE)[variant]
        assert result.shape == expected.shape
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("part", [(True, False, True, True), [True, False, True, True], (0, 3), [2, -1, 2]])
def test_sequences_among_indices_are_arrays(part):
    for key in ((slice(None), part), (slice(None), part, 1), (1, part)):
        np.testing.assert_array_equal(ag.constant(CUBE)[key].numpy(), CUBE[key])


@given(st.lists(item, min_size=1, max_size=4).filter(fits))
@settings(max_examples=100, deadline=None)
def test_gradient_of_indexing(key):
    key = tuple(key)
    x = ag.constant(CUBE)
    with ag.GradientTape() as tape:
        tape.watch(x)
        total = ag.reduce_sum(x[key] * 2.0)
    expected = np.zeros_like(CUBE)
    expected[key] = 2
    np.testing.assert_array_equal(np.asarray(tape.gradient(total, x)), expected)


@pytest.mark.parametrize(
    "key, message",
    [
        (5, "slice index 5 of dimension 0 out of bounds"),
        (-4, "slice index -1 of dimension 0 out of bounds"),
        ((0, 9), "slice index 9 of dimension 1 out of bounds"),
        ((0, 0, 0, 0), "Index out of range using input dim 3; input has only 3 dims"),
        (slice(None, None, 0), "strides[0] must be non-zero"),
        ((..., ...), "Multiple ellipses in slice spec not allowed"),
    ],
)  # fmt: skip
def test_bad_indices(key, message):
    with pytest.raises(ag.errors.InvalidArgumentError) as caught:
        ag.constant(CUBE)[key]
    assert message in str(caught.value)


@pytest.mark.parametrize("key", [1.0, "a", ag.constant(1.0), True])
def test_keys_that_are_no_indices(key):
    with pytest.raises(TypeError, match="Only integers, slices"):
        ag.constant(CUBE)[key]


def test_scalars_cannot_be_indexed():
    with pytest.raises(ag.errors.InvalidArgumentError, match="Attempting to slice scalar input"):
        ag.constant(1.0)[0]


def test_masks_and_positions():
    x = ag.constant(A)
    np.testing.assert_array_equal(x[x > 0].numpy(), A[A > 0])
    np.testing.assert_array_equal(x[ag.constant([1, 0, 1])].numpy(), A[[1, 0, 1]])
    np.testing.assert_array_equal(x[np.array([1])].numpy(), A[[1]])
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"indices\[0\] = 2 is not in \[0, 2\)"):
        x[ag.constant([2])]


def test_variables_have_the_operators():
    v = ag.Variable([1.0, 2.0])
    assert (v + 1).numpy().tolist() == [2, 3]
    assert (2 * v).numpy().tolist() == [2, 4]
    assert (v * v)[1].numpy() == 4
    assert v[-1].numpy() == 2
    assert (v == [1.0, 0.0]).numpy().tolist() == [True, False]
    assert (-v).numpy().tolist() == [-1, -2]
    assert (v @ [[1.0], [1.0]] if v.ndim == 2 else ag.tensordot(v, v, 1)).numpy() == 5


@pytest.mark.parametrize("number", [2, -1, 300, 2**40, 2**70, 1.5, 1e300, True])
@pytest.mark.parametrize(
    "dtype", ["uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "bool"]
)
def test_numbers_beside_traced_tensors_are_those_beside_eager_ones(number, dtype):
    x = ag.cast(ag.constant([0, 1]), dtype)

    def outcome(run):
        try:
            result = run(x)
        except Exception as error:
            return type(error), str(error).partition("\n")[0]
        return result.dtype, str(result.numpy())

    assert outcome(ag.function(lambda x: x + number, jit_compile=False)) == outcome(lambda x: x + number)
    assert outcome(ag.function(lambda x: number * x, jit_compile=False)) == outcome(lambda x: number * x)
