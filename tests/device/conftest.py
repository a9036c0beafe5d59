"""What tests of devices have in common: an emulated one for those that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runtime.gpu.emulator import Emulator
from runtime.gpu.interface import Shape
from tests.device.on_device import foreseen_results, instead_of_the_processor


@pytest.fixture(autouse=True)
def _foreseen_results() -> Iterator[None]:
    """Kernels do as their hosts foresee, in all tests here."""
    with foreseen_results():
        yield


@pytest.fixture(params=["1x1", "2x2", "1x7"])
def emulator(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """Kernels run on it; at least one has to."""
    blocks, threads = request.param.split("x")
    device = Emulator(Shape(int(blocks), int(threads)))
    with instead_of_the_processor(device):
        yield device
    assert device.launches > 0
