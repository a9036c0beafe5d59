"""Several trips of a thread at a time: what stands in kernels, and that no element is missed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llvmlite import binding as llvm

import autograph as ag
from runtime.codegen.device.kernel import Kernel, printed
from runtime.codegen.device.pipeline import run_passes
from runtime.codegen.lower.lower_graph import lower
from runtime.gpu.emulator import Emulator


def text_of(program: Any, *specs: Any) -> str:
    """The kernel that is compiled."""
    kernel = Kernel.of(lower(ag.function(program).get_concrete_function(*specs).graph, for_device=True))
    run_passes(kernel)
    return printed(kernel)


def vector(dtype: Any = ag.float32) -> Any:
    return ag.TensorSpec([None], dtype)


MATRIX = ag.TensorSpec([None, None], ag.float32)


def test_elements_that_follow_each_other_are_taken_together() -> None:
    text = text_of(lambda x, y: x * y + x, vector(), vector())
    assert "ahead = max(gpu.peel_count(x, 0), gpu.peel_count(y, 0), gpu.peel_count(a, 0))" in text
    assert "if gpu.is_aligned(x, ahead) and gpu.is_aligned(y, ahead) and gpu.is_aligned(a, ahead):" in text
    assert "gpu.aligned_view(x, 0)[trip]" in text
    assert "gpu.view(x, 0)[trip_5]" in text


def test_rows_begin_anywhere() -> None:
    """Where a row is aligned is asked for each."""
    text = text_of(ag.nn.softmax, MATRIX)
    assert "gpu.peel_count(logits_flat, i * logits_d1)" in text


def test_neighbours_of_an_element_are_not_aligned_as_it_is() -> None:
    assert "view" not in text_of(lambda x: x[1:] * x[:-1], vector())
    assert "view" in text_of(lambda x: x[4:] * x[:-4], vector())


@pytest.mark.parametrize(
    "program", [lambda x: ag.transpose(x) + 1.0, lambda x: x[:, ::-1] + 1.0], ids=["transposed", "backwards"]
)
def test_other_elements_are_loaded_one_by_one(program: Any) -> None:
    text = text_of(program, MATRIX)
    assert "view(a, 0)" in text
    assert "view(x" not in text


def test_trips_stay_apart_if_elements_lie_anywhere() -> None:
    text = text_of(lambda x: ag.gather(x, ag.range(3), axis=1), MATRIX)
    assert "view(a" not in text
    assert "view(x" not in text


@pytest.mark.parametrize("dtype", [ag.float32, ag.float64, ag.int32, ag.uint8, ag.bool])
@pytest.mark.skipif(llvm.llvm_version_info < (22,), reason="before LLVM 22 fewer accesses are joined")
def test_one_instruction_loads_several(dtype: Any) -> None:
    concrete = ag.function(lambda x: ~x if dtype == ag.bool else x + ag.ones([], dtype)).get_concrete_function(
        vector(dtype)
    )
    text = concrete.as_text("ptx")
    instructions = {"float32": "v4", "float64": "v2", "int32": "v4", "uint8": "b32", "bool": "b32"}
    for access in ("ld.global", "st.global"):
        lines = [line for line in text.splitlines() if access in line]
        assert any(f".{instructions[dtype.name]}" in line for line in lines), lines


@pytest.mark.parametrize("dtype", [ag.float32, ag.uint8], ids=str)
def test_no_element_is_missed(dtype: Any, emulator: Emulator) -> None:
    @ag.function(jit_compile=True, input_signature=[vector(dtype)])
    def program(x: Any) -> Any:
        return x + x, ag.reduce_sum(x), x[1:] + x[:-1], x[2:] + x[2:], ag.reduce_sum(x[3:])

    for size in [*range(10), 63, 64, 65, 130, 131]:
        x = np.arange(size).astype(dtype.as_numpy_dtype)
        expected = x + x, x.sum(dtype=x.dtype), x[1:] + x[:-1], x[2:] + x[2:], x[3:].sum(dtype=x.dtype)
        for one, other in zip(program(x), expected, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)


def test_rows_and_columns_are_found_by_one_division_for_several_elements() -> None:
    text = text_of(lambda x, y: x * y, MATRIX, vector())
    loop = text[text.rindex("while trip < begin + covered - 3:") : text.rindex("left = thread")]
    assert loop.count("gpu.udiv") == 1
    assert "gpu.aligned_view(x_flat, 0)[trip]" in loop


def test_rows_and_columns(emulator: Emulator) -> None:
    @ag.function(jit_compile=True, input_signature=[MATRIX, vector()])
    def program(x: Any, y: Any) -> Any:
        return x * y, x + ag.cast(ag.range(ag.shape(x)[0]), ag.float32)[:, None], x[1:] - y

    for rows, columns in [(1, 1), (3, 1), (1, 9), (2, 2), (5, 3), (9, 7), (4, 16), (0, 3), (3, 0), (33, 17)]:
        x = np.random.default_rng(3).normal(size=(rows, columns)).astype(np.float32)
        y = np.arange(columns).astype(np.float32)
        expected = x * y, x + np.arange(rows, dtype=np.float32)[:, None], x[1:] - y
        for one, other in zip(program(x, y), expected, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)


def test_rows_of_all_lengths(emulator: Emulator) -> None:
    @ag.function(jit_compile=True, input_signature=[MATRIX])
    def program(x: Any) -> Any:
        return ag.nn.softmax(x), x[:, 1:] * x[:, :-1]

    for columns in (16, 20, 33, 66):
        x = np.random.default_rng(2).normal(size=(7, columns)).astype(np.float32)
        powers = np.exp(x.astype(np.float64))
        found, products = program(x)
        np.testing.assert_allclose(found.numpy(), powers / powers.sum(1, keepdims=True), 1e-5)
        np.testing.assert_array_equal(products.numpy(), x[:, 1:] * x[:, :-1])


def test_angles_of_several_trips_share_the_branch_for_far_ones() -> None:
    text = text_of(lambda x: ag.sin(x) * 2.0 + ag.cos(ag.sin(x)), vector())
    assert text.count("lib.sin_of_four(") == text.count("lib.cos_of_four(") == 1
    assert text.count("lib.sin(") == text.count("lib.cos(") == 1  # of the trips that are left
    assert "of_four" not in text_of(lambda x: ag.sin(x), vector(ag.float64))


@pytest.mark.parametrize("size", [1, 5, 8, 301])
def test_far_angles_among_near_ones(size: int, emulator: Emulator) -> None:
    random = np.random.default_rng(size)
    x = random.normal(size=size).astype(np.float32)
    x[::3] *= np.float32(1e7)
    x[4::7] = np.float32(3e38)
    x[2::11], x[3::13], x[1::17] = np.inf, np.nan, -0.0
    f = ag.function(lambda x: (ag.sin(x), ag.cos(x), ag.where(x > 0.0, ag.sin(x), 1.0)), jit_compile=True)
    sine, cosine, chosen = [each.numpy() for each in f(x)]
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
        right, other = np.sin(wide), np.cos(wide)
    np.testing.assert_allclose(ag.function(lambda x: ag.reduce_max(ag.sin(x[:1])))(x).numpy(), sine[0], rtol=3e-7)
    np.testing.assert_allclose(sine, right, rtol=3e-7, atol=1e-45)
    np.testing.assert_allclose(cosine, other, rtol=3e-7, atol=1e-45)
    np.testing.assert_allclose(chosen, np.where(x > 0, right, 1.0), rtol=3e-7, atol=1e-45)
    assert np.array_equal(np.signbit(sine[x == 0]), np.signbit(x[x == 0]))
