"""The last worker fails in a way that the command line names, in the third step of a training loop; each worker prints
what becomes of it."""

import os
import signal
import sys
import time

import autograph as ag

HOW = sys.argv[1]
options = ag.distribute.experimental.CommunicationOptions(timeout_seconds=2.0)
strategy = ag.distribute.MultiWorkerMirroredStrategy(communication_options=options)
RANK, SIZE = strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync


def fail():
    if HOW == "raise":
        raise ValueError("no such luck")
    if HOW == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if HOW == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if HOW == "stall":
        time.sleep(60)
    if HOW == "leave":
        sys.exit(0)


@ag.function
def step(x):
    context = ag.distribute.get_replica_context()
    if HOW == "branch" and RANK == SIZE - 1:
        return context.all_reduce("SUM", ag.reduce_sum(x))
    return context.all_reduce("SUM", x)


try:
    for number in range(5):
        if number == 2 and RANK == SIZE - 1:
            fail()
        strategy.run(step, args=(ag.ones([10]),))
except ag.errors.OpError as error:
    print(f"rank {RANK} heard: {type(error).__name__}: {error}", flush=True)
    raise
print(f"rank {RANK} is done", flush=True)
