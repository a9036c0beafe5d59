"""Our own exp and tanh of float32, in units in the last place, against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runtime.codegen.lower import lower
from runtime.codegen.native import load
from runtime.dtypes import float32
from runtime.ops.dispatch import call
from tests.codegen.compare import build, typed


def values() -> np.ndarray:
    """Every 1009th float32 that isn't NaN, and the special ones."""
    patterns = np.arange(0, 2**32, 1009, dtype=np.uint32).view(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, 88.72283, 88.72284, -87.34, -103.97, -104.1, 0.625], np.float32)
    return np.concatenate([patterns[~np.isnan(patterns)], special])


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        gap = np.spacing(np.abs(rounded)).astype(np.float64)
        error = np.abs(got.astype(np.float64) - exact) / gap
    return np.where(got == rounded, 0.0, error)


@pytest.mark.parametrize(("name", "exact"), [("exp", np.exp), ("tanh", np.tanh)])
def test_accuracy(name: str, exact: Any) -> None:
    native = load(lower(build(lambda x: call(name, x), [typed(float32, None)])))
    x = values()
    with np.errstate(all="ignore"):
        expected = exact(x.astype(np.float64))
    (got,) = native([x])
    error = ulps(got, expected)
    worst = int(np.argmax(error))
    assert error[worst] <= 2.0, (x[worst], got[worst], expected[worst], error[worst])
    assert np.isnan(native([np.array([np.nan], np.float32)])[0]).all()
