"""The function that calls a kernel on a GPU. Its Python code is generated, since a loop over descriptors of arguments
and results takes longer than many kernels. The code for a kernel that takes an array and a number and returns a given
array:

    def call(a0, a1, shape=None):
        if a0.__class__ is not DeviceArray or a0.place is not place:
            a0 = placed(a0)
        if a1.__class__ is not int:
            a1 = number(a1)
        with lock:
            s2, shapes = plan(a0, a1)
            b2 = allocate(s2 * 4, returned) if s2 else empty()
            d0_0, d0_1 = a0.shape
            values = (a0.address(), d0_0, d0_1, a1, b2.address, s2)
            most = max(1, d0_0 * d0_1, s2)
            return waited(values, most, shape, shapes, (a0, a1), (b2,))

If the kernel needn't be waited for, a call remembers what follows from the shapes of the arguments and the numbers that
the plan looks at. Later calls find there how much memory to allocate, and a launch in which only addresses and other
numbers are missing:

    def call(a0, a1, shape=None):
        …
        with lock:
            found = known.get(a0.shape)
            if found is None:
                found = prepare(a0.shape, (a0, a1))
            ready = place.ready
            if not found or ready is None or shape or profiling.recording:
                return general(a0, a1, shape)
            launch, launches.last, (s2,), shapes = found
            b2 = allocate(s2, returned) if s2 else empty()
            launch(ready[0], a0.address(), a1, b2.address, ready[1].address)
        return DeviceArray(place, shapes[0], t0, None, b2, b2.address, returned)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import profiling
from runtime.codegen.device.kernel import UNKNOWN, ZERO
from runtime.codegen.device.launch import Launches
from runtime.dtypes import NARROW
from runtime.gpu.memory import DeviceArray
from runtime.kernel_ir.types import Array

_KNOWN = 200  # the most launches of a kernel that are remembered


def entry_of(launches: Launches) -> Callable[..., Any]:
    """The function that calls a kernel: it takes the arguments, and `shape`, and returns the results."""
    return _Entry(launches).function()


class _Entry:
    def __init__(self, launches: Launches) -> None:
        module, place = launches.module, launches.place
        self.launches, self.given = launches, module.given
        self.types = module.parameters[: len(module.parameters) - len(self.given.elements)]
        self.names = [f"a{number}" for number in range(len(self.types))]
        made = range(len(self.types), len(module.parameters))
        self.sizes, self.buffers = [f"s{number}" for number in made], [f"b{number}" for number in made]
        self.notes = ["returned" if number in (self.given.returned or ()) else "made" for number in made]
        self.space: dict[str, Any] = {
            "DeviceArray": DeviceArray, "place": place, "placed": launches.placed, "number": _number,
            "lock": place.lock, "plan": self.given.plan, "allocate": place.allocate, "empty": launches.empty,
            "profiling": profiling, "waited": launches.waited, "launches": launches, "returned": launches.returned,
            "made": launches.made,
        }  # fmt: skip

    def function(self) -> Callable[..., Any]:
        general = self._compiled(self._general(), {**self.space})
        if not self.launches.is_asynchronous:
            return general
        known: dict[Any, Any] = {}
        prepare = functools.partial(_prepare, self.launches, self.types, known)
        self.space.update({"general": general, "known": known, "prepare": prepare})
        return self._compiled(self._asynchronous(), self.space)

    def _compiled(self, lines: Sequence[str], space: dict[str, Any]) -> Callable[..., Any]:
        head = f"def call({', '.join([*self.names, 'shape=None'])}):"
        text = "\n    ".join([head, *self._checks(), "with lock:", *lines])
        exec(compile(text, f"{__file__}: call of {self.launches.name}", "exec"), space)
        found: Callable[..., Any] = space.pop("call")  # a reference cycle would keep the GPU's code
        return found

    def _checks(self) -> list[str]:
        found: list[str] = []
        for name, type_ in zip(self.names, self.types):
            if isinstance(type_, Array):
                found += [f"if {name}.__class__ is not DeviceArray or {name}.place is not place:"]
                found += [f"    {name} = placed({name})"]
            else:
                found += [f"if {name}.__class__ is not int:", f"    {name} = number({name})"]
        return found

    def _general(self) -> list[str]:
        """The code that runs the kernel and waits."""
        found = [f"    {_displayed(self.sizes) if self.sizes else '_'}, shapes = plan({', '.join(self.names)})"]
        values: list[str] = []
        elements: list[str] = []
        for number, (name, type_) in enumerate(zip(self.names, self.types)):
            if isinstance(type_, Array):
                dims = [f"d{number}_{axis}" for axis in range(type_.rank)]
                found.append(f"    {_displayed(dims)} = {name}.shape")
                values += [f"{name}.address()", *dims]
                elements.append(" * ".join(dims))
            else:
                values.append(name)
        for size, buffer, note, element in zip(self.sizes, self.buffers, self.notes, self.given.elements):
            found.append(f"    {buffer} = allocate({size} * {element.size}, {note}) if {size} else empty()")
            values += [f"{buffer}.address", size]
            elements.append(size)
        most = f"max(1, {', '.join(elements)})" if elements else "1"
        found += [f"    values = {_displayed(values)}", f"    most = {most}"]
        call = f"waited(values, most, shape, shapes, {_displayed(self.names)}, {_displayed(self.buffers)})"
        return [*found, f"    return {call}"]

    def _asynchronous(self) -> list[str]:
        """The code that launches the kernel, leaves it running and makes the objects of its results."""
        looked_at = [
            f"{name}.shape" if isinstance(type_, Array) else name
            for number, (name, type_) in enumerate(zip(self.names, self.types))
            if isinstance(type_, Array) or number in self.given.numbers
        ]
        key = looked_at[0] if len(looked_at) == 1 else _displayed(looked_at)
        values = [
            f"{name}.address()" if isinstance(type_, Array) else name for name, type_ in zip(self.names, self.types)
        ]
        values += [f"{buffer}.address" for buffer in self.buffers]
        found = [f"    found = known.get({key})", "    if found is None:"]
        found += [f"        found = prepare({key}, {_displayed(self.names)})", "    ready = place.ready"]
        found += ["    if not found or ready is None or shape or profiling.recording:"]
        found += [f"        return general({', '.join([*self.names, 'shape'])})"]
        sizes = _displayed(self.sizes) if self.sizes else "_"
        found += [f"    launch, launches.last, {sizes}, shapes = found"]
        for size, buffer, note in zip(self.sizes, self.buffers, self.notes):
            found.append(f"    {buffer} = allocate({size}, {note}) if {size} else empty()")
        results_at = "ready[1].address"
        if UNKNOWN in (self.given.returned or ()):
            results_at = "numbers.address"
            self.space["new_numbers"] = functools.partial(self.launches.place.numbers, self.launches.slots)
            found.append("    numbers = new_numbers()")
        found.append(f"    launch({', '.join(['ready[0]', *values, results_at])})")
        return [*found, f"return {self._results()}"]

    def _results(self) -> str:
        returned, count = self.given.returned, len(self.types)
        assert returned is not None
        found: list[str] = []
        slot = 1
        for number, at in enumerate(returned):
            rank, self.space[f"t{number}"] = self.launches.result[number]
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
        return found[0] if len(found) == 1 else _displayed(found)


def _prepare(
    launches: Launches, types: Sequence[Any], known: dict[Any, Any], key: Any, arguments: Sequence[Any]
) -> Any:
    """What follows from the shapes and numbers of a key: a launch, its form, the bytes of the given arrays, and the
    shapes of the results; False if these aren't known in advance."""
    given = launches.module.given
    sizes, shapes = given.plan(*arguments)
    if len(known) >= _KNOWN:
        known.clear()
    if shapes is None:
        known[key] = False
        return False
    values: list[int | float] = [0]  # the environment
    changing, most = [0], 1
    for argument, type_ in zip(arguments, types):
        changing.append(len(values))
        values.append(0)
        if isinstance(type_, Array):
            values += argument.shape
            most = max(most, argument.size)
    for size in sizes:
        changing.append(len(values))
        values += (0, size)
        most = max(most, size)
    changing.append(len(values))
    values.append(0)
    form = launches.form_of(most)
    launch = launches.place.backend.prepare(launches.kernel, values, changing, form[0], launches.module.synchronizes)
    bytes_ = [size * element.size for size, element in zip(sizes, given.elements)]
    found = known[key] = launch, form, bytes_, shapes
    return found


def _displayed(items: Sequence[str]) -> str:
    """The text of a tuple display."""
    return f"({', '.join(items)}{',' * (len(items) == 1)})"


def _number(argument: Any) -> int | float:
    """A number as it is passed to a kernel, by value; a 16-bit float as its bits."""
    if argument.__class__ is DeviceArray:
        argument = argument.on_host()
    array = np.asarray(argument)
    found: int | float = (array.view(np.uint16) if array.dtype in NARROW else array).item()
    return found
