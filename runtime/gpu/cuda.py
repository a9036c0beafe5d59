"""GPUs of NVIDIA's, by the driver's library (`cuda_driver.py`): no toolkit is needed, and nothing is loaded until a GPU
is asked for."""

from __future__ import annotations

import collections
import ctypes
import functools
import os
import struct
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

import numpy as np

from runtime import errors, system
from runtime.gpu import cublas, cuda_driver
from runtime.gpu.interface import (
    BLOCK,
    LAUNCH_FAILED,
    NOT_READY,
    PUSH_FAILED,
    QUERY_FAILED,
    Backend,
    HostMemory,
    LaunchCall,
    Limits,
    Module,
    OutOfMemory,
    Product,
    Shape,
)
from runtime.profiling import span

# Attributes of devices, of functions, of pools, options of the assembler; flags of memory and of streams.
_MAJOR, _MINOR, _MULTIPROCESSORS, _COOPERATIVE, _HAS_POOLS = 75, 76, 16, 95, 115
_MOST_THREADS = 0
_RELEASE_THRESHOLD = 4  # how many bytes a pool keeps when nothing is in use
_ERROR_LOG, _ERROR_LOG_SIZE, _PTX = 5, 6, 1
_PORTABLE, _MAPPED = 1, 2
_NON_BLOCKING = 1

_OLDEST = (7, 0)  # whose threads of a warp may wait for each other
_NEWEST = 90  # the newest that PTX is made for: newer GPUs take it too
_LOG_BYTES = 1 << 13
_BUSY = 2000  # how often a launch is asked for in turn before its thread sleeps in between
_NAP = 5e-5  # seconds
_SAID = 5  # launches that an error names
_GOES_ON = (QUERY_FAILED << 32) | NOT_READY
# The functions that machine code calls, by the fields of a `LaunchCall`.
_CALLED = {
    "push": "cuCtxPushCurrent_v2", "pop": "cuCtxPopCurrent_v2", "launch": "cuLaunchKernel",
    "launch_together": "cuLaunchCooperativeKernel", "query": "cuStreamQuery",
}  # fmt: skip
_GRAIN = 512  # bytes: sizes of memory are multiples of it
_MOST_KEPT = 1 << 28  # bytes that were freed and are kept for the next array of the same size
# Arguments of a launch as they lie in memory, each in 8 bytes (see `interface.C_TYPES`).
_PACKED = {
    "ptr": "Q", "i8": "b7x", "i16": "h6x", "i32": "i4x", "i64": "q", "ui8": "B7x", "ui16": "H6x", "ui32": "I4x",
    "ui64": "Q", "float": "f4x", "double": "d",
}  # fmt: skip


_process = os.getpid()  # a call of the system, which takes longer than a look at this


def _after_fork() -> None:
    global _process
    _process = os.getpid()


system.at_fork(after_in_child=_after_fork)


def device_count() -> int:
    """How many GPUs this process may use (CUDA_VISIBLE_DEVICES counts)."""
    found = cuda_driver.driver()
    return 0 if found is None else found.devices


def why_none() -> str:
    """Why there is no GPU, for an error's text."""
    found = cuda_driver.driver()
    if found is None:
        return f"no CUDA driver ({system.cuda_drivers()[0]}) was found"
    if found.reason is not None:
        return found.reason
    return "the CUDA driver finds no GPU (CUDA_VISIBLE_DEVICES may hide some)"


class _Call:
    """A launch of a kernel, as machine code reads it (`LaunchCall`). Arguments lie one behind the other, `changing`
    ones first.

    pack      writes the changing arguments
    address   where the machine code finds the launch
    """

    def __init__(self, gpu: Cuda, function: int | None, kinds: Sequence[str], changing: Sequence[int]) -> None:
        self.rest = sorted({*range(len(kinds))}.difference(changing))
        order = [*changing, *self.rest]
        self._values = ctypes.create_string_buffer(8 * len(kinds))
        first = ctypes.addressof(self._values)
        places = {at: first + 8 * number for number, at in enumerate(order)}
        self._pointers = (c_void_p * len(kinds))(*(places[at] for at in range(len(kinds))))
        self.pack = self._packing([kinds[at] for at in changing], 0)
        self.pack_rest = self._packing([kinds[at] for at in self.rest], len(changing))
        self._call = gpu.call(kernel=function, arguments=ctypes.addressof(self._pointers))
        self.address = ctypes.addressof(self._call)
        self._form: tuple[Shape, bool, int] | None = None

    def _packing(self, kinds: Sequence[str], begin: int) -> Callable[..., None]:
        layout = struct.Struct("=" + "".join(_PACKED[kind] for kind in kinds))
        return functools.partial(layout.pack_into, self._values, 8 * begin)

    def take(self, shape: Shape, together: bool, asks: int) -> None:
        """Says how the next launch is to run, under a lock of the caller's."""
        form = shape, together, asks
        if form != self._form:
            call, self._form = self._call, form
            call.blocks, call.block_size, call.together, call.asks = shape.blocks, shape.block_size, together, asks


class _Kernel:
    """A loaded kernel. kinds: of its arguments. call: for launches whose arguments all change."""

    def __init__(
        self, gpu: Cuda, name: str, module: c_void_p, function: c_void_p, limits: Limits, kinds: Sequence[str]
    ) -> None:
        self.gpu, self.name, self.module, self.limits, self.kinds = gpu, name, module, limits, kinds
        self.function = function.value
        self.call = _Call(gpu, self.function, kinds, range(len(kinds)))

    def __del__(self) -> None:
        self.gpu._release(("cuStreamSynchronize", None), ("cuModuleUnload", self.module))


class _Current(threading.local):
    """A block in which a GPU's context is the calling thread's; afterwards another library's is again. Blocks may stand
    in blocks."""

    def __init__(self, gpu: Cuda) -> None:
        self._gpu, self._depth = gpu, 0

    def __enter__(self) -> None:
        gpu = self._gpu
        if self._depth:
            self._depth += 1
            return
        gpu.check_process()
        gpu.driver("cuCtxPushCurrent_v2", gpu.context)
        self._depth = 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._gpu.driver.status("cuCtxPopCurrent_v2", byref(c_void_p()))


class Cuda:
    """A GPU (`interface.Backend`). Memory comes from the driver's pool, which keeps what was freed; nothing is taken
    before it is needed. Of what was freed last, some is kept here: a call of the driver costs more than a small kernel.
    All work is in the default stream, one after the other: memory can be given to the next launch at once, and what a
    launch has left is there for the next one. A launch that nobody waits for goes on behind the call that made it.

    unfinished   the last launches that nobody has waited for yet: (kernel's name, shape)
    """

    record = None
    dlpack_type = 2

    def __init__(self, number: int = 0) -> None:
        """Raises InvalidArgumentError where there is no such GPU, or it is too old."""
        found = cuda_driver.driver()
        count = device_count()
        if found is None or number >= count:
            why = f": {why_none()}" if not count else f"; the machine has {count}"
            raise errors.InvalidArgumentError(f"there is no GPU {number}{why}")
        self.driver = found
        self.ordinal = number
        self.launches = 0
        self.process = found.process
        self.context = c_void_p()
        self._device = c_int()
        self.entered = _Current(self)
        self.driver("cuDeviceGet", byref(self._device), number)
        # The context that other libraries in this process use too.
        self.driver("cuDevicePrimaryCtxRetain", byref(self.context), self._device)
        major, minor, self.multiprocessors = (self._attribute(a) for a in (_MAJOR, _MINOR, _MULTIPROCESSORS))
        self.compute_capability = major, minor
        name = ctypes.create_string_buffer(256)
        self.driver("cuDeviceGetName", name, 256, self._device)
        self.name = name.value.decode(errors="replace")
        if self.compute_capability < _OLDEST:
            raise errors.InvalidArgumentError(
                f"GPU {number} ({self.name}) has compute capability {major}.{minor}; kernels need at least "
                f"{_OLDEST[0]}.{_OLDEST[1]}"
            )
        self.processor = f"sm_{min(10 * major + minor, _NEWEST)}"
        self.version = f"{self.driver.version_text()} sm_{major}{minor}"
        self._cooperative = bool(self._attribute(_COOPERATIVE))
        self._has_pool = bool(self._attribute(_HAS_POOLS))
        if self._has_pool:
            pool, keep = c_void_p(), c_uint64((1 << 64) - 1)
            self.driver("cuDeviceGetDefaultMemPool", byref(pool), self._device)
            self.driver("cuMemPoolSetAttribute", pool, _RELEASE_THRESHOLD, byref(keep))
        self.unfinished: collections.deque[tuple[str, Shape]] = collections.deque(maxlen=_SAID)
        self._native: Callable[[int], int] | None = None
        self._waits = self.call(asks=_BUSY), self.call(asks=1)
        self._waiting, self._asking = map(ctypes.addressof, self._waits)
        self._urgent: tuple[c_void_p, HostMemory] | None = None  # what ends a launch: a stream, and a 1
        self._lock = threading.RLock()  # arrays may be freed while memory is taken
        self._sizes: dict[int, int] = {}  # of what is allocated, by its address
        self._kept: dict[int, list[int]] = collections.defaultdict(list)  # what was freed, by its size
        self._kept_bytes = 0
        self._products: cublas.Handle | None = None
        self._has_library = True  # until it can't be used

    def call(self, **fields: Any) -> LaunchCall:
        """What machine code is to do on this GPU."""
        functions = {field: self.driver.address(name) for field, name in _CALLED.items()}
        return LaunchCall(**functions, context=self.context.value, **fields)

    def check_process(self) -> None:
        """Raises InternalError in a forked child."""
        if _process != self.process:
            raise errors.InternalError(
                "a GPU that a process has used can't be used by its forked children: start them with "
                "multiprocessing.get_context('spawn'), or use the GPU in the children only"
            )

    def _attribute(self, which: int) -> int:
        value = c_int()
        self.driver("cuDeviceGetAttribute", byref(value), which, self._device)
        return value.value

    def _release(self, *calls: tuple[Any, ...]) -> None:
        """Releases a resource of the driver when its object is destroyed. Does nothing if the driver is gone (at the
        end of the process), in a forked child, or if the context is lost."""
        if _process != self.process or self.driver.lost is not None:
            return
        status = self.driver.status("cuCtxPushCurrent_v2", self.context)
        if status in (cuda_driver.DEINITIALIZED, cuda_driver.CONTEXT_IS_DESTROYED):
            return
        if status:
            raise self._failure("cuCtxPushCurrent_v2", status)
        try:
            for name, *arguments in calls:
                status = self.driver.status(name, *arguments)
                if status:
                    raise self._failure(name, status)
        finally:
            self.driver.status("cuCtxPopCurrent_v2", byref(c_void_p()))

    def _failure(self, name: str, status: int) -> errors.InternalError:
        """The error for a call that failed, perhaps for what was launched before."""
        launches = [
            f"kernel '{kernel}', {shape.blocks} blocks of {shape.block_size} threads"
            for kernel, shape in list(self.unfinished)
        ]
        return self.driver.error(name, status, f" (running: {'; '.join(launches)})" if launches else "")

    # --- memory --------------------------------------------------------------------------------------------------

    def memory_info(self) -> tuple[int, int]:
        """Free and all memory, in bytes."""
        free, total = c_size_t(), c_size_t()
        with self.entered:
            self.driver("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value, total.value

    def allocate(self, size: int) -> int:
        size = -(-size // _GRAIN) * _GRAIN
        with self._lock:
            kept = self._kept.get(size)
            if kept:
                self._kept_bytes -= size
                return kept.pop()
            try:
                address = self._allocated(size)
            except OutOfMemory:
                self._give_back()
                address = self._allocated(size)
            self._sizes[address] = size
        return address

    def _give_back(self) -> None:
        """Gives the driver what is kept."""
        kept, self._kept, self._kept_bytes = self._kept, collections.defaultdict(list), 0
        for addresses in kept.values():
            for address in addresses:
                del self._sizes[address]
                self._freed(address)

    def _allocated(self, size: int) -> int:
        address = c_uint64()
        with self.entered:
            if self._has_pool:
                function = "cuMemAllocAsync"
                status = self.driver.status(function, byref(address), size, None)
            else:
                function = "cuMemAlloc_v2"
                status = self.driver.status(function, byref(address), size)
        if status == cuda_driver.OUT_OF_MEMORY:
            raise OutOfMemory(size)
        if status:
            raise self.driver.error(function, status)
        return address.value

    def free(self, address: int) -> None:
        with self._lock:
            size = self._sizes[address]
            if self._kept_bytes + size <= _MOST_KEPT:
                self._kept[size].append(address)
                self._kept_bytes += size
                return
            del self._sizes[address]
        self._freed(address)

    def _freed(self, address: int) -> None:
        if self._has_pool:
            self._release(("cuMemFreeAsync", address, None))
        else:
            self._release(("cuStreamSynchronize", None), ("cuMemFree_v2", address))

    def host_memory(self, size: int) -> HostMemory:
        pointer, address = c_void_p(), c_uint64()
        with self.entered:
            self.driver("cuMemHostAlloc", byref(pointer), size, _PORTABLE | _MAPPED)
            self.driver("cuMemHostGetDevicePointer_v2", byref(address), pointer, 0)
        assert pointer.value is not None
        content = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(pointer.value))
        return HostMemory(address.value, content)

    def write(self, address: int, content: np.ndarray) -> None:
        with self.entered:
            self.driver("cuMemcpyHtoD_v2", address, content.ctypes.data, content.nbytes)

    def write_from(self, address: int, source: HostMemory, size: int) -> None:
        with self.entered:
            self.driver("cuMemcpyHtoDAsync_v2", address, source.content.ctypes.data, size, None)

    def read(self, address: int, target: np.ndarray) -> None:
        self.synchronize()  # which can be interrupted
        with self.entered:
            self.driver("cuMemcpyDtoH_v2", target.ctypes.data, address, target.nbytes)

    def copy(self, target: int, source: int, size: int) -> None:
        with self.entered:
            self.driver("cuMemcpyDtoD_v2", target, source, size)

    def copy_from(self, origin: Backend, target: int, source: int, size: int) -> bool:
        if not isinstance(origin, Cuda):
            return False
        # The driver goes by way of the host where the GPUs don't reach each other, and orders the copy after what
        # either has been asked before.
        with self.entered:
            self.driver("cuMemcpyPeer", target, self.context, source, origin.context, size)
        return True

    def synchronize(self) -> None:
        if self._native is None:  # nothing was launched by us
            with self.entered:
                self.driver("cuStreamSynchronize", None)
            return
        self.check_process()
        self._wait(self._native(self._waiting))

    def finish(self) -> None:
        self._release(("cuStreamSynchronize", None))

    # --- kernels -------------------------------------------------------------------------------------------------

    def limits(self, kernel: _Kernel) -> Limits:
        return kernel.limits

    def load(self, module: Module) -> _Kernel:
        """Raises InternalError for PTX that the driver refuses, with what its assembler says."""
        loaded, function, blocks, most = c_void_p(), c_void_p(), c_int(), c_int()
        if self._native is None:
            self._native = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(module.launch_code())
        with self.entered:
            kept = module.kept(self.version)
            status = self.driver.status("cuModuleLoadData", byref(loaded), kept) if kept is not None else -1
            if status:  # it isn't there, or is another driver's
                with span("compile", f"{module.name} as PTX"):
                    ptx = module.ptx(self.processor)
                with span("compile", f"{module.name} as machine code"):
                    code = self._assembled(ptx, module.symbol)
                with span("compile", f"load {module.name}"):
                    self.driver("cuModuleLoadData", byref(loaded), code)
                module.keep(self.version, code)
            self.driver("cuModuleGetFunction", byref(function), loaded, module.symbol.encode())
            self.driver("cuOccupancyMaxActiveBlocksPerMultiprocessor", byref(blocks), function, BLOCK, 0)
            self.driver("cuFuncGetAttribute", byref(most), _MOST_THREADS, function)
        count = min(max(blocks.value, 1) * self.multiprocessors, module.most_blocks)
        wide = min(self.multiprocessors, module.most_blocks)  # a multiprocessor runs one block of any size
        limits = Limits(count, *((count, most.value, wide) if self._cooperative else (1, most.value, 1)))
        return _Kernel(self, module.name, loaded, function, limits, module.kinds)

    def _assembled(self, ptx: str, symbol: str) -> bytes:
        """The machine code of PTX."""
        text = ptx.encode() + b"\0"
        log = ctypes.create_string_buffer(_LOG_BYTES)
        # Values of options lie in an array of pointers: a buffer's address, and a number in place of one.
        options = (c_int * 2)(_ERROR_LOG, _ERROR_LOG_SIZE)
        values = (c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
        state, code, size = c_void_p(), c_void_p(), c_size_t()
        self.driver("cuLinkCreate_v2", 2, options, values, byref(state))
        try:
            steps: list[tuple[str, Sequence[Any]]] = [
                ("cuLinkAddData_v2", (state, _PTX, text, len(text), symbol.encode(), 0, None, None)),
                ("cuLinkComplete", (state, byref(code), byref(size))),
            ]
            for name, arguments in steps:
                status = self.driver.status(name, *arguments)
                if status:
                    said = log.value.decode(errors="replace").strip()
                    head = ptx[: ptx.find(".visible")].strip().replace("\n", "; ")
                    raise self.driver.error(name, status, f". Its assembler says: {said or 'nothing'} (PTX: {head})")
            return ctypes.string_at(code.value or 0, size.value)
        finally:
            self.driver.status("cuLinkDestroy", state)

    def launch(self, kernel: _Kernel, arguments: Sequence[int | float], shape: Shape, meet: bool, stop: int) -> None:
        self.check_process()
        if self._urgent is None:
            self._make_urgent()
        self.launches += 1
        call = kernel.call
        call.pack(*arguments)
        # Blocks that wait for each other have to run at the same time.
        call.take(shape, meet and shape.blocks > 1, _BUSY)
        self.unfinished.append((kernel.name, shape))
        assert self._native is not None
        try:
            self._wait(self._native(call.address), meet and shape.blocks > 1)
        except errors.InternalError:
            raise
        except BaseException:  # Ctrl-C
            self._end(stop)
            raise

    def prepare(
        self, kernel: _Kernel, arguments: Sequence[int | float], changing: Sequence[int], shape: Shape, meet: bool
    ) -> Callable[..., None]:
        call, together = _Call(self, kernel.function, kernel.kinds, changing), meet and shape.blocks > 1
        call.pack_rest(*(arguments[at] for at in call.rest))
        call.take(shape, together, 0)
        assert self._native is not None
        native, pack, address, unfinished = self._native, call.pack, call.address, self.unfinished
        process, launched = self.process, (kernel.name, shape)

        def launch(*given: int | float) -> None:
            if _process != process:
                self.check_process()
            self.launches += 1
            pack(*given)
            unfinished.append(launched)
            code = native(address)
            if code:
                raise self._failed(code, together)

        # Kernel and call live as long as the function.
        launch.holds = kernel, call  # type: ignore[attr-defined]
        return launch

    def multiplies(self) -> bool:
        with self._lock, self.entered:
            if self._products is None and self._has_library and cublas.library() is not None:
                try:
                    self._products = cublas.Handle(cublas.library())
                except errors.InternalError as reason:
                    warnings.warn(
                        f"kernels multiply matrices instead of cuBLAS: {reason}", RuntimeWarning, stacklevel=2
                    )
                    self._has_library = False
        return self._products is not None

    def prepare_product(self, product: Product) -> Callable[[int, int, int], None]:
        assert self._products is not None
        product_of = self._products.prepare(product)

        def multiply(a: int, b: int, out: int) -> None:
            with self._lock, self.entered:
                self.launches += 1
                product_of(a, b, out)

        return multiply

    def _make_urgent(self) -> None:
        """What ends a launch that runs. It can't be made while one does: taking memory of the host's waits for it."""
        with self._lock:
            if self._urgent is None:
                stream, one = c_void_p(), self.host_memory(8)
                one.content.view(np.int64)[0] = 1
                with self.entered:
                    self.driver("cuStreamCreate", byref(stream), _NON_BLOCKING)
                self._urgent = stream, one

    def _end(self, stop: int) -> None:
        """Ends the launch that runs. What clears the number before it may come later than the first 1."""
        assert self._urgent is not None
        stream, one = self._urgent
        with self.entered:
            while True:
                self.driver("cuMemcpyHtoDAsync_v2", stop, one.content.ctypes.data, 8, stream)
                if self.driver.status("cuStreamQuery", None) != NOT_READY:
                    return
                time.sleep(_NAP)

    def _wait(self, code: int, together: bool = False) -> None:
        """Waits until all is done that was launched, as far as `code` says that it isn't. Python's handlers of signals
        run meanwhile."""
        while code:
            if code != _GOES_ON:
                raise self._failed(code, together)
            time.sleep(_NAP)
            assert self._native is not None
            code = self._native(self._asking)
        self.unfinished.clear()

    def _failed(self, code: int, together: bool) -> errors.InternalError:
        """The error for what machine code has returned."""
        step, status = divmod(code, 1 << 32)
        launched = "cuLaunchCooperativeKernel" if together else "cuLaunchKernel"
        names = {PUSH_FAILED: "cuCtxPushCurrent_v2", LAUNCH_FAILED: launched, QUERY_FAILED: "cuStreamQuery"}
        return self._failure(names[step], status)
