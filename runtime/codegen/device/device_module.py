"""Compiles a kernel in SPMD form to PTX for GPUs, or to machine code for this computer."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from runtime.codegen.cache import kernel_cache
from runtime.codegen.device import approximations, c_functions, launch_code
from runtime.codegen.device.kernel import Given, Kernel, NotOnDevice
from runtime.codegen.device.library import library
from runtime.codegen.device.pipeline import run_passes
from runtime.codegen.kernel.source import KernelSource
from runtime.codegen.math import vector_intrinsics
from runtime.dataclass import dataclass
from runtime.gpu import emulator
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.accesses import accesses
from runtime.kernel_ir.analysis.effects import Effects
from runtime.kernel_ir.analysis.uses import called
from runtime.kernel_ir.types import Array, Scalar, Type, Unsupported, signature
from runtime.llvm import device_calls, target
from runtime.llvm.device_layout import MOST_BLOCKS
from runtime.llvm.function_builder import defined
from runtime.llvm.program import Program


@dataclass(frozen=True)
class DeviceModule:
    """A kernel for many threads (`runtime.gpu.interface.Module`).

    name            shown to people
    text, modules   LLVM IR, and the modules to link with it
    result          the type of its result
    parameters      the types of its arguments
    changed         the positions of the arguments that it writes to
    given           the arrays that the host allocates for it, after its other arguments
    makes_arrays    whether it allocates further arrays itself
    shared          how many loops threads share
    serial          reason -> how many loops one thread runs for that reason
    waiting         how many loops have a barrier of all threads in each trip
    synchronizes    whether threads wait for each other
    takes_wide_blocks   whether one large block for each multiprocessor is better than several of `BLOCK` threads: if
                    threads wait for each other often, and a large block has work for all of them
    """

    name: str
    text: str
    modules: tuple[str, ...]
    result: Type | None
    parameters: tuple[Type, ...]
    changed: tuple[int, ...]
    given: Given
    makes_arrays: bool
    shared: int
    serial: dict[str, int]
    waiting: int
    synchronizes: bool
    takes_wide_blocks: bool
    symbol: str = "kernel"
    most_blocks: int = MOST_BLOCKS

    @property
    def kinds(self) -> list[str]:
        found = ["ptr"]
        for type_ in self.parameters:
            if isinstance(type_, Array):
                found += ["ptr", *["i64"] * type_.rank]
            else:
                assert isinstance(type_, Scalar)
                found.append(kind_of(type_))
        return [*found, "ptr"]

    def ptx(self, processor: str = "sm_90") -> str:
        """The PTX of the kernel, for a compute capability (`sm_70` to `sm_90`)."""
        name = self._file(processor)
        found = kernel_cache.read_kept(name)
        if found is None:
            found = target.ptx(self.text, self.modules, self.symbol, processor).encode()
            kernel_cache.write_kept(name, found)
        return found.decode()

    def kept(self, machine: str) -> bytes | None:
        return kernel_cache.read_kept(self._file(machine))

    def keep(self, machine: str, code: bytes) -> None:
        kernel_cache.write_kept(self._file(machine), code)

    def _file(self, machine: str) -> Path:
        """The cache file for the kernel's code for a machine."""
        parts = [self.text, *self.modules, machine, kernel_cache.platform_key()]
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
        return kernel_cache.code_file(f"d_{digest}")

    def address(self) -> int:
        """The address of its machine code for this computer, which is never freed."""
        code = target.host_code(self.text, self.modules, self.symbol)
        (address,) = target.link(code, [self.symbol], {emulator.RECORD: _record_function()})
        return address

    def launch_code(self) -> int:
        return launch_code.address()


def kind_of(type_: Scalar) -> str:
    """The kind of a number (see `interface.C_TYPES`)."""
    return f"u{type_.memory}" if type_.kind in "uh" else type_.memory


@functools.cache
def _record_function() -> int:
    """The address of a function that returns the calling thread's record."""
    key = f"i64 {emulator.thread_key().value}"
    declared = "declare ptr @pthread_getspecific(i64)"
    text = defined("ptr @record()", lambda f: f.call("ptr", "@pthread_getspecific", key))
    (address,) = target.link(target.machine_code(f"{declared}\n{text}", ()), ["record"], {})
    return address


def spmd_of(source: KernelSource) -> Kernel:
    """A kernel in SPMD form, before the passes over that form. Raises NotOnDevice."""
    kernel = Kernel.of(source)
    run_passes(kernel, last="SPMD form")
    return kernel


def device_module(source: KernelSource, record: str | None = None) -> DeviceModule:
    """A kernel for a GPU; for this computer, where `record` gives a thread's record (`runtime/llvm/device_calls.py`).

    Raises NotOnDevice.
    """
    kernel = Kernel.of(source)
    run_passes(kernel)
    functions, given = kernel.functions, kernel.given
    signature_text = signature_with(source.signature, given)
    symbol = "kernel"
    items = [item for function in functions for item in ir.walk(function.body)]
    names = called(items)
    makes_arrays = "np.empty" in names or any(isinstance(item, ir.Alloc) for item in items)
    synchronizes = makes_arrays or not names.isdisjoint(_SYNCHRONIZING)
    program = Program(functions, library(), builtins=device_calls.BUILTINS, spmd=True)
    try:
        text = program.text(
            "kernel",
            signature_text,
            symbol,
            device_calls.Entry(record, synchronizes or not names.isdisjoint(_SHARING)),
        )
    except Unsupported as reason:
        raise NotOnDevice(str(reason)) from reason
    parameters = signature(signature_text)
    result = program.function("kernel", parameters).result
    modules, needs = [*program.modules.values()], program.needs
    for each in c_functions.modules(needs):
        modules.append(each.text)
        needs |= each.needs
    modules.append(approximations.definitions(needs, record is None))
    modules.append(vector_intrinsics.definitions(needs, portable=True))
    effects = Effects({function.name: function for function in functions})
    stored = accesses(ir.walk(functions[-1].body), effects.of).arrays_written
    changed = tuple(number for number, name in enumerate(functions[-1].parameters) if name in stored)
    return DeviceModule(
        source.name, text, tuple(each for each in modules if each), result, tuple(parameters), changed, given,
        makes_arrays, shared=kernel.shared, serial=kernel.serial, waiting=kernel.waiting, synchronizes=synchronizes,
        takes_wide_blocks=kernel.waiting > 0 and names.isdisjoint(_OF_MANY_BLOCKS),
    )  # fmt: skip


_SYNCHRONIZING = {"gpu.barrier", "gpu.block_barrier", "gpu.interrupted"}
# Tiles of products have work for `BLOCK` threads. Trips that may fail are shared by pieces, which take long.
_OF_MANY_BLOCKS = {"gpu.store_shared", "gpu.record_failure"}
_SHARING = {"gpu.shuffle", "gpu.warp_barrier"}  # of rows by the lanes of warps


def signature_with(signature_text: str, given: Given) -> str:
    """A kernel's signature with the arrays that the host allocates."""
    types = [f"{'boolean' if each.kind == 'b' else each.name}[::1]" for each in given.elements]
    if not types:
        return signature_text
    inner = signature_text[1:-1].rstrip(",")
    return f"({', '.join([*([inner] if inner else []), *types])}{',' if len(types) == 1 and not inner else ''})"
