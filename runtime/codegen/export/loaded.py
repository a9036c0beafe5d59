"""C functions in this process, and around them those that NumPy and SciPy call.

A C function (see c_interface.py) returns a status. What stands around it raises the error in Python: it calls the
function again, for the message.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from runtime.codegen.export.c_library import CFunction, compile_object
from runtime.dataclass import dataclass
from runtime.llvm import target
from runtime.llvm.function_builder import FunctionBuilder

_ROOM = 1024  # bytes of a message


def load(name: str, function: CFunction) -> tuple[int, int]:
    """The addresses of the function and of `NAME_free`. The code is never unloaded. Raises UnimplementedError as
    `compile_object` does."""
    address, free = target.link(compile_object(name, [function]), (function.name, f"{name}_free"), {})
    return address, free


@dataclass(frozen=True)
class Call:
    """A call of a C function with one number as its result, which has this type in LLVM's memory."""

    address: int
    result: str

    def emit(self, f: FunctionBuilder, given: Sequence[str], then: str) -> str:
        """The address of the result; if the function fails, raises and leaves by the terminator `then`."""
        place = f.stack(self.result)
        called = _at(self.address)
        status = f.call("i32", called, *given, f"ptr {place}", "ptr null", "i64 0")
        with f.if_then(f.binary("icmp ne", status, 0, "i32")):
            message = f.stack("i8", count=_ROOM)
            f.call("i32", called, *given, f"ptr {place}", f"ptr {message}", f"i64 {_ROOM}")
            state = f.call("i32", _python("PyGILState_Ensure"))
            f.run(_python("PyErr_SetString"), f"ptr {_at(id(RuntimeError))}", f"ptr {message}")
            f.run(_python("PyGILState_Release"), f"i32 {state}")
            f.end(then)
        return place


def ufunc_loop(call: Call, arguments: Sequence[str]) -> int:
    """The address of NumPy's `void loop(char **args, npy_intp *dimensions, npy_intp *steps, void *data)`.

    arguments: the types of the numbers in LLVM's memory.
    """

    def write(f: FunctionBuilder) -> None:
        places = range(len(arguments) + 1)
        starts = [f.field("ptr", "%args", 8 * place) for place in places]
        steps = [f.field("i64", "%steps", 8 * place) for place in places]
        with f.loop(0, f.load("i64", "%dimensions")) as trip:
            at = [f.at(start, f.binary("mul", step, trip.index)) for start, step in zip(starts, steps)]
            given = [f"{type_} {f.load(type_, each, align=1)}" for type_, each in zip(arguments, at)]
            result = call.emit(f, given, "ret void")
            f.store(call.result, f.load(call.result, result), at[-1], align=1)
        f.end("ret void")

    return _defined("void @callback(ptr %args, ptr %dimensions, ptr %steps, ptr %data)", write)


def integrand(call: Call, count: int) -> int:
    """The address of `double integrand(int n, double *x)`, which `scipy.integrate.quad` calls; the C function takes
    that many numbers."""

    def write(f: FunctionBuilder) -> None:
        given = [f"double {f.field('double', '%x', 8 * place)}" for place in range(count)]
        f.end(f"ret double {f.load('double', call.emit(f, given, 'ret double 0x7FF8000000000000'))}")

    return _defined("double @callback(i32 %n, ptr %x)", write)


def window_function(call: Call) -> int:
    """The address of `int filter(double *window, npy_intp size, double *result, void *data)`, which
    `scipy.ndimage.generic_filter` calls; the C function takes an array."""

    def write(f: FunctionBuilder) -> None:
        result = call.emit(f, ["ptr %window", "i64 %size"], "ret i32 0")
        f.store("double", f.load("double", result), "%result")
        f.end("ret i32 1")

    return _defined("i32 @callback(ptr %window, i64 %size, ptr %result, ptr %data)", write)


@dataclass(frozen=True)
class Buffer:
    """A parameter or result of a C function that XLA calls: a number, or an array of that many bytes. type: of its
    numbers, in LLVM's memory."""

    type: str
    bytes: int | None


def xla_handler(address: int, free: int, parameters: Sequence[Buffer], results: Sequence[Buffer]) -> int:
    """The address of an `XLA_FFI_Handler` that calls the C function on XLA's buffers, whose sizes are known.

    free: the address of the function that frees arrays. The layouts are those of version 0 of `xla/ffi/api/c_api.h`.
    """

    def write(f: FunctionBuilder) -> None:
        extension = f.field("ptr", "%frame", _FRAME["extension"])
        with f.unless(f.is_null(extension)):  # XLA asks for the version of the interface
            metadata = f.field("ptr", extension, _METADATA)
            api = f.field("ptr", "%frame", _FRAME["api"])
            f.store("i32", 0, f.at(metadata, _MAJOR))
            f.store("i32", f.field("i32", api, _API["minor"]), f.at(metadata, _MAJOR + 4))
            f.end("ret ptr null")
        given, taken = (_data(f, f.field("ptr", "%frame", _FRAME[name]), len(buffers))
                        for name, buffers in (("arguments", parameters), ("results", results)))  # fmt: skip
        values = []
        for each, data in zip(parameters, given):
            if each.bytes is None:
                values.append(f"{each.type} {f.load(each.type, data)}")
            else:  # an empty array may have no address
                values.append(f"ptr {f.select(f.is_null(data), '%frame', data, 'ptr')}")
        places = [data if each.bytes is None else f.stack("ptr") for each, data in zip(results, taken)]
        values += [f"ptr {place}" for place in places]
        message = f.stack("i8", count=_ROOM)
        status = f.call("i32", _at(address), *values, f"ptr {message}", f"i64 {_ROOM}")
        with f.if_then(f.binary("icmp ne", status, 0, "i32")):
            made = f.stack("i64", count=4)
            f.store("i64", 32, made)
            f.store("ptr", "null", f.at(made, 8))
            f.store("ptr", message, f.at(made, 16))
            f.store("i32", status, f.at(made, 24))  # XLA's codes are TensorFlow's, as ours
            create = f.field("ptr", f.field("ptr", "%frame", _FRAME["api"]), _API["error"])
            f.end(f"ret ptr {f.call('ptr', create, f'ptr {made}')}")
        for each, data, place in zip(results, taken, places):
            if each.bytes is not None:
                array = f.load("ptr", place)
                if each.bytes:
                    f.copy(data, array, str(each.bytes))
                f.run(_at(free), f"ptr {array}")
        f.end("ret ptr null")

    return _defined("ptr @callback(ptr %frame)", write)


# Offsets in bytes: in a call frame, an API, the metadata that an extension points to, a buffer.
_FRAME = {"extension": 8, "api": 16, "arguments": 72, "results": 112}
_API = {"minor": 36, "error": 48}
_METADATA, _MAJOR, _DATA = 24, 24, 24


def _data(f: FunctionBuilder, buffers: str, count: int) -> list[str]:
    return [f.field("ptr", f.field("ptr", buffers, 8 * place), _DATA) for place in range(count)]


def _defined(head: str, write: Callable[[FunctionBuilder], None]) -> int:
    f = FunctionBuilder(f"define {head} nounwind")
    write(f)
    (address,) = target.link(target.machine_code(f.text(), ()), ["callback"], {})
    return address


def _at(address: int) -> str:
    return f"inttoptr (i64 {address} to ptr)"


def _python(name: str) -> str:
    found = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    assert found is not None
    return _at(found)
