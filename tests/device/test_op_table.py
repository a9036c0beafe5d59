"""The op table on the emulated device, beside the interpreter: each row for one dtype."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from runtime.gpu.emulator import Emulator
from runtime.gpu.interface import Shape
from runtime.ops.table import OpDef
from tests.codegen import test_table
from tests.device.on_device import instead_of_the_processor, refused

_FIRST: dict[str, Any] = {}
for _case in test_table.cases():
    _FIRST.setdefault(_case.values[0].name, _case)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def device() -> Iterator[Emulator]:
    emulator = Emulator(Shape(2, 2))
    with instead_of_the_processor(emulator):
        yield emulator
    assert emulator.launches > 0


@pytest.mark.parametrize(("op", "dtype"), _FIRST.values())
def test_row(op: OpDef, dtype: Any, device: Emulator) -> None:
    """Whatever has a kernel for the processor has one for GPUs, with the same results."""
    before = refused.total()
    test_table.test_row(op, dtype)
    assert refused.total() == before, refused
