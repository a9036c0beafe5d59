"""float16 and bfloat16 in kernels: the bits of NumPy's and ml_dtypes' conversions, and those of eager operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime import dtypes
from runtime.codegen.backends.call_stub import load
from runtime.codegen.kernel_library import functions
from runtime.codegen.lower.lower_graph import is_native, lower, why_interpreted
from runtime.dtypes import DType
from tests.autodiff.work import value_and_gradients
from tests.ops import structured
from tests.ops.test_structured import attempt, eager, graph_of, samples

NARROW = pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=lambda d: d.name)
INTEGERS = [d for d in dtypes.ALL if d.kind in "iu"]


def every(dtype: DType) -> np.ndarray:
    return np.arange(1 << 16).astype(np.uint16).view(dtype.np)


def close_calls(dtype: DType) -> np.ndarray:
    """In float64: numbers of the dtype, those half way between two, and what lies next to both."""
    with np.errstate(invalid="ignore"):
        exact = every(dtype).astype(np.float64)
    exact = np.sort(exact[np.isfinite(exact)])
    middles = (exact[1:] + exact[:-1]) / 2
    near = np.concatenate([exact, middles])
    beyond = [
        1e5,
        65519.99,
        65520,
        3.4e38,
        3.3961e38,
        1e300,
        np.inf,
        np.nan,
        -np.inf,
        1e-8,
        2.0**-25,
        1e-40,
        1e-46,
        5e-324,
    ]
    return np.concatenate([near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf), beyond])


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """The same bits; of NaN any."""
    assert a.dtype == b.dtype and a.shape == b.shape
    both = np.isnan(a.astype(np.float32)) & np.isnan(b.astype(np.float32))
    return bool(np.all(both | (a.view(np.uint16) == b.view(np.uint16))))


def compiled(function: Callable[..., Any], *operands: Any) -> Any:
    return ag.function(function, autograph=False, jit_compile=True)(*operands)


@NARROW
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_rounding(dtype: DType, source: str) -> None:
    with np.errstate(all="ignore"):
        numbers = close_calls(dtype).astype(source)
        wanted = numbers.astype(dtype.np)
    assert same(compiled(lambda x: ag.cast(x, dtype), numbers).numpy(), wanted)
    found = [compiled(lambda x: ag.cast(x, dtype), x).numpy() for x in numbers[::9999]]
    assert same(np.array(found), wanted[::9999])


@NARROW
def test_every_number_as_float32(dtype: DType) -> None:
    found = compiled(lambda x: ag.cast(x, ag.float32), every(dtype)).numpy()
    np.testing.assert_array_equal(found, every(dtype).astype(np.float32))
    assert same(compiled(lambda x: ag.cast(ag.cast(x, ag.float64), dtype), every(dtype)).numpy(), every(dtype))


@NARROW
@pytest.mark.parametrize("other", [*INTEGERS, dtypes.bool_], ids=lambda d: d.name)
def test_integers(dtype: DType, other: DType) -> None:
    random = np.random.default_rng(1)
    shifts = random.integers(0, 63, 4000)
    whole = (random.integers(0, 2**63, 4000) >> shifts).astype(other.np)
    with np.errstate(all="ignore"):
        assert same(compiled(lambda x: ag.cast(x, dtype), whole).numpy(), whole.astype(dtype.np))
        least, greatest = other.limits
        wide = every(dtype).astype(np.float64)
        numbers = every(dtype)[(wide >= least) & (wide <= greatest) & (wide < 2.0**63)]
        found = compiled(lambda x: ag.cast(x, other), numbers).numpy()
        np.testing.assert_array_equal(found, numbers.astype(np.float32).astype(other.np))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_library_functions(name: str) -> None:
    """Where the processor has no instructions, and for numba."""
    dtype = dtypes.as_dtype(name)
    bits = every(dtype).view(np.uint16)[::7]
    read, rounded = getattr(functions, f"from_{name}"), getattr(functions, f"to_{name}")
    found = np.array([read(np.uint16(each)) for each in bits], np.float32)
    np.testing.assert_array_equal(found, bits.view(dtype.np).astype(np.float32))
    with np.errstate(all="ignore"):
        numbers = close_calls(dtype).astype(np.float32)[::11]
        wanted = numbers.astype(dtype.np)
    assert same(np.array([rounded(each) for each in numbers], np.uint16).view(dtype.np), wanted)


def test_float64_is_rounded_once() -> None:
    with np.errstate(all="ignore"):
        numbers = close_calls(dtypes.float16)[::11]
        wanted = numbers.astype(np.float16)
    found = [functions.to_float16(np.float32(functions.rounded_to_odd(each))) for each in numbers]
    assert same(np.array(found, np.uint16).view(np.float16), wanted)


# What sums products or numbers in another order, or by formulas of its own.
ROUNDED = {
    "matmul", "reduce_sum", "reduce_mean", "reduce_prod", "convolution", "convolution_input_grad",
    "convolution_filters_grad", "depthwise_convolution", "depthwise_input_grad", "depthwise_filters_grad",
    "matrix_inverse", "matrix_solve", "matrix_determinant", "log_matrix_determinant",
    "cholesky", "patches_grad", "matrix_triangular_solve", "sum_to_shape_of", "cumprod", "cumsum",
}  # fmt: skip


@NARROW
def test_structured_rows(dtype: DType) -> None:
    """Each row that can be compiled: the bits of eager operations."""
    tried = set()
    for row, sample in samples(dtype):
        cases = list(structured.operands(row, sample, dtype))
        arrays = cases[0][1]
        graph = graph_of(row, sample.attrs, arrays)
        if row.name in tried or not all(map(is_native, graph.nodes)):
            continue
        wanted = attempt(lambda: eager(row, arrays, sample.attrs))
        if isinstance(wanted, Exception):
            continue
        tried.add(row.name)
        for a, b in zip(load(lower(graph))(arrays), wanted):
            if dtypes.as_dtype(a.dtype) is not dtype:
                np.testing.assert_array_equal(a, b, err_msg=row.name)
            elif row.name in ROUNDED:
                np.testing.assert_allclose(a.astype(float), b.astype(float), 2e-2, 1e-3, err_msg=row.name)
            else:
                assert same(np.asarray(a), np.asarray(b)), row.name
    assert len(tried) > 40


def chain(x: Any, y: Any) -> Any:
    return ag.where(x > y, x * y + x, y / (ag.abs(x) + 1.0)) - ag.maximum(x, y) * 0.3


def loop(x: Any, y: Any) -> Any:
    total = ag.zeros_like(x)
    for i in ag.range(5):
        total = total * y[i] + x
    return total, ag.reduce_max(total), x[2] + y[0]


def stored(x: Any, y: Any) -> Any:
    rows = ag.TensorArray(x.dtype, 4)
    for i in ag.range(4):
        rows = rows.write(i, x * ag.cast(i, x.dtype))
    return (
        ag.concat([rows.stack()[1:], ag.reverse(rows.stack(), [0])], 0),
        ag.gather(x, [3, 0]),
        ag.transpose(rows.stack()),
    )


def branches(x: Any, y: Any) -> Any:
    low, high = x[0], x[1]
    while high - low > 0.1:
        if low * low < y[0]:
            low = low + 0.0625
        else:
            high = high - 0.125
    return low, high


def updates(x: Any, y: Any) -> Any:
    """Each changes one element, or elements that differ."""
    for i in ag.range(1, 9):
        x = ag.tensor_scatter_nd_add(x, [[i]], [x[i - 1] * y[i]])
        y = ag.tensor_scatter_nd_max(y, [[i]], [x[i] * 0.5])
        y = ag.tensor_scatter_nd_min(y, [[i - 1]], [y[i]])
    return x, y


def updates_of_rows(x: Any, y: Any) -> Any:
    rows = ag.reshape(ag.concat([x, y], 0), [6, 3])
    for i in ag.range(5):
        rows = ag.tensor_scatter_nd_add(rows, [[i]], [rows[i] * rows[i + 1]])
        rows = ag.tensor_scatter_nd_max(rows, [[i + 1, 1]], [rows[i, 2]])
    return ag.reduce_sum(rows * rows), rows


def updates_of_the_same_element(x: Any, y: Any) -> Any:
    """Several updates of an element are added in float32 and rounded once."""
    for i in ag.range(8):
        x = ag.tensor_scatter_nd_add(x, [[i], [i + 1], [i]], [y[i], 0.125 * y[i], 3.0 * y[i + 1]])
    return (x,)


def updates_of_several(x: Any, y: Any) -> Any:
    """Several elements that differ, and extremes of elements that may be the same."""
    for i in ag.range(8):
        x = ag.tensor_scatter_nd_add(x, [[7], [2], [0]], [y[i], 0.125 * y[i], 3.0 * y[i + 1]])
        y = ag.tensor_scatter_nd_max(y, ag.stack([[i], [i + 1], [i]]), ag.stack([x[i], x[0], x[2]]))
        x = ag.tensor_scatter_nd_min(x, ag.stack([[i], [i]]), ag.stack([y[i], 2.0 * y[i + 1]]))
    return x, y


PROGRAMS = [
    chain, loop, stored, branches, updates, updates_of_rows, updates_of_the_same_element, updates_of_several,
]  # fmt: skip


@NARROW
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(program: Callable[..., Any], dtype: DType) -> None:
    random = np.random.default_rng(3)
    x, y = (ag.constant(random.normal(size=9), dtype) for _ in range(2))
    y = ag.abs(y)
    function = ag.function(program, jit_compile=True)
    for want, got in zip(ag.nest.flatten(program(x, y)), ag.nest.flatten(function(x, y)), strict=True):
        assert same(want.numpy(), got.numpy())
    nodes = function.get_concrete_function(x, y).graph.nodes
    assert [why_interpreted(node) for node in nodes if not is_native(node)] == []


def test_the_passes_show_where_float32_is_used() -> None:
    function = ag.function(lambda x: x * x)
    concrete = function.get_concrete_function(ag.TensorSpec([3], ag.bfloat16))
    changes = concrete.as_text("passes").partition("narrow floats")[2]
    assert "float32[3] = cast(%x)" in changes and "bfloat16[3] = cast(" in changes


GRADIENTS = [chain, loop, updates, updates_of_rows, updates_of_several]


@NARROW
@pytest.mark.parametrize("program", GRADIENTS, ids=lambda f: f.__name__)
def test_gradients(program: Callable[..., Any], dtype: DType) -> None:
    """Of a compiled step: the bits of eager Python's."""
    random = np.random.default_rng(3)
    x, y = (ag.constant(random.normal(size=9), dtype) for _ in range(2))

    def gradient(x: Any, y: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch((x, y))
            result = ag.nest.flatten(program(x, y))[0]
        return tape.gradient(result, (x, y))

    wanted, found = gradient(x, y), ag.function(gradient, jit_compile=True)(x, y)
    for want, got in zip(wanted, found):
        assert got.dtype is dtype and same(want.numpy(), got.numpy())


def added(x: Any) -> Any:
    for i in ag.range(1, ag.shape(x)[0]):
        x = ag.tensor_scatter_nd_add(x, [[i]], [x[i - 1] * x[i]])
    return ag.reduce_sum(x)


def largest(x: Any) -> Any:
    for i in ag.range(1, ag.shape(x)[0]):
        x = ag.tensor_scatter_nd_max(x, [[i]], [x[i - 1] * 2.0])
    return ag.reduce_sum(x)


def added_to_several(x: Any) -> Any:
    for _ in ag.range(1, ag.shape(x)[0]):
        x = ag.tensor_scatter_nd_add(x, [[0], [2]], [x[1] * x[0], x[2]])
    return ag.reduce_sum(x)


def largest_of_several(x: Any) -> Any:
    for i in ag.range(1, ag.shape(x)[0]):
        x = ag.tensor_scatter_nd_max(x, ag.stack([[i], [i - 1]]), ag.stack([x[i - 1] * 2.0, x[0]]))
    return ag.reduce_sum(x)


@NARROW
@pytest.mark.parametrize("program", [added, largest, added_to_several], ids=lambda f: f.__name__)
def test_work_of_updates_is_linear(program: Callable[..., Any], dtype: DType) -> None:
    """An update converts the element that it changes, not the array; so does its gradient."""
    counts = [value_and_gradients(program, ag.ones([size], dtype)) for size in (20, 40, 80)]
    for small, middle, large in zip(*counts):
        assert large - middle <= 2.1 * (middle - small)


@NARROW
def test_work_of_extremes_of_several_elements_is_linear(dtype: DType) -> None:
    """Extremes choose between numbers, so it doesn't matter whether the elements differ."""
    small, middle, large = (value_and_gradients(largest_of_several, ag.ones([n], dtype), 0)[0] for n in (20, 40, 80))
    assert large - middle <= 2.1 * (middle - small)
