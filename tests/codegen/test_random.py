"""Random numbers in kernels: the interpreter's, from the same streams, which go on where either left them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.ops.random import philox

FLOATS = [ag.float32, ag.float64]
# One number, few, an odd number of them, several of `fill_words`, enough for threads.
SHAPES = [(), (1,), (3,), (8,), (9,), (2, 3), (5, 7), (0,), (4096,), (10001,), (70001,)]
TOLERANCE = {"float32": 2e-6, "float64": 1e-14}


@pytest.fixture(autouse=True)
def _no_seed_afterwards() -> Iterator[None]:
    yield
    ag.random.set_seed(None)


def runs(program: Any, *arguments: Any, jit: bool, times: int = 2) -> list[np.ndarray]:
    ag.random.set_seed(3)
    function = ag.function(program, jit_compile=jit)
    return [function(*arguments).numpy() for _ in range(times)]


def assert_same(program: Any, *arguments: Any, tolerance: float = 0.0) -> None:
    for wanted, got in zip(runs(program, *arguments, jit=False), runs(program, *arguments, jit=True)):
        assert got.dtype == wanted.dtype
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_floats(dtype: Any, shape: tuple[int, ...]) -> None:
    tolerance = TOLERANCE[dtype.name]
    assert_same(lambda: ag.random.uniform(shape, dtype=dtype))
    assert_same(lambda: ag.random.normal(shape, 1.0, 3.0, dtype), tolerance=3 * tolerance)
    assert_same(lambda s: ag.random.stateless_uniform(shape, s, dtype=dtype), ag.constant([5, -2]))
    assert_same(lambda s: ag.random.stateless_normal(shape, s, dtype=dtype), ag.constant([5, -2]), tolerance=tolerance)


@pytest.mark.parametrize("shape", [(), (3,), (41,), (5001,)], ids=str)
@pytest.mark.parametrize("dtype", [ag.int32, ag.int64, ag.uint32, ag.uint64], ids=lambda d: d.name)
def test_integers(dtype: Any, shape: tuple[int, ...]) -> None:
    assert_same(lambda: ag.random.stateless_uniform(shape, [1, 2], None, None, dtype))
    if not dtype.is_unsigned:
        for low, high in [(-5, 11), (dtype.min, dtype.max)]:
            assert_same(lambda low, high: ag.random.uniform(shape, low, high, dtype), low, high)
            assert_same(lambda low, high: ag.random.stateless_uniform(shape, [7, 2], low, high, dtype), low, high)


@pytest.mark.parametrize("shape", [(), (3,), (4,), (5, 7), (0,), (10001,)], ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_truncated(dtype: Any, shape: tuple[int, ...]) -> None:
    tolerance = 10 * TOLERANCE[dtype.name]
    assert_same(lambda: ag.random.truncated_normal(shape, dtype=dtype), tolerance=tolerance)
    assert_same(
        lambda s: ag.random.stateless_truncated_normal(shape, s, dtype=dtype), ag.constant([5, -2]), tolerance=tolerance
    )


@pytest.mark.parametrize("count", [0, 1, 2, 5, 300])
def test_permutations(count: int) -> None:
    x = ag.range(count)
    assert_same(ag.random.shuffle, x)
    assert_same(lambda x: ag.random.experimental.stateless_shuffle(x, [3, 4]), x)
    found = ag.function(lambda x: ag.random.shuffle(x), jit_compile=True)(x)
    np.testing.assert_array_equal(np.sort(found), np.arange(count))


@pytest.mark.parametrize(("rows", "classes", "count"), [(1, 1, 1), (2, 3, 4), (5, 100, 7), (3, 5, 0), (0, 4, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_classes(dtype: str, rows: int, classes: int, count: int) -> None:
    logits = ag.constant(3 * np.random.default_rng(0).normal(size=(rows, classes)).astype(dtype))
    assert_same(lambda x: ag.random.categorical(x, count), logits)
    assert_same(lambda x: ag.random.stateless_categorical(x, count, [1, 2], dtype=ag.int32), logits)


def test_classes_without_weight() -> None:
    logits = ag.constant([[0.0, -np.inf, 1.0, np.nan, np.inf], [-np.inf] * 5])
    assert_same(lambda x: ag.random.categorical(x, 50), logits)


def _chain(n: Any) -> Any:
    logits, state, total, order = (
        ag.constant([[0.0, 0.0, 1.0]]),
        ag.constant(0, ag.int64),
        ag.constant(0.0),
        ag.range(7),
    )
    for _ in ag.range(n):
        state = ag.random.categorical(logits + ag.cast(state, ag.float32) * 0.1, 1)[0, 0]
        total += ag.random.truncated_normal([]) * ag.cast(state, ag.float32)
        order = ag.random.shuffle(order)
    return total + ag.cast(order[0], ag.float32)


def test_classes_and_permutations_in_a_loop() -> None:
    assert_same(_chain, ag.constant(200), tolerance=1e-4)


def _loop(n: Any) -> Any:
    total, hits = ag.constant(0.0), 0
    for _ in ag.range(n):
        x, y = ag.random.uniform([]), ag.random.normal([3])
        if x > 0.5:
            total += ag.random.normal([], stddev=0.1) + ag.reduce_sum(y)
            hits += 1
        else:
            total -= x * ag.random.uniform([], 1, 3, seed=5)
        if ag.random.uniform([], 0, 6, ag.int32) == 5 and hits > 3:
            continue
        total *= 0.9
    return total


def test_in_loops_and_branches() -> None:
    assert_same(_loop, ag.constant(500), tolerance=1e-4)


def test_a_loop_whose_test_draws() -> None:
    def wait(least: Any) -> Any:
        trips, total = 0, ag.constant(0.0)
        while ag.random.uniform([]) < least:
            trips += 1
            total += ag.random.uniform([])
        return ag.stack([ag.cast(trips, ag.float32), total])

    assert_same(wait, ag.constant(0.9), tolerance=1e-5)


def test_a_generator_in_a_loop() -> None:
    found = []
    for jit in (False, True):
        generator = ag.random.Generator.from_seed(7)

        def total(n: Any, generator: Any = generator) -> Any:
            found = ag.constant(0.0)
            for _ in ag.range(n):
                found += generator.normal([]) * generator.uniform([], 1, 2)
                found += ag.cast(generator.uniform([], 0, 9, ag.int32), ag.float32)
            return found

        found.append(([runs(total, ag.constant(200), jit=jit)], generator.state.numpy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_dropout_is_native() -> None:
    x = ag.ones([64, 33])
    assert_same(lambda x: ag.nn.dropout(x, 0.3), x, tolerance=1e-6)
    function = ag.function(lambda x: ag.nn.dropout(x, 0.3), jit_compile=True)
    function(x)
    text = function.explain(x)
    assert "can't be compiled" not in text
    assert "in Python, since it lends the streams of its random numbers" in text


@pytest.mark.parametrize("rows", [0, 1, 7, 40])
def test_a_size_that_the_call_knows(rows: int) -> None:
    signature = [ag.TensorSpec([None, 5])]
    found = []
    for jit in (False, True):
        ag.random.set_seed(1)
        function = ag.function(lambda x: ag.random.normal(ag.shape(x)) + x, input_signature=signature, jit_compile=jit)
        found.append(function(ag.ones([rows, 5])).numpy())
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)


def test_both_tiers_share_a_stream() -> None:
    """Calls before the native code is there, calls of it, and `set_seed` between."""
    found = []
    for jit in (False, None):
        ag.random.set_seed(3)
        function = ag.function(lambda: ag.random.uniform([2]), jit_compile=jit)
        drawn = []
        for call in range(8):
            if call == 3:
                end = time.monotonic() + 30
                while jit is None and "tier: native" not in function.explain() and time.monotonic() < end:
                    time.sleep(0.05)
            if call == 6:
                ag.random.set_seed(3)
            drawn.append(function().numpy())
        found.append(drawn)
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(found[1][6], found[1][0])


def test_without_a_seed_calls_differ() -> None:
    ag.random.set_seed(None)
    for shape in ((), (20,)):
        function = ag.function(lambda shape=shape: ag.random.uniform(shape), jit_compile=True)
        assert len({function().numpy().tobytes() for _ in range(50)}) == 50


def test_threads_draw_each_number_once() -> None:
    """As many numbers of one stream as one thread would have drawn, none of them twice."""
    ag.random.set_seed(9)

    def draw(n: Any) -> Any:
        numbers = ag.TensorArray(ag.float64, 20)
        for i in ag.range(n):
            numbers = numbers.write(i, ag.random.uniform([], dtype=ag.float64))
        return numbers.stack()

    function = ag.function(draw, jit_compile=True)
    wanted = [function(ag.constant(20)).numpy() for _ in range(80)]
    ag.random.set_seed(9)
    found: list[np.ndarray] = []

    def work() -> None:
        for _ in range(20):
            found.append(function(ag.constant(20)).numpy())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(np.sort(np.ravel(found)), np.sort(np.ravel(wanted)))


def test_a_call_that_fails_has_drawn_what_it_drew() -> None:
    def draw(n: Any, limit: Any) -> Any:
        total = ag.constant(0.0)
        for i in ag.range(n):
            total += ag.random.uniform([])
            ag.debugging.assert_less(i, limit)
        return total

    found = []
    for jit in (False, True):
        ag.random.set_seed(4)
        function = ag.function(draw, jit_compile=jit)
        with pytest.raises(ag.errors.InvalidArgumentError):
            function(ag.constant(10), ag.constant(6))
        found.append(function(ag.constant(3), ag.constant(6)).numpy())
    np.testing.assert_allclose(*found, rtol=1e-6)


@pytest.mark.parametrize("jit", [False, True])
def test_errors(jit: bool) -> None:
    integers = ag.function(lambda a, b: ag.random.uniform([3], a, b, ag.int32), jit_compile=jit)
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"Need minval < maxval, got 4 >= 4"):
        integers(ag.constant(4), ag.constant(4))
    classes = ag.function(lambda x, n: ag.random.categorical(x, n), jit_compile=jit)
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"num_classes should be positive, got 0"):
        classes(ag.zeros([2, 0]), ag.constant(3))
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"num_samples should be nonnegative, got -1"):
        classes(ag.zeros([2, 3]), ag.constant(-1))
    sized = ag.function(lambda n: ag.random.uniform([n]), jit_compile=jit)
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"Dimension -2 must be >= 0"):
        sized(ag.constant(-2))


def test_blocks_one_by_one_and_together() -> None:
    """The few words of a small draw come from Python's integers; the number of a block carries over 64 bits."""
    for counter in (0, 5, 2**64 - 2, 2**128 - 3):
        together = philox.blocks(77, counter, np.arange(4, dtype=np.uint64)).reshape(-1)
        for count in (0, 1, 3, 4, 9, 16):
            np.testing.assert_array_equal(philox.words(77, counter, count), together[:count])


def test_a_stream_carries_over_64_bits() -> None:
    state = np.array([-1, 3, 5], np.int64)
    for shape in [(3,), (50,)]:
        for draw in ("normal", "uniform"):
            found = []
            for jit in (False, True):
                generator = ag.random.Generator.from_state(state, alg="philox")
                call = ag.function(lambda g=generator, d=draw, s=shape: getattr(g, d)(s), jit_compile=jit)
                found.append((call().numpy(), generator.state.numpy()))
            np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(found[0][1], found[1][1])
