"""Dtypes by TensorFlow's numbers, and the floats of 8 bits."""

import ml_dtypes
import numpy as np
import pytest

import autograph as ag


def test_tensorflows_numbers_stand_for_dtypes():
    assert [ag.as_dtype(n) for n in (1, 2, 3, 9, 10, 14, 19)] == [
        ag.float32, ag.float64, ag.int32, ag.int64, ag.bool, ag.bfloat16, ag.float16,
    ]  # fmt: skip
    assert ag.ones([2], 3).dtype == ag.int32
    for wrong in (0, 99, -1):
        with pytest.raises(TypeError, match="Cannot convert"):
            ag.as_dtype(wrong)


@pytest.mark.parametrize("dtype", [ag.dtypes.experimental.float8_e4m3fn, ag.dtypes.experimental.float8_e5m2])
@pytest.mark.parametrize("jit", [None, False, True])
def test_floats_of_8_bits_are_rounded_as_ml_dtypes_does(dtype, jit):
    x = np.array([1.1, -300, 1e-3, 448, 0.0, -0.0, 3.3, 1e-9], "float32")

    @ag.function(jit_compile=jit)
    def there_and_back(x):
        return ag.cast(ag.cast(x, dtype), ag.float32)

    expected = x.astype(getattr(ml_dtypes, dtype.name)).astype("float32")
    for _ in range(3):
        np.testing.assert_array_equal(there_and_back(x), expected)
    assert ag.cast(x, dtype).dtype.size == 1
    assert dtype.is_floating
    assert float(dtype.max) == float(ml_dtypes.finfo(dtype.name).max)
    assert ag.as_dtype(dtype.name) is dtype
    variable = ag.Variable(ag.cast(x, dtype))
    np.testing.assert_array_equal(ag.cast(variable, ag.float32), expected)
    assert ag.convert_to_tensor(variable.numpy()).dtype == dtype


def test_the_gradient_of_a_cast_goes_through():
    x = ag.constant([1.5, 2.5])
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = ag.reduce_sum(ag.cast(ag.cast(x, "float8_e5m2"), ag.float32) * 3.0)
    np.testing.assert_array_equal(tape.gradient(y, x), [3, 3])
