"""What happens where workers come to different operations: all of them raise an error that says what each was doing.

Each case runs on a communicator of its own, since nothing can follow such an error. With an argument, workers reduce in
the background.
"""

import re
import sys

import numpy as np
from mpi4py import MPI

import autograph as ag
from runtime.collectives import group

if sys.argv[1:]:
    group.BACKGROUND = -1.0  # whatever it costs
RANK, SIZE = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
LAST = RANK == SIZE - 1  # the worker that does something else
Options = ag.distribute.experimental.CommunicationOptions


def all_reduce(x, op="SUM", options=None):
    return ag.distribute.get_replica_context().all_reduce(op, x, options)


def other_operation(x):
    return ag.distribute.get_replica_context().all_gather(x, 0) if LAST else all_reduce(x)


def other_reduction(x):
    return all_reduce(x, "MEAN" if LAST else "SUM")


def other_shape(x):
    return all_reduce(x[:2] if LAST else x)


def other_dtype(x):
    return all_reduce(ag.cast(x, ag.float64) if LAST else x)


def other_number_of_tensors(x):
    return all_reduce([x, x] if LAST else [x])


def other_size_of_packs(x):
    return all_reduce(x, options=Options(bytes_per_pack=8 if LAST else 16))


def other_order(x):
    a, b = (all_reduce(part) for part in ([x[:1], x] if LAST else [x, x[:1]]))
    return a if a.shape == x.shape else b


def other_axis(x):
    return ag.distribute.get_replica_context().all_gather(ag.reshape(x, [1, -1]), 1 if LAST else 0)


def other_rows(x):
    return ag.distribute.get_replica_context().all_gather(ag.ones([RANK + 1, 3 if LAST else 2]), 0)


def other_branch(x):
    if x[0] > SIZE - 0.5:
        return x
    return all_reduce(x)


def other_number_of_trips(x):
    trips = ag.cast(x[0], ag.int32)
    i = 0
    while i < trips:
        x = all_reduce(x)
        i += 1
    return x


def other_gradient(x):
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = all_reduce(x)
        loss = ag.reduce_sum(y) if LAST else ag.reduce_sum(all_reduce(y))
    return tape.gradient(loss, x)


CASES = (
    other_operation, other_reduction, other_shape, other_dtype, other_number_of_tensors, other_size_of_packs,
    other_order, other_axis, other_rows, other_branch, other_number_of_trips, other_gradient,
)  # fmt: skip
for case in CASES:
    for how in (lambda f: f, ag.function, lambda f: ag.function(f, jit_compile=True)):
        # Whoever comes too late, or never, would be noticed by this limit only, with another error.
        strategy = ag.distribute.MultiWorkerMirroredStrategy(
            communication_options=Options(timeout_seconds=30.0), communicator=MPI.COMM_WORLD.Dup()
        )
        x = ag.constant(np.arange(4.0, dtype=np.float32) + RANK + 1)
        try:
            strategy.run(how(case), args=(x,))
            strategy.reduce("SUM", x, axis=None)  # what those that have left come to next
            strategy.gather(x, axis=0)
        except ag.errors.InvalidArgumentError as error:
            message = str(error)
        else:
            raise AssertionError(f"{case.__name__} wasn't noticed")
        said = re.findall(r"rank (\d+): (.*)", message)
        assert [int(rank) for rank, _ in said] == list(range(SIZE)), message
        assert said[-1][1] not in [text for _, text in said[:-1]], message
        assert all("mismatches.py:" in text for _, text in said), message
        try:
            strategy.reduce("SUM", x, axis=None)
        except ag.errors.InvalidArgumentError as error:
            assert str(error).startswith("The workers called different"), error
        else:
            raise AssertionError("an operation went on after workers had parted")
    if RANK == 0:
        print(case.__name__, flush=True)
