"""Products of large matrices by the GPU's library: what is cut out of graphs, and how the library is called."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.engine import library_products
from runtime.gpu import cublas
from runtime.gpu.interface import Product
from runtime.graph.passes.rewrites import window_products
from tests.device.on_device import gpus

RANDOM = np.random.default_rng(8)


def matrix(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(dtype)


# --- graphs ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All but the smallest products are large, on a GPU."""
    monkeypatch.setattr(library_products, "LARGE", 1000)
    with gpus() as found:
        if not found()[0].backend.multiplies():
            pytest.skip("the GPU has no library of matrix products")
        yield


def explained(function: Any, *given: Any) -> str:
    return str(function.explain(*given))


BATCHES = [((), ()), ((4,), ()), ((), (4,)), ((4,), (4,)), ((2, 1), (2, 3))]


@pytest.mark.parametrize("flips", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values(flips: tuple[bool, bool], dtype: Any, large: None) -> None:
    def program(x: Any, y: Any) -> Any:
        return ag.tanh(ag.matmul(x * 2.0, y, transpose_a=flips[0], transpose_b=flips[1])) + 1.0

    for left, right in BATCHES:
        a, b = matrix(*left, 20, 30, dtype=dtype), matrix(*right, 30, 10, dtype=dtype)
        given = [
            ag.constant(np.swapaxes(each, -1, -2).copy() if flip else each).gpu() for each, flip in zip((a, b), flips)
        ]
        found = ag.function(program)(*given)
        np.testing.assert_allclose(found.numpy(), np.tanh(np.matmul(a * 2, b)) + 1, rtol=1e-4, atol=1e-4)
        eager = ag.matmul(*given, transpose_a=flips[0], transpose_b=flips[1])
        np.testing.assert_allclose(eager.numpy(), np.matmul(a, b), rtol=1e-4, atol=1e-4)


def test_graphs_are_cut_around_products(large: None) -> None:
    weights = ag.constant(matrix(20, 20)).gpu()

    @ag.function
    def program(x: Any) -> Any:
        return ag.tanh(ag.tanh(x + 1.0) @ weights) @ weights

    x = ag.constant(matrix(10, 20)).gpu()
    program(x)
    text = explained(program, x)
    assert "2 kernels" in text
    assert "2 products by the GPU's library so far" in text


def test_sizes_are_looked_at_in_each_call(large: None) -> None:
    program = ag.function(lambda x, y: x @ y, input_signature=[ag.TensorSpec([None, None], ag.float32)] * 2)
    for size in (3, 30):
        x = matrix(size, size)
        np.testing.assert_allclose(program(ag.constant(x).gpu(), ag.constant(x).gpu()).numpy(), x @ x, 1e-4, 1e-4)
    x = ag.constant(matrix(3, 3)).gpu()
    assert "1 product by the GPU's library so far" in explained(program, x, x)


def test_sizes_that_do_not_fit(large: None) -> None:
    program = ag.function(lambda x, y: x @ y, input_signature=[ag.TensorSpec([None, None], ag.float32)] * 2)
    with pytest.raises(
        ag.errors.InvalidArgumentError, match=r"Matrix size-incompatible: In\[0\]: \[20,30\], In\[1\]: \[20,30\]"
    ):
        program(ag.constant(matrix(20, 30)).gpu(), ag.constant(matrix(20, 30)).gpu())


def test_training(large: None) -> None:
    weights, data = matrix(30, 20), matrix(40, 30)

    def step(w: Any, x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(w)
            loss = ag.reduce_sum(ag.tanh(x @ w) ** 2)
        return loss, tape.gradient(loss, w)

    expected = ag.function(step)(ag.constant(weights), ag.constant(data))
    found = ag.function(step)(ag.constant(weights).gpu(), ag.constant(data).gpu())
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), 1e-4, 1e-4)


def _convolved(x: Any, w: Any, stride: int, rate: int, padding: Any) -> Any:
    with ag.GradientTape() as tape:
        tape.watch((x, w))
        y = ag.nn.conv2d(ag.tanh(x), w, stride, padding, dilations=rate)
        loss = ag.reduce_sum(y**2)
    return y, *tape.gradient(loss, (x, w))


@pytest.mark.parametrize("padding", ["SAME", "VALID", [[0, 0], [1, 2], [0, 1], [0, 0]]])
@pytest.mark.parametrize(("size", "stride", "rate"), [(1, 1, 1), (1, 2, 1), (3, 1, 1), (3, 2, 1), (3, 1, 2)])
def test_convolutions(
    size: int, stride: int, rate: int, padding: Any, large: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a known and an unknown number of images, and in pieces."""
    x, w = matrix(5, 9, 8, 4), matrix(size, size, 4, 6)

    def program(x: Any, w: Any) -> Any:
        return _convolved(x, w, stride, rate, padding)

    expected = ag.function(program)(ag.constant(x), ag.constant(w))
    any_number = [ag.TensorSpec([None, *x.shape[1:]], ag.float32), ag.TensorSpec(w.shape, ag.float32)]
    for signature, most in ((None, 1 << 30), (any_number, 1 << 30), (None, 10_000)):
        monkeypatch.setattr(window_products, "MOST", most)
        function = ag.function(program, input_signature=signature)
        given = ag.constant(x).gpu(), ag.constant(w).gpu()
        eager = ag.nn.conv2d(given[0], given[1], stride, padding, dilations=rate)
        np.testing.assert_allclose(eager.numpy(), ag.nn.conv2d(x, w, stride, padding, dilations=rate), 1e-3, 1e-4)
        for one, other in zip(function(*given), expected, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), 1e-3, 1e-4)
        if most > 10_000 or size == 1 == stride:
            assert "3 products by the GPU's library so far" in explained(function, *given)
        elif (size, stride, rate, padding) == (3, 1, 1, "SAME"):  # an image has 10,368 bytes of windows
            assert "15 products by the GPU's library so far" in explained(function, *given)


def test_small_products_stay_in_kernels() -> None:
    with gpus():
        x = ag.constant(matrix(20, 20)).gpu()
        program = ag.function(lambda x: ag.tanh(x @ x) + 1.0)
        program(x)
        text = explained(program, x)
        assert "1 kernel" in text
        assert "GPU's library" not in text


# --- the library -----------------------------------------------------------------------------------------------------

# Matrices by columns, as the library takes them.
LIBRARY = r"""
static int handle, math_mode = -1;
int cublasCreate_v2(void **found) { *found = &handle; return 0; }
int cublasDestroy_v2(void *found) { return found != &handle; }
int cublasSetMathMode(void *found, int mode) { math_mode = mode; return found != &handle; }
int last_math_mode(void) { return math_mode; }
#define PRODUCT(NAME, NUMBER) \
int NAME(void *found, int flip_a, int flip_b, int m, int n, int k, const NUMBER *alpha, const NUMBER *a, int lda, \
         long long apart_a, const NUMBER *b, int ldb, long long apart_b, const NUMBER *beta, NUMBER *c, int ldc, \
         long long apart_c, int count) { \
  if (found != &handle || *beta != 0 || lda < (flip_a ? k : m) || ldb < (flip_b ? n : k) || ldc < m) return 7; \
  for (int number = 0; number < count; number++, a += apart_a, b += apart_b, c += apart_c) \
    for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) { \
      NUMBER sum = 0; \
      for (int l = 0; l < k; l++) \
        sum += (flip_a ? a[l + i * lda] : a[i + l * lda]) * (flip_b ? b[j + l * ldb] : b[l + j * ldb]); \
      c[i + j * ldc] = *alpha * sum; \
    } \
  return 0; \
}
PRODUCT(cublasSgemmStridedBatched, float)
PRODUCT(cublasDgemmStridedBatched, double)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("cublas")
    (folder / "cublas.c").write_text(LIBRARY)
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", "libcublas.so.13", "cublas.c"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "libcublas.so.13"


@pytest.fixture
def opened(library: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AUTOGRAPH_CUBLAS", str(library))
    cublas.library.cache_clear()
    yield cublas.library()
    cublas.library.cache_clear()


@pytest.mark.parametrize("flip_a", [False, True])
@pytest.mark.parametrize("flip_b", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arguments(flip_a: bool, flip_b: bool, dtype: Any, opened: Any) -> None:
    handle = cublas.Handle(opened)
    a, b, out = matrix(2, 3, 4, dtype=dtype), matrix(4, 5, dtype=dtype), np.empty((2, 3, 5), dtype)
    left = np.swapaxes(a, 1, 2).copy() if flip_a else a
    right = b.T.copy() if flip_b else b
    places = (each.ctypes.data for each in (left, right, out))
    handle.prepare(Product(8 * out.itemsize, 3, 4, 5, flip_a, flip_b, 2, (12, 0, 15)))(*places)
    np.testing.assert_allclose(out, a @ b, 1e-5, 1e-5)


def test_operands_are_rounded_on_request(opened: Any) -> None:
    handle, x, out = cublas.Handle(opened), matrix(2, 2), np.empty((2, 2), np.float32)
    multiply = handle.prepare(Product(32, 2, 2, 2, False, False))
    places = x.ctypes.data, x.ctypes.data, out.ctypes.data
    experimental = ag.config.experimental
    assert not experimental.tensor_float_32_execution_enabled()
    multiply(*places)
    assert opened.last_math_mode() == -1  # as it is at first
    try:
        experimental.enable_tensor_float_32_execution(True)
        assert experimental.tensor_float_32_execution_enabled()
        multiply(*places)
        assert opened.last_math_mode() == 3
    finally:
        experimental.enable_tensor_float_32_execution(False)
    multiply(*places)
    assert opened.last_math_mode() == 0


def test_failures_are_told(opened: Any) -> None:
    handle = cublas.Handle(opened)
    handle._handle = ctypes.c_void_p()
    with pytest.raises(ag.errors.InternalError, match="cublasSgemmStridedBatched failed with status 7"):
        handle.prepare(Product(32, 1, 1, 1, False, False))(0, 0, 0)


def test_which_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None where the name is empty, or that of something else."""
    (tmp_path / "other.so").write_text("")
    for name in ("", str(tmp_path / "other.so"), str(tmp_path / "missing.so")):
        monkeypatch.setenv("AUTOGRAPH_CUBLAS", name)
        cublas.library.cache_clear()
        assert cublas.library() is None
    cublas.library.cache_clear()
