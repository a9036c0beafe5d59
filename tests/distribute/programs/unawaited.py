"""The last worker ends while its last operation is under way in the background, before the others come to it."""

import time

import numpy as np

from runtime.collectives.mpi import MpiGroup

group = MpiGroup()
group.barrier()
if group.rank < group.size - 1:
    time.sleep(1.0)
pending = group.start_all_reduce([np.ones(100_000)])
if group.rank < group.size - 1:
    (total,) = pending.results()
    print(f"rank {group.rank}: {total[0]:.0f}", flush=True)
