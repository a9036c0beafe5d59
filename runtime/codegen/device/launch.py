"""Kernels that run on a GPU: how their arguments get there, and what becomes of their results.

Arrays that are there already are passed as they are, others are copied there. Results stay there: they lie in memory
that was allocated before the launch (`given_arrays.py`), in an argument's, or are copied out of the kernel's heap.
A launch ends with one copy to the host: the kernel's status and the numbers that it returns.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.codegen.device.device_module import device_module, kind_of
from runtime.codegen.kernel.source import KernelSource
from runtime.gpu.interface import OutOfMemory, Shape
from runtime.gpu.memory import Buffer, DeviceArray, Place
from runtime.kernel_ir.types import Array, Scalar, results
from runtime.llvm import device as interface
from runtime.profiling import span

_HEAP = 1 << 20  # bytes at first
_numbers = itertools.count()


class DeviceKernel:
    """A kernel on a GPU: called with what the kernel of the processor is called with, arrays of the GPU's among it."""

    def __init__(self, source: KernelSource, place: Place) -> None:
        """Raises NotOnDevice."""
        self.module = device_module(source, f"kernel{next(_numbers)}", place.backend.record)
        self.place = place
        self.name = source.name
        self._kernel = place.backend.load(self.module)
        self._heap = _HEAP if self.module.makes_arrays else 0
        self._result = results(self.module.result)
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
        with place.lock:
            made: list[Buffer] = []
            for element, count in zip(self._elements, self._sizes(given)):
                size = max(int(count), 0)
                buffer = self._memory(size * element.itemsize, f"an array that '{self.name}' makes")
                made.append(buffer)
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
                shape = place.backend.shape_for(self._kernel, most)
            changed = [number for number in self.module.changed if number < len(arguments)]
            found = self._run(passed, shape, [(given[n].address(), np.asarray(arguments[n])) for n in changed])
            arrays = [each.buffer() for each, type_ in zip(given, types) if isinstance(type_, Array)]
            returned = self._results(found, arrays)
            for number in changed:
                place.backend.read(given[number].address(), arguments[number])
            return returned

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
        place, backend = self.place, self.place.backend
        slots = interface.slots(self.module.result)
        while True:
            environment = place.scratch("threads", interface.environment_size(shape.threads)).address
            heap = place.scratch("heap", self._heap).address if self._heap else 0
            head = np.zeros(interface.HEAD // 8, np.int64)
            head[interface.TOP // 8], head[interface.END // 8] = heap, heap + self._heap
            head[interface.KEY // 8] = interface.NO_FAILURE
            backend.write(environment, head)
            out = place.scratch("results", 8 * max(slots, 64)).address
            found = np.empty(slots, np.int64)
            with span("device", f"{self.name} on {place.short}", threads=shape.threads):
                backend.launch(self._kernel, [("ptr", environment), *passed, ("ptr", out)], shape)
                backend.read(out, found)  # which waits for it
            if not found[0]:
                return found[1:]
            lacking = np.empty(1, np.int64)
            backend.read(environment + interface.LACKING, lacking)
            size = int(lacking[0])
            if size > 1 << 46 or not size:
                raise place.out_of_memory(size, f"an array that '{self.name}' makes") from OutOfMemory(size)
            self._heap = 2 * (self._heap + size)
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
                size = int(np.prod(dims, dtype=np.int64)) * dtype.itemsize
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
