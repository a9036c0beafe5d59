"""Fits a model by steps on any number of workers, from the last checkpoint on; says where it begins and how it ends.

train.py FOLDER STEPS EVERY [PAUSE [LIMIT [background]]]
    EVERY       after so many steps there is a checkpoint
    PAUSE       seconds for each step
    LIMIT       for how many seconds a worker waits for the others
    background  workers reduce in the background

SIGUSR1 makes a worker raise an exception, wherever it is.
"""

import signal
import sys
import time

import numpy as np

import autograph as ag
from runtime.collectives import group

FOLDER, STEPS, EVERY = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
PAUSE = float(sys.argv[4]) if len(sys.argv) > 4 else 0.0
LIMIT = float(sys.argv[5]) if len(sys.argv) > 5 else 30.0
if sys.argv[6:]:
    group.BACKGROUND = -1.0  # whatever it costs


def fail(number, frame):
    raise RuntimeError("told to fail")


signal.signal(signal.SIGUSR1, fail)
options = ag.distribute.experimental.CommunicationOptions(timeout_seconds=LIMIT)
strategy = ag.distribute.MultiWorkerMirroredStrategy(communication_options=options)
RANK = strategy.cluster_resolver.task_id
BATCH = 24

rng = np.random.default_rng(0)
inputs = rng.normal(size=(240, 4))
targets = inputs @ np.array([[1.0], [-2.0], [0.5], [3.0]]) + 0.1 * rng.normal(size=(240, 1))
batches = ag.data.Dataset.from_tensor_slices((inputs, targets)).shuffle(240, seed=1).repeat().batch(BATCH)
with strategy.scope():
    weights = ag.Variable(np.zeros((4, 1)))
    step = ag.Variable(0, dtype=ag.int64)
    seen = ag.Variable(
        0, dtype=ag.int64, synchronization=ag.VariableSynchronization.ON_READ, aggregation=ag.VariableAggregation.SUM
    )
iterator = iter(strategy.experimental_distribute_dataset(batches))
checkpoint = ag.train.Checkpoint(weights=weights, step=step, seen=seen, iterator=iterator)
manager = ag.train.CheckpointManager(checkpoint, FOLDER, max_to_keep=2)
checkpoint.restore(manager.latest_checkpoint)
print(f"rank {RANK} of {strategy.num_replicas_in_sync} begins at step {int(step)}", flush=True)


def replica(x, y):
    with ag.GradientTape() as tape:
        loss = ag.reduce_sum((ag.matmul(x, weights) - y) ** 2) / BATCH
    gradient = ag.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, weights))
    strategy.extended.update(weights, lambda variable, change: variable.assign_sub(0.02 * change), args=(gradient,))
    seen.assign_add(ag.cast(ag.shape(x)[0], ag.int64))
    return loss


@ag.function
def train(iterator):
    x, y = next(iterator)
    return strategy.reduce("SUM", strategy.run(replica, args=(x, y)), axis=None)


while int(step) < STEPS:
    train(iterator)
    step.assign_add(1)
    time.sleep(PAUSE)
    if int(step) % EVERY == 0:
        manager.save()
        if RANK == 0:
            print(f"saved {int(step)}", flush=True)
total = int(seen)
if RANK == 0:
    print("ends with", total, *[repr(float(w)) for w in weights.numpy()[:, 0]], flush=True)
