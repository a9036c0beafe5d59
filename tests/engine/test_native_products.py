"""Products of graphs that are interpreted until they are compiled."""

import itertools

import numpy as np
import pytest

import autograph as ag
from runtime.engine import native_products
from runtime.engine.settings import wait_for_background
from runtime.llvm import target
from runtime.ops import blas

pytestmark = pytest.mark.skipif(not target.available(), reason="LLVM's linker isn't known to work here")

WAYS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "parts": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
}


@pytest.fixture
def native(monkeypatch):
    monkeypatch.setattr(native_products, "_requested", set())
    monkeypatch.setattr(blas.native, "functions", {})
    return blas.native


@pytest.mark.parametrize("ways", list(itertools.product(WAYS, WAYS)), ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_they_have_the_bits_of_compiled_code(native, ways, dtype):
    native_products._provide(np.dtype(dtype).char)
    random = np.random.default_rng(0)
    a, b = random.normal(size=(70, 90)).astype(dtype), random.normal(size=(90, 110)).astype(dtype)
    compiled = ag.function(ag.matmul, jit_compile=True)(ag.constant(a), ag.constant(b)).numpy()
    with native:
        found = blas.matmul(WAYS[ways[0]](a), WAYS[ways[1]](b))
    np.testing.assert_array_equal(found, compiled)
    np.testing.assert_allclose(found, a @ b, atol=1e-4)


def test_long_products_have_them_compiled(native, monkeypatch):
    monkeypatch.setattr(blas, "_WORTH_COMPILING", 100 * 90 * 80)
    f = ag.function(lambda x, y: ag.matmul(x, y) + 1.0)
    x, y = ag.ones([100, 90]), ag.ones([90, 80])
    assert (f(x, y).numpy() == 91).all()
    assert native_products._requested == {"f"}
    wait_for_background()
    assert list(native.functions) == ["f"]
    ag.matmul(ag.ones([100, 90], ag.float64), ag.ones([90, 80], ag.float64))  # not in a graph
    assert native_products._requested == {"f"}
