"""A kernel on a GPU, as the engine uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.codegen.device.device_module import DeviceModule
from runtime.codegen.device.entry import entry_of
from runtime.codegen.device.launch import Launches
from runtime.codegen.kernel.source import KernelSource
from runtime.gpu.interface import Shape
from runtime.gpu.memory import LogicalGPU


def _loops(count: int) -> str:
    return f"{count} loop" if count == 1 else f"{count} loops"


class DeviceKernel:
    """A kernel on a GPU. It takes the same arguments as the processor's kernel; arrays may be on the GPU.

    entry   takes the arguments, and returns the results: arrays on the GPU, and numbers
    """

    def __init__(self, source: KernelSource, place: LogicalGPU) -> None:
        """Raises NotOnDevice."""
        self._launches = Launches(source, place)  # without a reference to this object, whose end frees the GPU's code
        self.entry = entry_of(self._launches)

    @property
    def name(self) -> str:
        return self._launches.name

    @property
    def module(self) -> DeviceModule:
        return self._launches.module

    @property
    def is_asynchronous(self) -> bool:
        """Whether calls may leave it running."""
        return self._launches.is_asynchronous

    @property
    def form(self) -> str:
        """The form in which it ran last, in words."""
        last = self._launches.last
        return "" if last is None else last[1]

    def __call__(self, arguments: Sequence[Any], shape: Shape | None = None) -> list[Any]:
        """The results of the kernel. arguments: those of the source's signature.

        If the heap is too small, it is enlarged and the kernel runs again. Host arrays that the kernel writes to are
        updated at its end. Raises ResourceExhaustedError.
        """
        found = self.entry(*arguments, shape=shape)
        return [found] if len(self._launches.result) == 1 else list(found)

    def lines(self) -> list[str]:
        """How it runs, for `explain`."""
        module = self.module
        found = [f"{_loops(module.shared)} shared by threads"] if module.shared else []
        found += [f"{_loops(module.waiting)} in whose trips all threads wait for each other"] if module.waiting else []
        found += [f"{_loops(count)} on one thread, since {why}" for why, count in sorted(module.serial.items())]
        return [*found, f"the last call took {self.form}"] if self.form else found
