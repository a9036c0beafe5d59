"""Kernels that run on a GPU: how their arguments get there, and what becomes of their results.

Arrays that are there already are passed as they are, others are copied there. Results stay there: they lie in memory
that was allocated before the launch (`given_arrays.py`), in an argument's, or are copied out of the kernel's heap.
The kernel's status and the numbers that it returns are written to memory of the host's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.codegen import cost_model
from runtime.codegen.device.device_module import DeviceModule, device_module, kind_of
from runtime.codegen.kernel.source import KernelSource
from runtime.gpu.interface import BLOCK, OutOfMemory, Shape
from runtime.gpu.memory import Buffer, DeviceArray, Place
from runtime.kernel_ir.types import Array, Scalar, results
from runtime.llvm import device as interface
from runtime.profiling import span

_HEAP = 1 << 20  # bytes at first


_WARP = 32  # threads that a GPU runs in step


def _form(shape: Shape, module: DeviceModule) -> str:
    """In which form a kernel runs, in words."""
    if not module.shared:
        return "one thread"
    if not module.meets:
        return f"{shape.threads:,} threads that don't wait for each other"
    if shape.blocks == 1:
        return f"one block of {shape.block_size:,} threads"
    return f"a grid of {shape.blocks:,} blocks of {shape.block_size:,} threads that wait for each other"


def _loops(count: int) -> str:
    return f"{count} loop" if count == 1 else f"{count} loops"


class DeviceKernel:
    """A kernel on a GPU: called with what the kernel of the processor is called with, arrays of the GPU's among it."""

    def __init__(self, source: KernelSource, place: Place) -> None:
        """Raises NotOnDevice."""
        self.module = device_module(source, place.backend.record)
        self.place = place
        self.name = source.name
        self.form = ""  # of the last launch, for `explain`
        with span("compile", f"{source.name} for {place.short}"):
            self._kernel = place.backend.load(self.module)
        self._heap = _HEAP if self.module.makes_arrays else 0
        self._result = results(self.module.result)
        self._slots = interface.slots(self.module.result)
        self._head = interface.head_size(place.backend.record is not None, self.module.makes_arrays)
        self._elements = [np.dtype(each.name) for each in self.module.given.elements]

    def __call__(self, arguments: Sequence[Any], shape: Shape | None = None) -> list[Any]:
        """What the kernel returns: arrays on the GPU, and numbers. arguments: of the source's signature.

        A heap that is too small is made larger, and the kernel runs again. Arrays of the host's that it writes to are
        changed when it is done. Raises ResourceExhaustedError.
        """
        place, types = self.place, self.module.parameters
        given = list(arguments)
        for number, type_ in enumerate(types[: len(given)]):
            if isinstance(type_, Array):
                given[number] = self._on_place(given[number])
            elif isinstance(given[number], DeviceArray):
                given[number] = given[number].on_host()
        with place.lock, place.backend.entered:
            for element, count in zip(self._elements, self._sizes(given)):
                size = max(int(count), 0)
                buffer = self._memory(size * element.itemsize, f"an array that '{self.name}' makes")
                given.append(DeviceArray(place, (size,), element, buffer=buffer, address=buffer.address))
            passed: list[tuple[str, int | float]] = []
            most = 1
            for type_, argument in zip(types, given, strict=True):
                if isinstance(type_, Array):
                    passed.append(("ptr", argument.address()))
                    passed += [("i64", size) for size in argument.shape]
                    most = max(most, argument.size)
                else:
                    assert isinstance(type_, Scalar)
                    passed.append((kind_of(type_), np.asarray(argument).item()))
            if shape is None:
                shape = self._shape(most)
            changed = [number for number in self.module.changed if number < len(arguments)]
            found = self._run(passed, shape, [(given[n].address(), np.asarray(arguments[n])) for n in changed])
            arrays = [each.buffer() for each, type_ in zip(given, types) if isinstance(type_, Array)]
            returned = self._results(found, arrays)
            for number in changed:
                place.backend.read(given[number].address(), arguments[number])
            return returned

    def _shape(self, elements: int) -> Shape:
        """How many threads go over so many elements."""
        limits, module = self.place.backend.limits(self._kernel), self.module
        if limits.fixed is not None:
            shape = limits.fixed
        elif not module.shared:
            shape = Shape(1, _WARP)
        else:
            most = limits.meeting if module.meets else limits.blocks
            blocks = min(most, -(-elements // BLOCK))
            if blocks <= 1 or (module.meets and elements <= cost_model.DEVICE_ONE_BLOCK):
                whole = -(-elements // _WARP) * _WARP
                shape = Shape(1, max(_WARP, min(whole, limits.block_size // _WARP * _WARP)))
            else:
                shape = Shape(blocks, BLOCK)
        self.form = _form(shape, module)
        return shape

    def lines(self) -> list[str]:
        """How it runs, for `explain`."""
        module = self.module
        found = [f"{_loops(module.shared)} shared by threads"] if module.shared else []
        found += [f"{_loops(count)} on one thread, since {why}" for why, count in sorted(module.alone.items())]
        return [*found, f"the last call took {self.form}"] if self.form else found

    def _on_place(self, argument: Any) -> DeviceArray:
        note = f"an argument of '{self.name}'"
        if not isinstance(argument, DeviceArray):
            # What the kernel writes to must not be taken for what the host has.
            return DeviceArray(self.place, argument.shape, argument.dtype, argument, note=note)
        return argument.moved_to(self.place, note)

    def _memory(self, size: int, note: str) -> Buffer:
        """Memory; arrays without elements share some."""
        return self.place.allocate(size, note) if size else self.place.scratch("empty arrays", 1)

    def _sizes(self, arguments: Sequence[Any]) -> Sequence[int]:
        if not self._elements:
            return ()
        with np.errstate(all="ignore"):
            return self.module.given.sizes(*arguments)

    def _run(
        self, passed: list[tuple[str, int | float]], shape: Shape, changed: Sequence[tuple[int, np.ndarray]]
    ) -> np.ndarray:
        """Launches the kernel until its heap is large enough; the numbers that it returns, after the first one.

        changed: where arrays are that it writes to, and what is in them at first.
        """
        place, backend, module = self.place, self.place.backend, self.module
        slots, size = self._slots, self._head
        # The head of the environment, and behind it what the kernel returns.
        shared = place.host_memory(size + 8 * slots)
        head, found = (part.view(np.int64) for part in (shared.content[:size], shared.content[size : size + 8 * slots]))
        environment_size = interface.environment_size(shape.threads)
        while True:
            environment = place.scratch("threads", environment_size).address
            heap = place.scratch("heap", self._heap).address if self._heap else 0
            head[:] = 0
            head[interface.TOP // 8], head[interface.END // 8] = heap, heap + self._heap
            head[interface.KEY // 8] = interface.NO_FAILURE
            backend.write_from(environment, shared, size)
            with span("device", f"{self.name} on {place.short}", threads=shape.threads):
                given = [("ptr", environment), *passed, ("ptr", shared.address + size)]
                backend.launch(self._kernel, given, shape, environment + interface.STOP, module.meets)
            if not found[0]:
                return found[1:].copy()
            lacking = np.empty(1, np.int64)
            backend.read(environment + interface.LACKING, lacking)
            wanted = int(lacking[0])
            if wanted > 1 << 46 or not wanted:
                raise place.out_of_memory(wanted, f"an array that '{self.name}' makes") from OutOfMemory(wanted)
            self._heap = 2 * (self._heap + wanted)
            for address, content in changed:
                backend.write(address, content)

    def _results(self, slots: np.ndarray, buffers: Sequence[Buffer]) -> list[Any]:
        found: list[Any] = []
        at = 0
        note = f"a result of '{self.name}'"
        for item in self._result:
            if isinstance(item, Array):
                address, *dims = (int(number) for number in slots[at : at + 1 + item.rank])
                at += 1 + item.rank
                dtype = np.dtype(item.element.name)
                size = math.prod(dims) * dtype.itemsize
                holder = next((each for each in buffers if each.covers(address)), None)
                if holder is None or not size:
                    holder = self._memory(size, note)
                    if size:
                        self.place.backend.copy(holder.address, address, size)
                    address = holder.address
                elif holder.note.startswith("an array that"):
                    holder.note = note
                found.append(DeviceArray(self.place, tuple(dims), dtype, None, holder, address, note))
            else:
                assert isinstance(item, Scalar)
                found.append(slots[at : at + 1].view(np.dtype(item.name))[0])
                at += 1
        return found
