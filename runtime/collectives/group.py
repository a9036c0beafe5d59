"""Workers that compute together. What they all call at once, in the same order, is a collective operation.

A sum is taken in the order of the ranks, whatever moves the bytes and whichever worker comes first: the same bits for
the same number of workers. Each worker sums up one n-th of the elements and hands the result to the others:

    all_to_all    a worker sends the k-th part of its array to worker k        (n - 1) / n of the bytes
    sum           in the order of the ranks
    all_gather    each worker's part to all                                    (n - 1) / n of the bytes

which is what a ring sends, and the least that an all-reduce can. Short arrays are sent to all in one step instead, and
each worker sums them up itself, to the same bits. Arrays of one dtype travel together, in packs of a bounded size.

Each operation begins with an exchange of what it is, so that workers that have come to different ones hear it, rather
than waiting forever or summing up what doesn't belong together.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runtime.errors import InvalidArgumentError

# Arrays up to this many bytes, of all workers together, are sent to all in one step.
SHORT = 1 << 16
# How many bytes travel together, unless the caller says otherwise.
PACK = 32 << 20


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
    """Workers, of which this is the one with a rank. Subclasses move bytes: `_to_all` and `_exchange`.

    rank    the worker's number, from 0; size: how many there are
    sent    how many bytes this worker has sent to others in operations on arrays, heads and lengths left out
    """

    rank: int
    size: int

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self.sent = 0
        self.calls = 0
        self._lock = threading.RLock()

    # --- what moves bytes ----------------------------------------------------------------------------------------

    def _to_all(self, part: np.ndarray, doing: Operation) -> np.ndarray:
        """The `part`s (vectors of bytes, equally long) of all workers, as rows."""
        raise NotImplementedError

    def _exchange(self, parts: np.ndarray, doing: Operation) -> np.ndarray:
        """Of rows of bytes, one for each worker, those that the workers have for this one."""
        raise NotImplementedError

    def _refuse(self, error: Exception) -> Exception:
        """What is raised for an operation that the workers don't agree on."""
        return error

    # --- operations ----------------------------------------------------------------------------------------------

    def all_reduce(
        self, arrays: Sequence[np.ndarray], mean: bool = False, pack: int | None = None, place: str = ""
    ) -> list[np.ndarray]:
        """The sums, or means, of the workers' arrays. pack: how many bytes travel together at most.

        Numbers of 16 bits are summed up in 32. Means of integers are rounded towards zero.
        """
        arrays = [np.asarray(a) for a in arrays]
        doing = Operation("all_reduce", "MEAN" if mean else "SUM", tuple(map(_described, arrays)), place)
        results: list[Any] = [None] * len(arrays)
        with self._lock:
            self.agree(doing)
            for together in packs(arrays, pack or PACK):
                joined = np.concatenate([arrays[i].reshape(-1) for i in together])
                summed = self._reduced(joined, mean, doing)
                start = 0
                for i in together:
                    results[i] = summed[start : start + arrays[i].size].reshape(arrays[i].shape)
                    start += arrays[i].size
        return results

    def all_gather(self, arrays: Sequence[np.ndarray], axis: int, place: str = "") -> list[np.ndarray]:
        """The workers' arrays one after the other along an axis, in which alone their shapes may differ."""
        arrays = [np.moveaxis(np.asarray(a), axis, 0) for a in arrays]
        kinds = tuple([f"{a.dtype}[?{''.join(f', {n}' for n in a.shape[1:])}]" for a in arrays])
        doing = Operation("all_gather", f"axis {axis}", kinds, place)
        with self._lock:
            self.agree(doing)
            lengths = self._numbers([a.shape[0] for a in arrays], doing)
            return [
                np.moveaxis(np.concatenate(self._gathered(a, lengths[:, i], doing)), 0, axis)
                for i, a in enumerate(arrays)
            ]

    def broadcast(self, arrays: Sequence[np.ndarray], root: int = 0, place: str = "") -> list[np.ndarray]:
        """The arrays of one worker."""
        arrays = [np.asarray(a) for a in arrays]
        doing = Operation("broadcast", f"from rank {root}", tuple(map(_described, arrays)), place)
        results: list[Any] = [None] * len(arrays)
        with self._lock:
            self.agree(doing)
            for together in packs(arrays, PACK):
                joined = np.concatenate([np.ascontiguousarray(arrays[i]).reshape(-1) for i in together])
                taken = self._from(joined.view(np.uint8), root, doing).view(joined.dtype)
                start = 0
                for i in together:
                    results[i] = taken[start : start + arrays[i].size].reshape(arrays[i].shape)
                    start += arrays[i].size
        return results

    def barrier(self, place: str = "") -> None:
        """Returns when all workers have called it."""
        with self._lock:
            self.agree(Operation("barrier", "", (), place))

    def tell(self, text: str) -> list[str]:
        """The texts of all workers."""
        with self._lock:
            doing = Operation("tell", "", ())
            self.agree(doing)
            return self._texts(text, doing)

    def agree(self, doing: Operation) -> None:
        """Returns when all workers have come to this operation.

        Raises InvalidArgumentError, which names the ranks and their operations, where they have come to others.
        """
        self.calls += 1
        heads = self._numbers([self.calls, doing.digest], doing)
        if (heads == heads[0]).all():
            return
        # All have seen the same heads, so that all are here.
        there = self._texts(f"{doing} (operation {self.calls})", doing)
        raise self._refuse(
            InvalidArgumentError(
                "The workers have come to different collective operations:\n"
                + "".join(f"  rank {rank}: {text}\n" for rank, text in enumerate(there))
                + "All workers must run the same operations in the same order: a condition around one must not "
                "depend on the replica or on what only one replica has seen."
            )
        )

    # --- their parts ---------------------------------------------------------------------------------------------

    def _reduced(self, vector: np.ndarray, mean: bool, doing: Operation) -> np.ndarray:
        if self.size == 1:
            return vector.copy()
        wire = vector.dtype
        if vector.nbytes * self.size <= SHORT:
            self.sent += vector.nbytes * (self.size - 1)
            parts = self._to_all(vector.view(np.uint8), doing).view(wire)
            return _summed(parts, mean)
        length = -(-vector.size // self.size)
        padded = np.zeros(length * self.size, wire)
        padded[: vector.size] = vector
        self.sent += 2 * length * wire.itemsize * (self.size - 1)
        mine = self._exchange(padded.view(np.uint8).reshape(self.size, -1), doing).view(wire)
        whole = self._to_all(_summed(mine, mean).view(np.uint8), doing).view(wire)
        return whole.reshape(-1)[: vector.size]

    def _gathered(self, array: np.ndarray, lengths: np.ndarray, doing: Operation) -> list[np.ndarray]:
        row = int(np.prod(array.shape[1:], dtype=np.int64)) * array.itemsize
        longest = int(lengths.max()) * row
        padded = np.zeros(longest, np.uint8)
        padded[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.sent += longest * (self.size - 1)
        parts = self._to_all(padded, doing) if longest else np.zeros((self.size, 0), np.uint8)
        return [
            part[: int(n) * row].view(array.dtype).reshape(int(n), *array.shape[1:]) for part, n in zip(parts, lengths)
        ]

    def _from(self, data: np.ndarray, root: int, doing: Operation) -> np.ndarray:
        """One worker's bytes: it sends each a part, and they hand these to all."""
        if self.size == 1:
            return data.copy()
        length = -(-data.size // self.size)
        padded = np.zeros(length * self.size, np.uint8)
        if self.rank == root:
            padded[: data.size] = data
        self.sent += 2 * length * (self.size - 1)
        mine = self._exchange(padded.reshape(self.size, length), doing)[root]
        return self._to_all(np.ascontiguousarray(mine), doing).reshape(-1)[: data.size]

    def _numbers(self, numbers: Sequence[int], doing: Operation) -> np.ndarray:
        """The workers' numbers, as rows."""
        vector = np.array(numbers, np.int64)
        return self._to_all(vector.view(np.uint8), doing).view(np.int64)

    def _texts(self, text: str, doing: Operation) -> list[str]:
        encoded = np.frombuffer(text.encode(), np.uint8)
        lengths = self._numbers([encoded.size], doing)
        parts = self._gathered(encoded, lengths[:, 0], doing)
        return [part.tobytes().decode() for part in parts]


def packs(arrays: Sequence[np.ndarray], size: int) -> list[list[int]]:
    """Which arrays travel together: of one dtype, in order, up to `size` bytes; a larger one travels alone."""
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


def _summed(parts: np.ndarray, mean: bool) -> np.ndarray:
    """The sum or mean of rows, from the first to the last."""
    dtype = parts.dtype
    wide = np.dtype(np.float32) if dtype.itemsize == 2 and dtype.kind in "fV" else dtype
    total = parts[0].astype(wide)
    for part in parts[1:]:
        total += part.astype(wide, copy=False)
    if mean:
        if dtype.kind in "iu":
            total = np.sign(total) * (np.abs(total) // total.dtype.type(len(parts)))
        else:
            total /= total.dtype.type(len(parts))
    return total.astype(dtype, copy=False)


def _described(array: np.ndarray) -> str:
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"
