"""Workers that are threads of this process, for tests of what groups and graphs do without MPI."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime.collectives.group import Group, Operation

_SECONDS = 30.0  # after which a worker that waits gives up: the test fails


class Meeting:
    """Where the workers of a group lay down what they send."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.parts: list[Any] = [None] * size

    def exchange(self, rank: int, part: np.ndarray) -> list[np.ndarray]:
        """What all workers have laid down."""
        self.parts[rank] = part
        self.barrier.wait(_SECONDS)
        found = [np.array(each) for each in self.parts]
        self.barrier.wait(_SECONDS)
        return found


class ThreadGroup(Group):
    """One worker's view of them. log: the operations that it has begun."""

    def __init__(self, meeting: Meeting, rank: int) -> None:
        super().__init__(rank, len(meeting.parts))
        self._meeting = meeting
        self.log: list[str] = []

    def agree(self, doing: Operation) -> None:
        """As `Group.agree`; keeps the operation."""
        self.log.append(str(doing))
        super().agree(doing)

    def _join(self, part: np.ndarray, counts: Sequence[int], doing: Operation) -> np.ndarray:
        return np.concatenate(self._meeting.exchange(self.rank, part))

    def _exchange(self, vector: np.ndarray, counts: Sequence[int], doing: Operation) -> np.ndarray:
        start = sum(counts[: self.rank])
        parts = self._meeting.exchange(self.rank, vector)
        return np.stack([part[start : start + counts[self.rank]] for part in parts])

    def _copy(self, vector: np.ndarray, root: int, doing: Operation) -> None:
        vector[...] = self._meeting.exchange(self.rank, vector)[root]


def groups(size: int) -> list[ThreadGroup]:
    """A group of threads, as each of them sees it."""
    meeting = Meeting(size)
    return [ThreadGroup(meeting, rank) for rank in range(size)]


def together(workers: Sequence[Group], work: Callable[[Any], Any]) -> list[Any]:
    """The results of `work(group)`, which runs in a thread for each worker; exceptions are results too."""
    results: list[Any] = [None] * len(workers)

    def run(group: Group) -> None:
        try:
            results[group.rank] = work(group)
        except BaseException as error:
            results[group.rank] = error

    threads = [threading.Thread(target=run, args=(group,), daemon=True) for group in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * _SECONDS)
        assert not thread.is_alive(), "a worker hangs"
    return results
