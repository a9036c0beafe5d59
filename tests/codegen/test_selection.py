"""Elements chosen by a mask, whose number is known only at run time: native code beside the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.codegen import cost_model
from runtime.codegen.lower.lower_graph import lower
from runtime.codegen.passes import parallelize
from tests.codegen.compare import build, check, run_both, typed

CHUNK = cost_model.SELECTION_CHUNK
RANDOM = np.random.default_rng(3)
MASKS = {
    "none": lambda n: np.zeros(n, bool),
    "all": lambda n: np.ones(n, bool),
    "half": lambda n: RANDOM.random(n) < 0.5,
    "first": lambda n: np.arange(n) < 1,
    "last": lambda n: np.arange(n) == n - 1,
    "few": lambda n: RANDOM.random(n) < 0.01,
}
SIZES = [0, 1, 5, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7]


@pytest.mark.parametrize("kind", MASKS)
def test_masks(kind: str) -> None:
    graph = build(
        lambda x, mask: [ag.boolean_mask(x, mask), ag.where(mask), ag.where(x)],
        [typed(ag.float32, None), typed(ag.bool, None)],
    )
    for size in SIZES:
        mask = MASKS[kind](size)
        x = np.where(RANDOM.random(size) < 0.3, 0, RANDOM.normal(size=size)).astype(np.float32)
        check(graph, x, mask, rtol=0.0)


@pytest.mark.parametrize("dtype", [ag.float32, ag.float64, ag.int32, ag.uint8, ag.bool, ag.float16, ag.bfloat16])
@pytest.mark.parametrize("shape", [(), (300,), (20, 30), (3, 0), (4, 5, 6), (2, 3, 4, 5)])
@pytest.mark.parametrize("known", [True, False])
def test_coordinates(dtype: Any, shape: tuple[int, ...], known: bool) -> None:
    x = np.asarray(RANDOM.integers(0, 2, shape)).astype(dtype.np)
    if dtype.is_floating and x.size > 2:
        x.reshape(-1)[:2] = -0.0, np.nan
    graph = build(ag.where, [typed(dtype, *(shape if known else [None] * len(shape)))])
    check(graph, x, rtol=0.0)


@pytest.mark.parametrize("lead, rest", [((300,), ()), ((300,), (3,)), ((20, 15), (2, 2)), ((6, 50), ()), ((4,), (0,))])
def test_slices(lead: tuple[int, ...], rest: tuple[int, ...]) -> None:
    x, mask = RANDOM.normal(size=(*lead, *rest)), RANDOM.random(lead) < 0.4
    for shapes in (x.shape, mask.shape), ([None] * x.ndim, [None] * mask.ndim):
        graph = build(ag.boolean_mask, [typed(ag.float64, *shapes[0]), typed(ag.bool, *shapes[1])])
        check(graph, x, mask, rtol=0.0)


def test_along_another_axis() -> None:
    graph = build(
        lambda x, mask: ag.boolean_mask(x, mask, axis=1), [typed(ag.float32, None, None, 2), typed(ag.bool, None)]
    )
    check(graph, RANDOM.normal(size=(5, 40, 2)).astype(np.float32), RANDOM.random(40) < 0.5, rtol=0.0)


def test_shapes_that_do_not_fit() -> None:
    graph = build(ag.boolean_mask, [typed(ag.float32, None, None, None), typed(ag.bool, None, None)])
    expected, actual = run_both(graph, [np.ones((4, 3, 2), np.float32), np.ones((4, 2), bool)])
    assert isinstance(actual, ag.errors.InvalidArgumentError)
    assert (type(actual), str(actual)) == (type(expected), str(expected))


def test_large_masks_are_shared_by_threads() -> None:
    """The elements keep their order, whatever the number of threads."""
    count = 1 << 21
    x, mask = RANDOM.normal(size=count).astype(np.float32), RANDOM.random(count) < 0.5
    graph = build(
        lambda x, mask: [ag.boolean_mask(x, mask), ag.where(mask)], [typed(ag.float32, count), typed(ag.bool, count)]
    )
    assert "in_threads" in lower(graph).text
    before = parallelize.chosen_thread_count()
    try:
        for threads in (1, 3):
            parallelize.set_thread_count(threads)
            found, places = check(graph, x, mask, rtol=0.0)
            assert len(found) == len(places) == np.count_nonzero(mask)
    finally:
        parallelize.set_thread_count(before)


# --- distinct elements, repeated positions ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [ag.float32, ag.float64, ag.int32, ag.int64, ag.uint64, ag.uint8, ag.bool])
@pytest.mark.parametrize("index", [ag.int32, ag.int64])
def test_distinct_elements(dtype: Any, index: Any) -> None:
    """In the order of their first occurrence; NaN differs from itself, zeros are equal."""
    graph = build(lambda x: list(ag.unique_with_counts(x, index)), [typed(dtype, None)])
    for size in (0, 1, 2, 100, 3000):
        x = RANDOM.integers(0, 900, size).astype(dtype.np)
        if dtype.is_floating and size > 9:
            x[RANDOM.integers(0, size, size // 3)] = np.nan
            x[:6] = 0.0, -0.0, np.inf, np.inf, -np.inf, np.nan
        check(graph, x, rtol=0.0)


@pytest.mark.parametrize("dtype", [ag.int32, ag.int64, ag.uint8])
@pytest.mark.parametrize("times", [[0, 3, 1, 0, 4], [], [0, 0], [2, -1, 3]])
def test_repeated_slices(dtype: Any, times: list[int]) -> None:
    graph = build(lambda x, times: ag.repeat(x, times, axis=0), [typed(ag.float32, None, None), typed(dtype, None)])
    x, counts = RANDOM.normal(size=(len(times), 3)).astype(np.float32), np.abs(times) if dtype.is_unsigned else times
    counts = np.asarray(counts).astype(dtype.np)
    expected, actual = run_both(graph, [x, counts])
    if isinstance(expected, Exception):
        assert isinstance(actual, ag.errors.InvalidArgumentError)
        assert str(actual) == str(expected)
    else:
        np.testing.assert_array_equal(actual[0], expected[0])


# --- in programs -----------------------------------------------------------------------------------------------------


def thinned(x: Any) -> Any:
    """A loop whose carry loses elements in each trip."""
    trips = 0
    while ag.size(x) > 3:
        x = ag.boolean_mask(x, x > ag.reduce_mean(x)) * 1.5
        trips += 1
    return x, trips


def counted(x: Any) -> Any:
    """Selections whose sizes differ from trip to trip, of which only numbers are kept."""
    total = 0.0
    for i in ag.range(20):
        chosen = ag.boolean_mask(x, x > ag.cast(i, ag.float32) * 0.1 - 1.0)
        total += ag.reduce_sum(chosen * chosen) + ag.cast(ag.shape(ag.where(chosen > 1.0))[0], ag.float32)
    return total


def in_branches(x: Any) -> Any:
    y = ag.boolean_mask(x, x > 0.0) if ag.reduce_sum(x) > 0.0 else ag.boolean_mask(x, x < 0.0) * 2.0
    return ag.reduce_sum(y), ag.shape(y)[0]


def joined(x: Any) -> Any:
    above, below = ag.boolean_mask(x, x > 0.0), ag.boolean_mask(x, x <= 0.0)
    return ag.concat([above, ag.sin(below)], 0) + x, ag.gather(x, ag.where(x > 0.5)[:, 0])


def partitioned(x: Any) -> Any:
    return ag.dynamic_partition(x, ag.cast(ag.floor(ag.clip_by_value(x, 0.0, 2.0)), ag.int32), 3)


def products(x: Any) -> Any:
    """Not linear, so that second derivatives aren't zeros."""
    chosen = ag.boolean_mask(ag.exp(x * 0.1), x > 0.0)
    return ag.reduce_sum(chosen * ag.cumsum(chosen))


def grouped(x: Any) -> Any:
    """Sums by key, in the order in which keys come, and each as often as it occurs."""
    keys, numbers, counts = ag.unique_with_counts(ag.cast(ag.floor(x * 4.0), ag.int32))
    sums = ag.math.unsorted_segment_sum(x, numbers, ag.size(keys))
    return ag.repeat(sums, counts, axis=0) * ag.gather(sums, numbers), counts


PROGRAMS = [thinned, counted, in_branches, joined, partitioned, products, grouped]
VALUES = RANDOM.normal(size=400).astype(np.float32)


def results(function: Any, x: Any) -> list[Any]:
    return [each.numpy() for each in ag.nest.flatten(function(ag.constant(x)))]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(program: Any) -> None:
    compiled = ag.function(program, jit_compile=True)
    interpreted = ag.function(program, jit_compile=False)
    for x in (VALUES, -VALUES, VALUES[:7]):
        for one, other in zip(results(compiled, x), results(interpreted, x), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
    assert "can't be compiled" not in compiled.explain(ag.constant(VALUES))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("order", [1, 2])
def test_gradients(program: Any, order: int) -> None:
    def total(x: Any) -> Any:
        found = map(ag.convert_to_tensor, ag.nest.flatten(program(x)))
        return sum(ag.reduce_sum(each * each) for each in found if each.dtype.is_floating)

    def gradient(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            value = total(x)
        return tape.gradient(value, x)

    def second(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            value = ag.reduce_sum(gradient(x) ** 2)
        return tape.gradient(value, x)

    derivative = gradient if order == 1 else second
    (eager,) = results(derivative, VALUES)
    (compiled,) = results(ag.function(derivative, jit_compile=True), VALUES)
    np.testing.assert_allclose(compiled, eager, rtol=2e-4, atol=2e-4)
    assert np.count_nonzero(compiled) > 0
