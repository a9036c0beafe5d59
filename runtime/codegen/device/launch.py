"""Runs kernels on a GPU: passes their arguments and takes their results.

Arrays on the GPU are passed as they are, others are copied there. Results stay on the GPU: in memory that was allocated
before the launch (`given_arrays.py`), in that of an argument, or copied out of the kernel's heap. The kernel writes its
status and the numbers that it returns to host memory.

A call waits for its kernel if the kernel may fail, so that the call raises the error; if the kernel computes the sizes
of its results; or if it changes arrays of the host. Other kernels run asynchronously, and readers of their results wait
(`interface.Backend`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import profiling
from runtime.codegen import cost_model
from runtime.codegen.device.device_module import DeviceModule, device_module
from runtime.codegen.device.kernel import UNKNOWN, ZERO, Shapes
from runtime.codegen.kernel.source import KernelSource
from runtime.dtypes import NARROW
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


def _number(argument: Any) -> int | float:
    """A number as it is passed to a kernel, by value; a 16-bit float as its bits."""
    if argument.__class__ is DeviceArray:
        argument = argument.on_host()
    array = np.asarray(argument)
    found: int | float = (array.view(np.uint16) if array.dtype in NARROW else array).item()
    return found


def _displayed(items: Sequence[str]) -> str:
    """The text of a tuple display."""
    return f"({', '.join(items)}{',' * (len(items) == 1)})"


def _loops(count: int) -> str:
    return f"{count} loop" if count == 1 else f"{count} loops"


class DeviceKernel:
    """A kernel on a GPU. It takes the same arguments as the processor's kernel; arrays may be on the GPU.

    entry   takes the arguments, and returns the results: arrays on the GPU, and numbers
    """

    def __init__(self, source: KernelSource, place: LogicalGPU) -> None:
        """Raises NotOnDevice."""
        self._launches = _Launches(source, place)  # without a reference to this object, whose end frees the GPU's code
        self.entry = _entry(self._launches)

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
        found += [f"{_loops(count)} on one thread, since {why}" for why, count in sorted(module.serial.items())]
        return [*found, f"the last call took {self.form}"] if self.form else found


def _entry(launches: _Launches) -> Callable[..., Any]:
    """The function that calls a kernel. Its Python code is generated, since a loop over descriptors of arguments and
    results takes longer than many kernels. The code for a kernel that takes an array and a number and returns a given
    array:

        def call(a0, a1, shape=None):
            if a0.__class__ is not DeviceArray or a0.place is not place:
                a0 = placed(a0)
            if a1.__class__ is not int:
                a1 = number(a1)
            with lock:
                (s2,), shapes = plan(a0, a1)
                b2 = allocate(s2 * 4, returned) if s2 else empty()
                d0_0, d0_1, = a0.shape
                values = (a0.address(), d0_0, d0_1, a1, b2.address, s2,)
                most = max(1, d0_0 * d0_1, s2)
                ready = place.ready
                if shapes is None or ready is None or shape or profiling.recording:
                    return waited(values, most, shape, shapes, (a0, a1,), (b2,))
                launches.last = form = forms.get(most) or form_of(most)
                launch(kernel, (ready[0], *values, ready[1].address), form[0], synchronizes, None)
            return DeviceArray(place, shapes[0], t0, None, b2, b2.address, returned)
    """
    module, given, place = launches.module, launches.module.given, launches.place
    space: dict[str, Any] = {
        "DeviceArray": DeviceArray, "place": place, "placed": launches.placed, "number": _number, "lock": place.lock,
        "plan": given.plan, "allocate": place.allocate, "empty": launches.empty, "profiling": profiling,
        "waited": launches.waited, "launches": launches, "forms": launches.forms, "form_of": launches.form_of,
        "launch": place.backend.launch, "kernel": launches.kernel, "synchronizes": module.synchronizes,
        "returned": launches.returned, "made": launches.made,
    }  # fmt: skip
    count = len(module.parameters) - len(given.elements)
    names = [f"a{n}" for n in range(count)]
    lines: list[str] = []
    inner: list[str] = []
    values: list[str] = []
    sizes: list[str] = []
    for number, type_ in enumerate(module.parameters[:count]):
        name = names[number]
        if isinstance(type_, Array):
            lines += [f"if {name}.__class__ is not DeviceArray or {name}.place is not place:"]
            lines += [f"    {name} = placed({name})"]
            dims = [f"d{number}_{axis}" for axis in range(type_.rank)]
            inner.append(f"{_displayed(dims)} = {name}.shape")
            values += [f"{name}.address()", *dims]
            sizes.append(" * ".join(dims))
        else:
            lines += [f"if {name}.__class__ is not int:", f"    {name} = number({name})"]
            values.append(name)
    counts = [f"s{n}" for n in range(count, len(module.parameters))]
    buffers = [f"b{n}" for n in range(count, len(module.parameters))]
    allocations: list[str] = []
    for number, element in enumerate(given.elements):
        note = "returned" if count + number in (given.returned or ()) else "made"
        size, buffer = counts[number], buffers[number]
        bytes_ = f"{size} * {element.size}"
        allocations.append(f"{buffer} = allocate({bytes_}, {note}) if {size} else empty()")
        values += [f"{buffer}.address", size]
        sizes.append(size)
    lines += ["with lock:", f"    {_displayed(counts) if counts else '_'}, shapes = plan({', '.join(names)})"]
    lines += [f"    {line}" for line in (*allocations, *inner)]
    call = f"waited(values, most, shape, shapes, {_displayed(names)}, {_displayed(buffers)})"
    most = f"max(1, {', '.join(sizes)})" if sizes else "1"
    lines += [f"    values = {_displayed(values)}", f"    most = {most}"]
    if launches.is_asynchronous:
        lines += ["    ready = place.ready", "    if shapes is None or ready is None or shape or profiling.recording:"]
        lines += [f"        return {call}", *_asynchronous_launch(launches, count, space)]
    else:
        lines.append(f"    return {call}")
    text = "\n    ".join([f"def call({', '.join([*names, 'shape=None'])}):", *lines])
    exec(compile(text, f"{__file__}: call of {launches.name}", "exec"), space)
    entry: Callable[..., Any] = space.pop("call")  # it refers to `space`: a reference cycle would keep the GPU's code
    return entry


def _asynchronous_launch(launches: _Launches, count: int, space: dict[str, Any]) -> list[str]:
    """The code that launches a kernel, leaves it running and makes the objects of its results. count: the number of
    arguments."""
    returned = launches.module.given.returned
    assert returned is not None
    lines = ["    launches.last = form = forms.get(most) or form_of(most)"]
    results_at = "ready[1].address"
    if UNKNOWN in returned:
        results_at = "numbers.address"
        space["new_numbers"] = functools.partial(launches.place.numbers, launches.slots)
        lines.append("    numbers = new_numbers()")
    lines.append(f"    launch(kernel, (ready[0], *values, {results_at}), form[0], synchronizes, None)")
    found: list[str] = []
    slot = 1
    for number, at in enumerate(returned):
        rank, space[f"t{number}"] = launches.result[number]
        array = f"DeviceArray(place, shapes[{number}], t{number}, None"
        if at == ZERO:
            found.append("0")
        elif at == UNKNOWN:
            found.append(f"DeviceArray(place, (), t{number}, later=(numbers, {slot}))")
        elif at < count:
            found.append(f"{array}, a{at}.buffer(), a{at}.address(), returned)")
        else:
            found.append(f"{array}, b{at}, b{at}.address, returned)")
        slot += 1 + (rank or 0)
    return [*lines, f"return {found[0] if len(found) == 1 else _displayed(found)}"]


class _Launches:
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
        self.forms: dict[int, tuple[Shape, str]] = {}
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
            self.last = self.forms.get(elements) or self.form_of(elements)
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
            else:
                shape = Shape(blocks, BLOCK)
        if len(self.forms) > _SHAPES:
            self.forms.clear()
        found = self.forms[elements] = shape, _form(shape, module)
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
        for rank, dtype in self.result:
            if rank is None:
                found.append(written[at : at + 1].view(dtype)[0])
                at += 1
                continue
            address = numbers[at]
            dims = tuple(numbers[at + 1 : at + 1 + rank])
            at += 1 + rank
            size = math.prod(dims) * dtype.itemsize
            holder = next((each for each in holders if each.covers(address)), None) if size else None
            if holder is None:
                holder = self.place.allocate(size, self.returned) if size else self.empty()
                if size:
                    self.place.backend.copy(holder.address, address, size)
                address = holder.address
            elif holder.note == self.made:
                holder.note = self.returned
            found.append(DeviceArray(self.place, dims, dtype, None, holder, address, self.returned))
        return found
