"""The last worker fails in a way that the command line names, in the third step of a training loop; each worker prints
what becomes of it. With a second argument, workers reduce in the background."""

import os
import signal
import sys
import threading
import time

import autograph as ag
from runtime.collectives import group

HOW = sys.argv[1]
if sys.argv[2:]:
    group.BACKGROUND = -1.0  # whatever it costs
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
    if HOW == "interrupt":  # while it waits for the others
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()


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
        if number == 2 and HOW == "interrupt" and RANK < SIZE - 1:
            time.sleep(1.5)
        strategy.run(step, args=(ag.ones([10]),))
except ag.errors.OpError as error:
    print(f"rank {RANK} heard: {type(error).__name__}: {error}", flush=True)
    raise
print(f"rank {RANK} is done", flush=True)
