"""The bytes of numbers as other dtypes: all pairs of widths, on every tier."""

import numpy as np
import pytest

import autograph as ag
from runtime.engine.partition import segments

DTYPES = [ag.int8, ag.uint8, ag.int16, ag.uint16, ag.int32, ag.uint32, ag.int64, ag.uint64, ag.float32, ag.float64]
PAIRS = [(a, b) for a in DTYPES for b in DTYPES if a is not b]


def awkward(dtype, shape):
    """Random bytes: among the floats are NaNs, infinities and tiny numbers."""
    rng = np.random.default_rng(dtype.size)
    numbers = np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.size), dtype.as_numpy_dtype).reshape(shape).copy()
    if dtype.is_floating and numbers.size > 3:
        numbers.reshape(-1)[:4] = [np.nan, -np.inf, -0.0, 5e-324]
    return numbers


def compiled(f, *specs):
    made = ag.function(f, jit_compile=True, input_signature=specs)
    graph = made.get_concrete_function().graph
    assert [native for native, _ in segments(graph)] == [True]
    return made


@pytest.mark.parametrize(("old", "new"), PAIRS, ids=lambda d: d.name)
def test_equals_numpy(old, new):
    parts = max(new.size // old.size, 1)
    x = awkward(old, (5, 3, parts) if parts > 1 else (5, 3))
    expected = x.view(new.as_numpy_dtype)
    expected = expected[..., 0] if parts > 1 else expected.reshape(5, 3, -1) if old.size > new.size else expected
    f = compiled(lambda x: ag.bitcast(x, new), ag.TensorSpec([None] * x.ndim, old))
    for way in (lambda x: ag.bitcast(x, new), ag.function(lambda x: ag.bitcast(x, new)), f):
        found = way(ag.constant(x))
        assert found.dtype is new and found.shape.as_list() == list(expected.shape)
        assert found.numpy().tobytes() == expected.tobytes()
    assert f(ag.constant(x[:0])).shape[0] == 0


@pytest.mark.parametrize(("old", "new"), [(ag.float32, ag.int32), (ag.int64, ag.float64), (ag.float64, ag.uint16)])
def test_one_number(old, new):
    x = awkward(old, (5,))[4]
    found = compiled(lambda x: ag.bitcast(x, new), ag.TensorSpec([], old))(ag.constant(x))
    np.testing.assert_array_equal(found, ag.bitcast(ag.constant(x), new))
    parts = np.frombuffer(x.tobytes(), np.uint8)
    back = compiled(lambda x: ag.bitcast(x, old), ag.TensorSpec([old.size], ag.uint8))(ag.constant(parts))
    assert back.shape == () and back.numpy().tobytes() == x.tobytes()


def test_of_one_width_it_is_fused():
    f = compiled(lambda x: ag.bitcast(ag.bitcast(x * 2.0, ag.int32) & 0x7FFFFFFF, ag.float32) + 1.0,
                 ag.TensorSpec([None], ag.float32))  # fmt: skip
    x = ag.constant([-3.0, 0.0, 4.0])
    np.testing.assert_array_equal(f(x), [7.0, 1.0, 9.0])
    assert f.get_concrete_function().as_text("kernel").count("for i in range") == 1


def test_views_and_large_arrays():
    x = np.random.default_rng(0).normal(size=(700, 300)).astype(np.float32)
    f = compiled(lambda x: ag.bitcast(ag.transpose(x)[::-1], ag.uint8), ag.TensorSpec([None, None], ag.float32))
    expected = np.ascontiguousarray(x.T[::-1]).view(np.uint8).reshape(300, 700, 4)
    np.testing.assert_array_equal(f(ag.constant(x)), expected)


def test_a_last_dimension_that_does_not_fit():
    with pytest.raises(ValueError, match=r"must end with 4"):
        ag.function(lambda x: ag.bitcast(x, ag.float32))(ag.zeros([2, 3], ag.uint8))
    for jit_compile in (False, True):
        f = ag.function(lambda x: ag.bitcast(x, ag.float32), jit_compile=jit_compile,
                        input_signature=[ag.TensorSpec([None, None], ag.uint8)])  # fmt: skip
        with pytest.raises(ag.errors.InvalidArgumentError, match=r"uint8 to float: shape \[2,3\] must end with 4"):
            f(ag.zeros([2, 3], ag.uint8))


def test_it_has_no_gradient():
    x = ag.Variable([1.0, 2.0])

    @ag.function(jit_compile=True)
    def f():
        with ag.GradientTape() as tape:
            y = x * ag.cast(ag.bitcast(x, ag.int32), ag.float32)
            alone = ag.bitcast(ag.bitcast(x, ag.int32), ag.float32)
        return tape.gradient(y, x), alone

    slope, alone = f()
    np.testing.assert_array_equal(slope, ag.cast(ag.bitcast(x, ag.int32), ag.float32))
    np.testing.assert_array_equal(alone, x)
    with ag.GradientTape() as tape:
        y = ag.bitcast(x, ag.int32)
    assert tape.gradient(y, x) is None
