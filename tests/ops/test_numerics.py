"""check_numerics, and the checks of every operation: eager, interpreted, compiled, in loops and in gradients."""

import numpy as np
import pytest

import autograph as ag
from runtime.ops.numerics import NumericsRecorder

TIERS = [False, True]


@pytest.fixture
def checks():
    ag.debugging.enable_check_numerics()
    yield
    ag.debugging.disable_check_numerics()


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ([1.0, np.nan], "NaN"),
        ([np.inf, 1.0], "Inf"),
        ([-np.inf], "Inf"),
        ([np.nan, np.inf], "Inf and NaN"),
        (np.nan, "NaN"),
        (np.inf, "Inf"),
    ],
)
@pytest.mark.parametrize("dtype", [ag.float32, ag.float64, ag.float16])
def test_one_tensor(value, found, dtype):
    x = ag.constant(value, dtype)
    expected = f"my tensor : Tensor had {found} values [Op:CheckNumerics]"
    with pytest.raises(ag.errors.InvalidArgumentError) as caught:
        ag.debugging.check_numerics(x, "my tensor")
    assert str(caught.value) == expected
    for jit in TIERS:

        @ag.function(jit_compile=jit)
        def f(x):
            return ag.debugging.check_numerics(x * 2.0, "my tensor") + 1.0

        with pytest.raises(ag.errors.InvalidArgumentError) as caught:
            f(x)
        assert str(caught.value).split("\n")[0] == expected
        assert 'return ag.debugging.check_numerics(x * 2.0, "my tensor") + 1.0' in str(caught.value)


def test_finite_tensors_pass_and_others_are_refused():
    np.testing.assert_array_equal(ag.debugging.check_numerics([1.0, 3.4e38], "x"), np.float32([1.0, 3.4e38]))
    assert ag.debugging.check_numerics(ag.zeros([0]), "x").shape == (0,)
    with pytest.raises(ag.errors.InvalidArgumentError, match="needs a floating-point tensor, got int32"):
        ag.debugging.check_numerics(ag.constant([1]), "x")


def test_the_gradient_is_checked_too():
    x = ag.constant(0.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = ag.sqrt(ag.debugging.check_numerics(x, "my x"))
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"detected in gradient\. my x : Tensor had Inf values"):
        tape.gradient(y, x)
    x = ag.constant(4.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = ag.sqrt(ag.debugging.check_numerics(x, "my x"))
    assert float(tape.gradient(y, x)) == 0.25


def test_every_operation_of_eager_code(checks):
    with pytest.raises(ag.errors.InvalidArgumentError) as caught:
        ag.math.log(ag.constant([1.0, -1.0]))
    assert 'Detected Infinity or NaN in output 0 of op "Log" (inputs: float32[2])' in str(caught.value)
    assert "Tensor had NaN values" in str(caught.value)
    ag.debugging.enable_check_numerics()  # twice is once
    ag.debugging.disable_check_numerics()
    assert np.isnan(ag.math.log(ag.constant(-1.0)))


@pytest.mark.parametrize("jit", TIERS)
def test_every_operation_of_a_function_in_a_loop(checks, jit):
    @ag.function(jit_compile=jit)
    def f(x, n):
        for _ in ag.range(n):
            x = ag.sqrt(x - 1.0)
        return x

    assert np.isfinite(f(ag.constant([9.0, 100.0]), ag.constant(1)))[0]
    with pytest.raises(ag.errors.InvalidArgumentError) as caught:
        f(ag.constant([9.0, 100.0]), ag.constant(5))
    text = str(caught.value)
    assert 'output 0 of op "Sqrt" (inputs: float32[2])' in text
    assert "test_numerics.py" in text
    assert "x = ag.sqrt(x - 1.0)" in text


@pytest.mark.parametrize("jit", TIERS)
def test_gradients_of_functions_are_checked(checks, jit):
    @ag.function(jit_compile=jit)
    def f(x):
        return ag.sqrt(x)

    x = ag.constant(0.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    with pytest.raises(ag.errors.InvalidArgumentError, match="Tensor had"):
        tape.gradient(y, x)


def test_functions_are_traced_again_with_and_without_checks():
    @ag.function
    def f(x):
        return ag.math.log(x)

    x = ag.constant(-1.0)
    assert np.isnan(f(x))
    ag.debugging.enable_check_numerics()
    try:
        with pytest.raises(ag.errors.InvalidArgumentError, match='op "Log"'):
            f(x)
        with pytest.raises(ag.errors.InvalidArgumentError, match='op "Log"'):
            f.get_concrete_function(x)(x)
    finally:
        ag.debugging.disable_check_numerics()
    assert np.isnan(f(x))
    assert f.experimental_get_tracing_count() == 2


def test_gradients_with_checks_are_those_without(checks):
    @ag.function
    def f(x):
        y = x
        for _ in ag.range(3):
            y = ag.sin(y) * x
        return y

    def gradient():
        x = ag.constant(0.7)
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return float(tape.gradient(y, x))

    with_checks = gradient()
    ag.debugging.disable_check_numerics()
    assert gradient() == pytest.approx(with_checks, rel=1e-6)


def test_moving_a_nan_is_not_reported(checks):
    x = ag.constant([np.nan, 1.0])
    assert float(ag.reverse(x, [0])[0]) == 1.0
    with pytest.raises(ag.errors.InvalidArgumentError, match='op "AddV2"'):
        ag.reverse(x, [0]) + 1.0


def test_the_recorder_tracks_nothing():
    assert not NumericsRecorder().is_tracking(None)
