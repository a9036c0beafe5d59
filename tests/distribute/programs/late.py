"""The last worker fails once MPI is there, before it makes a strategy."""

from mpi4py import MPI

import autograph as ag

if MPI.COMM_WORLD.Get_rank() == MPI.COMM_WORLD.Get_size() - 1:
    raise ValueError("no such luck")
options = ag.distribute.experimental.CommunicationOptions(timeout_seconds=2.0)
ag.distribute.MultiWorkerMirroredStrategy(communication_options=options)
