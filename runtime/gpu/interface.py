"""What is asked of a GPU: memory, which is named by addresses, and kernels that many threads run."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from runtime.dataclass import dataclass

# What a launch is given, by its kind: addresses, and numbers in LLVM's types, with 'u' before those of unsigned ones.
C_TYPES: dict[str, Any] = {
    "ptr": ctypes.c_uint64, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32, "i64": ctypes.c_int64,
    "ui8": ctypes.c_uint8, "ui16": ctypes.c_uint16, "ui32": ctypes.c_uint32, "ui64": ctypes.c_uint64,
    "float": ctypes.c_float, "double": ctypes.c_double,
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """How many threads a launch has."""

    blocks: int = 1
    block_size: int = 1

    @property
    def threads(self) -> int:
        return self.blocks * self.block_size


BLOCK = 256  # threads of a block, where a launch has several


@dataclass(frozen=True)
class Limits:
    """The launch limits of a kernel on a GPU.

    blocks       the number of blocks of `BLOCK` threads that run at a time
    cooperative  the number of such blocks that may wait for each other
    block_size   the most threads that a block may have
    wide_blocks  the number of blocks of `block_size` threads that may wait for each other
    fixed        the shape of every launch, on an emulated GPU
    """

    blocks: int
    cooperative: int
    block_size: int
    wide_blocks: int = 1
    fixed: Shape | None = None


@dataclass(frozen=True)
class HostMemory:
    """Memory of this computer's that a GPU reads and writes, for as long as the process lives. address: for kernels;
    content: its bytes."""

    address: int
    content: np.ndarray


@dataclass(frozen=True)
class Product:
    """Products of matrices of floats that are stored row after row: out = a @ b, `count` times.

    bits             of a float
    flip_a, flip_b   whether an operand is stored transposed
    apart            how many elements the next ones of a, b and out are apart; 0: the same one again
    """

    bits: int
    rows: int
    inner: int
    columns: int
    flip_a: bool
    flip_b: bool
    count: int = 1
    apart: tuple[int, int, int] = (0, 0, 0)


class LaunchCall(ctypes.Structure):
    """What machine code is to do (`Module.launch_code`): launch a kernel, where one is named, and ask for the end of
    all work at most `asks` times. Whoever has to wait longer asks again, so that Python's handlers of signals get their
    turn.

    push, pop, launch, launch_together, query   cuCtxPushCurrent, cuCtxPopCurrent, cuLaunchKernel,
                                                cuLaunchCooperativeKernel, cuStreamQuery
    together                                    whether the blocks wait for each other
    arguments                                   an array of pointers to them
    """

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("push", "pop", "launch", "launch_together", "query")),
        ("context", ctypes.c_void_p), ("kernel", ctypes.c_void_p), ("arguments", ctypes.c_void_p),
        ("blocks", ctypes.c_int64), ("block_size", ctypes.c_int64), ("together", ctypes.c_int64),
        ("asks", ctypes.c_int64),
    )  # fmt: skip


# What it returns: 0, or one of these, times 2 ** 32, and what the driver returned.
PUSH_FAILED, LAUNCH_FAILED, QUERY_FAILED = 1, 2, 3
NOT_READY = 600  # what the driver says of work that goes on


class OutOfMemory(MemoryError):
    """A GPU has no memory left, or no heap of that size can be had. size: bytes."""

    def __init__(self, size: int) -> None:
        super().__init__(f"{size} bytes of device memory can't be allocated")
        self.size = size


class Module(Protocol):
    """A compiled kernel. symbol: its name in code; name: for people. kinds: of the arguments of a launch (see
    `C_TYPES`). most_blocks: of a launch."""

    @property
    def symbol(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def most_blocks(self) -> int: ...

    @property
    def kinds(self) -> Sequence[str]: ...

    def ptx(self, processor: str) -> str:
        """In the language of NVIDIA's GPUs, for a compute capability such as `sm_90`."""

    def kept(self, machine: str) -> bytes | None:
        """What `keep` kept for this machine: a driver's version and a GPU's kind."""

    def keep(self, machine: str, code: bytes) -> None:
        """Keeps machine code on disk."""

    def address(self) -> int:
        """Where its machine code for this computer is."""

    def launch_code(self) -> int:
        """Where the function is that launches kernels: it takes the address of a `LaunchCall`."""


class Backend(Protocol):
    """A GPU.

    name                   what its maker calls it
    record                 what gives an emulated thread its place (`llvm.device_calls.Entry`); None: the hardware
    dlpack_type, ordinal   the type of its memory in DLPack, and its number there
    compute_capability     of NVIDIA's
    entered                a block around several calls, which makes them cheaper
    """

    name: str
    record: str | None
    dlpack_type: int
    ordinal: int
    compute_capability: tuple[int, int]
    launches: int
    entered: contextlib.AbstractContextManager[None]

    def load(self, module: Module) -> Any:
        """The kernel of a module, ready to be launched."""

    def allocate(self, size: int) -> int:
        """Memory of `size` bytes, at a multiple of 256. Raises OutOfMemory."""

    def free(self, address: int) -> None:
        """Frees memory at once, although launched work may still use it: whatever uses it next runs after that work."""

    def memory_info(self) -> tuple[int, int]:
        """Free and all memory, in bytes."""

    def host_memory(self, size: int) -> HostMemory:
        """Memory of the host's that kernels can use. Its first use may wait for launches."""

    def write(self, address: int, content: np.ndarray) -> None:
        """Copies a contiguous array to the GPU."""

    def write_from(self, address: int, source: HostMemory, size: int) -> None:
        """Copies `size` bytes from pinned host memory to the GPU before the next launch begins. The call doesn't wait,
        so the source must not change until the copy is done."""

    def read(self, address: int, target: np.ndarray) -> None:
        """Copies to a contiguous array, when all that was launched is done."""

    def copy(self, target: int, source: int, size: int) -> None:
        """Copies within the GPU's memory."""

    def copy_from(self, origin: Backend, target: int, source: int, size: int) -> bool:
        """Copies from the memory of another GPU, or of the same; False if that has to go by way of the host."""

    def launch(self, kernel: Any, arguments: Sequence[int | float], shape: Shape, meet: bool, stop: int) -> None:
        """Runs a kernel to its end, when all that was launched before is done. arguments: values of the module's kinds.
        meet: whether its blocks wait for each other. stop: the address of a 64-bit number that becomes 1 if an
        exception is raised before its end (Ctrl-C), so that the kernel ends. Under a lock of the caller's."""

    def prepare(
        self, kernel: Any, arguments: Sequence[int | float], changing: Sequence[int], shape: Shape, meet: bool
    ) -> Callable[..., None]:
        """A function for launches that aren't waited for, under a lock of the caller's. It takes the arguments at the
        positions `changing`; the others are as given here."""

    def multiplies(self) -> bool:
        """Whether there is a library that multiplies matrices."""

    def prepare_product(self, product: Product) -> Callable[[int, int, int], None]:
        """A function that lets it do so, when all that was launched before is done; the end isn't waited for. It takes
        the addresses of the first a, b and out, and needs the caller's lock."""

    def synchronize(self) -> None:
        """Waits for all that was launched."""

    def finish(self) -> None:
        """Waits for all launched work, without raising: called before memory that a kernel may still use is freed."""

    def limits(self, kernel: Any) -> Limits:
        """How many threads a launch of a kernel may have."""
