"""Sums and extremes over segments, and searches in sorted sequences, in native code beside the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import autograph as ag
from runtime.codegen.lower.lower_graph import lower, why_interpreted
from tests.codegen.compare import build, check, run_both, typed

FORMS = ["unsorted_segment_sum", "unsorted_segment_prod", "unsorted_segment_max", "unsorted_segment_min"]
DTYPES = [ag.float32, ag.int64, ag.uint8]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize(
    "lead, rest", [((40,), ()), ((40,), (3, 5)), ((4, 5), (2,)), ((0,), (3,)), ((6,), (0,)), ((), (4,))]
)
def test_segments(form, dtype, lead, rest):
    random = np.random.default_rng(0)
    data = (random.normal(size=(*lead, *rest)) * 5).astype(dtype.np)
    if dtype.is_floating and data.ndim == 1 and data.size > 20:
        data[7], data[9] = np.nan, np.inf
    ids = random.integers(-1, 6, lead).astype(np.int32)
    function = getattr(ag.math, form)
    graph = build(lambda x, i: function(x, i, 6), [typed(dtype, *data.shape), typed(ag.int32, *lead)])
    check(graph, data, ids, rtol=0.0)
    graph = build(
        lambda x, i, n: function(x, i, n),
        [typed(dtype, *[None] * data.ndim), typed(ag.int32, *[None] * len(lead)), typed(ag.int64)],
    )
    check(graph, data, ids, np.int64(6), rtol=0.0)


@pytest.mark.parametrize("ids", [[0, 1, 2], [0, 3, 1], [0, 1]])
@pytest.mark.parametrize("count", [3, 0, -1])
def test_ids_and_counts_that_do_not_fit(ids, count):
    function = ag.math.unsorted_segment_sum
    graph = build(
        lambda x, i, n: function(x, i, n), [typed(ag.float32, None, None), typed(ag.int32, None), typed(ag.int32)]
    )
    given = [np.ones((3, 2), np.float32), np.array(ids, np.int32), np.int32(count)]
    expected, actual = run_both(graph, given)
    if isinstance(expected, Exception):
        assert type(actual) is type(expected)
        if count > 0 and len(ids) == 3:
            assert str(actual) == str(expected)
    else:
        np.testing.assert_array_equal(actual[0], expected[0])


def test_ids_without_a_native_form_are_interpreted():
    graph = build(lambda x, i: ag.math.unsorted_segment_sum(x, i, 3), [typed(ag.float32, 4), typed(ag.uint64, 4)])
    assert why_interpreted(graph.nodes[0]) is not None


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", [ag.float32, ag.float64, ag.int32], ids=lambda d: d.name)
@pytest.mark.parametrize("length", [0, 1, 2, 3, 7, 8, 64, 100])
def test_places_in_sorted_sequences(side, dtype, length):
    random = np.random.default_rng(0)
    sequence, values = (np.sort(random.integers(-9, 9, n).astype(dtype.np)) for n in (length, 50))
    random.shuffle(values)
    if dtype.is_floating:
        sequence[length - length // 4 :] = np.nan
        values[:3] = np.nan, np.inf, -np.inf
    for out in (ag.int32, ag.int64):
        graph = build(lambda s, v: ag.searchsorted(s, v, side, out), [typed(dtype, None), typed(dtype, None)])  # noqa: B023
        (found,) = check(graph, sequence, values)
        np.testing.assert_array_equal(found, np.searchsorted(sequence, values, side))


def test_places_in_rows():
    random = np.random.default_rng(0)
    rows, values = np.sort(random.normal(size=(2, 3, 9))), random.normal(size=(2, 3, 4))
    types = [typed(ag.float64, None, None, None)] * 2
    graph = build(lambda s, v: ag.searchsorted(s, v, "right"), types)
    check(graph, rows, values)
    expected, actual = run_both(graph, [rows, values[:1]])
    assert isinstance(expected, Exception) and type(actual) is type(expected)


def test_loops_with_them_are_one_kernel():
    def means(x, centres):
        for _ in ag.range(5):
            near = ag.argmin(ag.reduce_sum((x[:, None, :] - centres[None]) ** 2, 2), 1, output_type=ag.int32)
            centres = ag.math.unsorted_segment_mean(x, near, 3)
        return centres, ag.searchsorted(ag.sort(centres[:, 0]), x[:, 0])

    random = np.random.default_rng(0)
    x, centres = ag.constant(random.normal(size=(60, 2))), ag.constant(random.normal(size=(3, 2)))
    f = ag.function(means, jit_compile=True)
    text = lower(ag.function(lambda c: means(x, c)[0]).get_concrete_function(centres).graph).text
    assert "segment" in text and "while" in text
    for ours, eager in zip(f(x, centres), means(x, centres), strict=True):
        np.testing.assert_allclose(ours.numpy(), eager.numpy(), rtol=1e-12)


@pytest.mark.parametrize("dtype", [ag.float32, ag.float64, ag.int32, ag.uint8], ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(500,), (7, 300), (2, 3, 64), (3, 5), (0, 9), (600, 900)])
@pytest.mark.parametrize("k", [1, 5])
def test_the_largest(dtype, shape, k):
    """Equal ones in order, NaN first, both zeros alike; large ones on threads."""
    random = np.random.default_rng(3)
    data = (random.normal(size=shape) * 40).astype(dtype.np)
    if dtype.is_floating and data.size:
        flat = data.reshape(-1)
        for special in (np.nan, np.inf, -np.inf, 0.0, -0.0):
            flat[random.integers(0, flat.size, 1 + flat.size // 60)] = special
    graph = build(lambda x: tuple(ag.math.top_k(x, k)), [typed(dtype, *shape)])
    assert why_interpreted(graph.nodes[0]) is None
    check(graph, data, rtol=0.0)
    free = build(lambda x: tuple(ag.math.top_k(x, k)), [typed(dtype, *[None] * (len(shape) - 1), shape[-1])])
    check(free, data, rtol=0.0)


def test_the_largest_of_nothing_but_nan():
    data = np.full((2, 70), np.nan, np.float32)
    data[1, ::3] = -np.inf
    graph = build(lambda x: tuple(ag.math.top_k(x, 50)), [typed(ag.float32, 2, 70)])
    check(graph, data, rtol=0.0)
