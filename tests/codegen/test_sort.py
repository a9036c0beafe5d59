"""The order of rows and picking along them, in native code beside the interpreter."""

import numpy as np
import pytest

import autograph as ag
from runtime.codegen.lower.lower_graph import why_interpreted
from tests.codegen.compare import build, check, run_both, typed


def numbers(dtype, *shape, seed=0):
    """Few different values, NaN, both zeros and infinities among them."""
    random = np.random.default_rng(seed)
    if not dtype.is_floating:
        return random.integers(0, 9, shape).astype(dtype.np)
    values = np.array([0.0, -0.0, 1.5, -2.0, np.nan, np.inf, -np.inf, 3.0], dtype.np)
    few = values[random.integers(0, len(values), shape)]
    return np.where(random.random(shape) < 0.5, few, random.normal(size=shape)).astype(dtype.np)


@pytest.mark.parametrize("dtype", [ag.float32, ag.float64, ag.int32, ag.int64, ag.uint8], ids=lambda d: d.name)
@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
@pytest.mark.parametrize("static", [True, False])
def test_order(dtype, direction, static):
    for shape in (
        (0,),
        (1,),
        (7,),
        (8,),
        (9,),
        (16,),
        (17,),
        (100,),
        (1000,),
        (4, 5),
        (3, 33),
        (0, 4),
        (2, 0),
        (2, 3, 20),
    ):
        x = numbers(dtype, *shape)
        type_ = typed(dtype, *(shape if static else [None] * len(shape)))
        graph = build(lambda x: (ag.argsort(x, -1, direction), ag.sort(x, -1, direction)), [type_])
        assert not any(map(why_interpreted, graph.nodes))
        check(graph, x, rtol=0.0)


def test_many_rows_run_on_threads():
    x = numbers(ag.float32, 4_000, 300)
    check(build(lambda x: ag.argsort(x), [typed(ag.float32, *x.shape)]), x, rtol=0.0)


def test_long_rows_are_sorted_by_numpy():
    assert why_interpreted(build(lambda x: ag.argsort(x), [typed(ag.float32, 5000)]).nodes[0]) is not None
    x = numbers(ag.float32, 5000)
    check(build(lambda x: ag.argsort(x), [typed(ag.float32, None)]), x, rtol=0.0)


def test_other_axes_stay_on_the_interpreter():
    graph = build(lambda x: ag.sort(x, 0), [typed(ag.float32, 5, 4)])
    assert any(map(why_interpreted, graph.nodes))
    x = numbers(ag.float32, 5, 4)
    np.testing.assert_array_equal(ag.function(lambda x: ag.sort(x, 0), jit_compile=True)(x).numpy(), np.sort(x, 0))


@pytest.mark.parametrize("places", [[[0, 2, 1], [1, 1, 0]], [[0, 3, 1], [1, 1, 0]], [[0, 2, 1], [1, -1, 0]]])
def test_picking_along_rows(places):
    from runtime.ops.arrays.sorting import take_along

    graph = build(lambda x, i: take_along(x, i, 1), [typed(ag.float32, 2, 3), typed(ag.int32, 2, 3)])
    assert not any(map(why_interpreted, graph.nodes))
    expected, actual = run_both(graph, [numbers(ag.float32, 2, 3), np.array(places, np.int32)])
    if isinstance(expected, Exception):
        assert (type(actual), str(actual)) == (type(expected), str(expected))
    else:
        np.testing.assert_array_equal(actual[0], expected[0])


@pytest.mark.parametrize(
    "leads", [((4, 3), (4, 3)), ((4, 1), (4, 3)), ((1, 1), (4, 3)), ((0, 3), (0, 3)), ((2, 3), (4, 3))]
)
@pytest.mark.parametrize("static", [True, False])
def test_leading_dimensions(leads, static):
    """Those of the table may be 1. Others that differ are an error."""
    from runtime.ops.arrays.sorting import take_along

    x, places = numbers(ag.float32, *leads[0], 5), numbers(ag.int32, *leads[1], 7) % 5
    shapes = (x.shape, places.shape) if static else ([None] * 3, [None] * 3)
    graph = build(lambda x, i: take_along(x, i, 2), [typed(ag.float32, *shapes[0]), typed(ag.int32, *shapes[1])])
    if static and leads == ((2, 3), (4, 3)):
        assert why_interpreted(graph.nodes[-1]) is not None
        return
    expected, actual = run_both(graph, [x, places])
    if isinstance(expected, Exception):
        assert type(actual) is type(expected)
    else:
        np.testing.assert_array_equal(actual[0], expected[0])


def sorted_sum(x):
    return ag.reduce_sum(ag.sort(x) ** 2 * ag.cast(ag.range(ag.shape(x)[-1]), x.dtype))


def largest_sum(x):
    return ag.reduce_sum(ag.math.top_k(x, 3)[0] ** 2)


@pytest.mark.parametrize("program", [sorted_sum, largest_sum])
@pytest.mark.parametrize("shape", [(50,), (6, 20), (2, 3, 10)])
@pytest.mark.parametrize("static", [True, False])
def test_gradients_of_sorted_rows(program, shape, static):
    def gradient(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            value = program(x)
        return tape.gradient(value, x)

    x = np.random.default_rng(4).normal(size=shape)
    spec = ag.TensorSpec(shape if static else [None] * len(shape), ag.float64)
    compiled = ag.function(gradient, input_signature=[spec], jit_compile=True)
    np.testing.assert_allclose(compiled(ag.constant(x)).numpy(), gradient(ag.constant(x)).numpy(), rtol=1e-12)
    assert "on the interpreter" not in compiled.explain(ag.constant(x))


@pytest.mark.parametrize("jit", [False, True])
def test_a_moving_median_and_its_gradient(jit):
    @ag.function(jit_compile=jit)
    def medians(x):
        found = ag.TensorArray(ag.float64, size=0, dynamic_size=True)
        for i in ag.range(ag.shape(x)[0] - 4):
            found = found.write(i, ag.sort(x[i : i + 5])[2])
        return found.stack()

    values = np.random.default_rng(1).normal(size=30)
    x = ag.constant(values)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = medians(x)
    windows = np.lib.stride_tricks.sliding_window_view(values, 5)
    np.testing.assert_array_equal(y.numpy(), np.median(windows, axis=1))
    expected = np.zeros(30)
    np.add.at(expected, np.arange(26) + np.argsort(windows, axis=1)[:, 2], 1.0)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), expected)
