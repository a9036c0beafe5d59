"""Running sums and products, and positions of extremes, along each axis in native code: rows, and blocks of columns."""

from __future__ import annotations

import numpy as np
import pytest

import autograph as ag
from runtime.codegen.lower.lower_graph import lower
from runtime.codegen.passes import parallelize

SHAPES = [(700, 1100), (3, 2, 2500), (1500, 3), (5, 7, 11), (1, 600_000), (4, 300_001), (300, 1, 2000), (2, 0), (0, 2)]


@pytest.fixture(autouse=True)
def restored():
    yield
    parallelize.set_thread_count(0)


def values(shape, dtype):
    random = np.random.default_rng(0)
    if dtype.is_floating:
        x = random.integers(-3, 4, shape).astype(dtype.np)  # with many equals
        x[random.random(shape) < 0.02] = np.nan
        return ag.constant(x)
    return ag.constant(random.integers(-100, 100, shape).astype(dtype.np))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [ag.float32, ag.float64, ag.int64], ids=lambda d: d.name)
def test_positions_of_extremes(shape, dtype):
    axes = [axis for axis in range(len(shape)) if shape[axis]]

    def program(x):
        return [
            f(x, axis, output_type=t) for f in (ag.argmax, ag.argmin) for axis in axes for t in (ag.int64, ag.int32)
        ]

    x = values(shape, dtype)
    for ours, eager in zip(ag.function(program, jit_compile=True)(x), program(x), strict=True):
        assert ours.dtype is eager.dtype
        np.testing.assert_array_equal(ours.numpy(), eager.numpy())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [ag.float32, ag.int32], ids=lambda d: d.name)
def test_running_sums(shape, dtype):
    def program(x):
        return [
            ag.cumsum(x, axis, exclusive, reverse)
            for axis in range(len(shape)) for exclusive in (False, True) for reverse in (False, True)
        ]  # fmt: skip

    x = ag.cast(ag.constant(np.random.default_rng(0).integers(-9, 9, shape)), dtype)  # sums of floats are exact
    f = ag.function(program, jit_compile=True)
    for count in (1, 3):
        parallelize.set_thread_count(count)
        for ours, eager in zip(f(x), program(x), strict=True):
            np.testing.assert_array_equal(ours.numpy(), eager.numpy())


@pytest.mark.parametrize("axis", [0, 1])
def test_running_products(axis):
    x = ag.constant(1.0 + 1e-3 * np.random.default_rng(0).normal(size=(900, 800)))
    program = lambda x: ag.math.cumprod(x, axis, reverse=True)  # noqa: E731
    np.testing.assert_allclose(ag.function(program, jit_compile=True)(x).numpy(), program(x).numpy(), 1e-12)


def test_nothing_but_nan():
    x = ag.constant(np.full((3, 700), np.nan, np.float32))
    program = lambda x: (ag.argmax(x, 0), ag.argmax(x, 1), ag.argmin(x, 1))  # noqa: E731
    for ours, eager in zip(ag.function(program, jit_compile=True)(x), program(x), strict=True):
        np.testing.assert_array_equal(ours.numpy(), eager.numpy())


def test_large_ones_run_on_threads():
    large, small = ag.TensorSpec([1000, 1000]), ag.TensorSpec([10, 10])
    for program in (ag.cumsum, lambda x: ag.cumsum(x, 1), ag.argmax, lambda x: ag.argmax(x, 1)):
        for spec, expected in ((large, True), (small, False)):
            text = lower(ag.function(program).get_concrete_function(spec).graph).text
            assert ("in_threads" in text) is expected


SMALL = [(5,), (1, 4), (4, 1), (3, 5), (2, 3, 4), (40, 30)]


@pytest.mark.parametrize("shape", SMALL, ids=str)
@pytest.mark.parametrize("dtype", [ag.float32, ag.float64, ag.int32, ag.uint8], ids=lambda d: d.name)
def test_positions_of_extremes_in_loops(shape, dtype):
    """They are found by the nest that computes the operand, beside other reductions of it."""
    x = values(shape, dtype) if dtype.is_floating else ag.cast(values(shape, ag.int64), dtype)

    def program(x, n):
        found = [ag.zeros([*shape[:axis], *shape[axis + 1 :]], ag.int64) for axis in range(len(shape))]
        best = list(range(len(shape)))
        for axis in range(len(shape)):
            best[axis] = ag.reduce_max(x, axis)
        for i in ag.range(n):
            y = x + ag.cast(i, dtype)
            for axis in range(len(shape)):
                found[axis] = found[axis] * 7 + ag.argmax(y, axis) - ag.argmin(y, axis)
                best[axis] = ag.reduce_max(y, axis)
        return found, best

    staged = ag.function(program, jit_compile=True)(x, ag.constant(3))
    for got, wanted in zip(staged, program(x, ag.constant(3))):
        for one, other in zip(got, wanted):
            np.testing.assert_array_equal(one, other)


def test_extremes_nowhere_and_of_nothing_but_nan():
    x = np.full((3, 4), -np.inf)
    x[:, 2] = np.nan

    def program(x):
        total = ag.zeros([4], ag.int64)
        for _ in ag.range(2):
            total = total * 2 + ag.argmax(x * 1.0, 0) + ag.argmin(x * 1.0, 0)
        return total

    np.testing.assert_array_equal(ag.function(program, jit_compile=True)(x), program(ag.constant(x)))


def test_an_extreme_and_its_position_are_one_pass():
    @ag.function(input_signature=[ag.TensorSpec([6, 6]), ag.TensorSpec([6]), ag.TensorSpec([], ag.int32)])
    def viterbi(steps, x, n):
        back = ag.TensorArray(ag.int32, size=n)
        for i in ag.range(n):
            scores = x[:, None] + steps
            back = back.write(i, ag.argmax(scores, 0, output_type=ag.int32))
            x = ag.reduce_max(scores, 0)
        return x, back.stack()

    text = lower(viterbi.get_concrete_function().graph).text
    assert text.count("steps_flat[") == 1 and "maximum" in text
    random = np.random.default_rng(2)
    steps, x = random.normal(size=(6, 6)).astype(np.float32), random.normal(size=6).astype(np.float32)
    for got, wanted in zip(viterbi(steps, x, 5), viterbi.python_function(*map(ag.constant, (steps, x, 5)))):
        np.testing.assert_array_equal(got, wanted)
