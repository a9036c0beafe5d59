"""A GPU made of this computer's threads and memory: kernels in SPMD form, compiled for the processor.

Barriers are real, and threads begin in a random order, so that what a GPU would do wrong for want of a barrier goes
wrong here too, now and then. It is for tests, and for trying out programs: a launch takes a millisecond or more.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import system
from runtime.gpu.interface import C_TYPES, Backend, HostMemory, Limits, Module, OutOfMemory, Product, Shape

_ALIGNMENT = 256
_SHAPE = Shape(2, 2)
_order = random.Random()  # the program's own random numbers are not for us


# What the generated function that gives a thread its record is called.
RECORD = "record_of_this_thread"


class Emulator:
    """An emulated GPU (`interface.Backend`) with so many bytes of memory."""

    name = "Emulated GPU"
    record = RECORD
    dlpack_type = 1  # memory of the processor
    ordinal = 0
    compute_capability = (9, 0)

    def __init__(self, shape: Shape = _SHAPE, memory: int = 1 << 30) -> None:
        """shape: of launches that don't have one of their own."""
        self.shape = shape
        self.launches = 0
        self.entered = contextlib.nullcontext()
        self._total = memory
        self._memory: dict[int, np.ndarray] = {}  # address -> what is allocated

    def load(self, module: Module) -> Any:
        return ctypes.CFUNCTYPE(None, *(C_TYPES[kind] for kind in module.kinds))(module.address())

    def allocate(self, size: int) -> int:
        if size > self.memory_info()[0]:
            raise OutOfMemory(size)
        memory = np.empty(size + _ALIGNMENT, np.uint8)
        address = -(-memory.ctypes.data // _ALIGNMENT) * _ALIGNMENT
        self._memory[address] = memory
        return address

    def free(self, address: int) -> None:
        del self._memory[address]

    def memory_info(self) -> tuple[int, int]:
        return self._total - sum(each.nbytes for each in list(self._memory.values())), self._total

    def write(self, address: int, content: np.ndarray) -> None:
        ctypes.memmove(address, content.ctypes.data, content.nbytes)

    def host_memory(self, size: int) -> HostMemory:
        content = np.zeros(size, np.uint8)
        return HostMemory(content.ctypes.data, content)

    def write_from(self, address: int, source: HostMemory, size: int) -> None:
        ctypes.memmove(address, source.address, size)

    def read(self, address: int, target: np.ndarray) -> None:
        ctypes.memmove(target.ctypes.data, address, target.nbytes)

    def copy(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)

    def copy_from(self, origin: Backend, target: int, source: int, size: int) -> bool:
        if not isinstance(origin, Emulator):
            return False
        self.copy(target, source, size)
        return True

    def synchronize(self) -> None:
        """Launches end before `launch` does."""

    def multiplies(self) -> bool:
        return True

    def prepare_product(self, product: Product) -> Callable[[int, int, int], None]:
        return functools.partial(self._multiply, product)

    def _multiply(self, product: Product, a: int, b: int, out: int) -> None:
        rows, inner, columns = product.rows, product.inner, product.columns
        size = product.bits // 8

        def matrix(place: int, high: int, wide: int, flipped: bool = False) -> np.ndarray:
            memory = (ctypes.c_uint8 * (high * wide * size)).from_address(place)
            found = np.ctypeslib.as_array(memory).view(f"f{size}")
            return found.reshape(wide, high).T if flipped else found.reshape(high, wide)

        for number in range(product.count):
            x, y, z = (place + number * apart * size for place, apart in zip((a, b, out), product.apart))
            left = matrix(x, rows, inner, product.flip_a)
            np.matmul(left, matrix(y, inner, columns, product.flip_b), out=matrix(z, rows, columns))

    def limits(self, kernel: Any) -> Limits:
        return Limits(self.shape.blocks, self.shape.blocks, self.shape.block_size, fixed=self.shape)

    def finish(self) -> None:
        """Launches end before `launch` does."""

    def launch(self, kernel: Any, arguments: Sequence[int | float], shape: Shape, meet: bool, stop: int | None) -> None:
        self.launches += 1
        set_record = _set_record()
        records = []
        for number in range(shape.threads):
            block, place = divmod(number, shape.block_size)
            fields = (arguments[0], number, shape.threads, place, shape.block_size, block, shape.blocks)
            records.append(np.array(fields, np.int64))

        def run(record: np.ndarray) -> None:
            set_record(record.ctypes.data)
            kernel(*arguments)

        threads = [threading.Thread(target=run, args=(record,)) for record in records]
        _order.shuffle(threads)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException:  # Ctrl-C
            if stop is not None:
                ctypes.c_int64.from_address(stop).value = 1
            for thread in threads:
                if thread.ident is None:
                    thread.start()  # the others wait for it
            for thread in threads:
                thread.join()
            raise

    def prepare(
        self, kernel: Any, arguments: Sequence[int | float], changing: Sequence[int], shape: Shape, meet: bool
    ) -> Callable[..., None]:
        def launch(*given: int | float) -> None:
            values = [*arguments]
            for at, value in zip(changing, given, strict=True):
                values[at] = value
            self.launch(kernel, values, shape, meet, None)

        return launch


@functools.cache
def thread_key() -> ctypes.c_ulong:
    """The key under which each thread has its record, by pthreads."""
    key = ctypes.c_ulong()  # as on macOS; Linux writes the half of it, and reads no more
    if system.c_library().pthread_key_create(ctypes.byref(key), None):
        raise OSError("no thread-specific key is left")
    return key


@functools.cache
def _set_record() -> Callable[[int], None]:
    """A function that sets the calling thread's record, given the record's address."""
    key, set_specific = thread_key(), system.c_library().pthread_setspecific
    return lambda address: set_specific(key, ctypes.c_void_p(address))
