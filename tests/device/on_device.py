"""Runs kernels on a device instead of the processor: a plugin of pytest (`-p tests.device.on_device`), and what other
tests here are made with.

AUTOGRAPH_TEST_DEVICE says on which: BLOCKSxTHREADS of the emulator (2x2), `cuda`, or `pretended` (`pretended.py`).
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import autograph as ag
from runtime import device
from runtime.codegen.backends import driver, graph_cache, llvm_backend
from runtime.codegen.device import launch
from runtime.codegen.device.device_kernel import DeviceKernel
from runtime.codegen.device.kernel import UNKNOWN, ZERO, NotOnDevice
from runtime.codegen.kernel.source import KernelSource, Unreadable
from runtime.codegen.lower import lower_graph
from runtime.engine.settings import wait_for_background
from runtime.gpu.cuda import Cuda
from runtime.gpu.emulator import Emulator
from runtime.gpu.interface import Shape
from runtime.gpu.memory import DeviceArray, LogicalGPU
from tests.device.pretended import Pretended

refused: Counter[str] = Counter()  # why kernels have no form for a device
foreseen_so_far: Counter[str] = Counter()  # arrays of which a kernel's host knew everything before it ran


class OnDevice:
    """A backend (`driver.Compiler`) whose kernels run on a device; those that have no form for one on the processor."""

    NAME, Refused = "device", NotOnDevice

    def __init__(self, device: Any) -> None:
        self.place = LogicalGPU("GPU:0", device)

    def available(self) -> bool:
        return True

    def compile(self, name: str, source: KernelSource, outside: Callable[[], None]) -> tuple[Any, None]:
        try:
            kernel = DeviceKernel(source, self.place)
        except NotOnDevice as error:
            refused[str(error)] += 1
            return llvm_backend.compile(name, source, outside)[0], None

        def call(*arguments: Any) -> Any:
            found = [each.on_host() if isinstance(each, DeviceArray) else each for each in kernel(arguments)]
            return tuple(found) if len(found) != 1 else found[0]

        return call, None

    def load(self, name: str, source: KernelSource, code: bytes) -> Any:
        raise Unreadable("a device keeps no code")

    def text(self, source: KernelSource, form: str) -> str:
        return llvm_backend.text(source, form)


@contextlib.contextmanager
def foreseen_results() -> Iterator[None]:
    """Within it, what a host foresees of a kernel's results is compared with what the kernel says in the end."""
    waited = launch.Launches.waited

    def compared(self: Any, values: Any, elements: int, shape: Any, shapes: Any, arguments: Any, made: Any) -> Any:
        found = waited(self, values, elements, shape, shapes, arguments, made)
        if shapes is not None:
            each_returned = found if isinstance(found, tuple) else (found,)
            for returned, at, foreseen in zip(each_returned, self.module.given.returned, shapes, strict=True):
                if at in (ZERO, UNKNOWN):
                    assert at == UNKNOWN or returned == 0
                    continue
                assert returned.shape == foreseen
                source = (*arguments, *made)[at]
                buffer = source.buffer() if isinstance(source, DeviceArray) else source
                assert not returned.size or returned.buffer() is buffer
                foreseen_so_far[self.name] += 1
        return found

    setattr(launch.Launches, "waited", compared)
    try:
        yield
    finally:
        setattr(launch.Launches, "waited", waited)


@contextlib.contextmanager
def instead_of_the_processor(device: Any) -> Iterator[None]:
    """Kernels that are lowered and compiled within it run on a device."""
    compilers, entries, lookup = driver._compilers, driver._entries, graph_cache.lookup
    lowering = lower_graph.Lowering

    def for_devices(graph: Any, assuming: bool, equal: Any, for_device: bool) -> Any:
        return lowering(graph, assuming, equal, for_device=True)

    # A job that is under way has asked for the compilers already, and would leave its kernel among the entries here.
    wait_for_background()
    setattr(lower_graph, "Lowering", for_devices)
    driver._compilers, driver._entries = lambda: [OnDevice(device)], {}  # type: ignore[list-item]
    graph_cache.lookup = lambda graph, described=None: None  # the processor's kernels
    try:
        yield
    finally:
        wait_for_background()
        driver._compilers, driver._entries, graph_cache.lookup = compilers, entries, lookup
        setattr(lower_graph, "Lowering", lowering)


@contextlib.contextmanager
def gpus(count: int = 1, **options: Any) -> Iterator[Callable[[], list[LogicalGPU]]]:
    """So many emulated GPUs and no others; with AUTOGRAPH_TEST_DEVICE=cuda the real ones, or the pretended ones."""
    real, chosen = device._real_count, os.environ.get("AUTOGRAPH_TEST_DEVICE")
    if chosen == "pretended":
        with Pretended().installed() as found:
            try:
                yield device.logical_gpus
            finally:
                ag.config.set_soft_device_placement(True)
            gc.collect()
        assert found.complaints() == []
        return
    if chosen != "cuda":
        device._real_count = lambda: 0
        ag.config.emulate_gpus(count, **options)
    try:
        yield device.logical_gpus
    finally:
        device._real_count = real
        ag.config.emulate_gpus(0)
        ag.config.set_soft_device_placement(True)


def device_of(text: str, stack: contextlib.ExitStack) -> Any:
    """`cuda`: the first GPU, or a pretended one; else an emulator of BLOCKSxTHREADS."""
    if text == "pretended":
        stack.enter_context(Pretended().installed())
    if text in ("cuda", "pretended"):
        return Cuda()
    blocks, threads = text.split("x")
    return Emulator(Shape(int(blocks), int(threads)))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    whole = contextlib.ExitStack()
    device = config.stash[_DEVICE] = device_of(os.environ.get("AUTOGRAPH_TEST_DEVICE", "2x2"), whole)
    whole.enter_context(instead_of_the_processor(device))
    whole.enter_context(foreseen_results())
    config.add_cleanup(whole.close)


_DEVICE = pytest.StashKey[Any]()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    terminalreporter.write_line(f"{config.stash[_DEVICE].launches} launches on the device")
    terminalreporter.write_line(f"{sum(foreseen_so_far.values())} arrays were foreseen")
    for reason, count in refused.most_common():
        terminalreporter.write_line(f"{count} kernels on the processor: {reason}")
