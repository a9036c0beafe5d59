"""float16 and bfloat16 on GPUs: the processor's bits, and PTX that NVIDIA's assembler takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.codegen.device.device_module import device_module
from runtime.codegen.lower.lower_graph import lower
from runtime.dtypes import DType
from runtime.gpu.emulator import Emulator
from runtime.gpu.interface import Shape
from tests.codegen.test_narrow_floats import NARROW, PROGRAMS, every, same
from tests.device.on_device import instead_of_the_processor, refused
from tests.device.test_ptx import PTXAS, assembled


@NARROW
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(program: Callable[..., Any], dtype: DType) -> None:
    random = np.random.default_rng(3)
    x, y = (ag.constant(random.normal(size=9), dtype) for _ in range(2))
    y = ag.abs(y)
    before, device = refused.total(), Emulator(Shape(2, 2))
    with instead_of_the_processor(device):
        found = ag.nest.flatten(ag.function(program, jit_compile=True)(x, y))
    assert device.launches > 0 and refused.total() == before
    for got, want in zip(found, ag.nest.flatten(program(x, y)), strict=True):
        assert same(got.numpy(), want.numpy())


@NARROW
def test_tensors_live_there(dtype: DType) -> None:
    ag.config.emulate_gpus(1)
    try:
        with ag.device("GPU:0"):
            x = ag.constant(every(dtype)[:1000]) + 0
            y = ag.function(lambda x: (x * x, ag.reduce_max(x) * 2), jit_compile=True)(x)
        assert "GPU:0" in x.device and all("GPU:0" in each.device for each in y)
        wanted = every(dtype)[:1000]
        assert same(y[0].numpy(), wanted * wanted) and same(y[1].numpy(), np.max(wanted) * dtype.np.type(2))
    finally:
        ag.config.emulate_gpus(0)


@NARROW
@pytest.mark.parametrize("processor", ["sm_75", "sm_90"])
def test_ptx(dtype: DType, processor: str, tmp_path: Path) -> None:
    def program(x: Any, y: Any) -> Any:
        return x * y + 1.0, ag.reduce_sum(x), ag.matmul(x[:, None], y[None])

    specs = [ag.TensorSpec([None], dtype)] * 2
    text = device_module(lower(ag.function(program).get_concrete_function(*specs).graph, for_device=True)).ptx(
        processor
    )
    assert ".extern" not in text
    if dtype is ag.float16:
        assert "cvt.rn.f16.f32" in text and "cvt.f32.f16" in text
    if PTXAS is not None:
        assembled(text, tmp_path, processor)
