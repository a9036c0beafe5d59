"""GPUs of NVIDIA's, by the driver's library: no toolkit is needed, and nothing is imported until a GPU is asked for."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runtime import errors
from runtime.gpu.interface import C_TYPES, Module, OutOfMemory, Shape

_LIBRARIES = ("libcuda.so.1", "libcuda.so")
_OUT_OF_MEMORY, _DEINITIALIZED = 2, 4
_NO_DEVICE = 100
_MAJOR, _MINOR, _MULTIPROCESSORS, _HAS_POOLS = 75, 76, 16, 115  # attributes of devices
_RELEASE_THRESHOLD = 4  # of pools: how many bytes they keep when nothing is in use
_BLOCK = 256  # threads
_ONE_BLOCK = 1024  # threads of the only block of a launch
_FEW = 1 << 14  # elements that one block goes over: a barrier of several takes a microsecond or more


@functools.cache
def driver() -> Any:
    """The driver's library, initialised; None where there is none, or it finds no GPU."""
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        return library if library.cuInit(0) == 0 else None
    return None


def device_count() -> int:
    """How many GPUs this process may use (CUDA_VISIBLE_DEVICES counts)."""
    library = driver()
    if library is None:
        return 0
    count = ctypes.c_int()
    status = library.cuDeviceGetCount(ctypes.byref(count))
    if status == _NO_DEVICE:
        return 0
    _checked(library, status, "cuDeviceGetCount")
    return count.value


def _checked(library: Any, status: int, call: str) -> None:
    """Raises InternalError for a status that is an error."""
    if status:
        text = ctypes.c_char_p()
        library.cuGetErrorString(status, ctypes.byref(text))
        said = (text.value or b"an unknown error").decode(errors="replace")
        raise errors.InternalError(f"the CUDA driver's {call} failed: {said} (status {status})")


@dataclass(frozen=True)
class _Kernel:
    """A loaded kernel. blocks: how many of `_BLOCK` threads the GPU runs at a time; block_size: the most threads of
    one."""

    function: ctypes.c_void_p
    module: ctypes.c_void_p
    blocks: int
    block_size: int


class Cuda:
    """A GPU (`interface.Backend`). Memory comes from the driver's pool, which keeps what was freed; nothing is taken
    before it is needed. All work is in one stream."""

    record = None
    dlpack_type = 2

    def __init__(self, number: int = 0) -> None:
        """Raises InvalidArgumentError where there is no such GPU."""
        self._library = driver()
        self.ordinal = number
        self.launches = 0
        count = device_count()
        if self._library is None or number >= count:
            raise errors.InvalidArgumentError(f"there is no GPU {number}: the CUDA driver finds {count}")
        self._process = os.getpid()
        self._device, self._context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(self._device), number)
        # The context that other libraries in this process use too.
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)
        major, minor, self.multiprocessors = (self._attribute(a) for a in (_MAJOR, _MINOR, _MULTIPROCESSORS))
        self.compute_capability = major, minor
        self.processor = f"sm_{major}{minor}"
        self._has_pool = bool(self._attribute(_HAS_POOLS))
        if self._has_pool:
            pool, keep = ctypes.c_void_p(), ctypes.c_uint64(~0 & (1 << 64) - 1)
            self._call("cuDeviceGetDefaultMemPool", ctypes.byref(pool), self._device)
            self._call("cuMemPoolSetAttribute", pool, _RELEASE_THRESHOLD, ctypes.byref(keep))
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, 256, self._device)
        self.name = name.value.decode(errors="replace")

    def _attribute(self, which: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), which, self._device)
        return value.value

    def _call(self, function: str, *arguments: Any) -> None:
        _checked(self._library, getattr(self._library, function)(*arguments), function)

    def _enter(self) -> None:
        """Makes this GPU's context the calling thread's. Raises InternalError in a child of the process."""
        if os.getpid() != self._process:
            raise errors.InternalError(
                "a GPU that a process has used can't be used by its forked children: start them by "
                "multiprocessing.get_context('spawn'), or use the GPU in the children only"
            )
        self._call("cuCtxSetCurrent", self._context)

    def memory_info(self) -> tuple[int, int]:
        """Free and all memory, in bytes."""
        self._enter()
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def load(self, module: Module) -> _Kernel:
        self._enter()
        loaded, function, blocks, most = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
        text = module.ptx(self.processor).encode() + b"\0"
        self._call("cuModuleLoadData", ctypes.byref(loaded), text)
        self._call("cuModuleGetFunction", ctypes.byref(function), loaded, module.symbol.encode())
        size = ctypes.c_size_t(0)
        self._call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(blocks), function, _BLOCK, size)
        self._call("cuFuncGetAttribute", ctypes.byref(most), 0, function)  # the most threads of a block
        count = min(max(blocks.value, 1) * self.multiprocessors, module.most_blocks)
        return _Kernel(function, loaded, count, min(most.value, _ONE_BLOCK))

    def allocate(self, size: int) -> int:
        self._enter()
        address = ctypes.c_uint64()
        if self._has_pool:
            status = self._library.cuMemAllocAsync(ctypes.byref(address), ctypes.c_size_t(size), None)
        else:
            status = self._library.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
        if status == _OUT_OF_MEMORY:
            raise OutOfMemory(size)
        _checked(self._library, status, "cuMemAlloc")
        return address.value

    def free(self, address: int) -> None:
        # At the end of the process the driver may be gone before the last array, and a child has none of its own.
        if os.getpid() != self._process or self._library.cuCtxSetCurrent(self._context) == _DEINITIALIZED:
            return
        if self._has_pool:
            self._call("cuMemFreeAsync", ctypes.c_uint64(address), None)
        else:
            self._call("cuMemFree_v2", ctypes.c_uint64(address))

    def write(self, address: int, content: np.ndarray) -> None:
        self._enter()
        given = ctypes.c_uint64(address), ctypes.c_void_p(content.ctypes.data), ctypes.c_size_t(content.nbytes)
        self._call("cuMemcpyHtoD_v2", *given)

    def read(self, address: int, target: np.ndarray) -> None:
        self._enter()
        given = ctypes.c_void_p(target.ctypes.data), ctypes.c_uint64(address), ctypes.c_size_t(target.nbytes)
        self._call("cuMemcpyDtoH_v2", *given)

    def copy(self, target: int, source: int, size: int) -> None:
        self._enter()
        given = ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(size)
        self._call("cuMemcpyDtoD_v2", *given)

    def synchronize(self) -> None:
        self._enter()
        self._call("cuCtxSynchronize")

    def shape_for(self, kernel: _Kernel, elements: int) -> Shape:
        if elements <= _FEW:
            return Shape(1, max(32, min(kernel.block_size, -(-elements // 32) * 32)))
        return Shape(min(kernel.blocks, -(-elements // _BLOCK)), _BLOCK)

    def launch(self, kernel: _Kernel, arguments: Sequence[tuple[str, int | float]], shape: Shape) -> None:
        self._enter()
        self.launches += 1
        values = [C_TYPES[kind](value) for kind, value in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        sizes = (shape.blocks, 1, 1, shape.block_size, 1, 1, 0)
        if shape.blocks == 1:
            self._call("cuLaunchKernel", kernel.function, *sizes, None, pointers, None)
        else:  # blocks that meet have to run at the same time
            self._call("cuLaunchCooperativeKernel", kernel.function, *sizes, None, pointers)
