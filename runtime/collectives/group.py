"""Workers that compute together. What they all call at once, in the same order, is a collective operation.

A sum is taken in the order of the ranks, whatever moves the bytes and whichever worker comes first: the same bits for
the same number of workers. Each worker sums up one n-th of the elements and hands the result to the others:

    all_to_all    a worker sends the k-th part of its array to worker k        (n - 1) / n of the bytes
    sum           in the order of the ranks
    all_gather    each worker's part to all                                    (n - 1) / n of the bytes

A ring sends as many bytes, and no all-reduce can do with fewer. Short arrays are sent to all in one step instead, and
each worker sums them up itself, to the same bits. Arrays of one dtype travel together, in packs of a bounded size.

Each operation begins with an exchange of what it is, so that workers that have come to different ones learn of it,
rather than waiting forever or adding up what doesn't belong together. An all-reduce of several packs is an operation
for each, one after the other. So workers may start them together or one by one, now or in the background: what they
exchange is the same.
"""

from __future__ import annotations

import contextlib
import threading
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from runtime.collectives.background import Background, Pending
from runtime.collectives.cost_model import BACKGROUND, SHARED_MEMORY, SHORT
from runtime.dataclass import dataclass
from runtime.errors import InvalidArgumentError, UnavailableError
from runtime.profiling import span


@dataclass(frozen=True)
class Operation:
    """A collective operation, as the workers tell each other: what belongs together is equal but for `place`.

    kind      "all_reduce", ...
    detail    what must agree besides the arrays: "SUM", "axis 0"
    arrays    dtype and shape of each array, or what of them must agree
    place     the user's line
    """

    kind: str
    detail: str
    arrays: tuple[str, ...]
    place: str = ""

    def __str__(self) -> str:
        shown = ", ".join(self.arrays[:3]) + (f" and {len(self.arrays) - 3} more" if len(self.arrays) > 3 else "")
        return f"{self.kind}({self.detail}) of {shown or 'nothing'}" + (f" at {self.place}" if self.place else "")

    @property
    def digest(self) -> int:
        """Equal for what belongs together; others differ, but for one in 2^62."""
        text = repr((self.kind, self.detail, self.arrays)).encode()
        return zlib.crc32(text) << 30 | zlib.adler32(text) & (1 << 30) - 1


class Group:
    """Workers, of which this is the one with a rank. Subclasses move bytes: `_join`, `_exchange` and `_copy`.

    rank    the worker's number, from 0; size: how many there are
    sent    how many bytes this worker has sent to others in operations on arrays; what they tell each other about these
            isn't counted, and a broadcast counts as if its root sent the bytes once
    calls   how many operations this worker has begun
    network what messages and bytes cost
    overlaps
            whether operations can run in the background
    """

    rank: int
    size: int
    network = SHARED_MEMORY

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self.sent = 0
        self.calls = 0
        self.overlaps = size > 1
        self._lock = threading.RLock()
        self._background = Background()
        self._failed: Exception | None = None

    # --- what moves bytes ----------------------------------------------------------------------------------------

    def _join(self, part: np.ndarray, counts: Sequence[int], doing: Operation) -> np.ndarray:
        """The `part`s (vectors of bytes) of all workers one after the other. counts: how long they are."""
        raise NotImplementedError

    def _exchange(self, vector: np.ndarray, counts: Sequence[int], doing: Operation) -> np.ndarray:
        """Of vectors of bytes that consist of a part for each worker, the parts for this one, as rows."""
        raise NotImplementedError

    def _copy(self, vector: np.ndarray, root: int, doing: Operation) -> None:
        """Overwrites a vector of bytes with that of one worker."""
        raise NotImplementedError

    # --- operations ----------------------------------------------------------------------------------------------

    def all_reduce(
        self, arrays: Sequence[np.ndarray], mean: bool = False, pack: int | None = None, place: str = ""
    ) -> list[np.ndarray]:
        """The sums, or means, of the workers' arrays. pack: how many bytes travel together at most.

        Floats of up to 16 bits are added up in 32. Means of integers are rounded towards zero.
        """
        arrays = [np.asarray(a) for a in arrays]
        if self.size == 1:
            return arrays
        results: list[Any] = [None] * len(arrays)
        with self._turn():
            for together in self.packs(arrays, pack):
                reduced = self._all_reduce_pack([arrays[i] for i in together], mean, pack, place)
                for i, array in zip(together, reduced):
                    results[i] = array
        return results

    def start_all_reduce(
        self, arrays: Sequence[np.ndarray], mean: bool = False, pack: int | None = None, place: str = ""
    ) -> Pending:
        """An all-reduce in the background. The arrays must not change until it is done."""
        arrays = [np.asarray(a) for a in arrays]
        if self.overlaps:
            return self._background.submit(lambda: self._in_background(arrays, mean, pack, place))
        pending = Pending(self._background, -1, lambda: self.all_reduce(arrays, mean, pack, place))
        pending.run()
        return pending

    def pays_beside(self, sizes: Sequence[int], work: float) -> bool:
        """Whether all-reduces of so many bytes each should run beside work of so many seconds."""
        return self.overlaps and min(sum(self.network.seconds(self.size, n) for n in sizes), work) > BACKGROUND

    def drain(self) -> None:
        """Returns when nothing runs in the background."""
        self._background.drain()

    def packs(self, arrays: Sequence[Any], size: int | None = None) -> list[list[int]]:
        """Which arrays an all-reduce sends together: of one dtype, in order, up to `size` bytes; a larger one alone.

        arrays: what has `dtype` and `nbytes`. size: default: what suits the network.
        """
        size = size or self.network.pack(self.size)
        found: list[list[int]] = []
        open_packs: dict[Any, tuple[list[int], int]] = {}
        for index, array in enumerate(arrays):
            together, filled = open_packs.get(array.dtype, ([], 0))
            if not together or filled + array.nbytes > size:
                together, filled = [], 0
                found.append(together)
            together.append(index)
            open_packs[array.dtype] = together, filled + array.nbytes
        return found

    def all_gather(self, arrays: Sequence[np.ndarray], axis: int, place: str = "") -> list[np.ndarray]:
        """The workers' arrays one after the other along an axis, in which alone their shapes may differ."""
        arrays = [np.moveaxis(np.asarray(a), axis, 0) for a in arrays]
        kinds = tuple([f"{a.dtype}[?{''.join(f', {n}' for n in a.shape[1:])}]" for a in arrays])
        doing = Operation("all_gather", f"axis {axis}", kinds, place)
        with self._turn():
            self.agree(doing)
            lengths = self._numbers([a.shape[0] for a in arrays], doing)
            return [
                np.moveaxis(self._gathered(a, [int(n) for n in lengths[:, i]], doing), 0, axis)
                for i, a in enumerate(arrays)
            ]

    def broadcast(self, arrays: Sequence[np.ndarray], root: int = 0, place: str = "") -> list[np.ndarray]:
        """The arrays of one worker."""
        arrays = [np.asarray(a) for a in arrays]
        doing = Operation("broadcast", f"from rank {root}", tuple(map(_described, arrays)), place)
        results: list[Any] = [None] * len(arrays)
        with self._turn():
            self.agree(doing)
            for together in self.packs(arrays):
                pack = [arrays[i] for i in together]
                taken = np.concatenate([array.reshape(-1) for array in pack])
                self.sent += taken.nbytes if self.rank == root else 0
                self._copy(taken.view(np.uint8), root, doing)
                for i, array in zip(together, _divided(pack, taken)):
                    results[i] = array
        return results

    def barrier(self, place: str = "") -> None:
        """Returns when all workers have called it."""
        with self._turn():
            self.agree(Operation("barrier", "", (), place))

    def tell(self, text: str) -> list[str]:
        """The texts of all workers."""
        with self._turn():
            doing = Operation("tell", "", ())
            self.agree(doing)
            return self._texts(text, doing)

    def agree(self, doing: Operation) -> None:
        """Returns when all workers have come to this operation.

        Raises InvalidArgumentError, which names the ranks and their operations, where they have come to others.
        """
        if self._failed is not None:
            raise self._failed
        self.calls += 1
        heads = self._numbers([self.calls, doing.digest], doing)
        if (heads == heads[0]).all():
            return
        # All have seen the same heads, so that all are here.
        there = self._texts(f"{doing} (operation {self.calls})", doing)
        self._failed = InvalidArgumentError(
            "The workers called different collective operations:\n"
            + "".join(f"  rank {rank}: {text}\n" for rank, text in enumerate(there))
            + "All workers must run the same operations in the same order: a condition around one must not depend on "
            "the replica or on what only one replica has seen."
        )
        raise self._failed

    # --- their parts ---------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """A block for operations that the program waits for, after those in the background."""
        self._background.drain()
        with self._lock:
            yield

    def _in_background(
        self, arrays: Sequence[np.ndarray], mean: bool, pack: int | None, place: str
    ) -> list[np.ndarray]:
        size = sum(array.nbytes for array in arrays)
        try:
            with span("collective", "all_reduce in the background", bytes=size):
                return self.all_reduce(arrays, mean, pack, place)
        except BaseException as error:
            # The program hasn't heard of it yet, and what it has started after this can't run.
            self._failed = self._failed or self._left("all_reduce", error)
            raise

    def _left(self, doing: Any, error: BaseException) -> Exception:
        """What operations raise after one that this worker has left by an error of its own."""
        return UnavailableError(f"rank {self.rank} has left {doing} by {type(error).__name__}")

    def _all_reduce_pack(
        self, arrays: Sequence[np.ndarray], mean: bool, pack: int | None, place: str
    ) -> list[np.ndarray]:
        detail = ("MEAN" if mean else "SUM") + (f", packs of {pack} bytes" if pack else "")
        doing = Operation("all_reduce", detail, tuple(map(_described, arrays)), place)
        self.agree(doing)
        return _divided(arrays, self._reduced(_joined(arrays), mean, doing))

    def _reduced(self, vector: np.ndarray, mean: bool, doing: Operation) -> np.ndarray:
        sent, width = vector.view(np.uint8), vector.itemsize
        if vector.nbytes * self.size <= SHORT:
            self.sent += vector.nbytes * (self.size - 1)
            parts = self._join(sent, [vector.nbytes] * self.size, doing)
            return _summed(parts.view(vector.dtype).reshape(self.size, -1), mean)
        counts = [width * (vector.size * (k + 1) // self.size - vector.size * k // self.size) for k in range(self.size)]
        own = counts[self.rank]
        self.sent += vector.nbytes - own + own * (self.size - 1)
        total = _summed(self._exchange(sent, counts, doing).view(vector.dtype), mean)
        return self._join(total.view(np.uint8), counts, doing).view(vector.dtype)

    def _gathered(self, array: np.ndarray, lengths: Sequence[int], doing: Operation) -> np.ndarray:
        row = int(np.prod(array.shape[1:], dtype=np.int64)) * array.itemsize
        self.sent += array.nbytes * (self.size - 1)
        part = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        joined = self._join(part, [n * row for n in lengths], doing)
        return joined.view(array.dtype).reshape(sum(lengths), *array.shape[1:])

    def _numbers(self, numbers: Sequence[int], doing: Operation) -> np.ndarray:
        """The workers' numbers, as rows."""
        vector = np.array(numbers, np.int64)
        joined = self._join(vector.view(np.uint8), [vector.nbytes] * self.size, doing)
        return joined.view(np.int64).reshape(self.size, -1)

    def _texts(self, text: str, doing: Operation) -> list[str]:
        encoded = np.frombuffer(text.encode(), np.uint8)
        lengths = [int(n) for n in self._numbers([encoded.size], doing)[:, 0]]
        joined = self._join(encoded, lengths, doing)
        return [part.tobytes().decode() for part in np.split(joined, np.cumsum(lengths)[:-1])]


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The elements of arrays of one dtype one after the other; the memory of the only one if it lies that way."""
    if len(arrays) == 1:
        return np.ascontiguousarray(arrays[0]).reshape(-1)
    return np.concatenate([array.reshape(-1) for array in arrays])


def _divided(arrays: Sequence[np.ndarray], vector: np.ndarray) -> list[np.ndarray]:
    """The parts of a vector, shaped as the arrays."""
    ends = np.cumsum([array.size for array in arrays])
    return [vector[end - array.size : end].reshape(array.shape) for array, end in zip(arrays, ends)]


def _summed(parts: np.ndarray, mean: bool) -> np.ndarray:
    """The sum or mean of rows, from the first to the last."""
    dtype = parts.dtype
    # ml_dtypes' floats are of kind V.
    total = parts[0].astype(np.float32 if dtype.itemsize <= 2 and dtype.kind in "fV" else dtype)
    for part in parts[1:]:
        total += part.astype(total.dtype, copy=False)
    if mean and dtype.kind in "iu":
        # Python's // rounds down. Sums of short integers, which have wrapped by now, fit into 64 bits.
        wide = total.astype(np.uint64 if dtype.kind == "u" else np.int64, copy=False)
        count = wide.dtype.type(len(parts))
        total = (wide - np.fmod(wide, count)) // count
    elif mean:
        total /= total.dtype.type(len(parts))
    return total.astype(dtype, copy=False)


def _described(array: np.ndarray) -> str:
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"
