"""The formulas of float32 for GPUs: accuracy in units in the last place, special values, the processor's bits."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from runtime.codegen.device import approximations
from runtime.codegen.math.function_table import FORMULAS
from runtime.codegen.math.gpu_functions import FORMULAS as ON_GPUS
from runtime.dtypes import float32, float64
from tests.device.on_device import device_of, instead_of_the_processor
from tests.elementary_functions import native, slice_of, worst_of


@pytest.fixture(scope="module")
def gpu() -> Iterator[Any]:
    """Puts kernels on a GPU: an emulated one, or the one that AUTOGRAPH_TEST_DEVICE says."""
    with contextlib.ExitStack() as stack:
        device = device_of(os.environ.get("AUTOGRAPH_TEST_DEVICE", "1x1"), stack)
        yield lambda: instead_of_the_processor(device)


def on_gpu(gpu: Any, name: str, dtype: Any = float32) -> Any:
    with gpu():
        return native(name, dtype)


@pytest.mark.parametrize("error", [0, -1, 1])
@pytest.mark.parametrize("name", ON_GPUS)
def test_accuracy(name: str, error: int, gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 2 units in the last place, whichever way the emulator's approximate instructions are off."""
    monkeypatch.setattr(approximations, "ERROR", error)
    with gpu():
        largest, place = worst_of(name, slice_of(8191 if error else 2039))
    assert largest <= 2.0, place


@pytest.mark.parametrize("name", ON_GPUS)
def test_special_values(name: str, gpu: Any) -> None:
    """Signs of zeros, infinities and NaN are those of the processor's formulas."""
    numbers = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, -1.0, 3e38, -3e38], np.float32)
    found, expected = on_gpu(gpu, name)(numbers), native(name, float32)(numbers)
    special = ~np.isfinite(expected) | (expected == 0)
    assert special.any()
    np.testing.assert_array_equal(found[special], expected[special])
    signed = special & ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[signed]), np.signbit(expected[signed]))


@pytest.mark.parametrize("name", sorted(FORMULAS.keys() - {"atan2", "hypot", "pow"}))
def test_other_bits_are_those_of_the_processor(name: str, gpu: Any) -> None:
    """float64 has the processor's formulas, and so has float32 where there are none for GPUs."""
    numbers = np.random.default_rng(4).uniform(-3.0, 3.0, 2000)
    for dtype in (float64, float32):
        given: Any = numbers.astype(dtype.as_numpy_dtype)
        found, expected = on_gpu(gpu, name, dtype)(given), native(name, dtype)(given)
        if dtype == float64 or name not in ON_GPUS:
            np.testing.assert_array_equal(found, expected)
