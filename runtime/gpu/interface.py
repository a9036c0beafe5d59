"""What is asked of a GPU: memory, which is named by addresses, and kernels that many threads run."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

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


class OutOfMemory(MemoryError):
    """A GPU has no memory left, or no heap of that size can be had. size: bytes."""

    def __init__(self, size: int) -> None:
        super().__init__(f"{size} bytes of a device's memory can't be had")
        self.size = size


class Module(Protocol):
    """A compiled kernel. kinds: of the arguments of a launch (see `C_TYPES`). most_blocks: of a launch."""

    @property
    def symbol(self) -> str: ...

    @property
    def most_blocks(self) -> int: ...

    @property
    def kinds(self) -> Sequence[str]: ...

    def ptx(self, processor: str) -> str:
        """In the language of NVIDIA's GPUs, for a compute capability such as `sm_90`."""

    def address(self) -> int:
        """Where its machine code for this computer is."""


class Backend(Protocol):
    """A GPU.

    name                   what its maker calls it
    record                 what gives an emulated thread its place (`runtime.llvm.device.Entry`); None: the hardware
    dlpack_type, ordinal   the type of its memory in DLPack, and its number there
    compute_capability     of NVIDIA's
    """

    name: str
    record: str | None
    dlpack_type: int
    ordinal: int
    compute_capability: tuple[int, int]
    launches: int

    def load(self, module: Module) -> Any:
        """The kernel of a module, ready to be launched."""

    def allocate(self, size: int) -> int:
        """Memory of `size` bytes, at a multiple of 256. Raises OutOfMemory."""

    def free(self, address: int) -> None: ...

    def memory_info(self) -> tuple[int, int]:
        """Free and all memory, in bytes."""

    def write(self, address: int, content: np.ndarray) -> None:
        """Copies a contiguous array to the GPU."""

    def read(self, address: int, target: np.ndarray) -> None:
        """Copies to a contiguous array, when all that was launched is done."""

    def copy(self, target: int, source: int, size: int) -> None:
        """Copies within the GPU's memory."""

    def launch(self, kernel: Any, arguments: Sequence[tuple[str, int | float]], shape: Shape) -> None:
        """Runs a kernel. arguments: the kind of each (see `C_TYPES`) and its value."""

    def synchronize(self) -> None:
        """Waits for all that was launched."""

    def shape_for(self, kernel: Any, elements: int) -> Shape:
        """How many threads a kernel is to have whose largest array has so many elements."""
