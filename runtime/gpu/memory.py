"""What lies in a GPU's memory, and what was copied there and back.

A `DeviceArray` is an array on a `LogicalGPU`; it may also be on the host, where it came from or has been read. Copies
are made when something asks for the other side, once, and are counted.
"""

from __future__ import annotations

import collections
import gc
import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import errors
from runtime.dataclass import dataclass
from runtime.gpu.interface import Backend, HostMemory, OutOfMemory
from runtime.profiling import span

_HOLDERS_SHOWN = 5
HOST_MEMORY = 1 << 16  # bytes of a piece of the host's memory at least


def in_words(size: float) -> str:
    """A number of bytes as people read it."""
    for unit in ("B", "KiB", "MiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


@dataclass
class Traffic:
    """Copies over the bus. to, back: how many to the GPU (from the host or another GPU) and from it to the host, in how
    many bytes."""

    to: int = 0
    to_bytes: int = 0
    back: int = 0
    back_bytes: int = 0

    def counts(self) -> tuple[int, int, int, int]:
        return self.to, self.to_bytes, self.back, self.back_bytes

    def add(self, now: tuple[int, int, int, int], before: tuple[int, int, int, int]) -> None:
        """Adds what has been counted elsewhere since."""
        self.to, self.to_bytes, self.back, self.back_bytes = (
            own + new - old for own, new, old in zip(self.counts(), now, before)
        )

    def __str__(self) -> str:
        return (
            f"{self.to} {_copies(self.to)} to the GPU ({in_words(self.to_bytes)}), {self.back} from it "
            f"({in_words(self.back_bytes)})"
        )


def _copies(count: int) -> str:
    return "copy" if count == 1 else "copies"


class LogicalGPU:
    """A GPU, or the part of its memory that the configuration makes a device of its own.

    name     in TensorFlow's long form
    short    `GPU:0`
    limit    bytes that arrays may take; None: what there is
    current, peak   bytes that arrays take, and took at most
    """

    def __init__(self, short: str, backend: Backend, limit: int | None = None) -> None:
        self.short, self.backend, self.limit = short, backend, limit
        self.name = f"/job:localhost/replica:0/task:0/device:{short}"
        self._current = self.peak = 0
        # Bytes that were freed since. An array may go at any moment, in any thread, in the middle of anything.
        self.freed: collections.deque[int] = collections.deque()
        self.traffic = Traffic()
        # One launch or copy at a time: launches share the scratch memory.
        self.lock = threading.RLock()
        self.held: dict[int, tuple[int, str]] = {}  # bytes and notes of what is allocated, by addresses
        self._scratch: dict[str, Buffer] = {}
        self._host: dict[str, HostMemory] = {}
        # For numbers that launches write: what was used and is free again, by their count, and what is yet to be used.
        self._spare: dict[int, list[HostMemory]] = {}
        self._piece: HostMemory | None = None
        # Where launches have their environment and their results, if both are as a launch expects them, under `lock`.
        self.ready: tuple[int, HostMemory] | None = None

    @property
    def current(self) -> int:
        with self.lock:
            self._count_freed()
            return self._current

    def _count_freed(self) -> None:
        freed = self.freed
        while freed:
            self._current -= freed.popleft()

    def allocate(self, size: int, note: str) -> Buffer:
        """Allocates `size` bytes on the device. note: the purpose, for the error's text. Raises ResourceExhaustedError
        if there is too little memory, even after unused arrays are freed."""
        with self.lock:
            try:
                return self._allocated(size, note)
            except OutOfMemory:
                self.ready = None
                self._scratch.clear()
                gc.collect()  # circles of objects may hold arrays
                try:
                    return self._allocated(size, note)
                except OutOfMemory:
                    raise self.out_of_memory(size, note) from None

    def _allocated(self, size: int, note: str) -> Buffer:
        if self.freed:
            self._count_freed()
        current = self._current + size
        if self.limit is not None and current > self.limit:
            raise OutOfMemory(size)
        buffer = Buffer(self, self.backend.allocate(size or 1), size, note)
        self._current = current
        if current > self.peak:
            self.peak = current
        return buffer

    def scratch(self, kind: str, size: int) -> Buffer:
        """Memory for the length of a launch, under `lock`: the same for the next one."""
        found = self._scratch.get(kind)
        if found is None or found.size < size:
            self._scratch.pop(kind, None)
            del found
            found = self._scratch[kind] = self.allocate(size, f"scratch memory of kernels ({kind})")
            self.ready = None
        return found

    def host_memory(self, kind: str, size: int) -> HostMemory:
        """Memory of the host's for the length of a launch, under `lock`. size: in bytes. Its content are 64-bit
        integers."""
        found = self._host.get(kind)
        if found is None or found.content.nbytes < size:
            made = self.backend.host_memory(max(size, HOST_MEMORY))
            found = self._host[kind] = HostMemory(made.address, made.content.view(np.int64))
            self.ready = None
        return found

    def numbers(self, count: int) -> Numbers:
        """Memory of the host's for so many numbers that a launch writes, under `lock`."""
        spare = self._spare.setdefault(count, [])
        if not spare:
            size = 8 * count
            if self._piece is None or self._piece.content.nbytes < size:
                self._piece = self.backend.host_memory(max(size, HOST_MEMORY))
            address, content = self._piece.address, self._piece.content
            spare.append(HostMemory(address, content[:size].view(np.int64)))
            self._piece = HostMemory(address + size, content[size:])
        return Numbers(self, spare.pop(), spare)

    def out_of_memory(self, size: int, note: str) -> errors.ResourceExhaustedError:
        """The error for so many bytes that can't be had."""
        free, total = self.backend.memory_info()
        if self.limit is not None:
            free, total = min(free, self.limit - self.current), min(total, self.limit)
        held: dict[tuple[int, str], int] = {}
        for size_and_note in list(self.held.values()):
            held[size_and_note] = held.get(size_and_note, 0) + 1
        largest = sorted(held.items(), key=lambda item: -item[0][0] * item[1])[:_HOLDERS_SHOWN]
        lines = [
            f"\n  {in_words(size * count)} {f'({count} of {in_words(size)}) ' if count > 1 else ''}{what}"
            for (size, what), count in largest
        ]
        return errors.ResourceExhaustedError(
            f"Out of memory on {self.short}: {in_words(size)} for {note}, but {in_words(free)} of {in_words(total)} "
            f"are free. The largest holders:{''.join(lines) or ' none'}\nDrop tensors that are no longer needed, or "
            "make batches smaller."
        )

    def scalar(self, value: Any) -> DeviceArray:
        """A number: kernels are given numbers by value."""
        return DeviceArray(self, (), value.dtype, value)

    def __repr__(self) -> str:
        return f"<{self.short}: {self.backend.name}>"

    def __reduce__(self) -> tuple:
        raise TypeError("a GPU can't be pickled; its tensors are pickled as CPU tensors")


class Buffer:
    """Memory of a GPU, free when nobody refers to it any more. note: what it is for."""

    __slots__ = ("place", "address", "size", "__weakref__")

    def __init__(self, place: LogicalGPU, address: int, size: int, note: str) -> None:
        self.place, self.address, self.size = place, address, size
        place.held[address] = size, note

    def __del__(self) -> None:
        place = self.place
        place.freed.append(self.size)
        del place.held[self.address]
        place.backend.free(self.address)

    @property
    def note(self) -> str:
        return self.place.held[self.address][1]

    @note.setter
    def note(self, note: str) -> None:
        self.place.held[self.address] = self.size, note

    def covers(self, address: int) -> bool:
        return self.address <= address < self.address + max(self.size, 1)


class Numbers:
    """What a launch writes to the host's memory, whenever it is done. Dropped, the memory is another launch's, which
    writes to it after this one."""

    __slots__ = ("_place", "_memory", "_spare", "address")

    def __init__(self, place: LogicalGPU, memory: HostMemory, spare: list[HostMemory]) -> None:
        self._place, self._memory, self._spare, self.address = place, memory, spare, memory.address

    def __del__(self) -> None:
        self._spare.append(self._memory)

    def read(self, at: int, dtype: np.dtype) -> Any:
        """The number at a position, once all launches so far are done."""
        self._place.backend.synchronize()
        return self._memory.content[at : at + 1].view(dtype)[0]


def on_gpu(array: Any, place: LogicalGPU) -> DeviceArray:
    """An array of the host's or of a GPU's on a GPU."""
    if array.__class__ is DeviceArray:
        return array.moved_to(place)
    return DeviceArray(place, array.shape, array.dtype, array)


class _Flags:
    c_contiguous = True


class DeviceArray:
    """An array in the memory of a GPU, which nobody writes to. Numbers (rank 0) are kept on the host, too; `later` says
    where a launch writes one."""

    __slots__ = ("place", "shape", "dtype", "_host", "_buffer", "_address", "note", "_later", "__weakref__")
    flags = _Flags
    # NumPy's functions take it by `__array__`.
    __array_priority__ = 100

    def __init__(
        self,
        place: LogicalGPU,
        shape: tuple[int, ...],
        dtype: np.dtype,
        host: Any = None,
        buffer: Buffer | None = None,
        address: int = 0,
        note: str = "a tensor",
        later: tuple[Numbers, int] | None = None,
    ) -> None:
        self._later = later
        self.place, self.shape, self.dtype = place, shape, dtype
        self._host, self._buffer, self._address, self.note = host, buffer, address, note

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def is_there(self) -> bool:
        """Whether the array is in the GPU's memory now."""
        return self._buffer is not None

    def on_host(self) -> Any:
        """The value as a NumPy array (a NumPy scalar for rank 0), copied from the GPU once."""
        if self._host is None:
            later = self._later
            if later is not None:
                self._host = later[0].read(later[1], self.dtype)
                self._later = None
            elif self._host is None:  # another thread may have read a number meanwhile
                self._host = self._read()
        return self._host

    def _read(self) -> Any:
        target = np.empty(self.shape, self.dtype)
        if self.nbytes:
            with self.place.lock, span("copy", f"copy from {self.place.short}", bytes=self.nbytes):
                self.place.backend.read(self._address, target)
                self.place.traffic.back += 1
                self.place.traffic.back_bytes += self.nbytes
        target.flags.writeable = False
        return target if self.shape else target[()]

    def address(self) -> int:
        """Where it is in the GPU's memory, copied there if it isn't yet. Raises ResourceExhaustedError."""
        if self._buffer is None:
            with self.place.lock:
                if self._buffer is None:
                    content = np.ascontiguousarray(self.on_host(), self.dtype)
                    buffer = self.place.allocate(self.nbytes, self.note)
                    if self.nbytes:
                        with span("copy", f"copy to {self.place.short}", bytes=self.nbytes):
                            self.place.backend.write(buffer.address, content)
                        self.place.traffic.to += 1
                        self.place.traffic.to_bytes += self.nbytes
                    self._address = buffer.address
                    self._buffer = buffer
        return self._address

    def buffer(self) -> Buffer:
        """The memory in which it lies."""
        self.address()
        assert self._buffer is not None
        return self._buffer

    def describe(self, note: str) -> None:
        """Says what it is for, if memory runs out."""
        self.note = note
        buffer = self._buffer
        if buffer is not None:
            self.place.held[buffer.address] = buffer.size, note

    def reshaped(self, shape: Sequence[int]) -> DeviceArray:
        """A view of the same memory in another shape, which has as many elements."""
        host = self._host if self._buffer is not None else self.on_host()
        host = None if host is None else np.reshape(host, shape)
        if host is not None and not shape:
            host = host[()]
        return DeviceArray(self.place, tuple(shape), self.dtype, host, self._buffer, self._address, self.note)

    def copied(self) -> DeviceArray:
        """A copy in newly allocated memory. Waits until the copy is done."""
        address = self.address()
        buffer = self.place.allocate(self.nbytes, self.note)
        if self.nbytes:
            self.place.backend.copy(buffer.address, address, self.nbytes)
            self.place.backend.synchronize()
        return DeviceArray(self.place, self.shape, self.dtype, self._host, buffer, buffer.address, self.note)

    def moved_to(self, place: LogicalGPU, note: str | None = None) -> DeviceArray:
        """The array in another GPU's memory, or itself. Raises ResourceExhaustedError.

        What isn't on the host already is copied from GPU to GPU where there is a way.
        """
        if place is self.place:
            return self
        note = note or self.note
        if self._host is None and self._buffer is not None and self.nbytes:
            buffer = place.allocate(self.nbytes, note)
            with place.lock, span("copy", f"copy from {self.place.short} to {place.short}", bytes=self.nbytes):
                if place.backend.copy_from(self.place.backend, buffer.address, self._address, self.nbytes):
                    place.traffic.to += 1
                    place.traffic.to_bytes += self.nbytes
                    return DeviceArray(place, self.shape, self.dtype, None, buffer, buffer.address, note)
        return DeviceArray(place, self.shape, self.dtype, self.on_host(), note=note)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.on_host(), dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __reduce__(self) -> tuple:
        return np.asarray, (self.on_host(),)

    def __repr__(self) -> str:
        return f"<{self.dtype}{list(self.shape)} on {self.place.short}>"
