"""Choices by bits give the bits that NumPy's choices give."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from runtime import dtypes
from runtime.ops import blend as module
from runtime.ops.blend import blend
from runtime.ops.nn.patches import borders
from runtime.ops.table import OPS

NAMES = "bool_ int8 uint16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
SHAPES = [
    ((40, 50), (40, 50), (40, 50)),
    ((40, 50), (), (40, 50)),
    ((40, 50), (40, 50), ()),
    ((40, 50), (50,), (40, 1)),
    ((2000,), (3, 2000), ()),
    ((2000,), (), ()),
    ((40, 50), (1, 50), (7, 1, 1)),
    ((), (40, 50), (40, 50)),
    ((0, 50), (50,), ()),
]


def _numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    found = rng.integers(0, 256, size=(*shape, dtype.itemsize), dtype=np.uint8)  # NaN, infinity and all
    return found.view(dtype).reshape(shape) if dtype != bool else (found[..., 0] > 127).reshape(shape)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_blends_are_the_choices_of_numpy(name: str, shapes: tuple) -> None:
    dtype, rng = getattr(dtypes, name).np, np.random.default_rng(4)
    condition = np.asarray(rng.random(shapes[0]) > 0.5)
    x, y = (_numbers(rng, shape, dtype) for shape in shapes[1:])
    for a, b in ((x, y), (x, np.zeros_like(y)), (x.T, y.T) if x.ndim == y.ndim == condition.ndim else (x, y)):
        chosen = condition.T if a is not x and a.shape == x.T.shape and condition.ndim == a.ndim else condition
        expected, found = np.where(chosen, a, b), blend(chosen, a, b)
        assert (found.dtype, found.shape, found.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


def test_blends_leave_their_operands_alone() -> None:
    condition = np.arange(2000) % 3 == 0
    x, y = np.ones(2000, np.float32), np.full(2000, 2, np.float32)
    assert condition.size >= module._FEW
    blend(condition, x, y)
    assert (x == 1).all() and (y == 2).all() and condition.sum() == 667


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
def test_the_largest_of_windows_and_its_place(name: str, padding: str) -> None:
    """The first of equals, negative zero among them; the first NaN."""
    dtype, rng = getattr(dtypes, name).np, np.random.default_rng(5)
    values = [-np.inf, -1.0, -0.0, 0.0, 2.0, np.inf, np.nan]
    x = rng.choice(values, size=(2, 7, 6, 3), p=[0.3, 0.2, 0.15, 0.15, 0.1, 0.05, 0.05]).astype(dtype)
    sizes, strides = (3, 2), (2, 1)
    attrs = {"sizes": sizes, "strides": strides, "rates": (1, 1), "padding": padding}
    with np.errstate(invalid="ignore"):
        largest, numbers = OPS["max_pool"].kernel(x, **attrs)
    pairs = borders(x.shape[1:-1], sizes, strides, (1, 1), padding)
    padded = np.pad(x, ((0, 0), *pairs, (0, 0)), constant_values=-np.inf)
    for n, i, j, c in itertools.product(*map(range, largest.shape)):
        window = padded[n, i * 2 : i * 2 + 3, j : j + 2, c].reshape(-1)
        wide = window.astype(np.float64)
        best = int(np.argmax(np.isnan(wide))) if np.isnan(wide).any() else int(np.argmax(wide))
        assert numbers[n, i, j, c] == best
        assert largest[n, i, j, c].tobytes() == window[best].tobytes()
