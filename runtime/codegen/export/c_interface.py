"""The C function around a kernel: arguments and results as C has them, errors as codes with messages.

    int NAME(const float *x, int64_t x_dim0, float **result, int64_t *result_dims, char *message, size_t message_size)

Arrays are contiguous, in row-major order. An argument is a pointer, and a size for each dimension that the signature
leaves open. A result is allocated by the function; `void NAME_free(void *)` frees it. Error codes are TensorFlow's
(`runtime/errors.py`). The module needs the C library, `pthread` where loops are parallel, and nothing of Python's.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from runtime import errors
from runtime.codegen.kernel.source import ErrorSite, Interruption, KernelSource, Slot
from runtime.codegen.passes.parallelize import ThreadCount
from runtime.dataclass import dataclass
from runtime.kernel_ir.types import SCALARS, Array, Scalar, results
from runtime.llvm import memory
from runtime.llvm.function_builder import FunctionBuilder, defined, definitions
from runtime.llvm.memory import COUNT, HEADER, OBJECT, argument
from runtime.llvm.writer import part_types

_MARK = "\x01"  # on both sides of a detail's number in a message

OUT_OF_MEMORY = "The library can't allocate memory for an array."


@dataclass(frozen=True)
class Parameter:
    """An input of the graph. shape: None for sizes that the caller gives. value: what the library holds, if any.
    weight: its index among the weights, if they are loaded from a file."""

    name: str
    slot: Slot
    shape: tuple[int | None, ...]
    value: np.ndarray | None = None
    weight: int | None = None

    @property
    def is_given(self) -> bool:
        """Whether it is a parameter of the C function."""
        return self.value is None and self.weight is None and self.slot.kind != "token"

    @property
    def memory(self) -> str:
        """The type that LLVM's memory has for its numbers."""
        return _scalar(self.slot).memory

    @property
    def open_axes(self) -> list[int]:
        return [axis for axis, size in enumerate(self.shape) if size is None]


@dataclass(frozen=True)
class Result:
    """An output of the graph, which the caller may decline by a null pointer. weight: the index among the weights that
    it is the new value of, if it is one."""

    name: str
    slot: Slot
    shape: tuple[int | None, ...]
    weight: int | None = None

    @property
    def is_given(self) -> bool:
        """Whether the C function has a parameter for it."""
        return self.weight is None and self.slot.kind != "token"

    @property
    def memory(self) -> str:
        """The type that LLVM's memory has for its numbers."""
        return _scalar(self.slot).memory

    @property
    def gives_sizes(self) -> bool:
        return None in self.shape


def _give(f: FunctionBuilder) -> str:
    """The memory of a result that the caller may free: that of the array, or a copy; null if there is no memory."""
    own, copy = f.label(), f.label()
    f.jump_if(f.is_null("%owner"), copy)
    is_shared = f.binary("icmp ne", f.field("i64", "%owner", COUNT), 1)
    is_foreign = f.negated(f.is_null(f.field("ptr", "%owner", OBJECT)))
    is_inside = f.negated(f.is_same("%data", f.at("%owner", HEADER)))
    f.split(f.any_of(is_shared, is_foreign, is_inside), copy, own)
    f.begin(own)
    f.end("ret ptr %data")
    f.begin(copy)
    new = f.call("ptr", "@allocate", "i64 %bytes", "i64 1")
    with f.unless(f.is_null(new)):
        f.copy(new, "%data", "%bytes")
    f.run("@drop", "ptr %owner")
    return new


def _free_result(f: FunctionBuilder) -> None:
    f.leave_if(f.is_null("%data"), "void")
    f.run("@drop", f"ptr {f.at('%data', -HEADER)}")


class CInterface:
    """Writes the C function of a kernel (see `runtime.llvm.program.Interface`)."""

    MEMORY = memory.SUPPORT
    INTERRUPTED = defined("internal i1 @interrupted() nounwind", lambda f: "false")
    SUPPORT = "\n".join([
        "declare i32 @snprintf(ptr, i64, ptr, ...)",
        definitions({
            "internal ptr @give(ptr %owner, ptr %data, i64 %bytes) noinline nounwind": _give,
            "internal void @free_result(ptr %data) noinline nounwind": _free_result,
        }),
    ])  # fmt: skip

    def __init__(
        self,
        parameters: Sequence[Parameter],
        results: Sequence[Result],
        source: KernelSource,
        threads: str,
        free: str | None,
    ) -> None:
        """threads: the symbol of the number of threads. free: the name of the function that frees results, if it is to
        be defined here."""
        self._parameters, self._results, self._source = parameters, results, source
        self._threads, self._free = threads, free
        self._globals: list[str] = []

    def text(self, symbol: str, callee: Any, parameters: Sequence[Scalar | Array], releases: bool) -> str:
        """The C function `symbol`, which calls the kernel."""
        self._f = f = FunctionBuilder(f"define i32 @{symbol}({', '.join(self._declared())}) nounwind")
        self._begin()
        given = self._arguments(parameters)
        found = self._call(callee, given)
        values: list[tuple[Any, list[str]]] = []
        for item in results(callee.result):
            count = len(part_types(item))
            values.append((item, found[:count]))
            found = found[count:]
        if self._source.errors:
            head, values = values[: 1 + self._source.details], values[1 + self._source.details :]
            arrays = [parts[0] for item, parts in values if isinstance(item, Array)]
            self._failures([parts[0] for _, parts in head], head[0][0], arrays)
        self._store_results(values)
        f.end("ret i32 0")
        self._out_of_memory()
        free = ""
        if self._free:
            free = defined(f"void @{self._free}(ptr %data) nounwind", lambda f: f.run("@free_result", "ptr %data"))
        return "\n".join([*self._globals, f"@{self._threads} = external global i64", f.text(), free])

    def _returned_results(self) -> Iterator[tuple[int, Result]]:
        return ((number, each) for number, each in enumerate(self._results) if each.slot.kind != "token")

    # --- arguments ---------------------------------------------------------------------------------------------------

    def _declared(self) -> list[str]:
        found = ["ptr %weights"] if self._has_weights else []
        for number, each in enumerate(self._parameters):
            if not each.is_given:
                continue
            found.append(f"ptr %x{number}" if each.slot.kind == "array" else f"{_scalar(each.slot).memory} %x{number}")
            found += [f"i64 %x{number}.{axis}" for axis in each.open_axes]
        for number, result in self._returned_results():
            if not result.is_given:
                continue
            found.append(f"ptr %r{number}")
            if result.gives_sizes:
                found.append(f"ptr %s{number}")
        return [*found, "ptr %message", "i64 %room"]

    def _begin(self) -> None:
        """Clears the message, and looks at the sizes."""
        f = self._f
        with f.if_then(f.binary("icmp ne", "%room", 0)):
            f.store("i8", 0, "%message")
        if self._has_weights:
            self._reject_if(f.is_null("%weights"), "weights is a null pointer.")
        for number, each in enumerate(self._parameters):
            if not each.is_given or each.slot.kind != "array":
                continue
            self._reject_if(f.is_null(f"%x{number}"), f"{each.name} is a null pointer.")
            for axis in each.open_axes:
                wrong = f.binary("icmp slt", f"%x{number}.{axis}", 0)
                self._reject_if(wrong, f"{each.name}_dim{axis} is negative.")

    def _reject_if(self, wrong: str, message: str) -> None:
        with self._f.if_then(wrong):
            self._write_message(message, [])
            self._f.end(f"ret i32 {errors.INVALID_ARGUMENT}")

    def _arguments(self, types: Sequence[Scalar | Array]) -> list[str]:
        f = self._f
        given: list[str] = []
        inputs = [each for each in enumerate(self._parameters) if each[1].slot.kind != "token"]
        rest = iter(types)
        for number, each in inputs:
            type_ = next(rest)
            if isinstance(type_, Array):
                if each.value is not None:
                    data = self._constant(each.value)
                    sizes = list(map(str, each.value.shape))
                elif each.weight is not None:
                    data, sizes = self._weight(each.weight), list(map(str, each.shape))
                else:
                    data = f"%x{number}"
                    sizes = [f"%x{number}.{axis}" if n is None else str(n) for axis, n in enumerate(each.shape)]
                given += self._array(data, sizes)
            elif each.value is not None:
                given.append(f"{type_.ir} {literal(each.value, type_)}")
            elif each.weight is not None:
                given.append(f"{type_.ir} {self._number(each.weight, type_)}")
            elif type_.kind == "b":
                given.append(f"i1 {f.binary('icmp ne', f'%x{number}', 0, 'i8')}")
            else:
                given.append(f"{type_.ir} %x{number}")
        for constant, type_ in zip(self._source.constants, rest, strict=True):
            if isinstance(constant, ThreadCount):
                given.append(f"i64 {f.load('i64', f'@{self._threads}')}")
            elif isinstance(constant, np.ndarray):
                given += self._array(self._constant(constant), list(map(str, constant.shape)))
            else:
                assert isinstance(type_, Scalar), constant
                given.append(f"{type_.ir} {int(constant)}")
        return given

    @property
    def _has_weights(self) -> bool:
        return any(each.weight is not None for each in self._parameters)

    def _weight(self, index: int) -> str:
        """The address of a weight: what `weights` points to begins with these addresses."""
        return self._f.field("ptr", "%weights", 8 * index)

    def _number(self, index: int, type_: Scalar) -> str:
        f, data = self._f, self._weight(index)
        if type_.kind == "b":
            return f.binary("icmp ne", f.load("i8", data), 0, "i8")
        return f.load(type_.ir, data)

    def _array(self, data: str, sizes: Sequence[str]) -> list[str]:
        return [f"ptr {argument(self._f)}", f"ptr {data}", *(f"i64 {size}" for size in sizes)]

    def _constant(self, array: np.ndarray) -> str:
        content = np.ascontiguousarray(array).tobytes()
        name = f"@data.{len(self._globals)}"
        text = "".join(f"\\{byte:02X}" for byte in content)
        self._globals.append(f'{name} = private unnamed_addr constant [{len(content)} x i8] c"{text}", align 64')
        return name

    # --- the call ----------------------------------------------------------------------------------------------------

    def _call(self, callee: Any, given: Sequence[str]) -> list[str]:
        f, types = self._f, part_types(callee.result)
        if callee.direct:
            if types:
                return [f.call(types[0], f"@{callee.symbol}", *given)]
            f.run(f"@{callee.symbol}", *given)
            return []
        slots = [f.stack(type_, align=16) for type_ in types]
        status = f.call("i32", f"@{callee.symbol}", *given, *(f"ptr {slot}" for slot in slots))
        f.jump_unless(f.binary("icmp eq", status, 0, "i32"), "memory")
        return [f.load(type_, slot) for type_, slot in zip(types, slots)]

    def _failures(self, numbers: Sequence[str], type_: Scalar, arrays: Sequence[str]) -> None:
        """Leaves with an error's code and message where the kernel's status is one."""
        f = self._f
        status, *details = numbers
        sites = {number: f"site{number}" for number in range(1, len(self._source.errors) + 1)}
        f.switch(type_.ir, status, "fine", sites)
        for label, site in zip(sites.values(), self._source.errors):
            f.begin(label)
            code, message = describe(site)
            self._write_message(message, [(detail, site, index) for index, detail in enumerate(details)])
            for owner in arrays:
                f.run("@drop", f"ptr {owner}")
            f.end(f"ret i32 {code}")
        f.begin("fine")

    def _write_message(self, message: str, details: Sequence[tuple[str, ErrorSite, int]]) -> None:
        """Writes a message. Its details stand between marks."""
        f, values = self._f, []
        pieces = message.split(_MARK)
        text = ""
        for position, piece in enumerate(pieces):
            if position % 2 == 0:
                text += piece.replace("%", "%%")
                continue
            value, site, index = details[int(piece)]
            dtype = site.dtypes[index] if index < len(site.dtypes) else None
            if dtype is not None and dtype.is_floating:
                text += "%.9g" if dtype.name == "float32" else "%.17g"
                values.append(f"double {f.convert('bitcast', 'i64', value, 'double')}")
            else:
                text += "%lld"
                values.append(f"i64 {value}")
        content = text.encode() + b"\0"
        name = f"@text.{len(self._globals)}"
        written = "".join(f"\\{byte:02X}" for byte in content)
        self._globals.append(f'{name} = private unnamed_addr constant [{len(content)} x i8] c"{written}"')
        f.call("i32 (ptr, i64, ptr, ...)", "@snprintf", "ptr %message", "i64 %room", f"ptr {name}", *values)

    # --- results -----------------------------------------------------------------------------------------------------

    def _store_results(self, values: Sequence[tuple[Any, list[str]]]) -> None:
        """Stores the results where the caller wants them, and the new values of weights; no array, and no weight, if
        there is no memory for one of them."""
        f = self._f
        returned = iter(values)
        arrays: list[tuple[int, str, list[str]]] = []
        numbers: list[tuple[int, Scalar, str]] = []  # the new values of weights
        for number, result in self._returned_results():
            index = self._source.passed.get(number)
            if result.slot.kind == "array":
                if index is None:
                    type_, (owner, data, *sizes) = next(returned)
                    size = type_.element.size
                else:
                    owner, data, size = "null", f"%x{index}", _scalar(result.slot).size
                    sizes = [
                        f"%x{index}.{axis}" if n is None else str(n)
                        for axis, n in enumerate(self._parameters[index].shape)
                    ]
                    given, weight = self._parameters[index].value, self._parameters[index].weight
                    if given is not None:
                        data = self._constant(given)
                    elif weight is not None:
                        data = self._weight(weight)
                count = str(size)
                for each in sizes:
                    count = f.binary("mul", count, each)
                given_out = f.call("ptr", "@give", f"ptr {owner}", f"ptr {data}", f"i64 {count}")
                arrays.append((number, given_out, sizes))
                continue
            type_ = _scalar(result.slot)
            if index is None:
                _, (value,) = next(returned)
            elif self._parameters[index].value is not None:
                value = literal(self._parameters[index].value, type_)
            elif (weight := self._parameters[index].weight) is not None:
                value = self._number(weight, type_)
            else:
                value = f"%x{index}" if type_.kind != "b" else f.binary("icmp ne", f"%x{index}", 0, "i8")
            if result.weight is not None:
                numbers.append((result.weight, type_, value))
                continue
            with f.unless(f.is_null(f"%r{number}")):
                self._store(type_, value, f"%r{number}")
        if arrays:
            self._transfer_arrays(arrays)
        # Last: until here the old values may have been read.
        for weight, type_, value in numbers:
            self._store(type_, value, self._weight(weight))

    def _store(self, type_: Scalar, value: str, address: str) -> None:
        f = self._f
        if type_.kind == "b":
            f.store("i8", f.convert("zext", "i1", value, "i8"), address)
        else:
            f.store(type_.ir, value, address)

    def _transfer_arrays(self, arrays: Sequence[tuple[int, str, list[str]]]) -> None:
        """Hands arrays to the caller, and copies the new values of weights to their arrays."""
        f = self._f
        lacking = "false"
        for _, data, _ in arrays:
            lacking = f.any_of(lacking, f.is_null(data))
        with f.if_then(lacking):
            for _, data, _ in arrays:
                f.run("@free_result", f"ptr {data}")
            f.jump("memory")
        for number, data, sizes in arrays:
            weight = self._results[number].weight
            if weight is not None:
                count = str(_scalar(self._results[number].slot).size)
                for each in sizes:
                    count = f.binary("mul", count, each)
                f.copy(self._weight(weight), data, count)
                f.run("@free_result", f"ptr {data}")
                continue
            if self._results[number].gives_sizes:
                with f.unless(f.is_null(f"%s{number}")):
                    for axis, size in enumerate(sizes):
                        f.store("i64", size, f.at(f"%s{number}", 8 * axis))
            f.if_else(
                f.is_null(f"%r{number}"),
                functools.partial(f.run, "@free_result", f"ptr {data}"),
                functools.partial(f.store, "ptr", data, f"%r{number}"),
            )

    def _out_of_memory(self) -> None:
        self._f.begin("memory")
        self._write_message(OUT_OF_MEMORY, [])
        self._f.end(f"ret i32 {errors.RESOURCE_EXHAUSTED}")


def _scalar(slot: Slot) -> Scalar:
    assert slot.dtype is not None
    return SCALARS[slot.dtype.name]


def literal(value: Any, type_: Scalar) -> str:
    """A number as LLVM's text has it: of floats the bits, as a double's."""
    if type_.is_float:
        return f"0x{struct.pack('>d', float(value)).hex().upper()}"
    if type_.kind == "b":
        return "true" if value else "false"
    if type_.kind == "h":
        return str(int(np.asarray(value).astype(type_.name).view(np.uint16)))
    return str(int(value))


def describe(site: ErrorSite) -> tuple[int, str]:
    """The code and the message of a check; numbers of details stand between marks."""
    if isinstance(site, Interruption):  # the check is there, and is always false
        return errors.CANCELLED, "Interrupted."
    message = site.message
    for index in range(3):
        message = message.replace(f"{{{index}}}", f"{_MARK}{index}{_MARK}")
    error = replace(site, message=message).exception(())
    assert error is not None
    code = error.error_code if isinstance(error, errors.OpError) else errors.UNKNOWN
    lines = [str(error.args[0]) if error.args else "", *getattr(error, "__notes__", ())]
    return code, f"{type(error).__name__}: " + "\n".join(line for line in lines if line)
