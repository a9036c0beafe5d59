"""Floats out of an integer's range, and NaN: eager, interpreted and compiled code make the same integers of them."""

from __future__ import annotations

import numpy as np
import pytest

import autograph as ag
from runtime.engine import wait_for_background
from runtime.ops.elementwise import float_to_integer

FLOATS = [ag.float16, ag.float32, ag.float64, ag.bfloat16, ag.dtypes.experimental.float8_e5m2]
INTEGERS = [ag.int8, ag.int16, ag.int32, ag.int64, ag.uint8, ag.uint16, ag.uint32, ag.uint64]
EDGES = [2147483647.5, 2147483648.0, -2147483648.5, -2147483649.0, 4294967295.5, 9.3e18, -9.3e18, 1.8e19, 255.5, -0.5]


def numbers(dtype) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array([*float_to_integer._TRIED, *EDGES] * 3).astype(dtype.as_numpy_dtype)


@pytest.mark.parametrize("source", FLOATS, ids=lambda each: each.name)
def test_all_tiers_agree(source) -> None:
    @ag.function
    def all_kinds(x):
        return [ag.cast(x, each) for each in INTEGERS]

    x = ag.constant(numbers(source))
    eager = [ag.cast(x, each).numpy() for each in INTEGERS]
    interpreted = [each.numpy() for each in all_kinds(x)]
    wait_for_background()
    compiled = [each.numpy() for each in all_kinds(x)]
    for dtype, *found in zip(INTEGERS, eager, interpreted, compiled):
        np.testing.assert_array_equal(found[1], found[0], dtype.name)
        np.testing.assert_array_equal(found[2], found[0], dtype.name)
        assert found[0].dtype == dtype.np


def test_what_they_become() -> None:
    x = ag.constant([3e9, -3e9, 1e30, np.nan], ag.float64)
    least, smallest = -(2**31), -(2**63)
    assert ag.cast(x, ag.int32).numpy().tolist() == [least] * 4
    assert ag.cast(x, ag.int64).numpy().tolist() == [3 * 10**9, -3 * 10**9, smallest, smallest]
    assert ag.cast(x, ag.uint8).numpy().tolist() == [0] * 4
    assert ag.cast(x, ag.uint32).numpy().tolist() == [3 * 10**9, 2**32 - 3 * 10**9, 0, 0]
    assert ag.cast(x, ag.uint64).numpy().tolist() == [3 * 10**9, 2**64 - 3 * 10**9, 0, 0]
    assert ag.cast(ag.constant(1e30), ag.int32).numpy() == least


@pytest.mark.parametrize("source", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("target", [np.int16, np.int32, np.int64, np.uint32, np.uint64])
def test_numpy_is_asked(source, target) -> None:
    """The trial finds out each difference on any of the numbers; those in range are never one."""
    x = np.array([0.0, 1.5, 1000.9, 30000.0, -0.75, -1.5]).astype(source)
    x = x[: len(x) if np.dtype(target).kind == "i" else 5]
    np.testing.assert_array_equal(float_to_integer._by_ranges(x, np.dtype(target)), x.astype(target))
    if float_to_integer._numpy_does(np.dtype(source), np.dtype(target)):
        with np.errstate(all="ignore"):
            hard = np.array(float_to_integer._TRIED).astype(source)
            np.testing.assert_array_equal(hard.astype(target), float_to_integer._by_ranges(hard, np.dtype(target)))


def test_a_numpy_like_that_of_arm64(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, numbers out of range become the nearest integer: the trial sees it, and ranges are looked at."""

    class Row(np.ndarray):
        def astype(self, dtype, **options):
            plain = self.view(np.ndarray)
            if np.dtype(dtype).kind == "f":
                return plain.astype(dtype).view(Row)
            bounds = np.iinfo(dtype)
            return np.array([int(min(max(x, bounds.min), bounds.max)) if x == x else 0 for x in plain.tolist()], dtype)

    real = np.array
    monkeypatch.setattr(np, "array", lambda x, *rest: real(x, *rest) if rest else real(x).view(Row))
    pair = np.dtype(np.float64), np.dtype(np.int32)
    assert not float_to_integer._numpy_does.__wrapped__(*pair)
    assert float_to_integer._by_ranges(real([1e30, np.nan, -1e30, 2.5]), pair[1]).tolist() == [-(2**31)] * 3 + [2]
