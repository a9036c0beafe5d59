"""Runs kernels on a GPU: passes their arguments and takes their results.

Arrays on the GPU are passed as they are, others are copied there. Results stay on the GPU: in memory that was allocated
before the launch (`given_arrays.py`), in that of an argument, or copied out of the kernel's heap. The kernel writes its
status and the numbers that it returns to host memory.

A call waits for its kernel if the kernel may fail, so that the call raises the error; if the kernel computes the sizes
of its results; or if it changes arrays of the host. Other kernels run asynchronously, and readers of their results wait
(`interface.Backend`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.codegen import cost_model
from runtime.codegen.device.device_module import DeviceModule, device_module
from runtime.codegen.device.kernel import UNKNOWN, ZERO, Shapes
from runtime.codegen.kernel.source import KernelSource
from runtime.gpu.interface import BLOCK, HostMemory, OutOfMemory, Shape
from runtime.gpu.memory import HOST_MEMORY, Buffer, DeviceArray, LogicalGPU
from runtime.kernel_ir.types import Array, Scalar, Type, results
from runtime.llvm import device_layout as layout
from runtime.llvm.device_calls import slots
from runtime.profiling import span

_HEAP = 1 << 20  # bytes, initially
_WARP = 32  # threads of a warp
_SHAPES = 1000  # the most numbers of elements for which the shape of the launch is cached


def _rank_and_dtype(type_: Type) -> tuple[int | None, np.dtype]:
    """The rank of an array, or None for a number; and the dtype of the elements."""
    if isinstance(type_, Array):
        return type_.rank, np.dtype(type_.element.name)
    assert isinstance(type_, Scalar)
    return None, np.dtype(type_.name)


def _form(shape: Shape, module: DeviceModule) -> str:
    """A description of the form in which a kernel runs."""
    if not module.shared:
        return "one thread"
    if not module.synchronizes:
        return f"{shape.threads:,} threads that don't wait for each other"
    if shape.blocks == 1:
        return f"one block of {shape.block_size:,} threads"
    return f"a grid of {shape.blocks:,} blocks of {shape.block_size:,} threads that wait for each other"


class Launches:
    """The data for launches of a kernel.

    result            for each result its rank, or None for a number, and its dtype
    slots             how many numbers a launch writes for results, including its status
    is_asynchronous   whether calls may leave the kernel running
    last              the shape of the last launch, also in words, for `explain`
    """

    def __init__(self, source: KernelSource, place: LogicalGPU) -> None:
        """Raises NotOnDevice."""
        with span("compile", f"{source.name} for {place.short}"):
            self.module = device_module(source, place.backend.record)
            self.kernel = place.backend.load(self.module)
        self.place = place
        self.name = source.name
        self.last: tuple[Shape, str] | None = None
        self._heap = _HEAP if self.module.makes_arrays else 0
        self._fails = bool(source.errors)
        self.result = [_rank_and_dtype(item) for item in results(self.module.result)]
        self.slots = slots(self.module.result)
        self.is_asynchronous = self._can_be_asynchronous(source)
        self._forms: dict[int, tuple[Shape, str]] = {}
        # The purpose of a launch's arrays, for the message if memory runs out.
        self._argument, self.returned = (f"{what} of '{source.name}'" for what in ("an argument", "a result"))
        self.made = f"an array that '{source.name}' makes"

    def _can_be_asynchronous(self, source: KernelSource) -> bool:
        """Whether the host knows the results in advance, except numbers, which may be read later."""
        module, returned = self.module, self.module.given.returned
        arguments = len(module.parameters) - len(module.given.elements)
        if returned is None or module.makes_arrays or any(number < arguments for number in module.changed):
            return False
        if source.errors and set(returned[: 1 + source.details]) != {ZERO}:
            return False  # its status tells whether it failed
        if any(at == UNKNOWN and rank is not None for at, (rank, _) in zip(returned, self.result)):
            return False
        # The caller reads the numbers of a stack or an assigned variable.
        looks = bool(source.kept) or any(slot.kind == "stack" for slot in source.outputs)
        return 8 * self.slots <= HOST_MEMORY and not (looks and UNKNOWN in returned)

    def waited(
        self, values: Sequence[Any], elements: int, shape: Shape | None, shapes: Shapes | None,
        arguments: Sequence[Any], made: Sequence[Buffer],
    ) -> Any:  # fmt: skip
        """Runs the kernel to its end, under the place's lock, and returns the results. values: the parameters of a
        launch except the first and the last. elements: those of the largest array. shapes: those of the results, if the
        host knows them. arguments, made: the arrays and numbers."""
        backend = self.place.backend
        if shape is None:
            self.last = self.form_of(elements)
            shape = self.last[0]
        changed = [(arguments[n], arguments[n].on_host()) for n in self.module.changed if n < len(arguments)]
        found = self._run(values, shape, changed)
        holders = [each.buffer() for each in arguments if each.__class__ is DeviceArray]
        returned = self.results_of(found, [*holders, *made])
        for array, content in changed:
            backend.read(array.address(), content)
        return returned[0] if len(returned) == 1 else tuple(returned)

    def form_of(self, elements: int) -> tuple[Shape, str]:
        """The number of threads for so many elements, also in words."""
        known = self._forms.get(elements)
        if known is not None:
            return known
        limits, module = self.place.backend.limits(self.kernel), self.module
        if limits.fixed is not None:
            shape = limits.fixed
        elif not module.shared:
            shape = Shape(1, _WARP)
        else:
            most = limits.cooperative if module.synchronizes else limits.blocks
            each = cost_model.DEVICE_ELEMENTS if module.synchronizes else 1
            blocks = min(most, -(-elements // (BLOCK * each)))
            if blocks <= 1 or (module.synchronizes and elements <= cost_model.DEVICE_ONE_BLOCK):
                whole = -(-elements // _WARP) * _WARP
                shape = Shape(1, max(_WARP, min(whole, limits.block_size // _WARP * _WARP)))
            elif module.takes_wide_blocks and blocks > limits.wide_blocks > 1:
                size = -(-elements // (limits.wide_blocks * cost_model.DEVICE_WIDE_ELEMENTS) // BLOCK) * BLOCK
                shape = Shape(limits.wide_blocks, max(BLOCK, min(size, limits.block_size // _WARP * _WARP)))
            else:
                shape = Shape(blocks, BLOCK)
        if len(self._forms) > _SHAPES:
            self._forms.clear()
        found = self._forms[elements] = shape, _form(shape, module)
        return found

    def placed(self, argument: Any) -> DeviceArray:
        """An array that isn't on this GPU. What the kernel writes to must not be taken for what the host has."""
        if argument.__class__ is DeviceArray:
            return argument.moved_to(self.place, self._argument)
        return DeviceArray(self.place, argument.shape, argument.dtype, argument, note=self._argument)

    def empty(self) -> Buffer:
        """The memory of arrays without elements."""
        return self.place.scratch("empty arrays", 1)

    def _run(
        self, values: Sequence[int | float], shape: Shape, changed: Sequence[tuple[DeviceArray, np.ndarray]]
    ) -> np.ndarray:
        """Launches the kernel until its heap is large enough. Returns the numbers that it returns, without the first.

        changed: the arrays that it writes to, with their initial contents.
        """
        place, backend = self.place, self.place.backend
        while True:
            ready = self._environment(shape)
            environment, found = ready
            with span("device", f"{self.name} on {place.short}", threads=shape.threads):
                place.ready = None
                given = (environment, *values, found.address)
                backend.launch(self.kernel, given, shape, self.module.synchronizes, environment + layout.STOP)
            numbers = found.content
            if not numbers[0]:
                # A kernel that doesn't fail leaves the head unchanged.
                if not (self._heap or backend.record or (self._fails and numbers[1])):
                    place.ready = ready
                return numbers[1 : self.slots].copy()
            shortfall = np.empty(1, np.int64)
            backend.read(environment + layout.SHORTFALL, shortfall)
            wanted = int(shortfall[0])
            if wanted > 1 << 46 or not wanted:
                raise place.out_of_memory(wanted, self.made) from OutOfMemory(wanted)
            self._heap = 2 * (self._heap + wanted)
            for array, content in changed:
                backend.write(array.address(), content)

    def _environment(self, shape: Shape) -> tuple[int, HostMemory]:
        """The address of the launch's environment, with its head written, and host memory for results."""
        place, backend = self.place, self.place.backend
        if place.ready is not None and not self._heap and place.ready[1].content.size >= self.slots:
            return place.ready
        emulated = backend.record is not None
        of_shape = (shape.blocks, shape.threads) if emulated else ()
        environment = place.scratch("threads", layout.environment_size(*of_shape)).address
        size = layout.head_size(emulated, bool(self._heap), *of_shape)
        heap = place.scratch("heap", self._heap).address if self._heap else 0
        memory = place.host_memory("head", size)
        backend.synchronize()  # the copy of the last head may be unfinished
        head = memory.content
        head[: size // 8] = 0
        head[layout.TOP // 8], head[layout.END // 8] = heap, heap + self._heap
        head[layout.FIRST_FAILURE // 8] = layout.NO_FAILURE
        backend.write_from(environment, memory, size)
        return environment, place.host_memory("results", 8 * self.slots)

    def results_of(self, written: np.ndarray, holders: Sequence[Buffer]) -> list[Any]:
        """The results of the kernel, from the numbers that it has written. holders: memory that arrays may be in."""
        found: list[Any] = []
        at = 0
        numbers = written.tolist()
        beginning = {each.address: each for each in holders}
        for rank, dtype in self.result:
            if rank is None:
                found.append(written[at : at + 1].view(dtype)[0])
                at += 1
                continue
            address = numbers[at]
            dims = tuple(numbers[at + 1 : at + 1 + rank])
            at += 1 + rank
            size = math.prod(dims) * dtype.itemsize
            holder = beginning.get(address) if size else None
            if size and holder is None:
                holder = next((each for each in holders if each.covers(address)), None)
            if holder is None:
                holder = self.place.allocate(size, self.returned) if size else self.empty()
                if size:
                    self.place.backend.copy(holder.address, address, size)
                address = holder.address
            elif holder.note == self.made:
                holder.note = self.returned
            found.append(DeviceArray(self.place, dims, dtype, None, holder, address, self.returned))
        return found
