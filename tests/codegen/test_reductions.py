"""Reductions in native code: of rows, of columns, of everything, in parts on threads; values of rows in registers."""

from __future__ import annotations

import numpy as np
import pytest

import autograph as ag
from runtime.codegen.lower.lower_graph import lower
from runtime.codegen.passes import parallelize
from tests.codegen.compare import build, check, typed

# Large enough for threads, at sizes that no part divides.
SHAPES = [(1003, 601), (70001, 9), (7, 90001), (600011,), (41, 129, 131), (3, 50007, 5)]
NUMBERS = {
    "sum": ag.reduce_sum, "mean": ag.reduce_mean, "max": ag.reduce_max, "min": ag.reduce_min,
    "variance": ag.math.reduce_variance, "logsumexp": ag.reduce_logsumexp,
}  # fmt: skip


@pytest.fixture(autouse=True)
def restored():
    yield
    parallelize.set_thread_count(0)


def text_of(function, *specs):
    return lower(ag.function(function).get_concrete_function(*specs).graph).text


def of_all_axes(reduce, rank):
    axes = [None, *range(rank), *([(0, 2), (0, 1), (1, 2)] if rank == 3 else [])]
    return lambda x: tuple(reduce(x, axis) for axis in axes)


def agree(found, expected, rtol):
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol, rtol)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_floats(name, shape):
    program = of_all_axes(NUMBERS[name], len(shape))
    x = ag.constant(np.random.default_rng(0).random(shape).astype(np.float32))
    f = ag.function(program, jit_compile=True)
    found = []
    for count in (1, 2, 5):
        parallelize.set_thread_count(count)
        found.append(f(x))
    exact = program(ag.cast(x, ag.float64))  # NumPy's own sums of columns lose digits
    agree(found[0], exact, 2e-5)
    for other in found[1:]:
        assert [r.numpy().tobytes() for r in other] == [r.numpy().tobytes() for r in found[0]]
    agree(ag.function(program, jit_compile=True)(ag.cast(x, ag.float64)), exact, 1e-12)


@pytest.mark.parametrize("shape", [(1003, 601), (600011,), (41, 129, 131)], ids=str)
def test_integers_booleans_and_products(shape):
    random = np.random.default_rng(1)
    whole = ag.constant(random.integers(-(2**31), 2**31, shape, np.int32))
    rare = ag.constant(random.random(shape) < 2e-6)
    near = ag.constant((1.0 + 1e-4 * random.normal(size=shape)).astype(np.float32))
    rank = len(shape)

    def program(whole, rare, near):
        return (
            *of_all_axes(ag.reduce_sum, rank)(whole), *of_all_axes(ag.reduce_max, rank)(whole),
            *of_all_axes(ag.reduce_any, rank)(rare), *of_all_axes(ag.reduce_all, rank)(~rare),
            *of_all_axes(ag.reduce_prod, rank)(near),
        )  # fmt: skip

    agree(ag.function(program, jit_compile=True)(whole, rare, near), program(whole, rare, near), 1e-3)


def test_a_product_may_be_large_on_the_way():
    x = np.ones(2**20, np.float32)
    x[:8], x[-8:] = 1e30, 1e-30
    f = ag.function(ag.reduce_prod, jit_compile=True)
    np.testing.assert_allclose(f(ag.constant(np.roll(x, 1000))).numpy(), 1.0, 1e-4)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_special_values_anywhere(special):
    f = ag.function(lambda x: (ag.reduce_max(x), ag.reduce_min(x, 0), ag.reduce_sum(x, 1)), jit_compile=True)
    for place in ((0, 0), (511, 1023), (700, 3), (900, 1000)):
        x = np.random.default_rng(0).normal(size=(1024, 1024)).astype(np.float32)
        x[place] = special
        found = f(ag.constant(x))
        for ours, theirs in zip(found, (x.max(), x.min(0), x.sum(1, dtype=np.float64))):
            np.testing.assert_allclose(ours.numpy(), theirs, 1e-4, 1e-4)


def test_sums_of_many_numbers_are_accurate():
    """The bound that `reductions.py` states, of the sum of absolute values."""
    x = np.random.default_rng(0).random((3000, 1700)).astype(np.float32)
    f = ag.function(lambda x: (ag.reduce_sum(x), ag.reduce_sum(x, 0), ag.reduce_sum(x, 1)), jit_compile=True)
    found = f(ag.constant(x))
    for ours, axis in zip(found, (None, 0, 1)):
        exact = x.sum(axis, dtype=np.float64)
        assert np.max(np.abs(ours.numpy() - exact) / exact) < 72 * 2.0**-24


def test_elementwise_values_that_are_needed_too():
    def program(x, y):
        z = ag.exp(x) * y
        return z, ag.reduce_sum(z), ag.reduce_sum(z, 0), ag.reduce_max(z, 1)

    random = np.random.default_rng(0)
    x, y = (ag.constant(random.normal(size=s).astype(np.float32)) for s in ((1003, 601), (601,)))
    agree(ag.function(program, jit_compile=True)(x, y), program(x, y), 1e-4)


def test_gradients_of_what_is_broadcast():
    def program(x, scale, shift):
        with ag.GradientTape() as tape:
            tape.watch([x, scale, shift])
            y = ag.reduce_sum(ag.tanh(x * scale + shift))
        return tape.gradient(y, [x, scale, shift])

    random = np.random.default_rng(0)
    given = [ag.constant(random.normal(size=s).astype(np.float32)) for s in ((2003, 301), (301,), (2003, 1))]
    agree(ag.function(program, jit_compile=True)(*given), program(*given), 1e-3)


def test_in_a_loop():
    def program(x):
        total = ag.zeros([601])
        for _ in ag.range(4):
            total = total + ag.reduce_mean(x * x, 0) + ag.reduce_sum(x)
            x = x * 0.5
        return (total,)

    x = ag.constant(np.random.default_rng(0).normal(size=(1003, 601)).astype(np.float32))
    agree(ag.function(program, jit_compile=True)(x), program(x), 1e-3)


def test_what_is_printed():
    large, small = ag.TensorSpec([1000, 1000]), ag.TensorSpec([100, 100])
    for reduce in (ag.reduce_sum, lambda x: ag.reduce_sum(x, 0), lambda x: ag.reduce_sum(x, 1)):
        assert "lib.in_threads" in text_of(reduce, large)
        assert "lib.in_threads" not in text_of(reduce, small)
        assert text_of(reduce, large) == text_of(reduce, ag.TensorSpec([2000, 2000]))


def test_values_of_rows_need_no_memory():
    text = text_of(lambda x: ag.nn.softmax(x), ag.TensorSpec([1000, 1000]))
    assert text.count("np.empty") == 1  # the result
    text = text_of(ag.nn.softmax, ag.TensorSpec([None, None]))
    assert text.count("np.empty") == 1
    text = text_of(lambda x: (ag.nn.softmax(x), ag.reduce_max(x, 1)), ag.TensorSpec([None, 30]))
    assert text.count("np.empty(x_d0, ") == 1  # one value a row, the second result


@pytest.mark.parametrize("shape", [(700, 801), (5, 7), (0, 3), (3, 0)])
def test_values_of_rows(shape):
    def program(x):
        mean, variance = ag.nn.moments(x, [1], keepdims=True)
        y = (x - mean) * ag.math.rsqrt(variance + 1e-5)
        return y, mean, ag.nn.log_softmax(x), ag.reduce_sum(ag.nn.softmax(y) * x, 1)

    x = ag.constant(np.random.default_rng(0).normal(size=shape).astype(np.float32))
    agree(ag.function(program, jit_compile=True)(x), program(x), 1e-4)


@pytest.mark.parametrize("width", [2, 5, 8, 9, 16])
def test_many_short_rows(width):
    def program(x, scale):
        mean, variance = ag.nn.moments(x, [-1], keepdims=True)
        y = (x - mean) * ag.math.rsqrt(variance + 1e-3) * scale
        return ag.nn.softmax(x), ag.reduce_logsumexp(y, -1), y, ag.reduce_max(ag.exp(x), 0), ag.nn.log_softmax(x, 0)

    random = np.random.default_rng(0)
    for shape in ((60_001, width), (30, 2_003, width)):
        given = [ag.constant(random.normal(size=s).astype(np.float32)) for s in (shape, (width,))]
        agree(ag.function(program, jit_compile=True)(*given), program(*given), 1e-4)


def test_only_short_rows_of_large_arrays_are_written_out():
    for shape, count in (([300_000, 5], 3), ([300, 5], 0), ([300_000, 9], 0), ([5, 300_000], 0), ([None, 5], 0)):
        assert text_of(ag.nn.softmax, ag.TensorSpec(shape)).count("range(5)") == count


def test_short_rows_in_loops_are_written_out():
    def distances(x):
        for _ in ag.range(7):
            x = ag.reduce_sum((x[None, :, :] - x[:, None, :]) ** 2, 1) * 0.1 + x
        return x

    def rows(x):
        for _ in ag.range(7):
            x = x / (1.0 + ag.reduce_max(ag.abs(x), 1, keepdims=True))
        return x

    assert "range(3)" in text_of(rows, ag.TensorSpec([40, 3]))
    assert "range(" in text_of(rows, ag.TensorSpec([40, 50])) and "range(50)" not in text_of(
        rows, ag.TensorSpec([40, 50])
    )
    for program in (distances, rows):
        for shape in ((40, 3), (6, 8), (5, 1), (0, 3)):
            x = ag.constant(np.random.default_rng(0).normal(size=shape).astype(np.float32))
            agree(ag.function(program, jit_compile=True)(x), program(x), 1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [3, 5, 8, 10, 16, 20, 27, 32, 33])
def test_rows_of_a_few_elements(count, dtype):
    """Written out, in vectors with idle lanes or with elements left over; infinities and NaN among them."""
    x = np.random.default_rng(count).normal(size=(30001, count)).astype(dtype)
    x[5, 1], x[17, 2], x[20] = np.nan, np.inf, -np.inf

    def program(x):
        mean = ag.reduce_mean(x, -1, True)
        scaled = (x - mean) / ag.sqrt(ag.reduce_mean(ag.square(x - mean), -1, True) + 1e-5)
        return ag.nn.softmax(x), ag.reduce_logsumexp(x, -1), ag.reduce_max(x, -1), scaled, ag.reduce_any(x > 3.0, -1)

    found = ag.function(program, jit_compile=True)(ag.constant(x))
    with np.errstate(invalid="ignore"):
        exact = program(ag.constant(x.astype(np.float64)))
    agree(found[:4], exact[:4], 2e-5 if dtype is np.float32 else 1e-12)
    np.testing.assert_array_equal(found[4].numpy(), exact[4].numpy())
    rows = ag.TensorSpec([None, count], dtype)
    assert f"in range({count})" not in text_of(program, rows)  # nobody knows that they are many


def test_a_function_of_each_short_row_has_a_loop_of_its_own():
    """In which it is computed in vectors; in the loop of the rows it would be a number at a time."""

    def loops(count):
        return text_of(lambda x: ag.reduce_logsumexp(x, -1), ag.TensorSpec([1 << 20, count], ag.float32)).count(
            "@lib.part"
        )

    assert (loops(8), loops(100)) == (2, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(30001, 10), (70003, 3), (260, 32), (4099, 33), (65539, 8)], ids=str)
def test_few_columns(shape, dtype):
    """Several rows are added to the totals at once; the values that are reduced, and others, are stored besides."""
    x = np.random.default_rng(2).normal(size=shape).astype(dtype)
    x[shape[0] // 2, 1] = np.nan

    def program(x, y):
        z = x * y + 1.0
        return (
            z,
            ag.reduce_sum(z, 0),
            ag.reduce_max(z, 0),
            ag.reduce_mean(ag.square(z - y[0]), 0),
            ag.reduce_any(z > 4.0, 0),
        )

    y = np.random.default_rng(3).normal(size=(1, shape[1])).astype(dtype)
    f = ag.function(program, jit_compile=True)
    found = []
    for count in (1, 2, 5):
        parallelize.set_thread_count(count)
        found.append(f(ag.constant(x), ag.constant(y)))
    exact = program(ag.constant(x.astype(np.float64)), ag.constant(y.astype(np.float64)))
    agree(found[0][1:4], exact[1:4], 1e-4 if dtype is np.float32 else 1e-10)
    agree(found[0][:1], exact[:1], 1e-5)
    np.testing.assert_array_equal(found[0][4].numpy(), exact[4].numpy())
    for other in found[1:]:
        assert [r.numpy().tobytes() for r in other] == [r.numpy().tobytes() for r in found[0]]
    text = text_of(program, ag.TensorSpec(x.shape, dtype), ag.TensorSpec(y.shape, dtype))
    assert (", 8):" in text) == (shape[1] <= 32 and shape[0] > 1000), text


def test_distances_from_a_mean_are_computed_again_rather_than_stored():
    def normal(x, scale):
        mean, variance = ag.nn.moments(x, axes=[-1], keepdims=True)
        return (x - mean) * ag.math.rsqrt(variance + 1e-5) * scale

    graph = build(normal, [typed(ag.float32, 600, 1000), typed(ag.float32, 1000)])
    text = lower(graph).text
    assert text.count("np.empty(") == 1, text
    random = np.random.default_rng(0)
    check(graph, *(random.normal(size=shape).astype(np.float32) for shape in ((600, 1000), (1000,))), rtol=1e-4)


def test_a_distance_that_something_else_needs_is_stored():
    """It is asked for while its nest is open, and changed in place afterwards."""

    def changed(x):
        away = x - ag.reduce_mean(x, axis=1, keepdims=True)
        spread = ag.reduce_sum(away * away, axis=1)
        other = ag.tensor_scatter_nd_update(x * 2.0, [[0, 0]], [spread[0]])
        return ag.matmul(away, away, transpose_b=True), other, away * spread[:, None]

    graph = build(changed, [typed(ag.float32, 5, 7)])
    check(graph, np.random.default_rng(1).normal(size=(5, 7)).astype(np.float32), rtol=1e-4)


@pytest.mark.parametrize("dtype", [ag.float32, ag.float64])
def test_kernels_for_images_of_other_sizes_have_one_text(dtype):
    """The reciprocal of the number of elements, which a mean's gradient has, isn't part of it."""

    def gradient(x, scale):
        with ag.GradientTape() as tape:
            tape.watch(x)
            mean = ag.reduce_mean(x * x, [0, 1, 2])
        return tape.gradient(mean, x, scale)

    texts = set()
    for size in (64, 96, 65):
        f = ag.function(gradient, jit_compile=True)
        x = ag.constant(np.random.default_rng(0).normal(size=(4, size, size, 5)), dtype)
        scale = ag.constant([1.0, 2.0, 3.0, 4.0, 5.0], dtype)
        texts.add(f.get_concrete_function(x, scale).as_text("kernel"))
        expected = x.numpy() * (scale.numpy() / dtype.as_numpy_dtype(4 * size * size)) * 2
        np.testing.assert_allclose(f(x, scale).numpy(), expected, rtol=1e-6)
        np.testing.assert_array_equal(f(x, scale).numpy(), f.python_function(x, scale).numpy())
    assert len(texts) == 2  # divisions by powers of two are multiplications
