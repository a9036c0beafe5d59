"""What is asked of the CUDA driver, which a stand-in answers here: kernels run on the emulated device in its place."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime import errors
from runtime.codegen.device.device_module import device_module
from runtime.codegen.device.launch import DeviceKernel
from runtime.codegen.lower.lower_graph import lower
from runtime.gpu import cuda
from runtime.gpu.emulator import Emulator
from runtime.gpu.interface import OutOfMemory, Shape
from runtime.gpu.memory import Place


def _unwrapped(item: Any) -> Any:
    """What an argument of a C function stands for: what it refers to, or a number."""
    if hasattr(item, "_obj"):
        return item._obj
    return item.value if isinstance(item, (ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int)) else item


class Driver:
    """Answers as libcuda does. Its memory is that of an emulator, and so are its threads."""

    def __init__(self) -> None:
        self.emulator = Emulator(memory=1 << 24)
        self.calls: list[str] = []
        self.kernel: Any = None
        self.types: list[str] = []
        self.failing: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if name in self.failing:
                return self.failing[name]
            given = [_unwrapped(each) for each in arguments]
            return getattr(self, f"_{name}", lambda *given: None)(*given) or 0

        return call

    def _cuDeviceGetCount(self, count: Any) -> None:
        count.value = 1

    def _cuDeviceGetAttribute(self, value: Any, which: int, device: int) -> None:
        value.value = {75: 9, 76: 0, 16: 132, 115: 1}[which]

    def _cuDeviceGetName(self, name: Any, size: int, device: int) -> None:
        return None

    def _cuGetErrorString(self, status: int, text: Any) -> None:
        text.value = b"an illegal memory access was encountered"

    def _cuOccupancyMaxActiveBlocksPerMultiprocessor(self, blocks: Any, *others: Any) -> None:
        blocks.value = 4

    def _cuFuncGetAttribute(self, value: Any, which: int, function: Any) -> None:
        value.value = 768

    def _cuModuleLoadData(self, module: Any, text: bytes) -> None:
        assert text.endswith(b"\0")
        assert b".target sm_90" in text

    def _cuMemAlloc_v2(self, address: Any, size: int) -> int:
        try:
            address.value = self.emulator.allocate(size)
        except OutOfMemory:
            return 2
        return 0

    def _cuMemAllocAsync(self, address: Any, size: int, stream: None) -> int:
        return self._cuMemAlloc_v2(address, size)

    def _cuMemFreeAsync(self, address: int, stream: None) -> None:
        self.emulator.free(address)

    def _cuMemPoolSetAttribute(self, pool: Any, which: int, value: Any) -> None:
        assert (which, value.value) == (4, (1 << 64) - 1)

    def _cuMemGetInfo_v2(self, free: Any, total: Any) -> None:
        free.value, total.value = self.emulator.memory_info()

    def _cuMemcpyHtoD_v2(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)

    def _cuMemcpyDtoH_v2(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)

    _cuMemcpyDtoD_v2 = _cuMemcpyDtoH_v2

    def _cuLaunchKernel(self, function: Any, blocks: int, *rest: Any) -> None:
        block_size, pointers = rest[2], next(each for each in rest if isinstance(each, ctypes.Array))
        self.shape = Shape(blocks, block_size)
        given = [(kind, cuda.C_TYPES[kind].from_address(at).value) for kind, at in zip(self.types, pointers)]
        self.emulator.launch(self.kernel, given, Shape(2, 2))

    _cuLaunchCooperativeKernel = _cuLaunchKernel


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    found = Driver()
    monkeypatch.setattr(cuda, "driver", lambda: found)
    return found


def kernel_for(driver: Driver, function: Any, *specs: Any) -> DeviceKernel:
    source = lower(ag.function(function).get_concrete_function(*specs).graph)
    module = device_module(source, "emulated", Emulator.record)
    driver.kernel = driver.emulator.load(module)
    kernel = DeviceKernel(source, Place("GPU:0", cuda.Cuda()))
    launch = kernel.place.backend.launch

    def noted(loaded: Any, arguments: Any, shape: Shape) -> None:
        driver.types = [kind for kind, _ in arguments]
        launch(loaded, arguments, shape)

    kernel.place.backend.launch = noted  # type: ignore[method-assign]
    return kernel


def test_a_kernel(driver: Driver) -> None:
    kernel = kernel_for(
        driver, lambda x, n: (x * ag.cast(n, ag.float32), ag.reduce_sum(x)), ag.TensorSpec([None], ag.float32),
        ag.TensorSpec([], ag.int32),
    )  # fmt: skip
    assert kernel.place.backend.processor == "sm_90"  # type: ignore[attr-defined]
    x = np.arange(50, dtype=np.float32)
    found = kernel([x, np.int32(3)])
    np.testing.assert_array_equal(found[-2].on_host(), 3 * x)
    assert found[-1] == x.sum()
    assert driver.shape == Shape(1, 64)
    assert "cuLaunchKernel" in driver.calls
    large = np.ones(100_000, np.float32)
    assert kernel([large, np.int32(2)])[-1] == 100_000
    assert driver.shape == Shape(391, 256)
    assert "cuLaunchCooperativeKernel" in driver.calls
    del found
    assert {buffer.note for buffer in kernel.place._buffers} == {
        f"scratch memory of kernels ({each})" for each in ("threads", "results")
    }


def test_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "driver", lambda: None)
    assert cuda.device_count() == 0
    with pytest.raises(errors.InvalidArgumentError, match="there is no GPU 0"):
        cuda.Cuda()


def test_a_gpu_without_memory(driver: Driver) -> None:
    kernel = kernel_for(driver, lambda x: x + 1.0, ag.TensorSpec([None], ag.float32))
    with pytest.raises(errors.ResourceExhaustedError, match=r"38\.1 MiB for an array that .* but 16\.0 MiB of 16"):
        kernel([np.ones(10_000_000, np.float32)])
    assert not driver.emulator._memory


def test_the_end_of_the_process_and_its_children(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = cuda.Cuda()
    address = gpu.allocate(100)
    driver.failing["cuCtxSetCurrent"] = 4  # the driver is gone
    gpu.free(address)
    assert "cuMemFreeAsync" not in driver.calls
    with pytest.raises(errors.InternalError, match="status 4"):
        gpu.allocate(100)
    del driver.failing["cuCtxSetCurrent"]
    monkeypatch.setattr(cuda.os, "getpid", lambda: -1)
    gpu.free(address)
    with pytest.raises(errors.InternalError, match="can't be used by its forked children"):
        gpu.allocate(100)
    monkeypatch.undo()
    assert "cuMemFreeAsync" not in driver.calls


def test_what_the_driver_says(driver: Driver) -> None:
    kernel = kernel_for(driver, lambda x: x + 1.0, ag.TensorSpec([None], ag.float32))
    driver.failing["cuMemcpyDtoH_v2"] = 700
    with pytest.raises(errors.InternalError, match=r"cuMemcpyDtoH_v2 failed: an illegal memory access .*700"):
        kernel([np.ones(10, np.float32)])
    driver.failing["cuDeviceGetCount"] = 100  # no device
    assert cuda.device_count() == 0
