"""A replica in each process that MPI has started."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np

from autograph.distribute.options import CommunicationOptions
from autograph.distribute.strategy import Strategy, StrategyExtended
from autograph.distribute.variables import creating
from runtime.collectives import world
from runtime.ops.random.stateful import STREAMS


class ClusterSpec:
    """The processes of a cluster: `as_dict()` returns {"worker": [one address each]}."""

    def __init__(self, workers: list[str]) -> None:
        self._workers = workers

    def as_dict(self) -> dict[str, list[str]]:
        """The addresses of the tasks of each job."""
        return {"worker": list(self._workers)}

    def num_tasks(self, job_name: str) -> int:
        """The number of tasks of a job. Raises ValueError for an unknown job."""
        if job_name != "worker":
            raise ValueError(f"No such job in cluster: {job_name!r}")
        return len(self._workers)


class ClusterResolver:
    """The role of this process: `task_type` is "worker", `task_id` the rank; rank 0 is the chief."""

    def __init__(self, group: Any) -> None:
        self.task_type = "worker"
        self.task_id: int = group.rank
        self._workers = [f"{host}:{rank}" for rank, host in enumerate(group.hosts)]

    def cluster_spec(self) -> ClusterSpec:
        """The processes of the cluster."""
        return ClusterSpec(self._workers)


class _Extended(StrategyExtended):
    def __init__(self, strategy: MultiWorkerMirroredStrategy) -> None:
        super().__init__(strategy)
        self.num_hosts = strategy.num_replicas_in_sync

    def _in_multi_worker_mode(self) -> bool:
        return self.num_hosts > 1


class MultiWorkerMirroredStrategy(Strategy):
    """A replica in each process of `mpiexec -n 4 python train.py`; without `mpiexec`, in this one.

    All processes run the same program. Variables made in its `scope` have a copy in each, which starts with the value
    of rank 0. Without a seed, random numbers are the same in all processes, so that they shuffle alike; in replicas
    (`run`) each process draws its own.

    cluster_resolver       without effect: MPI determines the processes
    communication_options  `ag.distribute.experimental.CommunicationOptions`
    communicator           an `mpi4py.MPI.Comm` of the processes; default: all

    Raises UnimplementedError if mpi4py or an MPI library is missing, TypeError for options of another class.
    """

    def __init__(
        self, cluster_resolver: Any = None, communication_options: CommunicationOptions | None = None,
        communicator: Any = None,
    ) -> None:  # fmt: skip
        options = CommunicationOptions() if communication_options is None else communication_options
        if not isinstance(options, CommunicationOptions):
            raise TypeError(
                "communication_options must be an ag.distribute.experimental.CommunicationOptions, got "
                f"{communication_options!r}"
            )
        self._group = world.joined(communicator, options.timeout_seconds)
        self._pack = options.bytes_per_pack or None
        self.extended = _Extended(self)
        self.cluster_resolver = ClusterResolver(self._group)
        self._agree_on_numbers()

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of processes."""
        return self._group.size

    def _creating(self) -> contextlib.AbstractContextManager[None]:
        return creating(self._group)

    def _agree_on_numbers(self) -> None:
        if self._group.size > 1 and STREAMS.global_seed is None:
            (seed,) = self._group.broadcast([np.array(random.SystemRandom().randrange(2**31 - 1), np.int64)])
            STREAMS.agree(int(seed))

    def __reduce__(self) -> Any:
        raise TypeError("a strategy can't be pickled: make one in each process")
