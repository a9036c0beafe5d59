"""Matrix products of `runtime/codegen/native_runtime/gemm.py`: values, edges, any number of threads, all sizes of
vectors."""

import ctypes
import itertools
import threading

import numpy as np
import pytest

import autograph as ag
from runtime.codegen import cost_model
from runtime.codegen.native_runtime import gemm, indirect_gemm, thread_pool
from runtime.llvm import target
from runtime.llvm.threads import RUN

pytestmark = pytest.mark.skipif(not target.available(), reason="LLVM's linker isn't known to work here")

GUARD = 64  # elements after the result that must stay as they are
SIZES = [
    (1, 1, 1),
    (1, 40, 70),
    (70, 40, 1),
    (3, 7, 5),
    (8, 16, 32),
    (9, 17, 33),
    (65, 64, 96),
    (100, 300, 30),
    (17, 513, 16),
    (140, 520, 130),
    (300, 270, 131),
]


def _function(address: int):
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 5)(address)


@pytest.fixture(scope="module", params=list(itertools.product(["float32", "float64"], [16, 32, 64])), ids=str)
def product(request):
    """a, b, whether they are stored the other way round, threads → a @ b, for one type and size of vectors."""
    name, size = request.param
    code = target.machine_code(gemm.code(name, size), (), level=0)
    (address,) = target.link(code, [gemm.SYMBOLS[name]], {RUN: thread_pool.provide()})
    function = _function(address)

    def compute(a, b, flip_a, flip_b, threads):
        a, b = (np.ascontiguousarray(m.T if flip else m, name) for m, flip in ((a, flip_a), (b, flip_b)))
        rows, inner = a.shape[::-1] if flip_a else a.shape
        columns = b.shape[0] if flip_b else b.shape[1]
        out = np.full(rows * columns + GUARD, 7, name)
        function(a.ctypes.data, b.ctypes.data, out.ctypes.data, rows, inner, columns, flip_a + 2 * flip_b, threads)
        assert (out[rows * columns :] == 7).all()
        return out[: rows * columns].reshape(rows, columns)

    return compute


@pytest.mark.parametrize("name, size", list(itertools.product(["float32", "float64"], [16, 32, 64])))
@pytest.mark.parametrize("sizes", [each for each in SIZES if each[0] > 1 < each[2]], ids=str)
def test_tables_say_where_elements_are(name, size, sizes):
    code = target.machine_code(indirect_gemm.code(name, size), (), level=0)
    (address,) = target.link(code, [indirect_gemm.SYMBOLS[name]], {})
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5, *[ctypes.c_int64] * 4)(address)
    rows, inner, columns = sizes
    random = np.random.default_rng(0)
    memory = random.integers(-8, 9, 1000).astype(name)
    rows_at, inner_at = random.integers(0, 500, rows), random.integers(0, 500, inner)
    b = random.integers(-8, 9, (inner, columns)).astype(name)
    out = np.full(rows * columns + GUARD, 7, name)
    for trip in range(3):
        arrays = (memory, rows_at, inner_at, b, out)
        function(*(each.ctypes.data for each in arrays), rows, inner, columns, trip > 0)
        expected = (trip + 1) * memory[rows_at[:, None] + inner_at] @ b
        np.testing.assert_array_equal(out[: rows * columns].reshape(rows, columns), expected)
        assert (out[rows * columns :] == 7).all()


@pytest.mark.parametrize("flip_b", [False, True])
@pytest.mark.parametrize("flip_a", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_products_of_small_integers_are_exact(product, sizes, flip_a, flip_b):
    rows, inner, columns = sizes
    random = np.random.default_rng(0)
    a, b = random.integers(-8, 9, (rows, inner)), random.integers(-8, 9, (inner, columns))
    np.testing.assert_array_equal(product(a, b, flip_a, flip_b, 1), a @ b)


@pytest.mark.parametrize("flips", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize(
    "sizes", [(64, 128, 256), (256, 300, 40), (2000, 500, 1), (1, 500, 2000), (50, 1100, 50)], ids=str
)
def test_bits_do_not_depend_on_the_number_of_threads(product, sizes, flips):
    rows, inner, columns = sizes
    random = np.random.default_rng(0)
    a, b = random.normal(size=(rows, inner)), random.normal(size=(inner, columns))
    alone = product(a, b, *flips, 1)
    tolerance = {"float32": 1e-5, "float64": 1e-13}[alone.dtype.name]
    np.testing.assert_allclose(alone, a @ b, atol=tolerance * inner)
    for threads in (2, 3, 16):
        np.testing.assert_array_equal(product(a, b, *flips, threads), alone)


def test_rows_and_columns_do_not_depend_on_those_beside_them(product):
    random = np.random.default_rng(0)
    a, b = random.normal(size=(37, 300)), random.normal(size=(300, 75))
    whole = product(a, b, False, False, 1)
    np.testing.assert_array_equal(product(a[5:24], b, False, False, 1), whole[5:24])
    np.testing.assert_array_equal(product(a, b[:, 40:60], False, False, 1), whole[:, 40:60])


def test_nan_and_infinity_stay_in_their_rows_and_columns(product):
    a, b = np.ones((20, 10)), np.ones((10, 40))
    a[3, 4], b[2, 7] = np.nan, np.inf
    result = product(a, b, False, False, 1)
    assert np.isnan(result[3]).all()
    assert np.isinf(np.delete(result[:, 7], 3)).all()
    assert (np.delete(np.delete(result, 3, 0), 7, 1) == 10).all()


def test_many_threads_call_one_function():
    @ag.function(jit_compile=True)
    def chain(x, w):
        for _ in ag.range(20):
            x = ag.tanh(ag.matmul(x, w))
        return x

    random = np.random.default_rng(0)
    x = ag.constant(random.normal(size=(64, 96)), ag.float32)
    w = ag.constant(random.normal(size=(96, 96)) / 10, ag.float32)
    expected = chain(x, w).numpy()
    wrong: list[int] = []

    def call(number):
        if any(not np.array_equal(chain(x, w).numpy(), expected) for _ in range(5)):
            wrong.append(number)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(16)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True)])
def test_native_products_for_any_number_of_threads(transposed):
    @ag.function(jit_compile=True)
    def product_of(a, b):
        return ag.matmul(a, b, transpose_a=transposed[0], transpose_b=transposed[1])

    random = np.random.default_rng(0)
    a, b = random.normal(size=(90, 200)), random.normal(size=(200, 150))
    given = [ag.constant(m.T if flip else m) for m, flip in zip((a, b), transposed, strict=True)]
    results = []
    before = ag.config.threading.get_intra_op_parallelism_threads()
    try:
        for threads in (1, 2, 5):
            ag.config.threading.set_intra_op_parallelism_threads(threads)
            results.append(product_of(*given).numpy())
    finally:
        ag.config.threading.set_intra_op_parallelism_threads(before)
    np.testing.assert_allclose(results[0], a @ b, rtol=1e-12, atol=1e-12)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("kind", ["int32", "float32", "float64"])
@pytest.mark.parametrize("sizes", [(8, 1), (20, 7), (3, 9), (9, 0)], ids=str)
def test_small_products_with_one_column(sizes, kind, flip):
    rows, inner = sizes
    random = np.random.default_rng(1)
    a, x = (random.integers(-9, 9, shape).astype(kind) for shape in ((rows, inner), (inner,)))
    given = a.T.copy() if flip else a
    f = ag.function(lambda a, x: ag.linalg.matvec(a, x, transpose_a=flip), jit_compile=True)
    np.testing.assert_array_equal(f(given, x), a @ x)


def test_the_bound_of_known_products_is_that_of_the_library():
    """So that products of the same sizes have the same bits, whether their sizes are known while tracing or not."""
    from runtime.codegen.kernel_library import functions

    assert cost_model.GEMM_MULTIPLICATIONS >= functions._SMALL_PRODUCT


@pytest.mark.parametrize("sizes", [(16, 16, 16), (16, 15, 16), (64, 1, 64), (0, 64, 64), (64, 0, 64), (1, 4096, 1)])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True)])
def test_products_of_known_and_unknown_sizes_have_the_same_bits(sizes, transposed):
    rows, inner, columns = sizes

    def product_of(a, b):
        return ag.matmul(a, b, transpose_a=transposed[0], transpose_b=transposed[1])

    random = np.random.default_rng(0)
    a, b = random.normal(size=(rows, inner)), random.normal(size=(inner, columns))
    given = [ag.constant(m.T if flip else m) for m, flip in zip((a, b), transposed, strict=True)]
    known = ag.function(product_of, jit_compile=True)
    unknown = ag.function(product_of, jit_compile=True, input_signature=[ag.TensorSpec([None, None], ag.float64)] * 2)
    is_large = rows * inner * columns >= cost_model.GEMM_MULTIPLICATIONS
    assert ("lib.gemm(" in known.get_concrete_function(*given).as_text("kernel")) == is_large
    assert "lib.matmul(" in unknown.get_concrete_function().as_text("kernel")
    np.testing.assert_array_equal(known(*given), unknown(*given))
    np.testing.assert_allclose(known(*given), a @ b, atol=1e-10)
