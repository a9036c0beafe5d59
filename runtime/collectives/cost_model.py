"""What a collective operation costs: it decides how many bytes travel together, and what runs in the background.

All workers must choose alike, so these are constants: nothing is measured while a program runs.
"""

from __future__ import annotations

import math

from runtime.dataclass import dataclass

# Arrays up to this many bytes, of all workers together, are sent to all in one step.
SHORT = 1 << 16
# The least and most bytes that travel together, unless the caller says otherwise.
_LEAST_PACK, _MOST_PACK = 1 << 20, 32 << 20
# How much of an operation's time messages may take, rather than bytes, before more bytes travel together. Trades that
# time against operations that can begin only when all of their bytes are there. Estimated.
_MESSAGES = 1 / 8
# Seconds that an operation, and the work beside it, must take to run in the background. Trades the time that it may
# hide against threads that wake each other and kernels that are split. `python -m benchmarks.workers` measures 10 to
# 20 us for the former (docs/scaling.md); a kernel that is split costs a few more.
BACKGROUND = 50e-6


@dataclass(frozen=True)
class Network:
    """message: seconds that a message takes, without its bytes; bandwidth: bytes a second."""

    message: float
    bandwidth: float

    def seconds(self, workers: int, size: int) -> float:
        """The time of an all-reduce of so many bytes, which travel in packs."""
        pack = self.pack(workers)
        whole, rest = divmod(size, pack)
        return whole * self._together(workers, pack) + (self._together(workers, rest) if rest or not whole else 0.0)

    def pack(self, workers: int) -> int:
        """How many bytes should travel together: a power of two."""
        size = _LEAST_PACK
        while size < _MOST_PACK and messages(workers, size) * self.message > _MESSAGES * self._together(workers, size):
            size *= 2
        return size

    def _together(self, workers: int, size: int) -> float:
        return messages(workers, size) * self.message + sent(workers, size) / self.bandwidth


# Between processes of one machine: `python -m benchmarks.workers` measures it (docs/scaling.md).
SHARED_MEMORY = Network(8e-6, 9.7e9)
# Between machines: 25 Gbit/s. Estimated.
ETHERNET = Network(20e-6, 25e9 / 8)


def messages(workers: int, size: int) -> float:
    """How many messages an all-reduce of so many bytes, which travel together, sends one after the other.

    All workers first tell each other what they are about to do, which takes log2(n) messages. Few bytes are sent to all
    in the same way; of many, a worker sends a part to each other one, and the sum of its own part.
    """
    if workers == 1:
        return 0.0
    is_short = size * workers <= SHORT
    return math.log2(workers) * (2 if is_short else 1) + 2 * (workers - 1) * (not is_short)


def sent(workers: int, size: int) -> float:
    """How many bytes each worker sends for an all-reduce of so many bytes."""
    return (workers - 1) * (size if size * workers <= SHORT else 2 * size / workers)
