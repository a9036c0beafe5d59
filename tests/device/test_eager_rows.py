"""Single operations on an (emulated) GPU, beside the CPU: rows of the op table by their first sample, all of them with
AUTOGRAPH_FULL_TESTS=1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.context import placing
from runtime.ops.dispatch import apply
from runtime.ops.table import OpDef
from runtime.tensor import DeviceTensor, EagerTensor
from tests.codegen import test_table
from tests.device.on_device import gpus
from tests.full import FULL
from tests.ops.test_table import operands

_CASES: dict[str, Any] = {}
for _case in test_table.cases():
    _CASES.setdefault(_case.values[0].name, _case)  # type: ignore[attr-defined]
_STEP = 1 if FULL else 3


@pytest.fixture(scope="module")
def gpu() -> Iterator[Any]:
    with gpus() as found:
        yield found()[0]


@pytest.mark.parametrize(("op", "dtype"), list(_CASES.values())[::_STEP])
def test_row(op: OpDef, dtype: Any, gpu: Any) -> None:
    sample = (op.samples or ())[0]
    given = [EagerTensor(each) for each in operands(op, sample, dtype)]
    ag.random.set_seed(1)
    expected = apply(op, given, sample.attrs)
    ag.random.set_seed(1)
    before = gpu.backend.launches
    found = apply(op, [placing[0].put(each, gpu) for each in given], sample.attrs)
    several = op.multiple
    for one, other in zip(found if several else [found], expected if several else [expected], strict=True):
        assert one.dtype is other.dtype
        assert one.shape == other.shape
        assert one.__class__ is DeviceTensor or gpu.backend.launches == before
        if one.dtype.kind == "f":
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=2e-5, atol=2e-6)
        else:
            np.testing.assert_array_equal(one.numpy(), other.numpy())
