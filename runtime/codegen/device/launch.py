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
from runtime.codegen.device.device_module import DeviceModule, device_module
from runtime.codegen.kernel.source import KernelSource
from runtime.gpu.interface import BLOCK, HostMemory, OutOfMemory, Shape
from runtime.gpu.memory import Buffer, DeviceArray, Place
from runtime.kernel_ir.types import Array, Scalar, Type, results
from runtime.llvm import device_layout as layout
from runtime.llvm.device import slots
from runtime.profiling import span

_HEAP = 1 << 20  # bytes at first
_WARP = 32  # threads that a GPU runs in step
_SHAPES = 1000  # numbers of elements whose shapes of launches are kept


def _rank_and_dtype(type_: Type) -> tuple[int | None, np.dtype]:
    """Of an array its rank, of a number None; and the dtype of its elements."""
    if isinstance(type_, Array):
        return type_.rank, np.dtype(type_.element.name)
    assert isinstance(type_, Scalar)
    return None, np.dtype(type_.name)


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
        self._fails = bool(source.errors)
        self._result = [_rank_and_dtype(item) for item in results(self.module.result)]
        self._slots = slots(self.module.result)
        self._is_array = [isinstance(type_, Array) for type_ in self.module.parameters]
        self._elements = [np.dtype(each.name) for each in self.module.given.elements]
        self._shapes: dict[int, tuple[Shape, str]] = {}
        # What the arrays of a launch are for, should memory run out.
        self._notes = [f"{what} of '{source.name}'" for what in ("an argument", "a result")]
        self._made = f"an array that '{source.name}' makes"

    def __call__(self, arguments: Sequence[Any], shape: Shape | None = None) -> list[Any]:
        """What the kernel returns: arrays on the GPU, and numbers. arguments: of the source's signature.

        A heap that is too small is made larger, and the kernel runs again. Arrays of the host's that it writes to are
        changed when it is done. Raises ResourceExhaustedError.
        """
        place, module = self.place, self.module
        given: list[Any] = []
        for argument, is_array in zip(arguments, self._is_array):
            if argument.__class__ is not DeviceArray:
                given.append(self._on_place(argument) if is_array else np.asarray(argument).item())
            else:
                given.append(argument.moved_to(place, self._notes[0]) if is_array else argument.on_host().item())
        with place.lock, place.backend.entered:
            if self._elements:
                given += self._arrays(given)
            values: list[int | float] = []
            most = 1
            for argument, is_array in zip(given, self._is_array):
                if is_array:
                    values.append(argument.address())
                    values += argument.shape
                    most = max(most, argument.size)
                else:
                    values.append(argument)
            if shape is None:
                shape, self.form = self._shapes.get(most) or self._shape(most)
            changed = [number for number in module.changed if number < len(arguments)]
            found = self._run(values, shape, [(given[n].address(), np.asarray(arguments[n])) for n in changed])
            returned = self._results(found, [each for each, is_array in zip(given, self._is_array) if is_array])
            for number in changed:
                place.backend.read(given[number].address(), arguments[number])
            return returned

    def _arrays(self, given: Sequence[Any]) -> list[DeviceArray]:
        """The arrays that the kernel is given beside its arguments."""
        with np.errstate(all="ignore"):
            counts = self.module.given.sizes(*given)
        found = []
        for element, count in zip(self._elements, counts):
            size = max(int(count), 0)
            buffer = self._memory(size * element.itemsize, self._made)
            found.append(DeviceArray(self.place, (size,), element, None, buffer, buffer.address, self._made))
        return found

    def _shape(self, elements: int) -> tuple[Shape, str]:
        """How many threads go over so many elements, and that in words."""
        limits, module = self.place.backend.limits(self._kernel), self.module
        if limits.fixed is not None:
            shape = limits.fixed
        elif not module.shared:
            shape = Shape(1, _WARP)
        else:
            most = limits.meeting if module.meets else limits.blocks
            each = cost_model.DEVICE_ELEMENTS if module.meets else 1
            blocks = min(most, -(-elements // (BLOCK * each)))
            if blocks <= 1 or (module.meets and elements <= cost_model.DEVICE_ONE_BLOCK):
                whole = -(-elements // _WARP) * _WARP
                shape = Shape(1, max(_WARP, min(whole, limits.block_size // _WARP * _WARP)))
            else:
                shape = Shape(blocks, BLOCK)
        if len(self._shapes) > _SHAPES:
            self._shapes.clear()
        found = self._shapes[elements] = shape, _form(shape, module)
        return found

    def lines(self) -> list[str]:
        """How it runs, for `explain`."""
        module = self.module
        found = [f"{_loops(module.shared)} shared by threads"] if module.shared else []
        found += [f"{_loops(count)} on one thread, since {why}" for why, count in sorted(module.alone.items())]
        return [*found, f"the last call took {self.form}"] if self.form else found

    def _on_place(self, argument: Any) -> DeviceArray:
        # What the kernel writes to must not be taken for what the host has.
        return DeviceArray(self.place, argument.shape, argument.dtype, argument, note=self._notes[0])

    def _memory(self, size: int, note: str) -> Buffer:
        """Memory; arrays without elements share some."""
        return self.place.allocate(size, note) if size else self.place.scratch("empty arrays", 1)

    def _run(self, values: list[int | float], shape: Shape, changed: Sequence[tuple[int, np.ndarray]]) -> np.ndarray:
        """Launches the kernel until its heap is large enough; the numbers that it returns, after the first one.

        changed: where arrays are that it writes to, and what is in them at first.
        """
        place, backend = self.place, self.place.backend
        while True:
            environment, found = self._environment(shape)
            with span("device", f"{self.name} on {place.short}", threads=shape.threads):
                place.clean = False
                given = [environment, *values, found.address]
                backend.launch(self._kernel, given, shape, environment + layout.STOP, self.module.meets)
            numbers = found.content
            if not numbers[0]:
                # A kernel that has not failed leaves the head as it was.
                place.clean = not (self._heap or backend.record or (self._fails and numbers[1]))
                return numbers[1 : self._slots].copy()
            lacking = np.empty(1, np.int64)
            backend.read(environment + layout.LACKING, lacking)
            wanted = int(lacking[0])
            if wanted > 1 << 46 or not wanted:
                raise place.out_of_memory(wanted, self._made) from OutOfMemory(wanted)
            self._heap = 2 * (self._heap + wanted)
            for address, content in changed:
                backend.write(address, content)

    def _environment(self, shape: Shape) -> tuple[int, HostMemory]:
        """The address of the launch's environment, whose head is written, and memory of the host's for results."""
        place, backend = self.place, self.place.backend
        emulated = backend.record is not None
        of_shape = (shape.blocks, shape.threads) if emulated else ()
        environment = place.scratch("threads", layout.environment_size(*of_shape)).address
        size = layout.head_size(emulated, bool(self._heap), *of_shape)
        shared = place.host_memory(8 * self._slots, size)
        if not place.clean or self._heap:
            heap = place.scratch("heap", self._heap).address if self._heap else 0
            head = shared[1].content
            head[: size // 8] = 0
            head[layout.TOP // 8], head[layout.END // 8] = heap, heap + self._heap
            head[layout.KEY // 8] = layout.NO_FAILURE
            backend.write_from(environment, shared[1], size)
        return environment, shared[0]

    def _results(self, written: np.ndarray, given: Sequence[DeviceArray]) -> list[Any]:
        found: list[Any] = []
        at = 0
        numbers = written.tolist()
        for rank, dtype in self._result:
            if rank is None:
                found.append(written[at : at + 1].view(dtype)[0])
                at += 1
                continue
            address = numbers[at]
            dims = tuple(numbers[at + 1 : at + 1 + rank])
            at += 1 + rank
            size = math.prod(dims) * dtype.itemsize
            holder = next((each.buffer() for each in given if each.buffer().covers(address)), None) if size else None
            if holder is None:
                holder = self._memory(size, self._notes[1])
                if size:
                    self.place.backend.copy(holder.address, address, size)
                address = holder.address
            elif holder.note == self._made:
                holder.note = self._notes[1]
            found.append(DeviceArray(self.place, dims, dtype, None, holder, address, self._notes[1]))
        return found
