"""Eager random numbers by compiled code: the same bits as NumPy's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import autograph as ag
from runtime.engine import native_random, settings, wait_for_background
from runtime.ops.random import philox
from runtime.ops.random.philox import native

MANY = philox._WORTH_COMPILING
STREAMS = [(5, 7), (2**64 - 1, 2**64 - 2), (3, 2**128 - 1)]


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that hasn't drawn anything yet."""
    monkeypatch.setattr(native, "functions", {})
    monkeypatch.setattr(native, "_missed", {})
    monkeypatch.setattr(native_random, "_requested", set())
    yield
    wait_for_background(60)


def by_numpy(monkeypatch: pytest.MonkeyPatch, draw: Any) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(native, "functions", {})
        patch.setattr(native, "request", None)
        return draw()


DRAWS = {
    "words": lambda stream, count: philox.words(*stream, count),
    "uniform": lambda stream, count: philox.uniform(*stream, count, np.float32),
    "uniform of float64": lambda stream, count: philox.uniform(*stream, count, np.float64),
    "normal": lambda stream, count: philox.normal(*stream, count, np.float32),
    "normal of bfloat16": lambda stream, count: philox.normal(*stream, count, ml_dtypes.bfloat16),
    "normal of float64": lambda stream, count: philox.normal(*stream, count, np.float64),
    "truncated normal": lambda stream, count: philox.truncated_normal(*stream, count, np.float32),
    "integers": lambda stream, count: philox.integers(*stream, count, -5, 1000, np.int64),
}


@pytest.mark.parametrize("name", DRAWS)
def test_same_bits_as_by_numpy(fresh: None, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    draw = DRAWS[name]
    draw(STREAMS[0], MANY)
    wait_for_background(60)
    assert native.functions
    for stream in STREAMS:
        for count in (4095, 4096, 4097, 50001):
            found = draw(stream, count)
            right = by_numpy(monkeypatch, lambda: draw(stream, count))
            assert found.dtype == right.dtype and found.tobytes() == right.tobytes()


def test_eager_functions_go_on_with_the_same_numbers(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def numbers() -> list[bytes]:
        ag.random.set_seed(3)
        generator = ag.random.Generator.from_seed(4)
        found = []
        for shape in ([5], [100, 60], [9001]):
            found += [ag.random.uniform(shape), ag.random.normal(shape), ag.random.uniform(shape, 0, 77, ag.int32)]
            found += [generator.uniform(shape), generator.normal(shape), generator.uniform_full_int(shape)]
            found += [ag.random.stateless_normal(shape, [1, 2]), ag.random.stateless_uniform(shape, [1, 2])]
        return [one.numpy().tobytes() for one in found]

    ag.random.normal([MANY])
    ag.random.uniform([MANY])
    wait_for_background(60)
    assert set(native.functions) == {"words", "normal"}
    assert numbers() == by_numpy(monkeypatch, numbers)


def test_compiled_only_for_a_program_that_draws_many(fresh: None) -> None:
    philox.words(1, 2, 1000)
    for _ in range(MANY // 10000 - 5):
        philox.words(1, 2, 10000)
    wait_for_background(60)
    assert not native.functions
    philox.words(1, 2, 100000)
    wait_for_background(60)
    assert set(native.functions) == {"words"}


def test_never_compiled_where_nothing_is_to_be(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_default", False)
    philox.words(1, 2, MANY)
    wait_for_background(60)
    assert not native.functions


def test_no_function_of_float64_decides_how_a_normal_number_of_float32_rounds() -> None:
    """Why any library's logarithm, sine and cosine give the same normal numbers: over all uniform numbers, the results
    are many of float64's last places away from where the rounding to float32 changes."""
    uniform = np.arange(2**23, dtype=np.uint32).astype(np.float32) * np.float32(2.0**-23)
    angle = (2 * np.pi * uniform.astype(np.float64)).astype(np.float32).astype(np.float64)
    least = np.maximum(uniform, np.float32(philox.SMALLEST)).astype(np.float64)
    for values in (np.log(least), np.sin(angle), np.cos(angle)):
        dropped = np.abs(values[values != 0]).view(np.uint64) & np.uint64(2**29 - 1)
        assert np.abs(dropped.astype(np.int64) - 2**28).min() > 16


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pairs_are_made_chunk_by_chunk(monkeypatch: pytest.MonkeyPatch, dtype: type) -> None:
    drawn = philox.words(3, 4, 4 * 1000)
    whole = philox.normal_of(drawn, np.dtype(dtype))
    monkeypatch.setattr(philox, "_CHUNK", 96)
    assert philox.normal_of(drawn, np.dtype(dtype)).tobytes() == whole.tobytes()
